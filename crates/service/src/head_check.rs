//! What HTTP forbids in a request's head and hyper lets through.
//!
//! The connection is closed after each of these answers: what follows such a head may not be what it seems.

use crate::expected_fields::is_ambiguous;
use http::{HeaderValue, Method, Request, StatusCode, Version, header};

/// In bytes. The longest one in the IANA registry of methods, `UPDATEREDIRECTREF`, has 17.
const LONGEST_METHOD: usize = 32;

/// The codings that a request has been through.
#[derive(Clone, Copy)]
enum Coding {
    None,
    /// `chunked` and nothing else: hyper decodes it.
    Chunked,
    /// What nobody here decodes, with the status for it.
    Refused(StatusCode),
}

/// Whether names of its fields are ambiguous; or the status of a request that must not be served.
pub(crate) fn check<B>(request: &Request<B>, max_header_size: usize) -> Result<bool, StatusCode> {
    // One walk instead of a look-up for each.
    let (mut size, mut hosts, mut coding, mut are_ambiguous) = (0, 0, Coding::None, false);
    for (name, value) in request.headers() {
        size += name.as_str().len() + value.len() + 4;
        are_ambiguous |= is_ambiguous(name);
        hosts += usize::from(*name == header::HOST);
        if *name == header::TRANSFER_ENCODING {
            coding = coding.and(value);
        }
    }
    // hyper looks at the size only while a head is not complete.
    if size > max_header_size {
        return Err(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    }
    // RFC 9112 §3.2: exactly one Host field, but for HTTP/1.0.
    if hosts > 1 || (hosts == 0 && request.version() == Version::HTTP_11) {
        return Err(StatusCode::BAD_REQUEST);
    }
    if let Coding::Refused(status) = coding {
        return Err(status);
    }
    check_method(request.method())?;
    Ok(are_ambiguous)
}

/// RFC 9112 §3: a method longer than any that is known is answered with 501. Logs and scripts get it as it is.
fn check_method(method: &Method) -> Result<(), StatusCode> {
    if *method == Method::CONNECT {
        return Err(StatusCode::METHOD_NOT_ALLOWED);
    }
    if method.as_str().len() > LONGEST_METHOD {
        return Err(StatusCode::NOT_IMPLEMENTED);
    }
    Ok(())
}

impl Coding {
    /// With one more `Transfer-Encoding` field. hyper takes each one that ends in `chunked`, and would hand on a body that
    /// is still compressed, or of which another server saw another end.
    fn and(self, field: &HeaderValue) -> Self {
        let field = field.as_bytes();
        match self {
            Self::None if field.eq_ignore_ascii_case(b"chunked") => Self::Chunked,
            Self::Refused(status) => Self::Refused(status),
            Self::None | Self::Chunked => Self::Refused(refusal(field)),
        }
    }
}

/// 501 for a coding that is not known (RFC 9112 §6.1), 400 for what no client may send.
fn refusal(field: &[u8]) -> StatusCode {
    let mut codings = field.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    match codings.all(|coding| coding.is_empty() || coding.eq_ignore_ascii_case(b"chunked")) {
        true => StatusCode::BAD_REQUEST,
        false => StatusCode::NOT_IMPLEMENTED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(method: &str, fields: &[(&str, &str)]) -> Result<bool, u16> {
        let mut request = Request::builder().method(method).uri("/");
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        check(&request.body(()).unwrap(), 1024).map_err(|status| status.as_u16())
    }

    #[test]
    fn a_transfer_coding_that_is_not_chunked_alone_is_refused() {
        let coded = |codings: &[&str]| {
            let mut fields = vec![("host", "a")];
            fields.extend(codings.iter().map(|coding| ("transfer-encoding", *coding)));
            checked("POST", &fields)
        };
        assert_eq!(coded(&["chunked"]), Ok(false));
        assert_eq!(coded(&["Chunked"]), Ok(false));
        for codings in [&["gzip, chunked"], &["identity, chunked"], &["chunked;a=b, chunked"], &["xchunked"]]
        {
            assert_eq!(coded(codings), Err(501), "{codings:?}");
        }
        assert_eq!(coded(&["gzip", "chunked"]), Err(501));
        assert_eq!(coded(&["chunked", "gzip"]), Err(501));
        for codings in
            [&["chunked", "chunked"][..], &["chunked, chunked"], &[", chunked"], &["chunked,"], &[""]]
        {
            assert_eq!(coded(codings), Err(400), "{codings:?}");
        }
    }

    #[test]
    fn a_method_has_a_bound() {
        let host = [("host", "a")];
        assert_eq!(checked(&"M".repeat(LONGEST_METHOD), &host), Ok(false));
        assert_eq!(checked(&"M".repeat(LONGEST_METHOD + 1), &host), Err(501));
        assert_eq!(checked("CONNECT", &host), Err(405));
    }

    #[test]
    fn a_request_has_one_host() {
        assert_eq!(checked("GET", &[]), Err(400));
        assert_eq!(checked("GET", &[("host", "a"), ("host", "a")]), Err(400));
    }

    #[test]
    fn a_head_has_a_bound() {
        assert_eq!(checked("GET", &[("host", "a"), ("x", &"x".repeat(1024))]), Err(431));
    }
}
