use super::support::*;
use crate::CertificateSource;
use std::fs;
use std::time::Duration;

impl Machine {
    /// Writes `<file>.crt` and `<file>.key`.
    pub(super) fn self_signed(&self, file: &str, names: &[&str]) -> CertificateSource {
        let names: Vec<_> = names.iter().map(|name| name.to_string()).collect();
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        let (certificate, key) = (self.path(&format!("{file}.crt")), self.path(&format!("{file}.key")));
        fs::write(&certificate, made.cert.pem()).unwrap();
        fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        files(&[(&certificate, &key)])
    }
}

#[tokio::test]
async fn changed_files_are_loaded_and_broken_ones_are_not() {
    let machine = Machine::new();
    let source = machine.self_signed("a", &["a.test"]);
    let tls = machine.tls();
    let acceptor = acceptor(&tls, &[site(&["a.test"], source)]);
    let before = trust(&[machine.path("a.crt")]);
    connect(&acceptor, &machine.client_of(before.clone()), "a.test").await;

    fs::write(machine.path("a.crt"), "half a certifi").unwrap();
    tls.refresh();
    connect(&acceptor, &machine.client_of(before.clone()), "a.test").await;

    machine.self_signed("a", &["a.test"]);
    let after = trust(&[machine.path("a.crt")]);
    assert!(try_connect(&acceptor, &machine.client_of(after.clone()), "a.test").await.1.is_err());
    tls.refresh();
    connect(&acceptor, &machine.client_of(after.clone()), "a.test").await;

    fs::remove_file(machine.path("a.key")).unwrap();
    tls.refresh();
    connect(&acceptor, &machine.client_of(after), "a.test").await;
}

#[tokio::test(start_paused = true)]
async fn maintenance_looks_by_itself() {
    let machine = Machine::new();
    let source = machine.self_signed("a", &["a.test"]);
    let tls = machine.tls();
    let acceptor = acceptor(&tls, &[site(&["a.test"], source)]);
    machine.self_signed("a", &["a.test"]);
    tokio::select! {
        () = tls.maintain() => unreachable!("it does not end"),
        () = tokio::time::sleep(Duration::from_secs(100)) => {}
    }
    connect(&acceptor, &machine.client_of(trust(&[machine.path("a.crt")])), "a.test").await;
}

#[tokio::test]
async fn files_are_served_from_a_storage_that_cannot_be_used() {
    let machine = Machine::new();
    fs::write(machine.path("storage"), "a file in the way").unwrap();
    let source = machine.self_signed("a", &["a.test"]);
    let acceptor = machine.acceptor(&[site(&["a.test"], source)]);
    let client = machine.client_of(trust(&[machine.path("a.crt")]));
    connect(&acceptor, &client, "a.test").await.exchange().await;
    assert!(connect(&acceptor, &client, "a.test").await.facts().resumed);
    let error = machine.tls().site_table(&[internal(&["localhost"])]).unwrap_err().to_string();
    assert!(error.contains("storage"), "{error}");
}

#[tokio::test]
async fn an_expired_certificate_is_served_all_the_same() {
    let machine = Machine::new();
    let source = machine.self_signed("a", &["a.test"]);
    machine.clock.advance(3000 * 365 * 24 * HOUR);
    let acceptor = machine.acceptor(&[site(&["a.test"], source)]);
    let (_, client) =
        try_connect(&acceptor, &machine.client_of(trust(&[machine.path("a.crt")])), "a.test").await;
    let error = client.unwrap_err().to_string();
    assert!(error.contains("expired"), "{error}");
}
