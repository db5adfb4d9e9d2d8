//! What a request's connection was encrypted with, and who its client is, by Caddy's names (`http.request.tls.…`).

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use regent_exchange::{ClientCertificate, Tls};
use std::fmt::Write;

/// A fact of a handshake. Without TLS, and of a client without a certificate, there is none.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TlsField {
    /// `tls1.3`
    Version,
    CipherSuite,
    Resumed,
    /// What ALPN agreed on.
    Proto,
    /// Whether that is what both want: always, as in Go.
    ProtoMutual,
    /// Whether the client's hello was encrypted, which is not spoken.
    Ech,
    ServerName,
    Client(ClientField),
}

/// A fact of a client's certificate.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ClientField {
    Subject,
    Issuer,
    Serial,
    /// SHA-256, in hexadecimal.
    Fingerprint,
    PublicKey,
    PublicKeySha256,
    Pem,
    DerBase64,
    Names(NameKind, Option<usize>),
}

/// A kind of alternative names (RFC 5280 section 4.2.1.6).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum NameKind {
    Dns,
    Email,
    Ip,
    Uri,
}

impl TlsField {
    /// By what stands behind `http.request.tls.`. As in Caddy the case does not matter.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        if let Some(field) = name.strip_prefix("client.") {
            return ClientField::parse(field).map(Self::Client);
        }
        Some(match name.as_str() {
            "version" => Self::Version,
            "cipher_suite" => Self::CipherSuite,
            "resumed" => Self::Resumed,
            "proto" => Self::Proto,
            "proto_mutual" => Self::ProtoMutual,
            "ech" => Self::Ech,
            "server_name" => Self::ServerName,
            _ => return None,
        })
    }

    pub(super) fn text(&self, tls: &Tls) -> String {
        match self {
            Self::Version => tls.protocol.replacen("TLSv", "tls", 1),
            Self::CipherSuite => tls.cipher_suite.to_owned(),
            Self::Resumed => tls.is_resumed.to_string(),
            Self::Proto => tls.alpn.to_string(),
            Self::ProtoMutual => true.to_string(),
            Self::Ech => false.to_string(),
            Self::ServerName => tls.server_name.as_deref().unwrap_or_default().to_owned(),
            Self::Client(field) => tls.client.as_deref().map_or(String::new(), |client| field.text(client)),
        }
    }
}

impl ClientField {
    fn parse(name: &str) -> Option<Self> {
        if let Some(names) = name.strip_prefix("san.") {
            let (kind, index) =
                names.split_once('.').map_or((names, None), |(kind, index)| (kind, Some(index)));
            let kind = match kind {
                "dns_names" => NameKind::Dns,
                "emails" => NameKind::Email,
                "ips" => NameKind::Ip,
                "uris" => NameKind::Uri,
                _ => return None,
            };
            return Some(Self::Names(kind, index.map(str::parse).transpose().ok()?));
        }
        Some(match name {
            "subject" => Self::Subject,
            "issuer" => Self::Issuer,
            "serial" => Self::Serial,
            "fingerprint" => Self::Fingerprint,
            "public_key" => Self::PublicKey,
            "public_key_sha256" => Self::PublicKeySha256,
            "certificate_pem" => Self::Pem,
            "certificate_der_base64" => Self::DerBase64,
            _ => return None,
        })
    }

    fn text(&self, client: &ClientCertificate) -> String {
        match self {
            Self::Subject => client.subject.clone(),
            Self::Issuer => client.issuer.clone(),
            Self::Serial => client.serial.clone(),
            Self::Fingerprint => hex(digest(&SHA256, &client.der).as_ref()),
            Self::PublicKey => hex(&client.public_key),
            Self::PublicKeySha256 => hex(digest(&SHA256, &client.public_key).as_ref()),
            Self::Pem => pem(&client.der),
            Self::DerBase64 => STANDARD.encode(&client.der),
            Self::Names(kind, index) => {
                let names = match kind {
                    NameKind::Dns => &client.dns_names,
                    NameKind::Email => &client.emails,
                    NameKind::Ip => &client.ips,
                    NameKind::Uri => &client.uris,
                };
                match index {
                    Some(index) => names.get(*index).cloned().unwrap_or_default(),
                    // As Go prints a list.
                    None => format!("[{}]", names.join(" ")),
                }
            }
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(out, "{byte:02x}");
    }
    out
}

/// RFC 7468: 64 characters a line.
fn pem(der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let mut out = String::from("-----BEGIN CERTIFICATE-----\n");
    for start in (0..text.len()).step_by(64) {
        out.push_str(&text[start..text.len().min(start + 64)]);
        out.push('\n');
    }
    out + "-----END CERTIFICATE-----\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tls() -> Tls {
        let client = ClientCertificate {
            der: b"abc".to_vec(),
            subject: "CN=client".into(),
            issuer: "CN=ca".into(),
            serial: "7".into(),
            public_key: vec![4, 255],
            dns_names: vec!["a.example".into(), "b.example".into()],
            ..ClientCertificate::default()
        };
        Tls {
            protocol: "TLSv1.3",
            cipher: "ECDHE-RSA-AES128-GCM-SHA256",
            cipher_suite: "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
            server_name: Some("localhost".into()),
            alpn: "h2".into(),
            is_resumed: true,
            client: Some(Box::new(client)),
        }
    }

    #[test]
    fn facts_have_caddys_names() {
        for (name, expected) in [
            ("version", "tls1.3"),
            ("cipher_suite", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"),
            ("resumed", "true"),
            ("proto", "h2"),
            ("server_name", "localhost"),
            ("client.subject", "CN=client"),
            ("client.issuer", "CN=ca"),
            ("client.serial", "7"),
            // As of `printf abc | sha256sum`.
            ("client.fingerprint", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            ("client.public_key", "04ff"),
            ("client.certificate_der_base64", "YWJj"),
            ("client.certificate_pem", "-----BEGIN CERTIFICATE-----\nYWJj\n-----END CERTIFICATE-----\n"),
            ("client.san.dns_names", "[a.example b.example]"),
            ("client.san.dns_names.1", "b.example"),
            ("client.san.dns_names.2", ""),
            ("client.san.emails", "[]"),
        ] {
            assert_eq!(TlsField::parse(name).unwrap().text(&tls()), expected, "{name}");
        }
        for name in ["nonsense", "client.nonsense", "client.san.x", "client.san.ips.x"] {
            assert_eq!(TlsField::parse(name), None, "{name}");
        }
    }

    #[test]
    fn a_client_without_a_certificate_has_no_name() {
        let tls = Tls { client: None, ..tls() };
        for name in ["client.subject", "client.fingerprint", "client.san.dns_names"] {
            assert_eq!(TlsField::parse(name).unwrap().text(&tls), "", "{name}");
        }
    }

    #[test]
    fn lines_of_pem_are_short() {
        let text = pem(&[0; 100]);
        assert!(text.lines().all(|line| line.len() <= 64));
        assert_eq!(text.lines().count(), 5);
    }
}
