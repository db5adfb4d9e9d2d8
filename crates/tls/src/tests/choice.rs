//! Which of several certificates a client gets.

use super::support::*;
use crate::{
    CertificateFiles, CertificateSource, Internal, Issuance, KeyType, Options, Policy, ProtocolVersion, Site,
};
use rcgen::{CertificateParams, KeyPair, PKCS_RSA_SHA256};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::version::{TLS12, TLS13};
use std::fs;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

fn on_demand(names: &[&str]) -> Site {
    let internal = Internal { issuance: Issuance::OnDemand, ..Internal::default() };
    site(names, CertificateSource::Internal(internal))
}

fn shared(names: &[&str]) -> Site {
    site(names, CertificateSource::Shared)
}

/// A self-signed certificate with its key in one file.
fn bundle(file: &Path, name: &str) {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    fs::write(file, format!("{}{}", made.cert.pem(), made.signing_key.serialize_pem())).unwrap();
}

fn der(file: &Path) -> Vec<u8> {
    CertificateDer::from_pem_file(file).unwrap().to_vec()
}

/// The DNS names and addresses of a certificate.
fn names(certificate: &[u8]) -> Vec<String> {
    crate::certificate::facts(certificate).unwrap().1
}

#[tokio::test]
async fn a_client_gets_the_key_that_it_can_verify() {
    let machine = Machine::new();
    let key = KeyPair::generate_for(&PKCS_RSA_SHA256).unwrap();
    let rsa = CertificateParams::new(["a.test".to_owned()]).unwrap().self_signed(&key).unwrap();
    fs::write(machine.path("rsa.crt"), rsa.pem()).unwrap();
    fs::write(machine.path("rsa.key"), key.serialize_pem()).unwrap();
    machine.self_signed("ecdsa", &["a.test"]);
    let (rsa_crt, rsa_key) = (machine.path("rsa.crt"), machine.path("rsa.key"));
    let (crt, key) = (machine.path("ecdsa.crt"), machine.path("ecdsa.key"));
    let source = files(&[(&rsa_crt, &rsa_key), (&crt, &key)]);
    let acceptor = machine.acceptor(&[site(&["a.test"], source)]);
    let roots = trust(&[rsa_crt.clone(), crt.clone()]);

    let modern = machine.client_of(roots.clone());
    assert_eq!(connect(&acceptor, &modern, "a.test").await.certificate(), der(&crt));
    let only_rsa = |versions: &[&'static rustls::SupportedProtocolVersion]| {
        machine
            .client_with_schemes(roots.clone(), versions, |scheme| format!("{scheme:?}").starts_with("RSA"))
    };
    for version in [&TLS12, &TLS13] {
        let connected = connect(&acceptor, &only_rsa(&[version]), "a.test").await;
        assert_eq!(connected.certificate(), der(&rsa_crt), "{version:?}");
    }
}

#[tokio::test]
async fn a_site_chooses_by_name_and_serves_any_of_its_own_for_others() {
    let machine = Machine::new();
    for name in ["a", "b"] {
        machine.self_signed(name, &[&format!("{name}.test")]);
    }
    let paths = ["a.crt", "a.key", "b.crt", "b.key"].map(|file| machine.path(file));
    let source = files(&[(&paths[0], &paths[1]), (&paths[2], &paths[3])]);
    let acceptor = machine.acceptor(&[site(&["a.test", "b.test", "c.test"], source)]);
    let client = machine.client_of(trust(&[paths[0].clone(), paths[2].clone()]));
    assert_eq!(connect(&acceptor, &client, "a.test").await.certificate(), der(&paths[0]));
    assert_eq!(connect(&acceptor, &client, "b.test").await.certificate(), der(&paths[2]));
    let (_, refused) = try_connect(&acceptor, &client, "c.test").await;
    assert!(refused.unwrap_err().to_string().contains("not valid for name"));
}

#[tokio::test]
async fn a_directory_is_followed() {
    let machine = Machine::new();
    let directory = machine.path("certificates");
    fs::create_dir_all(directory.join("below")).unwrap();
    bundle(&directory.join("a.pem"), "a.test");
    bundle(&directory.join("below/b.PEM"), "b.test");
    fs::write(directory.join("readme.txt"), "no certificate").unwrap();
    let source = CertificateSource::Files(CertificateFiles {
        pairs: Vec::new(),
        directories: vec![directory.clone()],
    });
    let tls = machine.tls();
    let acceptor = acceptor(&tls, &[site(&[], source.clone())]);
    let served = async |name: &str, file: &str| {
        let file = directory.join(file);
        let client = machine.client_of(trust(std::slice::from_ref(&file)));
        try_connect(&acceptor, &client, name).await.1.is_ok()
    };
    assert!(served("a.test", "a.pem").await);
    assert!(served("b.test", "below/b.PEM").await);

    bundle(&directory.join("c.pem"), "c.test");
    fs::write(directory.join("d.pem"), "half a certi").unwrap();
    bundle(&directory.join("a.pem"), "a.test");
    tls.refresh();
    assert!(served("a.test", "a.pem").await, "the new one");
    assert!(served("c.test", "c.pem").await);
    bundle(&directory.join("d.pem"), "d.test");
    tls.refresh();
    assert!(served("d.test", "d.pem").await);

    let forgotten = trust(&[directory.join("c.pem")]);
    fs::remove_file(directory.join("c.pem")).unwrap();
    tls.refresh();
    assert!(try_connect(&acceptor, &machine.client_of(forgotten), "c.test").await.1.is_err());

    fs::rename(&directory, machine.path("moved")).unwrap();
    tls.refresh();
    let client = machine.client_of(trust(&[machine.path("moved/a.pem")]));
    connect(&acceptor, &client, "a.test").await;
    fs::create_dir(&directory).unwrap();
    tls.refresh();
    connect(&acceptor, &client, "a.test").await;

    let error = machine.tls().site_table(&[site(&[], source.clone())]).unwrap_err().to_string();
    assert!(error.contains("certificates holds no .pem file"), "{error}");
    fs::write(directory.join("d.pem"), "half a certi").unwrap();
    let error = machine.tls().site_table(&[site(&[], source)]).unwrap_err().to_string();
    assert!(error.contains("d.pem holds no certificate"), "{error}");
}

#[tokio::test]
async fn a_site_without_certificates_shares_those_of_all_others() {
    let machine = Machine::new();
    let tls = machine.tls();
    let first = acceptor(&tls, &[shared(&[])]);
    let source = machine.self_signed("files", &["files.test"]);
    acceptor(&tls, &[site(&["files.test"], source), internal(&["*.example.com", "127.0.0.2"])]);
    let client = machine.client();
    let named = connect(&first, &client, "a.example.com").await;
    assert_eq!(names(&named.certificate()), ["*.example.com"]);
    connect(&first, &machine.client_of(trust(&[machine.path("files.crt")])), "files.test").await;
    let unnamed = connect(&first, &client, "127.0.0.2").await;
    assert_eq!(names(&unnamed.certificate()), ["127.0.0.2"]);
    for unknown in ["a.b.example.com", "example.com", "127.0.0.3"] {
        assert!(try_connect(&first, &client, unknown).await.0.is_err(), "{unknown}");
    }
}

#[tokio::test]
async fn a_name_that_has_no_certificate_gets_that_of_the_fallback() {
    let machine = Machine::new();
    let options = Options { fallback_sni: Some("Localhost".into()), ..machine.options() };
    let tls = machine.tls_of(options);
    let without_rest = acceptor(&tls, &[internal(&["localhost"])]);
    let with_rest = acceptor(&tls, &[internal(&["localhost"]), shared(&[])]);
    for acceptor in [without_rest, with_rest] {
        let (server, client) = try_connect(&acceptor, &machine.client(), "other.test").await;
        assert!(server.is_err() || client.is_err(), "the client knows whom it wanted");
        assert!(client.unwrap_err().to_string().contains("not valid for name"));
        connect(&acceptor, &machine.client(), "localhost").await;
    }
}

#[tokio::test]
async fn names_on_demand_are_certified_in_the_handshake() {
    let machine = Machine::new();
    let acceptor = machine.acceptor(&[on_demand(&[]), on_demand(&["named.test"])]);
    let client = machine.client();
    for name in ["any.test", "Named.test", "127.0.0.1", "::1"] {
        let connected = connect(&acceptor, &client, name).await;
        assert_eq!(names(&connected.certificate()), [name.to_ascii_lowercase()]);
    }
    let first = connect(&acceptor, &client, "any.test").await.certificate();
    let again = connect(&acceptor, &machine.client(), "any.test").await.certificate();
    assert_eq!(first, again);
    assert!(!machine.path("storage/certificates").exists(), "clients cannot fill the disk");
}

#[tokio::test]
async fn a_client_without_a_name_gets_one_on_demand_for_the_default_name() {
    let machine = Machine::new();
    let tls = machine.tls_of(Options { default_sni: Some("default.test".into()), ..machine.options() });
    let acceptor = acceptor(&tls, &[on_demand(&[])]);
    let client = machine.client();
    let local: Option<IpAddr> = None;
    let (server, _) = try_connect_to(&acceptor, &client, "127.0.0.1", local).await;
    assert!(server.is_err(), "the client wanted the address");
    let anybody = machine.client_of(RootCertStore::empty());
    assert!(try_connect_to(&acceptor, &anybody, "127.0.0.1", local).await.0.is_err());
}

#[tokio::test]
async fn the_local_ca_makes_keys_and_lifetimes_as_it_is_told() {
    let types = [KeyType::Ed25519, KeyType::P384, KeyType::Rsa2048, KeyType::P256];
    let machine = Machine::new();
    for key_type in types {
        for lifetime in [Duration::from_secs(600), Duration::from_secs(24 * 3600)] {
            let internal = Internal { lifetime, key_type, issuance: Issuance::AtStart };
            let name = format!("{}.test", lifetime.as_secs());
            let acceptor = machine.acceptor(&[site(&[&name], CertificateSource::Internal(internal))]);
            let certificate = connect(&acceptor, &machine.client(), &name).await.certificate();
            let validity = crate::certificate::facts(&certificate).unwrap().0;
            // A certificate is backdated by a minute, and the first is used again with other keys.
            assert_eq!(validity.until - validity.from, lifetime.as_secs() as i64 + 60, "{key_type:?}");
            let parsed = crate::certificate::parse(&certificate).unwrap();
            let bits = parsed.public_key().parsed().unwrap().key_size();
            let expected =
                [(KeyType::Ed25519, 0), (KeyType::P256, 256), (KeyType::P384, 384), (KeyType::Rsa2048, 2048)];
            assert!(expected.contains(&(key_type, bits)), "{key_type:?} {bits}");
        }
    }
}

#[tokio::test]
async fn no_lifetime_outlasts_the_intermediate() {
    let machine = Machine::new();
    let internal = Internal { lifetime: Duration::from_secs(30 * 24 * 3600), ..Internal::default() };
    let acceptor = machine.acceptor(&[site(&["a.test"], CertificateSource::Internal(internal))]);
    let certificate = connect(&acceptor, &machine.client(), "a.test").await.certificate();
    let until = crate::certificate::facts(&certificate).unwrap().0.until;
    let intermediate = der(&machine.path("storage/pki/authorities/local/intermediate.crt"));
    assert!(until <= crate::certificate::facts(&intermediate).unwrap().0.until);
}

#[tokio::test]
async fn a_site_has_its_own_ciphers_curves_and_versions() {
    let machine = Machine::new();
    let policy = Policy {
        max_version: ProtocolVersion::Tls12,
        ciphers: vec!["TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256".parse().unwrap()],
        curves: vec!["secp384r1".parse().unwrap()],
        ..Policy::default()
    };
    let acceptor = machine.acceptor(&[Site { policy, ..internal(&["localhost"]) }]);
    let connected = connect(&acceptor, &machine.client(), "localhost").await;
    let facts = connected.facts();
    assert_eq!((facts.protocol, facts.cipher), ("TLSv1.2", "ECDHE-ECDSA-CHACHA20-POLY1305"));
    assert_eq!(facts.key_exchange.as_deref(), Some("secp384r1"));
}
