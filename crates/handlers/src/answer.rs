//! Answers that are made here: error pages, redirects, `respond`.

use crate::error::BuildError;
use crate::exchange::Exchange;
use crate::text::{Text, lossy};
use crate::url_path;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use regent_config::Template;
use regent_exchange::ResponseBody;

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// A status that is written in the configuration.
pub(crate) enum Status {
    Fixed(StatusCode),
    Computed(Text),
}

impl Status {
    /// `default`: what an empty text stands for.
    pub(crate) fn compile(template: &Template, default: StatusCode) -> Result<Self, BuildError> {
        let text = Text::compile(template);
        match text.literal() {
            Some("") => Ok(Self::Fixed(default)),
            Some(literal) => {
                parse_status(literal).map(Self::Fixed).ok_or_else(|| BuildError::Status(literal.to_owned()))
            }
            None => Ok(Self::Computed(text)),
        }
    }

    /// 500 if placeholders made something else of it than a status.
    pub(crate) fn of(&self, exchange: &Exchange) -> StatusCode {
        match self {
            Self::Fixed(status) => *status,
            Self::Computed(text) => {
                parse_status(&text.render_str(exchange)).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
            }
        }
    }
}

/// A status that can end a request: not an informational one.
pub(crate) fn parse_status(text: &str) -> Option<StatusCode> {
    StatusCode::from_bytes(text.as_bytes()).ok().filter(|status| !status.is_informational())
}

/// An answer without a body.
pub(crate) fn empty(status: StatusCode) -> Response<ResponseBody> {
    with_body(status, ResponseBody::empty())
}

/// A small page that says what the status says.
pub(crate) fn error(status: StatusCode) -> Response<ResponseBody> {
    error_because(status, None)
}

/// The same with a line that says why.
pub(crate) fn error_because(status: StatusCode, reason: Option<&str>) -> Response<ResponseBody> {
    let mut text = format!("{} {}\n", status.as_str(), status.canonical_reason().unwrap_or("Error"));
    if let Some(reason) = reason {
        text.push_str(reason);
        text.push('\n');
    }
    let mut response = with_body(status, ResponseBody::full(text));
    response.headers_mut().insert(header::CONTENT_TYPE, TEXT);
    response
}

/// An answer with its length; no body where the status allows none (RFC 9110 §6.4.1).
pub(crate) fn with_body(status: StatusCode, body: ResponseBody) -> Response<ResponseBody> {
    with_fields(status, HeaderMap::new(), body)
}

/// The same with these fields. A length that they give stays: it tells of a body that is not sent.
pub(crate) fn with_fields(
    status: StatusCode,
    mut fields: HeaderMap,
    body: ResponseBody,
) -> Response<ResponseBody> {
    let bodiless = matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    let body = if bodiless { ResponseBody::empty() } else { body };
    if let Some(length) = body.len().filter(|_| !bodiless && !fields.contains_key(header::CONTENT_LENGTH)) {
        fields.insert(header::CONTENT_LENGTH, length.into());
    }
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = fields;
    response
}

/// Sends the client to another place.
pub(crate) fn redirect(status: StatusCode, location: HeaderValue) -> Response<ResponseBody> {
    let mut response = empty(status);
    response.headers_mut().insert(header::LOCATION, location);
    response
}

/// A redirect to a cleaned path of this site, with the query that the client sent.
pub(crate) fn redirect_to_path(exchange: &Exchange, path: &[u8]) -> Response<ResponseBody> {
    let mut location = Vec::with_capacity(path.len() + 32);
    url_path::encode_path(path, &mut location);
    if let Some(query) = exchange.original_uri.query().filter(|query| !query.is_empty()) {
        location.push(b'?');
        location.extend_from_slice(query.as_bytes());
    }
    redirect(StatusCode::PERMANENT_REDIRECT, location_value(&location, ""))
}

/// `redir`.
pub(crate) struct Redirect {
    to: Text,
    status: Status,
}

impl Redirect {
    pub(crate) fn compile(to: &Template, status: &Template) -> Result<Self, BuildError> {
        Ok(Self { to: Text::compile(to), status: Status::compile(status, StatusCode::FOUND)? })
    }

    pub(crate) fn answer(&self, exchange: &Exchange) -> Response<ResponseBody> {
        let location = location_value(&self.to.render(exchange), self.to.literal_start());
        redirect(self.status.of(exchange), location)
    }
}

/// `respond`.
pub(crate) struct Respond {
    /// `None`: 200, or that of the error whose page this is.
    status: Option<Status>,
    body: RespondBody,
    close: bool,
}

enum RespondBody {
    Fixed { bytes: Bytes, kind: HeaderValue },
    Computed(Text),
}

impl Respond {
    pub(crate) fn compile(status: &Template, body: &Template, close: bool) -> Result<Self, BuildError> {
        let text = Text::compile(body);
        let body = match text.literal() {
            Some(literal) => RespondBody::Fixed {
                bytes: Bytes::copy_from_slice(literal.as_bytes()),
                kind: kind_of(literal),
            },
            None => RespondBody::Computed(text),
        };
        let status = (*status != Template::default()).then(|| Status::compile(status, StatusCode::OK));
        Ok(Self { status: status.transpose()?, body, close })
    }

    pub(crate) fn answer(&self, exchange: &Exchange) -> Response<ResponseBody> {
        let (bytes, kind) = match &self.body {
            RespondBody::Fixed { bytes, kind } => (bytes.clone(), kind.clone()),
            RespondBody::Computed(text) => {
                let text = lossy(text.render(exchange).into_owned());
                let kind = kind_of(&text);
                (Bytes::from(text), kind)
            }
        };
        let default = || exchange.failure().map_or(StatusCode::OK, |failure| failure.status);
        let status = self.status.as_ref().map_or_else(default, |status| status.of(exchange));
        let mut response = with_body(status, ResponseBody::full(bytes));
        if !response.body().is_empty() {
            response.headers_mut().insert(header::CONTENT_TYPE, kind);
        }
        if self.close {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

/// JSON if the whole text is an object or array, as in Caddy.
fn kind_of(text: &str) -> HeaderValue {
    let looks_like_json = text.trim_start().starts_with(['{', '[']);
    if looks_like_json && serde_json::from_str::<serde_json::Value>(text).is_ok() { JSON } else { TEXT }
}

/// A `Location` that leads where the operator wrote it to.
///
/// `//host` and `/\host` are other hosts to a browser. Where the configuration itself (`literal_start`) does not begin
/// so, such a beginning was made by what the client sent, and becomes a single slash.
fn location_value(location: &[u8], literal_start: &str) -> HeaderValue {
    let slashes = location.iter().take_while(|byte| matches!(byte, b'/' | b'\\')).count();
    let meant = literal_start.starts_with("//");
    let rest = if slashes > 1 && !meant { &location[slashes..] } else { location };
    let mut safe = Vec::with_capacity(location.len() + 1);
    if rest.len() < location.len() {
        safe.push(b'/');
    }
    url_path::encode_unsafe(rest, &mut safe);
    // Only graphic ASCII is left, so this cannot fail.
    HeaderValue::from_bytes(&safe).unwrap_or(HeaderValue::from_static("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::tests::get;
    use regent_config::Part;

    fn location(to: Template, uri: &str) -> String {
        let redirect = Redirect::compile(&to, &Template::text("301")).unwrap();
        let response = redirect.answer(&get(uri));
        assert_eq!(response.status(), 301);
        response.headers()[header::LOCATION].to_str().unwrap().to_owned()
    }

    fn template(text: &str, name: &str) -> Template {
        Template(vec![Part::Text(text.into()), Part::Placeholder(name.into())])
    }

    #[test]
    fn redirects_stay_on_the_site_unless_the_operator_says_otherwise() {
        let uri = || Template(vec![Part::Placeholder("http.request.uri".into())]);
        assert_eq!(location(uri(), "//evil.example/../dir?x"), "/evil.example/../dir?x");
        assert_eq!(location(uri(), "/\\evil.example"), "/evil.example");
        assert_eq!(location(template("/", "http.request.uri"), "/evil.example"), "/evil.example");
        assert_eq!(location(Template::text("//cdn.example/x"), "/"), "//cdn.example/x");
        assert_eq!(
            location(template("https://x.example", "http.request.uri"), "//a?b"),
            "https://x.example//a?b"
        );
    }

    #[test]
    fn locations_hold_no_line_ends() {
        let to = template("/new", "http.request.uri.path");
        assert_eq!(location(to, "/a%0d%0aSet-Cookie:x"), "/new/a%0D%0ASet-Cookie:x");
    }

    #[test]
    fn bodies_get_a_type_and_a_length() {
        for (body, kind) in [
            ("hello", "text/plain; charset=utf-8"),
            ("{\"a\":1}", "application/json"),
            ("{x}", "text/plain; charset=utf-8"),
        ] {
            let respond = Respond::compile(&Template::text("201"), &Template::text(body), true).unwrap();
            let response = respond.answer(&get("/"));
            assert_eq!(response.status(), 201);
            assert_eq!(response.headers()[header::CONTENT_TYPE], kind);
            assert_eq!(response.headers()[header::CONTENT_LENGTH], body.len().to_string());
            assert_eq!(response.headers()[header::CONNECTION], "close");
        }
    }

    #[test]
    fn statuses_are_checked() {
        for bad in ["99", "1000", "abc", "103"] {
            let error = Respond::compile(&Template::text(bad), &Template::default(), false).err().unwrap();
            assert!(error.to_string().contains("200 to 999"), "{error}");
        }
        let computed =
            Respond::compile(&template("", "http.request.uri.query.s"), &Template::default(), false).unwrap();
        assert_eq!(computed.answer(&get("/?s=404")).status(), 404);
        assert_eq!(computed.answer(&get("/?s=x")).status(), 500);
    }

    #[test]
    fn no_content_has_no_content() {
        let respond = Respond::compile(&Template::text("204"), &Template::text("x"), false).unwrap();
        let response = respond.answer(&get("/"));
        assert!(response.body().is_empty());
        assert!(!response.headers().contains_key(header::CONTENT_LENGTH));
    }
}
