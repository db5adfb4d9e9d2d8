//! Tokens: who may publish and subscribe to what (JSON Web Tokens, RFC 7519).

use crate::options::Key;
use crate::selector::Selector;
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use serde::Deserialize;
use serde_json::Value;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Selectors of one claim. (A token is in the head of a request, so that this is not its only bound.)
const MOST_SELECTORS: usize = 1000;

/// Algorithms by the names that tokens have for them (RFC 7518 §3.1, RFC 8037 §3.1).
const ALGORITHMS: &[(&str, Algorithm)] = &[
    ("HS256", Algorithm::HS256),
    ("HS384", Algorithm::HS384),
    ("HS512", Algorithm::HS512),
    ("RS256", Algorithm::RS256),
    ("RS384", Algorithm::RS384),
    ("RS512", Algorithm::RS512),
    ("PS256", Algorithm::PS256),
    ("PS384", Algorithm::PS384),
    ("PS512", Algorithm::PS512),
    ("ES256", Algorithm::ES256),
    ("ES384", Algorithm::ES384),
    ("EdDSA", Algorithm::EdDSA),
];

/// Why a key is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error(
        "`{0}` is no algorithm for tokens; there are HS256, HS384, HS512, RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384 and EdDSA"
    )]
    Algorithm(String),
    #[error("the key is empty, so that everybody could sign tokens")]
    Empty,
    #[error("the key is no public key in PEM for {algorithm}: {cause}")]
    Pem { algorithm: String, cause: String },
}

/// Why a token does not count.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TokenError {
    #[error("no key is configured to check tokens with")]
    NoKey,
    #[error("{0}")]
    Invalid(#[from] jsonwebtoken::errors::Error),
    #[error("it has expired, or is not valid yet")]
    Time,
    #[error("it has too many topic selectors")]
    TooMany,
}

/// Checks the tokens of publishers, or those of subscribers.
pub(crate) struct Verifier(Option<(DecodingKey, Validation)>);

/// What a valid token says.
#[derive(Debug, Default)]
pub(crate) struct Grant {
    /// `None`: its owner may not publish.
    pub publish: Option<Vec<Selector>>,
    /// What its owner may see of private updates.
    pub subscribe: Vec<Selector>,
    /// Shown with the subscriptions of its owner.
    pub payload: Option<Value>,
    /// How long it is valid from now on; `None`: for ever.
    pub valid_for: Option<Duration>,
}

#[derive(Deserialize)]
struct Claims {
    exp: Option<f64>,
    nbf: Option<f64>,
    mercure: Option<MercureClaim>,
    /// The same where claims must have the names of URLs.
    #[serde(rename = "https://mercure.rocks/")]
    namespaced: Option<MercureClaim>,
}

#[derive(Default, Deserialize)]
struct MercureClaim {
    publish: Option<Vec<String>>,
    subscribe: Option<Vec<String>>,
    payload: Option<Value>,
}

impl Verifier {
    /// `None`: no token is valid.
    pub fn new(key: Option<&Key>) -> Result<Self, KeyError> {
        key.map(|key| Ok((decoding_key(key)?, validation(algorithm(&key.algorithm)?)))).transpose().map(Self)
    }

    /// What the token grants at the moment. The algorithm is the configured one, whatever the token says of itself.
    pub fn verify(&self, token: &str, now: SystemTime) -> Result<Grant, TokenError> {
        let (key, validation) = self.0.as_ref().ok_or(TokenError::NoKey)?;
        let claims = jsonwebtoken::decode::<Claims>(token, key, validation)?.claims;
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        // An end that is no number is an error of the token; it must not count as none.
        if claims.exp.is_some_and(|end| end <= now) || claims.nbf.is_some_and(|begin| begin > now) {
            return Err(TokenError::Time);
        }
        let claim = claims.mercure.or(claims.namespaced).unwrap_or_default();
        let valid_for = claims.exp.and_then(|end| Duration::try_from_secs_f64(end - now).ok());
        Ok(Grant {
            publish: claim.publish.map(selectors).transpose()?,
            subscribe: selectors(claim.subscribe.unwrap_or_default())?,
            payload: claim.payload.filter(|payload| !payload.is_null()),
            valid_for,
        })
    }
}

fn selectors(texts: Vec<String>) -> Result<Vec<Selector>, TokenError> {
    if texts.len() > MOST_SELECTORS {
        return Err(TokenError::TooMany);
    }
    Ok(texts.iter().map(|text| Selector::new(text)).collect())
}

fn algorithm(name: &str) -> Result<Algorithm, KeyError> {
    let found = ALGORITHMS.iter().find(|(known, _)| *known == name);
    found.map(|(_, algorithm)| *algorithm).ok_or_else(|| KeyError::Algorithm(name.to_owned()))
}

fn decoding_key(key: &Key) -> Result<DecodingKey, KeyError> {
    let bytes = key.secret.as_bytes();
    if bytes.is_empty() {
        return Err(KeyError::Empty);
    }
    let parsed = match algorithm(&key.algorithm)? {
        Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512 => return Ok(DecodingKey::from_secret(bytes)),
        Algorithm::ES256 | Algorithm::ES384 => DecodingKey::from_ec_pem(bytes),
        Algorithm::EdDSA => DecodingKey::from_ed_pem(bytes),
        _ => DecodingKey::from_rsa_pem(bytes),
    };
    let pem = |cause: jsonwebtoken::errors::Error| KeyError::Pem {
        algorithm: key.algorithm.clone(),
        cause: cause.to_string(),
    };
    parsed.map_err(pem)
}

/// Times are looked at here, since the library passes over those that it cannot read.
fn validation(algorithm: Algorithm) -> Validation {
    let mut validation = Validation::new(algorithm);
    validation.required_spec_claims.clear();
    validation.validate_exp = false;
    validation.validate_aud = false;
    validation
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use jsonwebtoken::{EncodingKey, Header};
    use serde_json::json;

    const SECRET: &str = "!ChangeThisMercureHubJWTSecretKey!";
    const NOW: u64 = 1_700_000_000;

    pub(crate) fn key(secret: &str, algorithm: &str) -> Key {
        Key { secret: secret.into(), algorithm: algorithm.into() }
    }

    pub(crate) fn signed(claims: &Value, secret: &str, algorithm: Algorithm) -> String {
        let key = EncodingKey::from_secret(secret.as_bytes());
        jsonwebtoken::encode(&Header::new(algorithm), claims, &key).unwrap()
    }

    fn verify(claims: &Value) -> Result<Grant, TokenError> {
        let verifier = Verifier::new(Some(&key(SECRET, "HS256"))).unwrap();
        let now = UNIX_EPOCH + Duration::from_secs(NOW);
        verifier.verify(&signed(claims, SECRET, Algorithm::HS256), now)
    }

    fn texts(selectors: &[Selector]) -> Vec<&str> {
        selectors.iter().map(Selector::text).collect()
    }

    #[test]
    fn a_token_grants_what_it_says() {
        let claims =
            json!({"mercure": {"publish": ["*"], "subscribe": ["/a/{id}", "b"], "payload": {"user": 1}}});
        let grant = verify(&claims).unwrap();
        assert_eq!(texts(grant.publish.as_deref().unwrap()), ["*"]);
        assert_eq!(texts(&grant.subscribe), ["/a/{id}", "b"]);
        assert_eq!((grant.payload, grant.valid_for), (Some(json!({"user": 1})), None));
        let namespaced = verify(&json!({"https://mercure.rocks/": {"publish": []}})).unwrap();
        assert_eq!(namespaced.publish.map(|list| list.len()), Some(0));
        let nothing = verify(&json!({})).unwrap();
        assert!(nothing.publish.is_none() && nothing.subscribe.is_empty());
    }

    #[test]
    fn a_token_counts_within_its_time_only() {
        assert_eq!(verify(&json!({"exp": NOW + 60})).unwrap().valid_for, Some(Duration::from_secs(60)));
        assert!(verify(&json!({"exp": NOW as f64 + 0.5, "nbf": NOW})).is_ok());
        for claims in [json!({"exp": NOW}), json!({"exp": -1}), json!({"nbf": NOW + 1})] {
            assert!(matches!(verify(&claims), Err(TokenError::Time)), "{claims}");
        }
        for claims in [json!({"exp": "never"}), json!({"exp": {}}), json!({"nbf": "x"})] {
            assert!(matches!(verify(&claims), Err(TokenError::Invalid(_))), "{claims}");
        }
        assert!(verify(&json!({"exp": 1e300})).unwrap().valid_for.is_none());
    }

    #[test]
    fn claims_of_the_wrong_form_make_no_token() {
        for claim in [json!({"publish": "*"}), json!({"subscribe": [1]}), json!([])] {
            assert!(verify(&json!({"mercure": claim})).is_err(), "{claim}");
        }
        let many = vec!["a"; MOST_SELECTORS + 1];
        assert!(matches!(verify(&json!({"mercure": {"subscribe": many}})), Err(TokenError::TooMany)));
    }

    #[test]
    fn only_the_configured_key_and_algorithm_count() {
        let verifier = Verifier::new(Some(&key(SECRET, "HS256"))).unwrap();
        let claims = json!({"mercure": {"publish": ["*"]}});
        let refused = |token: &str| verifier.verify(token, SystemTime::now()).is_err();
        assert!(refused(&signed(&claims, "another", Algorithm::HS256)));
        assert!(refused(&signed(&claims, SECRET, Algorithm::HS512)));
        // RFC 8725 §3.1: a token that says it is not signed. {"alg":"none"} and {}.
        assert!(refused("eyJhbGciOiJub25lIn0.e30.") && refused("") && refused("a.b.c"));
        let none = Verifier::new(None).unwrap();
        assert!(none.verify(&signed(&claims, SECRET, Algorithm::HS256), SystemTime::now()).is_err());
    }

    /// The public key as a shared secret: the oldest attack on tokens.
    #[test]
    fn a_public_key_is_no_shared_secret() {
        let pem = include_str!("../tests/fixtures/rs256.pub.pem");
        let verifier = Verifier::new(Some(&key(pem, "RS256"))).unwrap();
        let forged = signed(&json!({"mercure": {"publish": ["*"]}}), pem, Algorithm::HS256);
        assert!(verifier.verify(&forged, SystemTime::now()).is_err());
    }

    #[test]
    fn keys_that_are_none() {
        assert_eq!(Verifier::new(Some(&key("", "HS256"))).err(), Some(KeyError::Empty));
        let unknown = Verifier::new(Some(&key("x", "none"))).err();
        assert_eq!(unknown, Some(KeyError::Algorithm("none".into())));
        for algorithm in ["RS256", "ES256", "EdDSA", "PS512"] {
            let error = Verifier::new(Some(&key("x", algorithm))).err();
            assert!(matches!(error, Some(KeyError::Pem { .. })), "{algorithm}");
        }
    }
}
