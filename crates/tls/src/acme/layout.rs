//! Where certmagic keeps what belongs to a public CA (`acmeissuer.go`, `account.go`, `solvers.go`, `storage.go`).

use crate::store::safe;

/// The directory name of a CA: its host, and its path with hyphens (`issuerKey`).
pub(super) fn issuer_key(directory: &str) -> String {
    let rest = directory.split_once("://").map_or(directory, |(_, rest)| rest);
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let path = path.replace(['/', '\\'], "-");
    let path = path.trim_matches('-');
    let key = if path.is_empty() { host.to_owned() } else { format!("{host}-{path}") };
    safe(&key)
}

/// The `crt`, `key` or `json` of a certificate.
pub(super) fn certificate(issuer_key: &str, name: &str, extension: &str) -> String {
    let name = safe(name);
    format!("certificates/{issuer_key}/{name}/{name}.{extension}")
}

/// What an account is registered as.
pub(super) fn account(issuer_key: &str, email: Option<&str>) -> String {
    user_file(issuer_key, email, "registration", "json")
}

pub(super) fn account_key(issuer_key: &str, email: Option<&str>) -> String {
    user_file(issuer_key, email, "private", "key")
}

/// `storageSafeUserKey`: the file has the part before the `@`.
fn user_file(issuer_key: &str, email: Option<&str>, otherwise: &str, extension: &str) -> String {
    let email = email.filter(|email| !email.is_empty()).unwrap_or("default").to_lowercase();
    let user = match email.split_once('@') {
        Some(("", domain)) => domain,
        Some((user, _)) => user,
        None => &email,
    };
    let file = Some(safe(user)).filter(|file| !file.is_empty()).unwrap_or_else(|| otherwise.to_owned());
    format!("acme/{issuer_key}/users/{}/{file}.{extension}", safe(&email))
}

/// What another process on the same storage needs to meet a challenge for this name.
pub(super) fn challenge(issuer_key: &str, name: &str) -> String {
    format!("acme/{issuer_key}/challenge_tokens/{}.json", safe(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_certmagic() {
        let lets_encrypt = issuer_key("https://acme-v02.api.letsencrypt.org/directory");
        assert_eq!(lets_encrypt, "acme-v02.api.letsencrypt.org-directory");
        assert_eq!(issuer_key("https://acme.zerossl.com/v2/DV90"), "acme.zerossl.com-v2-dv90");
        assert_eq!(issuer_key("https://localhost:14000/dir"), "localhost-14000-dir");
        assert_eq!(issuer_key("https://ca.test/"), "ca.test");
        assert_eq!(
            certificate(&lets_encrypt, "*.example.com", "crt"),
            "certificates/acme-v02.api.letsencrypt.org-directory/wildcard_.example.com/wildcard_.example.com.crt"
        );
        assert_eq!(account("ca", Some("Me@Example.com")), "acme/ca/users/me@example.com/me.json");
        assert_eq!(account_key("ca", Some("me@example.com")), "acme/ca/users/me@example.com/me.key");
        assert_eq!(account_key("ca", None), "acme/ca/users/default/default.key");
        assert_eq!(account("ca", Some("@")), "acme/ca/users/@/registration.json");
        assert_eq!(challenge("ca", "a.test"), "acme/ca/challenge_tokens/a.test.json");
    }
}
