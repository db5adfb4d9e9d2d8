use super::support::*;
use crate::{HandshakeError, Options, Policy, ProtocolVersion, Site};
use rustls::version::{TLS12, TLS13};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn with_policy(policy: Policy) -> Site {
    Site { policy, ..internal(&["localhost"]) }
}

fn handshake_error(error: &std::io::Error) -> &HandshakeError {
    error.get_ref().unwrap().downcast_ref().unwrap()
}

#[tokio::test]
async fn tls_1_3_is_spoken_with_post_quantum_key_exchange() {
    let machine = Machine::new();
    let acceptor = machine.acceptor(&[internal(&["localhost"])]);
    let mut connected = connect(&acceptor, &machine.client(), "localhost").await;
    connected.exchange().await;
    let facts = connected.facts();
    assert_eq!(facts.protocol, "TLSv1.3");
    assert_eq!(facts.cipher, "TLS_AES_256_GCM_SHA384");
    assert_eq!(facts.key_exchange.as_deref(), Some("X25519MLKEM768"));
    assert_eq!(facts.server_name.as_deref(), Some("localhost"));
    assert_eq!(facts.alpn, None);
    assert!(!facts.resumed);
    assert!(facts.client_certificates.is_empty());
}

#[tokio::test]
async fn tls_1_2_is_spoken() {
    let machine = Machine::new();
    let acceptor = machine.acceptor(&[internal(&["localhost"])]);
    let mut connected =
        connect(&acceptor, &machine.client_with(machine.trust(), &[&TLS12]), "localhost").await;
    connected.exchange().await;
    assert_eq!(connected.facts().protocol, "TLSv1.2");
    assert_eq!(connected.facts().cipher, "ECDHE-ECDSA-AES256-GCM-SHA384");
}

#[tokio::test]
async fn versions_that_a_policy_excludes_are_refused() {
    let machine = Machine::new();
    let only_13 = Policy { min_version: ProtocolVersion::Tls13, ..Policy::default() };
    let acceptor = machine.acceptor(&[with_policy(only_13)]);
    let (server, client) =
        try_connect(&acceptor, &machine.client_with(machine.trust(), &[&TLS12]), "localhost").await;
    assert!(matches!(handshake_error(&server.unwrap_err()), HandshakeError::Failed(_)));
    assert!(client.unwrap_err().to_string().contains("ProtocolVersion"));

    let only_12 = Policy { max_version: ProtocolVersion::Tls12, ..Policy::default() };
    let acceptor = machine.acceptor(&[with_policy(only_12)]);
    assert_eq!(connect(&acceptor, &machine.client(), "localhost").await.facts().protocol, "TLSv1.2");
    assert!(
        try_connect(&acceptor, &machine.client_with(machine.trust(), &[&TLS13]), "localhost")
            .await
            .0
            .is_err()
    );
}

#[tokio::test]
async fn ciphers_and_curves_of_a_policy_are_used() {
    let machine = Machine::new();
    let policy = Policy {
        ciphers: vec![
            "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256".parse().unwrap(),
            "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256".parse().unwrap(),
        ],
        curves: vec!["secp384r1".parse().unwrap()],
        ..Policy::default()
    };
    let acceptor = machine.acceptor(&[with_policy(policy)]);
    let connected = connect(&acceptor, &machine.client_with(machine.trust(), &[&TLS12]), "localhost").await;
    assert_eq!(connected.facts().cipher, "ECDHE-ECDSA-CHACHA20-POLY1305", "the server's order counts");
    assert_eq!(connected.facts().key_exchange.as_deref(), Some("secp384r1"));
    let connected = connect(&acceptor, &machine.client(), "localhost").await;
    assert_eq!(connected.facts().key_exchange.as_deref(), Some("secp384r1"));
}

#[test]
fn a_policy_without_any_cipher_for_its_versions_is_an_error() {
    let machine = Machine::new();
    let policy = Policy {
        ciphers: vec!["TLS_AES_128_GCM_SHA256".parse().unwrap()],
        max_version: ProtocolVersion::Tls12,
        ..Policy::default()
    };
    let error = machine.tls().site_table(&[with_policy(policy)]).unwrap_err();
    assert!(error.to_string().contains("no connection could be made with these TLS settings"), "{error}");
}

#[tokio::test]
async fn alpn_is_the_servers_preference() {
    let machine = Machine::new();
    let policy = Policy { alpn: vec!["h2".into(), "http/1.1".into()], ..Policy::default() };
    let acceptor = machine.acceptor(&[with_policy(policy)]);
    for (offered, chosen) in [(&["http/1.1", "h2"][..], "h2"), (&["http/1.1"], "http/1.1")] {
        let mut client = machine.client();
        client.alpn_protocols = offered.iter().map(|name| name.as_bytes().to_vec()).collect();
        let connected = connect(&acceptor, &client, "localhost").await;
        assert_eq!(connected.facts().alpn.as_deref(), Some(chosen.as_bytes()));
        assert_eq!(connected.client.get_ref().1.alpn_protocol(), Some(chosen.as_bytes()));
    }
    let mut client = machine.client();
    client.alpn_protocols = vec![b"gopher".to_vec()];
    let (server, client) = try_connect(&acceptor, &client, "localhost").await;
    assert!(server.is_err());
    assert!(client.unwrap_err().to_string().contains("NoApplicationProtocol"));
}

#[tokio::test]
async fn an_unknown_name_is_told_so() {
    let machine = Machine::new();
    let acceptor = machine.acceptor(&[internal(&["localhost"])]);
    let (server, client) = try_connect(&acceptor, &machine.client(), "other.test").await;
    let error = server.unwrap_err();
    assert!(matches!(handshake_error(&error), HandshakeError::UnknownName(name) if name == "other.test"));
    assert!(client.unwrap_err().to_string().contains("UnrecognisedName"));
}

#[tokio::test]
async fn a_name_is_found_whatever_its_case() {
    let machine = Machine::new();
    let acceptor = machine.acceptor(&[internal(&["LocalHost"])]);
    let connected = connect(&acceptor, &machine.client(), "LOCALHOST").await;
    assert_eq!(connected.facts().server_name.as_deref(), Some("localhost"));
}

#[tokio::test]
async fn an_exact_name_goes_before_a_wildcard_and_that_before_the_rest() {
    let machine = Machine::new();
    let alpn = |name: &str| Policy { alpn: vec![name.to_owned()], ..Policy::default() };
    let files = machine.self_signed("rest", &["a.b.dev.test"]);
    let acceptor = machine.acceptor(&[
        Site { policy: alpn("wildcard"), ..internal(&["*.dev.test"]) },
        Site { policy: alpn("exact"), ..internal(&["a.dev.test"]) },
        Site { policy: alpn("rest"), ..site(&[], files) },
    ]);
    let mut client = machine.client_of(trust(&[
        machine.path("storage/pki/authorities/local/root.crt"),
        machine.path("rest.crt"),
    ]));
    client.alpn_protocols = ["wildcard", "exact", "rest"].map(|name| name.as_bytes().to_vec()).into();
    for (name, chosen) in [("a.dev.test", "exact"), ("b.dev.test", "wildcard"), ("a.b.dev.test", "rest")] {
        let connected = connect(&acceptor, &client, name).await;
        assert_eq!(connected.facts().alpn.as_deref(), Some(chosen.as_bytes()), "{name}");
    }
}

#[tokio::test]
async fn without_a_name_the_address_counts_and_then_the_default() {
    let machine = Machine::new();
    let sites = [internal(&["127.0.0.1", "::1", "localhost"])];
    let acceptor = machine.acceptor(&sites);
    connect(&acceptor, &machine.client(), "127.0.0.1").await;
    connect(&acceptor, &machine.client(), "::1").await;
    let mapped = "::ffff:127.0.0.1".parse().ok();
    assert!(try_connect_to(&acceptor, &machine.client(), "127.0.0.1", mapped).await.1.is_ok());

    let mut silent = machine.client();
    silent.enable_sni = false;
    let (server, client) = try_connect(&acceptor, &silent, "localhost").await;
    assert!(matches!(handshake_error(&server.unwrap_err()), HandshakeError::NoName));
    assert!(client.unwrap_err().to_string().contains("UnrecognisedName"));

    let tls = machine.tls_of(Options { default_sni: Some("LOCALHOST".into()), ..machine.options() });
    let connected = connect(&super::support::acceptor(&tls, &sites), &silent, "localhost").await;
    assert_eq!(connected.facts().server_name, None);
}

#[tokio::test]
async fn the_end_of_the_stream_is_said() {
    let machine = Machine::new();
    let acceptor = machine.acceptor(&[internal(&["localhost"])]);
    let mut connected = connect(&acceptor, &machine.client(), "localhost").await;
    connected.server.write_all(b"last words").await.unwrap();
    connected.server.shutdown().await.unwrap();
    let mut read = Vec::new();
    connected.client.read_to_end(&mut read).await.unwrap();
    assert_eq!(read, b"last words");
}

#[tokio::test]
async fn a_stream_that_was_cut_is_not_taken_for_complete() {
    let machine = Machine::new();
    let acceptor = machine.acceptor(&[internal(&["localhost"])]);
    let Connected { mut server, client } = connect(&acceptor, &machine.client(), "localhost").await;
    drop(client.into_inner());
    let error = server.read_u8().await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
}

#[tokio::test]
async fn a_slow_reader_bounds_what_waits_for_it() {
    let machine = Machine::new();
    let acceptor = machine.acceptor(&[internal(&["localhost"])]);
    let mut connected = connect(&acceptor, &machine.client(), "localhost").await;
    let body = vec![7; 1 << 20];
    let mut written = 0;
    let all = async {
        while written < body.len() {
            written += connected.server.write(&body[written..]).await.unwrap();
        }
    };
    tokio::select! {
        biased;
        () = all => panic!("a mebibyte went into a stream that nobody reads"),
        () = std::future::ready(()) => {}
    }
    assert!(written <= (64 + 32 + 16) * 1024, "{written}");
}

#[test]
fn the_mistakes_of_all_sites_are_told_at_once() {
    let machine = Machine::new();
    let missing = files(&[(&machine.path("no.crt"), &machine.path("no.key"))]);
    let sites = [
        site(&["a.test"], missing),
        internal(&["localhost"]),
        internal(&[]),
        internal(&["bad name"]),
        with_policy(Policy { min_version: ProtocolVersion::Tls13, ..Policy::default() }),
        internal(&["localhost", "other.test"]),
    ];
    let errors = machine.tls().site_table(&sites).unwrap_err();
    assert_eq!(errors.0.iter().map(|(site, _)| *site).collect::<Vec<_>>(), [0, 2, 3, 4]);
    let text = errors.to_string();
    assert!(text.contains("no.crt: No such file"), "{text}");
    assert!(text.contains("\"localhost\" is in two sites"), "{text}");
}

#[tokio::test]
async fn sites_that_are_served_alike_may_share_a_name() {
    let machine = Machine::new();
    let acceptor = machine.acceptor(&[internal(&["localhost"]), internal(&["localhost", "other.test"])]);
    connect(&acceptor, &machine.client(), "localhost").await;
    connect(&acceptor, &machine.client(), "other.test").await;
}
