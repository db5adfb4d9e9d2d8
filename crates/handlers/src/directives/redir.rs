//! `redir`, and redirects that other handlers make.

use crate::context::exchange::Exchange;
use crate::context::page;
use crate::error::BuildError;
use crate::paths::url_path;
use crate::templates::status::Status;
use crate::templates::text::Text;
use http::{HeaderValue, Response, StatusCode, header};
use regent_config::Template;
use regent_exchange::ResponseBody;

/// Sends the client to another place.
pub(crate) fn redirect(status: StatusCode, location: HeaderValue) -> Response<ResponseBody> {
    let mut response = page::empty(status);
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

/// The compiled directive.
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
    use crate::context::exchange::tests::get;
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
}
