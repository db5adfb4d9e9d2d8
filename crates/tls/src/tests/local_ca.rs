use super::support::*;
use crate::certificate::facts;
use crate::{Acceptor, AuthorityOptions, Handshakes, KeyPairFiles, Options, Tickets, Tls};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, DnValue, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Barrier;
use time::{Duration, OffsetDateTime};

const PKI: &str = "storage/pki/authorities/local";

#[tokio::test]
async fn certificates_are_renewed_while_they_are_used() {
    let machine = Machine::new();
    let tls = machine.tls();
    let acceptor = acceptor(&tls, &[internal(&["localhost"])]);
    let client = || machine.client();
    let mut open = connect(&acceptor, &client(), "localhost").await;
    let first = open.certificate();

    machine.clock.advance(7 * HOUR);
    tls.refresh();
    assert_eq!(
        connect(&acceptor, &client(), "localhost").await.certificate(),
        first,
        "two thirds are not over"
    );
    machine.clock.advance(2 * HOUR);
    tls.refresh();
    let second = connect(&acceptor, &client(), "localhost").await.certificate();
    assert_ne!(second, first);
    open.exchange().await;

    // Through several lives of the intermediate.
    let intermediate = fs::read(machine.path(PKI).join("intermediate.crt")).unwrap();
    for _ in 0..20 {
        machine.clock.advance(9 * HOUR);
        tls.refresh();
        connect(&acceptor, &client(), "localhost").await;
    }
    assert_ne!(fs::read(machine.path(PKI).join("intermediate.crt")).unwrap(), intermediate);
}

#[tokio::test]
async fn a_restart_goes_on_with_what_is_there() {
    let machine = Machine::new();
    let sites = [internal(&["localhost"])];
    let before = connect(&machine.acceptor(&sites), &machine.client(), "localhost").await.certificate();
    let after = connect(&machine.acceptor(&sites), &machine.client(), "localhost").await.certificate();
    assert_eq!(before, after);
}

#[test]
fn files_are_for_the_owner_alone() {
    let machine = Machine::new();
    machine.acceptor(&[internal(&["localhost"])]);
    for file in [
        "pki/authorities/local/root.key",
        "certificates/local/localhost/localhost.key",
        "session_tickets/keys.json",
    ] {
        let mode = fs::metadata(machine.path("storage").join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    assert_eq!(fs::read_dir(machine.path("storage/locks")).unwrap().count(), 0, "all locks are released");
}

#[test]
fn lifetimes_are_those_of_caddy() {
    let machine = Machine::new();
    machine.acceptor(&[internal(&["localhost"])]);
    let lifetime = |file: &str| {
        let path = machine.path("storage").join(file);
        let chain = crate::certificate::parse_chain(&path, &fs::read(&path).unwrap()).unwrap();
        let (validity, _) = facts(&chain[0]).unwrap();
        (validity.until - validity.from - 60) / 3600
    };
    assert_eq!(lifetime("pki/authorities/local/root.crt"), 3600 * 24);
    assert_eq!(lifetime("pki/authorities/local/intermediate.crt"), 7 * 24);
    assert_eq!(lifetime("certificates/local/localhost/localhost.crt"), 12);
}

/// Several servers start on an empty directory.
#[tokio::test]
async fn one_ca_results_of_a_race() {
    let machine = Machine::new();
    let begin = Barrier::new(6);
    let tables: Vec<_> = std::thread::scope(|scope| {
        let start = |_| {
            scope.spawn(|| {
                let tls = machine.tls_of(Options { tickets: Tickets::Disabled, ..machine.options() });
                begin.wait();
                tls.site_table(&[internal(&["localhost"])]).unwrap()
            })
        };
        let threads: Vec<_> = (0..6).map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut served = BTreeSet::new();
    for table in tables {
        let acceptor = Acceptor::new(table, Handshakes::default());
        served.insert(connect(&acceptor, &machine.client(), "localhost").await.certificate());
    }
    assert_eq!(served.len(), 1);
    assert_eq!(fs::read_dir(machine.path("storage/locks")).unwrap().count(), 0);
}

/// As Caddy leaves it behind: keys in SEC 1, names as Go encodes them.
fn caddys_directory(machine: &Machine) {
    let now = OffsetDateTime::now_utc();
    let named = |name: &str, path_length| {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params
            .distinguished_name
            .push(DnType::CommonName, DnValue::PrintableString(name.try_into().unwrap()));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(path_length));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.not_before = now - Duration::days(1);
        params
    };
    let (root_key, intermediate_key, leaf_key) =
        (KeyPair::generate().unwrap(), KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let mut root = named("Caddy Local Authority - 2026 ECC Root", 1);
    root.not_after = now + Duration::days(3599);
    let root_certificate = root.self_signed(&root_key).unwrap();
    let root_issuer = Issuer::new(root, &root_key);
    let mut intermediate = named("Caddy Local Authority - ECC Intermediate", 0);
    intermediate.not_after = now + Duration::days(6);
    let intermediate_certificate = intermediate.signed_by(&intermediate_key, &root_issuer).unwrap();
    let mut leaf = CertificateParams::new(["localhost".to_owned()]).unwrap();
    leaf.distinguished_name = DistinguishedName::new();
    leaf.not_before = now - Duration::hours(1);
    leaf.not_after = now + Duration::hours(11);
    let leaf_certificate = leaf.signed_by(&leaf_key, &Issuer::new(intermediate, &intermediate_key)).unwrap();

    let pki = machine.path(PKI);
    let site = machine.path("storage/certificates/local/localhost");
    fs::create_dir_all(&pki).unwrap();
    fs::create_dir_all(&site).unwrap();
    fs::write(pki.join("root.crt"), root_certificate.pem()).unwrap();
    fs::write(pki.join("root.key"), sec1_pem(&root_key)).unwrap();
    fs::write(pki.join("intermediate.crt"), intermediate_certificate.pem()).unwrap();
    fs::write(pki.join("intermediate.key"), sec1_pem(&intermediate_key)).unwrap();
    fs::write(site.join("localhost.crt"), leaf_certificate.pem() + &intermediate_certificate.pem()).unwrap();
    fs::write(site.join("localhost.key"), sec1_pem(&leaf_key)).unwrap();
    fs::write(
        site.join("localhost.json"),
        "{\n\t\"sans\": [\n\t\t\"localhost\"\n\t],\n\t\"issuer_data\": null\n}",
    )
    .unwrap();
}

/// `EC PRIVATE KEY`, as Go's `x509.MarshalECPrivateKey`.
fn sec1_pem(key: &KeyPair) -> String {
    use aws_lc_rs::encoding::{AsDer, EcPrivateKeyRfc5915Der};
    use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair};
    let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, key.serialized_der()).unwrap();
    let der: EcPrivateKeyRfc5915Der<'_> = pair.private_key().as_der().unwrap();
    format!("-----BEGIN EC PRIVATE KEY-----\n{}\n-----END EC PRIVATE KEY-----\n", base64(der.as_ref()))
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |chunk: &[u8]| {
        let bits =
            chunk.iter().chain([0; 2].iter()).take(3).fold(0u32, |bits, byte| bits << 8 | u32::from(*byte));
        let digit = |place: usize| char::from(DIGITS[(bits >> (18 - 6 * place) & 63) as usize]);
        (0..4).map(|place| if place <= chunk.len() { digit(place) } else { '=' }).collect::<String>()
    };
    bytes.chunks(3).map(group).collect()
}

#[tokio::test]
async fn a_directory_of_caddy_goes_on_being_used() {
    let machine = Machine::new();
    caddys_directory(&machine);
    let files = ["root.crt", "root.key", "intermediate.crt", "intermediate.key"];
    let content = || files.map(|file| fs::read(machine.path(PKI).join(file)).unwrap());
    let before = content();
    let leaf = machine.path("storage/certificates/local/localhost/localhost.crt");
    let leaf = crate::certificate::parse_chain(&leaf, &fs::read(&leaf).unwrap()).unwrap();

    let tls = machine.tls();
    let acceptor = acceptor(&tls, &[internal(&["localhost", "new.localhost", "10.0.0.1"])]);
    assert_eq!(connect(&acceptor, &machine.client(), "localhost").await.certificate(), leaf[0].to_vec());
    connect(&acceptor, &machine.client(), "new.localhost").await;
    connect(&acceptor, &machine.client(), "10.0.0.1").await;
    assert_eq!(content(), before);

    machine.clock.advance(9 * HOUR);
    tls.refresh();
    assert_ne!(connect(&acceptor, &machine.client(), "localhost").await.certificate(), leaf[0].to_vec());

    // Its intermediate ends; the one that follows is signed by Caddy's root.
    machine.clock.advance(5 * 24 * HOUR);
    tls.refresh();
    connect(&acceptor, &machine.client(), "localhost").await;
    assert_eq!(content()[..2], before[..2]);
    assert_ne!(content()[2..], before[2..]);
}

#[tokio::test]
async fn the_roots_key_is_not_needed_as_long_as_the_intermediate_lives() {
    let machine = Machine::new();
    caddys_directory(&machine);
    let key = machine.path(PKI).join("root.key");
    fs::remove_file(&key).unwrap();
    let acceptor = machine.acceptor(&[internal(&["new.localhost"])]);
    connect(&acceptor, &machine.client(), "new.localhost").await;

    machine.clock.advance((6 * 24 + 1) * HOUR);
    let error = machine.tls().site_table(&[internal(&["localhost"])]).unwrap_err().to_string();
    assert!(error.contains("root.key"), "{error}");
    assert!(!key.exists());
}

#[tokio::test]
async fn damaged_files_below_the_root_are_made_anew() {
    let machine = Machine::new();
    machine.acceptor(&[internal(&["localhost"])]);
    let leaf = machine.path("storage/certificates/local/localhost");
    for path in [
        machine.path(PKI).join("intermediate.key"),
        machine.path(PKI).join("intermediate.crt"),
        leaf.join("localhost.crt"),
        leaf.join("localhost.key"),
    ] {
        fs::write(&path, "damaged").unwrap();
        let acceptor = machine.acceptor(&[internal(&["localhost"])]);
        connect(&acceptor, &machine.client(), "localhost").await;
    }
}

#[test]
fn a_damaged_root_is_an_error_and_stays_as_it_is() {
    let machine = Machine::new();
    machine.acceptor(&[internal(&["localhost"])]);
    let root = machine.path(PKI).join("root.crt");
    fs::write(&root, "damaged").unwrap();
    let error = machine.tls().site_table(&[internal(&["localhost"])]).unwrap_err().to_string();
    assert!(error.contains("root.crt holds no certificate"), "{error}");
    assert_eq!(fs::read(&root).unwrap(), b"damaged");
}

#[test]
fn an_expired_root_is_an_error() {
    let machine = Machine::new();
    machine.acceptor(&[internal(&["localhost"])]);
    machine.clock.advance(3601 * 24 * HOUR);
    let error = machine.tls().site_table(&[internal(&["localhost"])]).unwrap_err().to_string();
    assert!(error.contains("root.crt, has expired"), "{error}");
}

/// As a full or a read-only disk does: no lock can be taken, and nothing be written.
fn spoil_locks(machine: &Machine) {
    fs::remove_dir(machine.path("storage/locks")).unwrap();
    fs::write(machine.path("storage/locks"), "a file where a directory should be").unwrap();
}

#[tokio::test]
async fn a_storage_that_cannot_be_written_to_leaves_the_local_ca_at_work() {
    let machine = Machine::new();
    let sites = [internal(&["localhost"]), internal(&["*.localhost"]), internal(&["b.test"])];
    let tls = || machine.tls_of(Options { tickets: Tickets::Disabled, ..machine.options() });
    acceptor(&tls(), &sites[..2]);
    spoil_locks(&machine);
    let running = tls();
    let acceptor_of_running = acceptor(&running, &sites);
    // The leaf is due, the intermediate is due, and the intermediate that is stored has run out.
    for wait in [HOUR, 9 * HOUR, 5 * 24 * HOUR, 3 * 24 * HOUR] {
        machine.clock.advance(wait);
        running.refresh();
        let restarted = acceptor(&tls(), &sites);
        for acceptor in [&acceptor_of_running, &restarted] {
            for name in ["localhost", "a.localhost", "b.test"] {
                connect(acceptor, &machine.client(), name).await;
            }
        }
    }
    // Once it can be written to, what is in memory is made to last.
    let intermediate = || fs::read(machine.path(PKI).join("intermediate.crt")).unwrap();
    let before = intermediate();
    fs::remove_file(machine.path("storage/locks")).unwrap();
    running.refresh();
    assert_ne!(intermediate(), before);
    connect(&acceptor_of_running, &machine.client(), "a.localhost").await;
}

#[test]
fn a_local_ca_without_a_root_needs_a_storage() {
    let machine = Machine::new();
    fs::create_dir_all(machine.path("storage")).unwrap();
    fs::write(machine.path("storage/locks"), "a file where a directory should be").unwrap();
    let options = Options { tickets: Tickets::Disabled, ..machine.options() };
    let error = machine.tls_of(options).site_table(&[internal(&["localhost"])]).unwrap_err().to_string();
    assert!(error.contains("cannot write") && error.contains("locks"), "{error}");
}

#[tokio::test]
async fn leaves_of_another_root_are_replaced() {
    let machine = Machine::new();
    let sites = [internal(&["localhost"])];
    machine.acceptor(&sites);
    fs::remove_dir_all(machine.path(PKI)).unwrap();
    let acceptor = machine.acceptor(&sites);
    connect(&acceptor, &machine.client(), "localhost").await;
}

/// As the system's name service resolves them all (RFC 6761 §6.3).
#[tokio::test]
async fn every_subdomain_of_localhost_is_served_with_a_certificate_that_clients_take() {
    let machine = Machine::new();
    let acceptor = machine.acceptor(&[internal(&["*.localhost"])]);
    connect(&acceptor, &machine.client(), "a.localhost").await.exchange().await;
    connect(&acceptor, &machine.client(), "B.localhost").await.exchange().await;
    assert!(try_connect(&acceptor, &machine.client(), "a.b.localhost").await.0.is_err());
    assert!(!machine.path("storage/certificates").exists());
}

/// A root as `mkcert` makes one; its files.
fn root_of_mine(machine: &Machine, is_ca: IsCa) -> KeyPairFiles {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "mine");
    params.is_ca = is_ca;
    params.not_before = OffsetDateTime::now_utc() - Duration::days(1);
    let key = KeyPair::generate().unwrap();
    let files = KeyPairFiles { certificate: machine.path("mine.pem"), key: machine.path("mine.key") };
    fs::write(&files.certificate, params.self_signed(&key).unwrap().pem()).unwrap();
    fs::write(&files.key, key.serialize_pem()).unwrap();
    files
}

fn with(machine: &Machine, authority: AuthorityOptions) -> Tls {
    machine.tls_of(Options { authority, ..machine.options() })
}

#[tokio::test]
async fn a_root_of_ones_own_signs_and_is_not_replaced() {
    let machine = Machine::new();
    // What is there of an earlier root is replaced.
    machine.acceptor(&[internal(&["localhost"])]);
    let files = root_of_mine(&machine, IsCa::Ca(BasicConstraints::Unconstrained));
    let authority = AuthorityOptions {
        root: Some(files.clone()),
        intermediate_name: Some("my intermediate".into()),
        intermediate_lifetime: Some(std::time::Duration::from_secs(2 * 24 * 3600)),
        ..AuthorityOptions::default()
    };
    let tls = with(&machine, authority.clone());
    let acceptor = acceptor(&tls, &[internal(&["localhost"])]);
    let client = machine.client_of(trust(std::slice::from_ref(&files.certificate)));
    connect(&acceptor, &client, "localhost").await;
    assert_eq!(tls.local_root().unwrap(), files.certificate);
    let described = tls.stored_local_authority().unwrap();
    assert_eq!([&*described.root.name, &*described.intermediate.name], ["mine", "my intermediate"]);
    let intermediate = fs::read(machine.path(PKI).join("intermediate.crt")).unwrap();
    machine.clock.advance(40 * HOUR);
    tls.refresh();
    connect(&acceptor, &client, "localhost").await;
    assert_ne!(
        fs::read(machine.path(PKI).join("intermediate.crt")).unwrap(),
        intermediate,
        "it lives for two days"
    );
    // Nothing is signed with a root that may not, or that is not there.
    root_of_mine(&machine, IsCa::NoCa);
    let error = with(&machine, authority.clone()).local_root().unwrap_err().to_string();
    assert!(error.contains("mine.pem") && error.contains("no CA's"), "{error}");
    fs::remove_file(&files.certificate).unwrap();
    let error = with(&machine, authority).local_root().unwrap_err().to_string();
    assert!(error.contains("mine.pem"), "{error}");
}
