//! Certificates are obtained and renewed.

use super::pebble::Behaviour;
use super::world::{BOTH, with_pebble};
use crate::certificate;
use crate::tests::write_program;
use crate::{
    Acme, ChallengeKind, DnsChallenge, DnsHook, DnsProvider, DnsUpdateServer, ExternalAccount, KeyType,
};
use std::time::Duration;

const HOUR: u64 = 3600;

fn names(der: &[u8]) -> Vec<String> {
    certificate::facts(der).unwrap().1
}

#[tokio::test]
async fn by_the_http_challenge_and_not_again_after_a_restart() {
    with_pebble(Behaviour::default(), async |world, pebble| {
        let challenges = vec![ChallengeKind::Http];
        let acme = Acme { challenges, key_type: KeyType::P384, ..world.acme(pebble.directory()) };
        let server = world.server(&acme, &["a.test"]);
        world.lead_to(&server);
        let refused = server.connect("a.test").await.unwrap_err();
        assert!(refused.contains("UnrecognisedName"), "{refused}");
        server.tend().await;
        let first = server.connect("a.test").await.expect("a certificate");
        assert_eq!(names(&first), ["a.test"]);
        let state = server.state("a.test");
        assert!(state.issuer.starts_with("Pebble Intermediate CA"), "{}", state.issuer);
        assert!(state.not_after.is_some() && state.last_error.is_none(), "{state:?}");
        assert!(
            !world
                .path("storage/acme")
                .read_dir()
                .unwrap()
                .next()
                .unwrap()
                .unwrap()
                .path()
                .join("challenge_tokens/a.test.json")
                .exists()
        );

        let restarted = world.server(&acme, &["a.test"]);
        assert_eq!(restarted.connect("a.test").await.unwrap(), first);
        restarted.tend().await;
        restarted.tend().await;
        assert_eq!((pebble.orders(), pebble.issued()), (1, 1));
    })
    .await;
}

#[tokio::test]
async fn by_the_tls_challenge() {
    with_pebble(Behaviour::default(), async |world, pebble| {
        let challenges = vec![ChallengeKind::TlsAlpn];
        let server =
            world.server(&Acme { challenges, ..world.acme(pebble.directory()) }, &["a.test", "b.test"]);
        world.lead_to(&server);
        server.tend().await;
        for name in ["a.test", "b.test"] {
            assert_eq!(names(&server.connect(name).await.expect(name)), [name]);
        }
    })
    .await;
}

fn dns_challenge(provider: DnsProvider) -> DnsChallenge {
    DnsChallenge {
        provider,
        propagation_delay: Duration::ZERO,
        propagation_timeout: None,
        resolvers: Vec::new(),
        override_domain: None,
        ttl: None,
    }
}

#[tokio::test]
async fn by_the_dns_challenge_for_a_wildcard() {
    with_pebble(Behaviour::default(), async |world, pebble| {
        let program = world.path("hook");
        let records = world.path("records");
        let script = format!(
            "#!/bin/sh\ncd {}\ncase $1 in present) echo \"$3\" > \"$2\";; cleanup) rm \"$2\";; esac\n",
            records.display()
        );
        write_program(&program, &script);
        let provider = DnsProvider::Exec(DnsHook { program, arguments: Vec::new() });
        let dns = Some(dns_challenge(provider));
        let server = world.server(&Acme { dns, ..world.acme(pebble.directory()) }, &["*.a.test"]);
        server.tend().await;
        let got = server
            .connect("any.a.test")
            .await
            .unwrap_or_else(|error| panic!("{error}: {:?}", server.state("*.a.test")));
        assert_eq!(names(&got), ["*.a.test"]);
        assert_eq!(records.read_dir().unwrap().count(), 0, "the record is removed");
    })
    .await;
}

#[tokio::test]
async fn by_an_update_of_a_name_server() {
    with_pebble(Behaviour::default(), async |world, pebble| {
        let server = DnsUpdateServer { host: "127.0.0.1".into(), port: world.ports.dns, key: None };
        let provider = DnsProvider::Rfc2136(server);
        let dns = Some(dns_challenge(provider));
        let server = world.server(&Acme { dns, ..world.acme(pebble.directory()) }, &["*.a.test"]);
        server.tend().await;
        let got = server
            .connect("any.a.test")
            .await
            .unwrap_or_else(|error| panic!("{error}: {:?}", server.state("*.a.test")));
        assert_eq!(names(&got), ["*.a.test"]);
        assert_eq!(world.path("records").read_dir().unwrap().count(), 0, "the record is removed");
    })
    .await;
}

#[tokio::test]
async fn of_a_profile_for_an_external_account() {
    let mac_key = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W".to_owned();
    let external_account = Some(("kid-1".to_owned(), mac_key.clone()));
    with_pebble(
        Behaviour { external_account, brief_profile: Some("brief"), ..Behaviour::default() },
        async |world, pebble| {
            let eab = Some(ExternalAccount { key_id: "kid-1".into(), mac_key });
            let profile = Some("brief".to_owned());
            // Without its name in the order, each would have it with a chance of a half.
            let names = ["a.test", "b.test", "c.test", "d.test", "e.test", "f.test"];
            let server = world.server(&Acme { eab, profile, ..world.acme(pebble.directory()) }, &names);
            world.lead_to(&server);
            server.tend().await;
            for name in names {
                let got = server.connect(name).await.expect(name);
                let (validity, _) = certificate::facts(&got).unwrap();
                assert!(validity.until - validity.from <= 3600);
            }
        },
    )
    .await;
}

#[tokio::test]
async fn a_brief_certificate_is_renewed_while_it_is_served() {
    with_pebble(Behaviour { lifetime: 6 * HOUR, ..Behaviour::default() }, async |world, pebble| {
        let server = world.server(&world.acme(pebble.directory()), &["a.test"]);
        world.lead_to(&server);
        server.tend().await;
        let first = server.connect("a.test").await.expect("a certificate");
        // The CA says when to renew, which is before the last twentieth.
        server.tend().await;
        world.clock.advance(Duration::from_secs(6 * HOUR - 17 * 60));
        let renewal = async {
            server.tend().await;
            server.connect("a.test").await.unwrap()
        };
        let serving = async {
            for _ in 0..50 {
                server.connect("a.test").await.expect("served without a gap");
            }
        };
        let (second, ()) = tokio::join!(renewal, serving);
        assert_ne!(first, second);
        assert_eq!(pebble.issued(), 2);
        let stored =
            std::fs::read_to_string(glob(&world.path("storage/certificates"), "a.test/a.test.crt")).unwrap();
        assert!(stored.contains("BEGIN CERTIFICATE"));
    })
    .await;
}

/// The file in the directory of the only CA.
fn glob(directory: &std::path::Path, file: &str) -> std::path::PathBuf {
    directory.read_dir().unwrap().next().unwrap().unwrap().path().join(file)
}

/// What a runtime with several threads asks for.
fn is_send(_: &(impl Send + Sized)) {}

#[tokio::test]
async fn what_maintains_needs_no_call() {
    with_pebble(Behaviour::default(), async |world, pebble| {
        let server = world.server(&world.acme(pebble.directory()), &["a.test"]);
        world.lead_to(&server);
        let issued = async {
            while server.connect("a.test").await.is_err() {
                // clock: a round of a loop that ends with an event.
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        is_send(&server.tls.maintain());
        tokio::select! {
            () = server.tls.maintain() => unreachable!("it never ends"),
            () = issued => {}
        }
    })
    .await;
}

#[tokio::test]
async fn the_other_challenge_is_taken_when_one_fails() {
    with_pebble(Behaviour::default(), async |world, pebble| {
        // One that does not know the challenge is reached by HTTP, the right one by TLS.
        let acme = Acme { challenges: BOTH.to_vec(), ..world.acme(pebble.directory()) };
        let server = world.server(&acme, &["a.test", "b.test", "c.test", "d.test"]);
        world.lead_to(&server);
        world.break_http();
        server.tend().await;
        for name in ["a.test", "b.test", "c.test", "d.test"] {
            server.connect(name).await.unwrap_or_else(|error| panic!("{error}: {:?}", server.state(name)));
        }
    })
    .await;
}
