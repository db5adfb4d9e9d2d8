use super::client_auth::{authority, with_client_auth};
use super::support::*;
use crate::{ClientAuthMode, Options, Site, Tickets};
use rustls::version::{TLS12, TLS13};
use tokio::io::AsyncReadExt;

#[tokio::test]
async fn a_client_resumes_after_a_restart() {
    for version in [&TLS12, &TLS13] {
        let machine = Machine::new();
        let sites = [internal(&["localhost"])];
        let acceptor = machine.acceptor(&sites);
        let client = machine.client_with(machine.trust(), &[version]);
        let mut first = connect(&acceptor, &client, "localhost").await;
        first.exchange().await;
        assert!(!first.facts().resumed);

        let restarted = machine.acceptor(&sites);
        let mut second = connect(&restarted, &client, "localhost").await;
        second.exchange().await;
        assert!(second.facts().resumed, "{version:?}");
    }
}

#[tokio::test]
async fn a_client_resumes_across_a_rotation_of_the_keys() {
    let machine = Machine::new();
    let tls = machine.tls();
    let acceptor = acceptor(&tls, &[internal(&["localhost"])]);
    let client = machine.client();
    connect(&acceptor, &client, "localhost").await.exchange().await;
    machine.clock.advance(11 * HOUR);
    connect(&acceptor, &client, "localhost").await.exchange().await;
    machine.clock.advance(2 * HOUR);
    tls.refresh();
    assert!(connect(&acceptor, &client, "localhost").await.facts().resumed);
}

#[tokio::test]
async fn without_tickets_nothing_is_resumed() {
    let machine = Machine::new();
    let tls = machine.tls_of(Options { tickets: Tickets::Disabled, ..machine.options() });
    let acceptor = acceptor(&tls, &[internal(&["localhost"])]);
    for version in [&TLS12, &TLS13] {
        let client = machine.client_with(machine.trust(), &[version]);
        connect(&acceptor, &client, "localhost").await.exchange().await;
        assert!(!connect(&acceptor, &client, "localhost").await.facts().resumed);
    }
    assert!(!machine.path("storage/session_tickets").exists());
}

/// rustls compares the name only. The same name is moved here from a site that asks for no certificate to one that does.
#[tokio::test]
async fn a_ticket_is_not_taken_by_another_class_of_client_authentication() {
    for version in [&TLS12, &TLS13] {
        let machine = Machine::new();
        let ca = authority(&machine, "ca");
        let open = machine.acceptor(&[internal(&["localhost"])]);
        let client = machine.client_with(machine.trust(), &[version]);
        connect(&open, &client, "localhost").await.exchange().await;
        assert!(connect(&open, &client, "localhost").await.facts().resumed);

        let closed = machine.acceptor(&[with_client_auth(ClientAuthMode::RequireAndVerify, &ca)]);
        let (server, _) = try_connect(&closed, &client, "localhost").await;
        assert!(server.is_err(), "{version:?}");
    }
}

#[tokio::test]
async fn a_ticket_of_a_certificate_is_not_taken_where_another_ca_is_trusted() {
    let machine = Machine::new();
    let (ca, other) = (authority(&machine, "ca"), authority(&machine, "other"));
    let files = ca.client("client", 0..24, &machine);
    let site = |ca| -> [Site; 1] { [with_client_auth(ClientAuthMode::RequireAndVerify, ca)] };
    let one = machine.acceptor(&site(&ca));
    let client = machine.client_with_certificate(&files.0, &files.1);
    connect(&one, &client, "localhost").await.exchange().await;
    let resumed = connect(&one, &client, "localhost").await;
    assert!(resumed.facts().resumed);
    assert_eq!(resumed.facts().client_certificates.len(), 1, "a ticket brings the certificate back");

    assert!(try_connect(&machine.acceptor(&site(&other)), &client, "localhost").await.0.is_err());
}

#[tokio::test]
async fn a_client_certificate_that_has_expired_since_is_not_resumed() {
    let machine = Machine::new();
    let ca = authority(&machine, "ca");
    let files = ca.client("client", 0..2, &machine);
    let acceptor = machine.acceptor(&[with_client_auth(ClientAuthMode::RequireAndVerify, &ca)]);
    let client = machine.client_with_certificate(&files.0, &files.1);
    connect(&acceptor, &client, "localhost").await.exchange().await;
    machine.clock.advance(HOUR);
    connect(&acceptor, &client, "localhost").await.exchange().await;
    machine.clock.advance(2 * HOUR);
    let (server, client) = try_connect(&acceptor, &client, "localhost").await;
    let error = server.unwrap_err().to_string();
    assert!(error.contains("expired"), "{error}");
    let read = client.unwrap().read(&mut [0]).await;
    assert_eq!(read.expect("the client is told, and need not think of an attack"), 0);
}
