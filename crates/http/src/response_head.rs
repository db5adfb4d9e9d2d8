//! The head of a response, as HTTP/2 and HTTP/3 may have it.

use http::response::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use http_body::SizeHint;

/// Fields that are about an HTTP/1.1 connection, and an error elsewhere (RFC 9113 §8.2.2, RFC 9114 §4.2).
const OF_A_CONNECTION: [HeaderName; 6] = [
    header::CONNECTION,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::TE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// What follows a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    None,
    /// A body; of so many bytes, if the head says it.
    Body(Option<u64>),
}

/// Removes what only HTTP/1.1 has.
pub(crate) fn drop_connection_fields(fields: &mut HeaderMap) {
    OF_A_CONNECTION.iter().for_each(|name| drop(fields.remove(name)));
}

/// The head to send of a response to a request with this method, whose body has this length. `None`: it is not a final one.
pub(crate) fn final_head(
    parts: Parts,
    method: &Method,
    body: &SizeHint,
    date: HeaderValue,
) -> Option<(Response<()>, Content)> {
    let Parts { status, headers: mut fields, .. } = parts;
    if status.is_informational() {
        return None;
    }
    drop_connection_fields(&mut fields);
    fields.entry(header::DATE).or_insert(date);
    let content = set_length(&mut fields, status, method, body);
    let mut response = Response::new(());
    *response.status_mut() = status;
    *response.headers_mut() = fields;
    Some((response, content))
}

/// A response that refuses a request, as the server words it elsewhere; its body goes with it.
pub(crate) fn refusal(status: StatusCode, date: HeaderValue) -> (Response<()>, String) {
    let text = format!("{} {}\n", status.as_u16(), status.canonical_reason().unwrap_or_default());
    let mut response = Response::new(());
    *response.status_mut() = status;
    let fields = response.headers_mut();
    fields.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    fields.insert(header::CONTENT_LENGTH, text.len().into());
    fields.insert(header::DATE, date);
    (response, text)
}

/// Makes `Content-Length` say what is true, or nothing (RFC 9110 §8.6).
fn set_length(fields: &mut HeaderMap, status: StatusCode, method: &Method, body: &SizeHint) -> Content {
    let declared = declared(fields);
    let (length, content) = match (status, body.exact()) {
        (StatusCode::NO_CONTENT, _) => (None, Content::None),
        // What it would be for `GET`, which a body that was left away does not say.
        (StatusCode::NOT_MODIFIED, _) => (declared, Content::None),
        (_, exact) if *method == Method::HEAD => {
            (declared.or(exact.filter(|length| *length > 0)), Content::None)
        }
        (_, Some(0)) => (Some(0), Content::None),
        (_, Some(exact)) => (Some(exact), Content::Body(Some(exact))),
        (_, None) => (declared, Content::Body(declared)),
    };
    match length {
        Some(length) => drop(fields.insert(header::CONTENT_LENGTH, length.into())),
        None => drop(fields.remove(header::CONTENT_LENGTH)),
    }
    content
}

/// What the service has declared, if it is one plain number.
fn declared(fields: &HeaderMap) -> Option<u64> {
    let mut values = fields.get_all(header::CONTENT_LENGTH).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    // `parse` would take a sign.
    let digits = value.to_str().ok().filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(
        status: u16,
        method: Method,
        fields: &[(&'static str, &'static str)],
        body: Option<u64>,
    ) -> (HeaderMap, Content) {
        let mut response = Response::builder().status(status);
        for (name, value) in fields {
            response = response.header(*name, *value);
        }
        let body = body.map_or(SizeHint::default(), SizeHint::with_exact);
        let parts = response.body(()).unwrap().into_parts().0;
        let date = HeaderValue::from_static("now");
        let (head, content) = final_head(parts, &method, &body, date).unwrap();
        (head.into_parts().0.headers, content)
    }

    fn length(fields: &HeaderMap) -> Option<&str> {
        fields.get(header::CONTENT_LENGTH).map(|value| value.to_str().unwrap())
    }

    #[test]
    fn the_length_is_that_of_the_body() {
        for declared in ["2", "400", "4", "abc", "+4"] {
            let (fields, content) = head(200, Method::GET, &[("content-length", declared)], Some(4));
            assert_eq!((length(&fields), content), (Some("4"), Content::Body(Some(4))), "{declared}");
        }
        assert_eq!(head(200, Method::GET, &[], Some(0)).1, Content::None);
    }

    #[test]
    fn what_is_declared_of_a_body_of_unknown_length_is_kept_if_it_is_a_number() {
        let (fields, content) = head(200, Method::GET, &[("content-length", "4")], None);
        assert_eq!((length(&fields), content), (Some("4"), Content::Body(Some(4))));
        for declared in
            [&[("content-length", "abc")][..], &[("content-length", "4"), ("content-length", "5")]]
        {
            let (fields, content) = head(200, Method::GET, declared, None);
            assert_eq!((length(&fields), content), (None, Content::Body(None)), "{declared:?}");
        }
    }

    #[test]
    fn a_head_that_ends_the_stream_has_no_length_but_that_of_another_response() {
        assert_eq!(
            head(204, Method::GET, &[("content-length", "4")], Some(4)),
            head(204, Method::GET, &[], Some(0))
        );
        for (status, method) in [(304, Method::GET), (200, Method::HEAD)] {
            let (fields, content) = head(status, method.clone(), &[("content-length", "4")], Some(0));
            assert_eq!((length(&fields), content), (Some("4"), Content::None), "{status}");
            assert_eq!(length(&head(status, method, &[], Some(0)).0), None, "{status}");
        }
        assert_eq!(length(&head(200, Method::HEAD, &[], Some(9)).0), Some("9"));
    }

    #[test]
    fn fields_of_a_connection_are_dropped() {
        let names = ["connection", "transfer-encoding", "upgrade", "te", "keep-alive", "proxy-connection"];
        let (fields, _) = head(200, Method::GET, &names.map(|name| (name, "close")), Some(0));
        let left: Vec<&str> = fields.keys().map(HeaderName::as_str).collect();
        assert_eq!(left, ["date", "content-length"]);
    }

    #[test]
    fn a_date_of_the_services_own_is_kept() {
        assert_eq!(head(200, Method::GET, &[("date", "then")], None).0[header::DATE], "then");
        assert_eq!(head(200, Method::GET, &[], None).0[header::DATE], "now");
    }
}
