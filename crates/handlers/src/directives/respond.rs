//! `respond`: a response that stands in the configuration.

use crate::context::exchange::Exchange;
use crate::context::page::{TEXT, with_body};
use crate::error::BuildError;
use crate::templates::status::Status;
use crate::templates::text::{Text, lossy};
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use regent_config::Template;
use regent_exchange::ResponseBody;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The compiled directive.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::exchange::tests::get;
    use regent_config::Part;

    fn template(text: &str, name: &str) -> Template {
        Template(vec![Part::Text(text.into()), Part::Placeholder(name.into())])
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
