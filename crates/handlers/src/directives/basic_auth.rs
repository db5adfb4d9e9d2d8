//! `basic_auth`: a name and a password are asked for (RFC 7617).

use crate::context::exchange::Exchange;
use crate::context::failure::Failure;
use crate::context::flow::Flow;
use crate::context::target::Action;
use crate::context::verification::{Accepted, Verification};
use crate::error::BuildError;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderValue, StatusCode, header};
use regent_config as config;
use std::sync::Arc;

/// The compiled directive.
pub(crate) struct BasicAuth {
    challenge: HeaderValue,
    users: Vec<(String, String)>,
    accepted: Arc<Accepted>,
}

impl BasicAuth {
    pub(crate) fn compile(auth: &config::BasicAuth) -> Result<Self, BuildError> {
        let challenge = format!("Basic realm=\"{}\"", auth.realm);
        let challenge =
            HeaderValue::try_from(challenge).map_err(|_| BuildError::Realm(auth.realm.clone()))?;
        Ok(Self { challenge, users: auth.users.clone(), accepted: Arc::default() })
    }

    pub(crate) fn handle(&self, exchange: &mut Exchange) -> Flow {
        let Some((user, password)) = credentials(exchange) else { return self.refuse() };
        let known = self.users.iter().find(|(name, _)| name.as_bytes() == user);
        // A name that nobody has takes as long as another.
        let Some((_, hash)) = known.or(self.users.first()) else { return self.refuse() };
        let credentials = self.accepted.credentials(&user, hash, &password);
        let verified = exchange.verified().iter().find(|verified| verified.credentials == credentials);
        match (known, verified.map(|verified| verified.is_right)) {
            (Some((name, _)), Some(true)) => exchange.set_user(name),
            (Some((name, _)), None) if self.accepted.has(credentials) => exchange.set_user(name),
            (_, Some(_)) => return self.refuse(),
            (known, None) => {
                return Flow::Answer(Action::Verify(Box::new(Verification {
                    credentials,
                    password,
                    hash: hash.clone(),
                    user: known.map(|(name, _)| name.clone()),
                    accepted: Arc::clone(&self.accepted),
                })));
            }
        }
        Flow::Next
    }

    fn refuse(&self) -> Flow {
        let failure = Failure::new(StatusCode::UNAUTHORIZED);
        Flow::Fail(failure.with_field(header::WWW_AUTHENTICATE, self.challenge.clone()))
    }
}

/// Name and password.
fn credentials(exchange: &Exchange) -> Option<(Vec<u8>, Vec<u8>)> {
    let field = exchange.headers.get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, encoded) = field.split_at_checked("Basic ".len())?;
    if !scheme.eq_ignore_ascii_case(b"Basic ") {
        return None;
    }
    let decoded = BASE64_STANDARD.decode(encoded.trim_ascii()).ok()?;
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    Some((decoded[..colon].to_vec(), decoded[colon + 1..].to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::exchange::tests::request;

    /// What the directive says of these credentials, and who is let in, after as many checks as it asks for.
    fn asked(auth: &BasicAuth, credentials: &str) -> (Option<StatusCode>, Option<String>, usize) {
        let field = format!("basic {}", BASE64_STANDARD.encode(credentials));
        let mut exchange = request("GET", "/a", &[("authorization", &field), ("x-kept", "1")]);
        let mut checks = 0;
        loop {
            exchange.keep_headers();
            exchange.headers.remove("x-kept");
            match auth.handle(&mut exchange) {
                Flow::Answer(Action::Verify(verification)) => {
                    exchange.start_over(verification.run());
                    assert!(exchange.headers.contains_key("x-kept"));
                    checks += 1;
                }
                Flow::Fail(failure) => {
                    assert_eq!(failure.plain_page().headers()["www-authenticate"], "Basic realm=\"r\"");
                    return (Some(failure.status()), None, checks);
                }
                Flow::Next => return (None, exchange.user().map(str::to_owned), checks),
                Flow::Answer(_) | Flow::Relay(_) => panic!("an answer"),
            }
        }
    }

    #[test]
    fn a_right_password_is_checked_once() {
        let hash = bcrypt::hash("secret", 4).unwrap();
        let users =
            vec![("ada".to_owned(), hash.clone()), ("bob".to_owned(), bcrypt::hash("other", 4).unwrap())];
        let auth = BasicAuth::compile(&config::BasicAuth { realm: "r".into(), users }).unwrap();
        let unauthorized = Some(StatusCode::UNAUTHORIZED);
        assert_eq!(asked(&auth, "ada:secret"), (None, Some("ada".into()), 1));
        assert_eq!(asked(&auth, "ada:secret"), (None, Some("ada".into()), 0));
        for _ in 0..2 {
            assert_eq!(asked(&auth, "ada:wrong"), (unauthorized, None, 1));
            assert_eq!(asked(&auth, "eve:secret"), (unauthorized, None, 1), "by the hash of another");
        }
        assert_eq!(asked(&auth, "bob:secret"), (unauthorized, None, 1));
        assert_eq!(asked(&auth, "nobody"), (unauthorized, None, 0));
    }

    /// Made by Caddy 2.11.9, with less memory than it takes by default.
    #[test]
    fn passwords_may_be_hashed_by_argon2id() {
        let hash =
            "$argon2id$v=19$m=64,t=1,p=1$FHBh/AxccWCQmw6FiNN0Fg$9HqVgLg4XTUhoqpgIrI7HcsNtJcmHui7dGvENZMndLg";
        let users = vec![("ada".to_owned(), hash.to_owned())];
        let auth = BasicAuth::compile(&config::BasicAuth { realm: "r".into(), users }).unwrap();
        assert_eq!(asked(&auth, "ada:wrong"), (Some(StatusCode::UNAUTHORIZED), None, 1));
        assert_eq!(asked(&auth, "ada:secret"), (None, Some("ada".into()), 1));
        assert_eq!(asked(&auth, "ada:secret"), (None, Some("ada".into()), 0));
    }
}
