//! What of the configuration is shown to nobody: passwords, keys, tokens.
//!
//! `GET /config/…` has a stand-in for each, `(hidden 0123456789abcdef)`, which tells nothing of it. Where a client sends one
//! back in a place for a secret, as by changing what it has read, the secret that it stands for is put there.

use serde_json::Value;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;

/// Of keys whose texts are secret: what they end in, in small letters.
const ENDINGS: &[&str] = &[
    "password",
    "passphrase",
    "secret",
    "token",
    "mac_key",
    "encryption_key",
    "secret_key",
    "secret_access_key",
    "access_key_secret",
    "api_key",
    "apikey",
    "private_key",
    "authorization",
    "auth_key",
    "account_key",
    "publisher_jwt",
    "subscriber_jwt",
];
/// Of objects and lists whose `key` is secret; that of others is the name of a file, or of a field.
const HOLDERS_OF_KEYS: &[&str] = &["publisher_jwt", "subscriber_jwt", "load_pem"];
/// What is no secret of a provider of the DNS challenge: each has words of its own for tokens, accounts and keys.
const OPEN_OF_PROVIDERS: &[&str] =
    &["endpoint", "key_alg", "key_name", "name", "program", "region", "server", "server_url"];

/// Stands in for the secrets of this process. Of another one it stands for nothing: the key of the hash is random.
#[derive(Debug, Default)]
pub(crate) struct Secrets(RandomState);

/// A stand-in stands for nothing that is known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` stands for a secret that the configuration does not have any more: send the secret itself")]
pub(crate) struct UnknownSecret(String);

impl Secrets {
    /// The document as it is shown.
    pub fn hide(&self, document: &Value) -> Value {
        let mut shown = document.clone();
        visit(&mut shown, Place::default(), &mut |kind, text| *text = self.stand_in(kind, text));
        shown
    }

    /// The same, but for secrets that `known` has: who asks has sent them.
    pub fn hide_unknown(&self, document: &mut Value, known: &str) {
        visit(document, Place::default(), &mut |kind, text| {
            if !known.contains(text.as_str()) {
                *text = self.stand_in(kind, text);
            }
        });
    }

    /// Puts the secrets of `before` where their stand-ins are; whether there were any.
    pub fn put_back(&self, document: &mut Value, before: &Value) -> Result<bool, UnknownSecret> {
        let mut wanted = Vec::new();
        visit(document, Place::default(), &mut |_, text| {
            if is_stand_in(text) {
                wanted.push(text.clone());
            }
        });
        if wanted.is_empty() {
            return Ok(false);
        }
        let mut known = HashMap::new();
        visit(&mut before.clone(), Place::default(), &mut |kind, text| {
            known.insert(self.stand_in(kind, text), (kind, text.clone()));
        });
        let mut unknown = None;
        visit(document, Place::default(), &mut |kind, text| match known.get(text) {
            Some((of, secret)) if *of == kind => text.clone_from(secret),
            _ if is_stand_in(text) => unknown = Some(text.clone()),
            _ => {}
        });
        unknown.map_or(Ok(true), |text| Err(UnknownSecret(text)))
    }

    fn stand_in(&self, kind: Kind, secret: &str) -> String {
        format!("(hidden {:016x})", self.0.hash_one((kind, secret)))
    }
}

fn is_stand_in(text: &str) -> bool {
    let hash = text.strip_prefix("(hidden ").and_then(|rest| rest.strip_suffix(')'));
    hash.is_some_and(|hash| hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// How a secret is known as one. That of one kind is put back in places of its kind only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    /// By its key.
    Text,
    /// As the name and the password in a URL.
    UserInfo,
}

/// What a value is under.
#[derive(Clone, Copy, Default)]
struct Place<'a> {
    /// The last key before it.
    key: &'a str,
    /// That of the object which has the key.
    holder: &'a str,
}

impl Place<'_> {
    fn is_secret(self) -> bool {
        names_a_secret(self.key)
            || (self.holder == "env" && self.key.to_ascii_lowercase().ends_with("_key"))
            || (self.key == "key" && HOLDERS_OF_KEYS.contains(&self.holder))
            || (self.holder == "provider" && !OPEN_OF_PROVIDERS.contains(&self.key))
    }
}

fn names_a_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    ENDINGS.iter().any(|ending| key.ends_with(ending))
}

/// Each secret text of a document.
fn visit(value: &mut Value, place: Place<'_>, each: &mut impl FnMut(Kind, &mut String)) {
    match value {
        Value::String(text) if text.is_empty() => {}
        Value::String(text) if place.is_secret() => each(Kind::Text, text),
        Value::String(text) => {
            if let Some(range) = user_info(text) {
                let mut secret = text[range.clone()].to_owned();
                each(Kind::UserInfo, &mut secret);
                text.replace_range(range, &secret);
            }
        }
        Value::Array(list) => {
            // Words of a Caddyfile: `["password", "…"]`.
            let mut last = String::new();
            for value in list {
                let word = value.as_str().unwrap_or_default().to_owned();
                let place =
                    if names_a_secret(&last) { Place { key: &last, holder: place.key } } else { place };
                visit(value, place, each);
                last = word;
            }
        }
        Value::Object(object) => {
            for (key, value) in object {
                visit(value, Place { key, holder: place.key }, each);
            }
        }
        _ => {}
    }
}

/// Where a URL has a name with a password, or what stands for them.
fn user_info(text: &str) -> Option<Range<usize>> {
    let start = text.find("://")? + 3;
    let authority = text[start..].split(['/', '?', '#']).next()?;
    let (user, _) = authority.rsplit_once('@')?;
    (user.contains(':') || is_stand_in(user)).then(|| start..start + user.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn document() -> Value {
        json!({
            "storage": { "password": "p1", "encryption_key": "p2", "address": "redis://u:p3@host/0" },
            "publisher_jwt": { "key": "p4", "alg": "HS256" },
            "load_files": [{ "certificate": "a.pem", "key": "b.pem" }],
            "provider": { "name": "exec", "args": ["p5", "p6"], "key_name": "n", "key": "p7" },
            "accounts": [{ "username": "u", "password": "p8" }],
            "env": { "DB_PASSWORD": "p9", "DB_HOST": "db", "APP_KEY": "p11" },
            "options": [["redis", ["password", "p10"], ["port", "6379"]]],
            "upstreams": [{ "dial": "http://host:80/@x:y" }],
            "password": ""
        })
    }

    #[test]
    fn secrets_are_hidden_and_nothing_else() {
        let shown = Secrets::default().hide(&document()).to_string();
        for secret in 1..=11 {
            assert!(!shown.contains(&format!("p{secret}")), "p{secret} in {shown}");
        }
        for text in [
            "6379",
            "a.pem",
            "b.pem",
            "HS256",
            "\"n\"",
            "\"u\"",
            "\"db\"",
            "http://host:80/@x:y",
            "\"password\":\"\"",
        ] {
            assert!(shown.contains(text), "{text} in {shown}");
        }
        assert_eq!(shown.matches("(hidden ").count(), 11);
    }

    #[test]
    fn a_secret_that_was_sent_is_known() {
        let mut adapted = json!({ "password": "sent", "token": "imported", "body": "text" });
        Secrets::default().hide_unknown(&mut adapted, "password sent");
        assert_eq!((&adapted["password"], &adapted["body"]), (&json!("sent"), &json!("text")));
        assert!(is_stand_in(adapted["token"].as_str().unwrap()), "{adapted}");
    }

    #[test]
    fn what_was_read_can_be_sent_back_in_another_order() {
        let secrets = Secrets::default();
        let before = document();
        let mut back = secrets.hide(&before);
        back["provider"]["args"].as_array_mut().unwrap().reverse();
        assert_eq!(secrets.put_back(&mut back, &before), Ok(true));
        let mut expected = before.clone();
        expected["provider"]["args"] = json!(["p6", "p5"]);
        assert_eq!(back, expected);
        assert_eq!(secrets.put_back(&mut back, &before), Ok(false));
    }

    #[test]
    fn a_stand_in_is_no_way_to_a_secret() {
        let (secrets, others) = (Secrets::default(), Secrets::default());
        let before = json!({ "password": "p" });
        let shown = secrets.hide(&before);
        let mut elsewhere = json!({ "body": shown["password"] });
        // As the body of a response it would be told to everybody.
        let asked = elsewhere.clone();
        assert_eq!(secrets.put_back(&mut elsewhere, &before), Ok(false));
        assert_eq!(elsewhere, asked);
        let stand_in = shown["password"].as_str().unwrap();
        let mut in_a_url = json!({ "body": format!("http://{stand_in}@host") });
        assert!(secrets.put_back(&mut in_a_url, &before).is_err());
        let mut strange = others.hide(&before);
        let error = secrets.put_back(&mut strange, &before).unwrap_err().to_string();
        assert!(error.contains("send the secret itself"), "{error}");
    }
}
