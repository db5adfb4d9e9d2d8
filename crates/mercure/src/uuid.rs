//! Names for updates and subscribers.

use std::hash::{BuildHasher, Hasher, RandomState};

/// `urn:uuid:` and a UUID of version 4 (RFC 9562 §5.4). Unique, from the standard library's randomly keyed hashers; not
/// meant as a secret.
pub fn urn() -> String {
    let random = || u128::from(RandomState::new().build_hasher().finish());
    let bits = random() << 64 | random();
    let bits = bits & !(0xf << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62;
    let hex = format!("{bits:032x}");
    format!("urn:uuid:{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use super::urn;

    #[test]
    fn names_have_the_form_of_a_uuid_and_differ() {
        let name = urn();
        let groups: Vec<_> = name.strip_prefix("urn:uuid:").unwrap().split('-').map(str::len).collect();
        assert_eq!(groups, [8, 4, 4, 4, 12]);
        assert_ne!(name, urn());
    }
}
