//! The external account that ZeroSSL's directory asks for: ZeroSSL itself makes one for an address, or for the key of an
//! account that somebody has there (as Caddy's `generateZeroSSLEABCredentials`).

use super::error::OrderError;
use super::https::HttpsClient;
use super::options::{Acme, ExternalAccount, ZeroSslKey};
use aws_lc_rs::digest;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Method, Request, StatusCode};
use instant_acme::{BodyWrapper, HttpClient};
use serde::Deserialize;

const API: &str = "https://api.zerossl.com";

/// Whether the directory is one of ZeroSSL's, which takes no account without an external one.
pub(super) fn is_directory(url: &str) -> bool {
    url.starts_with("https://acme.zerossl.com/")
}

/// Where an account that is bound to that of this key is kept, as another key is for another one.
pub(super) fn user(key: &ZeroSslKey) -> String {
    let hash = digest::digest(&digest::SHA256, key.0.as_bytes());
    let hash: String = hash.as_ref()[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("key-{hash}")
}

/// Who is asked for an external account, and by what.
struct Question {
    url: String,
    /// A form.
    body: String,
}

#[derive(Debug, Deserialize)]
struct Answer {
    eab_kid: Option<String>,
    eab_hmac_key: Option<String>,
    error: Option<Problem>,
}

/// There is one of code 0 where there is no problem.
#[derive(Debug, Deserialize)]
struct Problem {
    code: i64,
    #[serde(default)]
    r#type: String,
}

/// A new one.
pub(super) async fn account(acme: &Acme, https: &HttpsClient) -> Result<ExternalAccount, OrderError> {
    let Question { url, body } = question(API, acme)?;
    let request = Request::builder()
        .method(Method::POST)
        .uri(url)
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(BodyWrapper::from(body.into_bytes()))
        .map_err(|error| OrderError::ZeroSsl(error.to_string()))?;
    let mut response = https.request(request).await?;
    let bytes = response.body.into_bytes().await.map_err(|error| OrderError::ZeroSsl(error.to_string()))?;
    read(response.parts.status, &bytes)
}

fn question(api: &str, acme: &Acme) -> Result<Question, OrderError> {
    let form = |name: &str, value: &str| {
        form_urlencoded::Serializer::new(String::new()).append_pair(name, value).finish()
    };
    match (&acme.zerossl_key, &acme.email) {
        (Some(key), _) => {
            let query = form("access_key", &key.0);
            Ok(Question { url: format!("{api}/acme/eab-credentials?{query}"), body: String::new() })
        }
        (None, Some(email)) if !email.trim().is_empty() => {
            Ok(Question { url: format!("{api}/acme/eab-credentials-email"), body: form("email", email) })
        }
        _ => Err(OrderError::ZeroSslAddress),
    }
}

/// A refusal has the status 200 too.
fn read(status: StatusCode, body: &Bytes) -> Result<ExternalAccount, OrderError> {
    let fails = |reason: String| Err(OrderError::ZeroSsl(reason));
    let Ok(Answer { eab_kid, eab_hmac_key, error }) = serde_json::from_slice(body) else {
        return fails(format!("its answer, of the status {status}, is not understood"));
    };
    if let Some(Problem { code, r#type }) = error.filter(|problem| problem.code != 0) {
        return fails(format!("{type} (code {code})"));
    }
    match (eab_kid, eab_hmac_key) {
        (Some(key_id), Some(mac_key)) if status == StatusCode::OK => Ok(ExternalAccount { key_id, mac_key }),
        _ => fails(format!("its answer has the status {status}, and no key")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_asked_for_by_a_key_or_an_address() {
        let asked = |key: Option<&str>, email: Option<&str>| {
            let zerossl_key = key.map(|key| ZeroSslKey(key.to_owned()));
            question(
                "https://api.test",
                &Acme { zerossl_key, email: email.map(str::to_owned), ..Acme::default() },
            )
            .map(|question| (question.url, question.body))
        };
        let by_email = asked(None, Some("me+ca@example.com")).unwrap();
        assert_eq!(by_email.0, "https://api.test/acme/eab-credentials-email");
        assert_eq!(by_email.1, "email=me%2Bca%40example.com");
        let by_key = asked(Some("a&b"), Some("me@example.com")).unwrap();
        assert_eq!(by_key, ("https://api.test/acme/eab-credentials?access_key=a%26b".into(), String::new()));
        for email in [None, Some(" ")] {
            assert!(matches!(asked(None, email), Err(OrderError::ZeroSslAddress)));
        }
    }

    #[test]
    fn accounts_of_two_keys_are_two() {
        let user = |key: &str| user(&ZeroSslKey(key.to_owned()));
        assert_ne!(user("one"), user("two"));
        assert_eq!(user("one"), "key-7692c3ad3540bb80");
    }

    #[test]
    fn a_refusal_may_have_the_status_of_a_success() {
        let answer = |status, body: &'static str| read(status, &Bytes::from_static(body.as_bytes()));
        let given =
            answer(StatusCode::OK, r#"{"success": true, "eab_kid": "id", "eab_hmac_key": "a2V5"}"#).unwrap();
        assert_eq!(given, ExternalAccount { key_id: "id".into(), mac_key: "a2V5".into() });
        let refused = r#"{"success": false, "error": {"code": 2900, "type": "invalid_email"}}"#;
        for (status, body, reason) in [
            (StatusCode::OK, refused, "invalid_email (code 2900)"),
            (StatusCode::OK, r#"{"success": 1}"#, "no key"),
            (StatusCode::BAD_GATEWAY, "<html>", "502 Bad Gateway, is not understood"),
            (StatusCode::BAD_GATEWAY, r#"{"eab_kid": "id", "eab_hmac_key": "a2V5"}"#, "502"),
        ] {
            let error = answer(status, body).unwrap_err().to_string();
            assert!(error.starts_with("ZeroSSL gives no account: ") && error.contains(reason), "{error}");
        }
    }
}
