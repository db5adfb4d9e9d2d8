use super::support::*;
use crate::{ClientAuth, ClientAuthClass, ClientAuthMode, Site, TrustSource};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use rustls::version::{TLS12, TLS13};
use std::ops::Range;
use std::path::PathBuf;
use time::{Duration, OffsetDateTime};

/// A CA for client certificates.
pub(super) struct Authority {
    pub file: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

pub(super) fn authority(machine: &Machine, name: &str) -> Authority {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let file = machine.path(&format!("{name}.crt"));
    std::fs::write(&file, params.self_signed(&key).unwrap().pem()).unwrap();
    Authority { file, issuer: Issuer::new(params, key) }
}

impl Authority {
    /// The files of a certificate that is valid between these hours from now, and of its key.
    pub fn client(&self, name: &str, hours: Range<i64>, machine: &Machine) -> (PathBuf, PathBuf) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new([format!("{name}.test")]).unwrap();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let now = OffsetDateTime::now_utc();
        params.not_before = now + Duration::hours(hours.start) - Duration::minutes(1);
        params.not_after = now + Duration::hours(hours.end);
        let files = (machine.path(&format!("{name}.crt")), machine.path(&format!("{name}.key")));
        std::fs::write(&files.0, params.signed_by(&key, &self.issuer).unwrap().pem()).unwrap();
        std::fs::write(&files.1, key.serialize_pem()).unwrap();
        files
    }
}

/// With nothing that is trusted.
fn asking(mode: ClientAuthMode) -> ClientAuth {
    ClientAuth {
        mode,
        trusted_ca: Vec::new(),
        trusted_leaves: Vec::new(),
        other_ca: Vec::new(),
        inline_leaves: Vec::new(),
    }
}

pub(super) fn with_client_auth(mode: ClientAuthMode, ca: &Authority) -> Site {
    let client_auth = Some(ClientAuth { trusted_ca: vec![ca.file.clone()], ..asking(mode) });
    Site { client_auth, ..internal(&["localhost"]) }
}

/// What clients without, with an expired, a foreign and a good certificate get.
#[tokio::test]
async fn each_mode_lets_in_what_it_says() {
    use ClientAuthMode::{Request, Require, RequireAndVerify, VerifyIfGiven};
    for (mode, accepted) in [
        (Request, [true, true, true, true]),
        (Require, [false, true, true, true]),
        (VerifyIfGiven, [true, false, false, true]),
        (RequireAndVerify, [false, false, false, true]),
    ] {
        let machine = Machine::new();
        let (ca, foreign) = (authority(&machine, "ca"), authority(&machine, "foreign-ca"));
        let acceptor = machine.acceptor(&[with_client_auth(mode, &ca)]);
        let expired = ca.client("expired", -3..-1, &machine);
        let other = foreign.client("other", 0..24, &machine);
        let good = ca.client("good", 0..24, &machine);
        let with =
            |(certificate, key): &(PathBuf, PathBuf)| machine.client_with_certificate(certificate, key);
        let clients = [machine.client(), with(&expired), with(&other), with(&good)];
        for (index, (client, accepted)) in clients.iter().zip(accepted).enumerate() {
            let (server, _) = try_connect(&acceptor, client, "localhost").await;
            assert_eq!(server.is_ok(), accepted, "{mode:?}, client {index}");
            let shown = usize::from(accepted && index > 0);
            assert_eq!(
                server.map_or(0, |stream| stream.facts().client_certificates.len()),
                shown,
                "{mode:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_client_is_told_what_is_wrong_with_its_certificate() {
    let machine = Machine::new();
    let ca = authority(&machine, "ca");
    let acceptor = machine.acceptor(&[with_client_auth(ClientAuthMode::RequireAndVerify, &ca)]);
    let (certificate, key) = ca.client("expired", -3..-1, &machine);
    let client = machine.client_with_certificate(&certificate, &key);
    let (server, client) = try_connect(&acceptor, &client, "localhost").await;
    let error = server.unwrap_err().to_string();
    assert!(error.contains("expired"), "{error}");
    let mut client = client.unwrap();
    let error = tokio::io::AsyncReadExt::read_u8(&mut client).await.unwrap_err().to_string();
    assert!(error.contains("CertificateExpired"), "{error}");
}

#[tokio::test]
async fn certificates_are_shown_in_both_versions() {
    for version in [&TLS12, &TLS13] {
        let machine = Machine::new();
        let ca = authority(&machine, "ca");
        let acceptor = machine.acceptor(&[with_client_auth(ClientAuthMode::Require, &ca)]);
        let (certificate, key) = ca.client("client", 0..1, &machine);
        let client = machine.client_with_certificate_and(&certificate, &key, &[version]);
        let connected = connect(&acceptor, &client, "localhost").await;
        let pem = std::fs::read(&certificate).unwrap();
        let expected = crate::certificate::parse_chain(&certificate, &pem).unwrap();
        assert_eq!(connected.facts().client_certificates, [expected[0].to_vec()], "{version:?}");
    }
}

#[test]
fn a_site_says_its_class() {
    let machine = Machine::new();
    let (ca, other) = (authority(&machine, "ca"), authority(&machine, "other"));
    let of = |name: &str, mode, ca| Site { names: vec![name.into()], ..with_client_auth(mode, ca) };
    let table = machine
        .tls()
        .site_table(&[
            internal(&["open.test", "::1"]),
            of("a.test", ClientAuthMode::Require, &ca),
            of("b.test", ClientAuthMode::Require, &ca),
            of("c.test", ClientAuthMode::RequireAndVerify, &ca),
            of("d.test", ClientAuthMode::Require, &other),
        ])
        .unwrap();
    let class = |name| table.client_auth_of(name);
    assert_eq!(class("OPEN.test"), Some(ClientAuthClass::NONE));
    assert_eq!(class("[::1]"), Some(ClientAuthClass::NONE));
    assert_eq!(class("a.test"), class("b.test"));
    assert_ne!(class("a.test"), class("c.test"));
    assert_ne!(class("a.test"), class("d.test"));
    assert_ne!(class("a.test"), class("open.test"));
    assert_eq!(class("nobody.test"), None);
}

#[test]
fn a_mode_that_verifies_needs_a_ca() {
    let machine = Machine::new();
    let client_auth = Some(asking(ClientAuthMode::VerifyIfGiven));
    let error = machine.tls().site_table(&[Site { client_auth, ..internal(&["localhost"]) }]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "client certificates are to be verified, but neither a trusted CA nor a trusted certificate is given"
    );
}

#[tokio::test]
async fn a_trusted_certificate_is_the_only_one_that_is_accepted() {
    use ClientAuthMode::{Request, Require, RequireAndVerify, VerifyIfGiven};
    let machine = Machine::new();
    let (ca, foreign) = (authority(&machine, "ca"), authority(&machine, "foreign-ca"));
    let pinned = ca.client("pinned", 0..24, &machine);
    let other = ca.client("other", 0..24, &machine);
    let expired = ca.client("expired", -3..-1, &machine);
    machine.tls().local_root().unwrap();
    let with = |(certificate, key): &(PathBuf, PathBuf)| machine.client_with_certificate(certificate, key);
    let clients = [machine.client(), with(&pinned), with(&other), with(&expired)];
    for (mode, trusted_ca, accepted) in [
        (RequireAndVerify, None, [false, true, false, false]),
        (VerifyIfGiven, None, [true, true, false, false]),
        (RequireAndVerify, Some(&ca), [false, true, false, false]),
        (RequireAndVerify, Some(&foreign), [false, false, false, false]),
        (Require, Some(&foreign), [false, true, false, false]),
        (Request, None, [true, true, false, false]),
    ] {
        let trusted_ca: Vec<_> = trusted_ca.iter().map(|ca| ca.file.clone()).collect();
        let trusted_leaves = vec![pinned.0.clone(), expired.0.clone()];
        let client_auth = Some(ClientAuth { trusted_ca: trusted_ca.clone(), trusted_leaves, ..asking(mode) });
        let acceptor = machine.acceptor(&[Site { client_auth, ..internal(&["localhost"]) }]);
        for (index, (client, accepted)) in clients.iter().zip(accepted).enumerate() {
            let (server, _) = try_connect(&acceptor, client, "localhost").await;
            assert_eq!(server.is_ok(), accepted, "{mode:?} {trusted_ca:?}, client {index}");
        }
    }
}

#[test]
fn a_host_is_misdirected_where_more_is_asked_of_clients() {
    let machine = Machine::new();
    let ca = authority(&machine, "ca");
    let table = machine
        .tls()
        .site_table(&[
            internal(&["open.test", "also-open.test"]),
            Site { names: vec!["closed.test".into()], ..with_client_auth(ClientAuthMode::Require, &ca) },
        ])
        .unwrap();
    let closed = table.client_auth_of("closed.test").unwrap();
    assert!(table.may_serve("also-open.test", ClientAuthClass::NONE));
    assert!(table.may_serve("nobody.test", ClientAuthClass::NONE));
    assert!(table.may_serve("closed.test", closed));
    assert!(!table.may_serve("Closed.test.", ClientAuthClass::NONE));
    assert!(!table.may_serve("open.test", closed));
}

#[tokio::test]
async fn cas_need_no_file_of_their_own() {
    let machine = Machine::new();
    let ca = authority(&machine, "ca");
    let pem = std::fs::read(&ca.file).unwrap();
    let der = STANDARD.encode(&crate::certificate::parse_chain(&ca.file, &pem).unwrap()[0]);
    machine.tls().local_root().unwrap();
    let (certificate, key) = ca.client("client", 0..1, &machine);
    let client = machine.client_with_certificate(&certificate, &key);
    for (source, accepted) in [(TrustSource::Inline(der), true), (TrustSource::LocalRoot, false)] {
        let auth = ClientAuth { other_ca: vec![source], ..asking(ClientAuthMode::RequireAndVerify) };
        let acceptor = machine.acceptor(&[Site { client_auth: Some(auth), ..internal(&["localhost"]) }]);
        let (server, _) = try_connect(&acceptor, &client, "localhost").await;
        assert_eq!(server.is_ok(), accepted);
    }
}

#[tokio::test]
async fn a_certificate_of_a_client_may_be_written_down() {
    let machine = Machine::new();
    let ca = authority(&machine, "ca");
    let (known, other) = (ca.client("known", 0..24, &machine), ca.client("other", 0..24, &machine));
    let pem = std::fs::read(&known.0).unwrap();
    let der = STANDARD.encode(&crate::certificate::parse_chain(&known.0, &pem).unwrap()[0]);
    machine.tls().local_root().unwrap();
    let auth = ClientAuth { inline_leaves: vec![der], ..asking(ClientAuthMode::RequireAndVerify) };
    let acceptor = machine.acceptor(&[Site { client_auth: Some(auth), ..internal(&["localhost"]) }]);
    for ((certificate, key), accepted) in [(known, true), (other, false)] {
        let client = machine.client_with_certificate(&certificate, &key);
        let (server, _) = try_connect(&acceptor, &client, "localhost").await;
        assert_eq!(server.is_ok(), accepted);
    }
}
