//! Where things lie.

/// `root.crt`, `root.key`, `intermediate.crt` or `intermediate.key` of the local CA (Caddy's `caddypki/ca.go`).
pub(crate) fn local_authority(file: &str) -> String {
    format!("pki/authorities/local/{file}")
}

/// The `crt`, `key` or `json` of a name from the local CA (certmagic's `KeyBuilder`; the issuer key is the CA's id).
pub(crate) fn local_leaf(name: &str, extension: &str) -> String {
    let name = safe(name);
    format!("certificates/local/{name}/{name}.{extension}")
}

/// As certmagic's `KeyBuilder.Safe`: no result names another directory.
pub(crate) fn safe(name: &str) -> String {
    let replaced = name
        .trim()
        .to_lowercase()
        .replace(' ', "_")
        .replace('+', "_plus_")
        .replace('*', "wildcard_")
        .replace(':', "-")
        .replace("..", "");
    replaced.chars().filter(|c| c.is_ascii_alphanumeric() || "_@.-".contains(*c)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_those_of_caddy() {
        assert_eq!(
            local_leaf("*.Example.com", "crt"),
            "certificates/local/wildcard_.example.com/wildcard_.example.com.crt"
        );
        assert_eq!(local_leaf("::1", "key"), "certificates/local/--1/--1.key");
        assert_eq!(local_authority("root.crt"), "pki/authorities/local/root.crt");
    }

    proptest! {
        #[test]
        fn no_name_leaves_its_directory(name in ".*") {
            prop_assert!(!safe(&name).contains('/'));
        }
    }
}
