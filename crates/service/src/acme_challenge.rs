//! The HTTP challenge of public CAs (RFC 8555 section 8.3), which comes before everything that a site says.

use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Response};
use regent_exchange::ResponseBody;
use regent_handlers::Exchange;
use regent_tls::Tls;

const PREFIX: &str = "/.well-known/acme-challenge/";

/// The token that is asked for, if the request may be that of a CA.
pub(crate) fn token(exchange: &Exchange) -> Option<&str> {
    let token = exchange.uri.path().strip_prefix(PREFIX)?;
    let is_base64url = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (exchange.method == Method::GET && !token.is_empty() && token.bytes().all(is_base64url)).then_some(token)
}

/// `None`: no CA is to find such a token now, and the request is for the sites. `host`: without port.
pub(crate) fn response(
    tls: &Tls,
    host: &str,
    token: &str,
) -> impl Future<Output = Option<Response<ResponseBody>>> + use<> {
    let (tls, host, token) = (tls.clone(), host.to_owned(), token.to_owned());
    async move {
        // It may read a file.
        let found = tokio::task::spawn_blocking(move || tls.http_challenge(&host, &token)).await;
        let mut response = Response::new(ResponseBody::full(found.ok()??));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        Some(response)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;
    use regent_exchange::Connection;

    fn token_of(method: &str, target: &str) -> Option<String> {
        let request =
            Request::builder().method(method).uri(target).header("host", "a.test").body(()).unwrap();
        let connection = Connection { remote: None, local: None, tls: None };
        let exchange = Exchange::new(request.into_parts().0, connection);
        token(&exchange).map(str::to_owned)
    }

    #[test]
    fn only_what_a_ca_sends_is_looked_up() {
        assert_eq!(token_of("GET", "/.well-known/acme-challenge/a-B_9").as_deref(), Some("a-B_9"));
        assert_eq!(token_of("GET", "/.well-known/acme-challenge/a?b").as_deref(), Some("a"));
        for target in ["", "a/b", "../a", "a%2Fb", "a.b"] {
            assert_eq!(token_of("GET", &format!("/.well-known/acme-challenge/{target}")), None, "{target}");
        }
        assert_eq!(token_of("POST", "/.well-known/acme-challenge/a"), None);
        assert_eq!(token_of("GET", "/well-known/acme-challenge/a"), None);
    }
}
