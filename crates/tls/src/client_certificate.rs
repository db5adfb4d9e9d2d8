//! What a client's certificate says, in the words of Caddy's placeholders (modules/caddyhttp/replacer.go).

use crate::certificate::parse;
use std::fmt::Write;
use std::net::IpAddr;
use x509_parser::extensions::GeneralName;
use x509_parser::oid_registry::Oid;
use x509_parser::x509::X509Name;

/// The first certificate that a client has shown, read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientCertificate {
    pub der: Vec<u8>,
    /// As Go writes names: `CN=client,OU=shop,O=Example,C=DE`.
    pub subject: String,
    pub issuer: String,
    /// Decimal.
    pub serial: String,
    /// The key alone: a point, the bytes of Ed25519, or PKCS #1.
    pub public_key: Vec<u8>,
    pub dns_names: Vec<String>,
    pub emails: Vec<String>,
    pub ips: Vec<String>,
    pub uris: Vec<String>,
}

/// The attributes of a name that Go knows, in the order in which it writes them (crypto/x509/pkix).
const ATTRIBUTES: [(u64, &str); 9] = [
    (5, "SERIALNUMBER"),
    (3, "CN"),
    (11, "OU"),
    (10, "O"),
    (17, "POSTALCODE"),
    (9, "STREET"),
    (7, "L"),
    (8, "ST"),
    (6, "C"),
];

impl ClientCertificate {
    /// What cannot be read is left empty: whether the certificate is to be trusted has been decided before.
    pub(crate) fn of(der: &[u8]) -> Self {
        let mut found = Self { der: der.to_vec(), ..Self::default() };
        let Ok(certificate) = parse(der) else { return found };
        found.subject = name(certificate.subject());
        found.issuer = name(certificate.issuer());
        found.serial = certificate.serial.to_string();
        found.public_key = certificate.public_key().subject_public_key.data.to_vec();
        let alternatives = certificate.subject_alternative_name().ok().flatten();
        for alternative in alternatives.map(|extension| &extension.value.general_names).into_iter().flatten()
        {
            match alternative {
                GeneralName::DNSName(text) => found.dns_names.push((*text).to_owned()),
                GeneralName::RFC822Name(text) => found.emails.push((*text).to_owned()),
                GeneralName::URI(text) => found.uris.push((*text).to_owned()),
                GeneralName::IPAddress(bytes) => found.ips.extend(address(bytes)),
                _ => {}
            }
        }
        found
    }
}

fn address(bytes: &[u8]) -> Option<String> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    let v6 = <[u8; 16]>::try_from(bytes).map(IpAddr::from);
    v4.or(v6).ok().map(|address| address.to_string())
}

/// As Go's `pkix.Name.String`: what it knows first, each attribute once, then the others, the last first.
fn name(name: &X509Name<'_>) -> String {
    let attributes: Vec<_> = name.iter_attributes().collect();
    let mut parts = Vec::new();
    for (arc, label) in ATTRIBUTES {
        let values = attributes.iter().filter(|found| known(found.attr_type()) == Some(arc));
        let values: Vec<&str> = values.filter_map(|found| found.as_str().ok()).collect();
        let values = match (arc, &values[..]) {
            // Of these Go keeps the last.
            (3 | 5, [.., last]) => vec![*last],
            _ => values,
        };
        if !values.is_empty() {
            let values: Vec<_> = values.iter().map(|value| format!("{label}={}", escaped(value))).collect();
            parts.push(values.join("+"));
        }
    }
    for other in attributes.iter().rev().filter(|found| known(found.attr_type()).is_none()) {
        let mut part = format!("{}=#", other.attr_type());
        for byte in der(other.attr_value()) {
            // Writing to a string cannot fail.
            let _ = write!(part, "{byte:02x}");
        }
        parts.push(part);
    }
    parts.join(",")
}

/// The last number of an attribute that [`ATTRIBUTES`] has.
fn known(kind: &Oid<'_>) -> Option<u64> {
    let numbers: Vec<u64> = kind.iter()?.collect();
    match numbers[..] {
        [2, 5, 4, arc] => ATTRIBUTES.iter().map(|(arc, _)| *arc).find(|known| *known == arc),
        _ => None,
    }
}

/// RFC 2253 section 2.4.
fn escaped(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let last = value.len().saturating_sub(1);
    for (at, c) in value.char_indices() {
        let is_special = match c {
            ',' | '+' | '"' | '\\' | '<' | '>' | ';' => true,
            ' ' => at == 0 || at == last,
            '#' => at == 0,
            _ => false,
        };
        if is_special {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// A text as a value of ASN.1, as Go writes it anew: as printable as it is.
fn der(value: &x509_parser::asn1_rs::Any<'_>) -> Vec<u8> {
    let is_printable = |byte: &u8| {
        byte.is_ascii_alphanumeric() || b" '()+,-./:=?".contains(byte) || matches!(byte, b'*' | b'&')
    };
    let tag = if value.data.iter().all(is_printable) { 0x13 } else { 0x0c };
    let mut out = vec![tag];
    match value.data.len() {
        length @ ..0x80 => out.push(length as u8),
        length @ ..0x100 => out.extend([0x81, length as u8]),
        length => {
            out.push(0x82);
            out.extend((length as u16).to_be_bytes());
        }
    }
    out.extend_from_slice(value.data);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};

    fn certificate(configure: impl FnOnce(&mut CertificateParams)) -> ClientCertificate {
        let mut params = CertificateParams::default();
        configure(&mut params);
        let key = KeyPair::generate().unwrap();
        ClientCertificate::of(params.self_signed(&key).unwrap().der())
    }

    #[test]
    fn names_are_written_as_go_writes_them() {
        let found = certificate(|params| {
            let mut name = DistinguishedName::new();
            name.push(DnType::CountryName, "DE");
            name.push(DnType::OrganizationName, "Example, Inc.");
            name.push(DnType::OrganizationalUnitName, "shop");
            name.push(DnType::CommonName, "#client ");
            name.push(DnType::CustomDnType(vec![0, 9, 2342, 19200300, 100, 1, 1]), "id");
            params.distinguished_name = name;
            params.serial_number = Some(1_000_000_007_u64.into());
        });
        let expected = "CN=\\#client\\ ,OU=shop,O=Example\\, Inc.,C=DE,0.9.2342.19200300.100.1.1=#13026964";
        assert_eq!((found.subject.as_str(), found.issuer.as_str()), (expected, expected));
        assert_eq!(found.serial, "1000000007");
        assert_eq!(found.public_key.len(), 65, "a point of P-256");
    }

    #[test]
    fn alternative_names_have_their_kinds() {
        let found = certificate(|params| {
            params.subject_alt_names = vec![
                SanType::DnsName("client.example.com".try_into().unwrap()),
                SanType::Rfc822Name("me@example.com".try_into().unwrap()),
                SanType::URI("spiffe://example/web".try_into().unwrap()),
                SanType::IpAddress("192.0.2.7".parse().unwrap()),
            ];
        });
        assert_eq!(found.dns_names, ["client.example.com"]);
        assert_eq!(found.emails, ["me@example.com"]);
        assert_eq!(found.uris, ["spiffe://example/web"]);
        assert_eq!(found.ips, ["192.0.2.7"]);
    }

    #[test]
    fn what_is_no_certificate_says_nothing() {
        let nothing = ClientCertificate { der: b"x".to_vec(), ..ClientCertificate::default() };
        assert_eq!(ClientCertificate::of(b"x"), nothing);
    }
}
