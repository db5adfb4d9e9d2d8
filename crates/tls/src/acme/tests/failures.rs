//! A CA that is down, slow or moody, and names that it cannot reach.

use super::pebble::Behaviour;
use super::world::{in_world, with_pebble};
use crate::Acme;
use std::time::{Duration, SystemTime};

const MINUTE: Duration = Duration::from_secs(60);

/// Where nothing listens.
const NOWHERE: &str = "https://127.0.0.1:1/dir";

#[tokio::test]
async fn a_ca_that_is_down_is_tried_again_later_and_later() {
    with_pebble(Behaviour::default(), async |world, pebble| {
        let server = world.server(&world.acme(NOWHERE.into()), &["a.test"]);
        let mut waits = Vec::new();
        for _ in 0..4 {
            server.tend().await;
            let next = server.state("a.test").next_try.unwrap();
            waits.push(next.duration_since(crate::Clock::now(&*world.clock)).unwrap().as_secs().div_ceil(60));
            // Nothing happens before.
            world.clock.advance(
                next.duration_since(crate::Clock::now(&*world.clock)).unwrap() - 2 * Duration::from_secs(1),
            );
            server.tend().await;
            assert_eq!(server.state("a.test").next_try, Some(next));
            world.clock.advance(Duration::from_secs(3));
        }
        assert_eq!(waits, [1, 2, 2, 5]);
        assert!(
            server.last_error("a.test").contains("cannot connect to 127.0.0.1"),
            "{}",
            server.last_error("a.test")
        );
        assert_eq!(pebble.orders(), 0);
    })
    .await;
}

#[tokio::test]
async fn what_is_stored_is_served_while_the_ca_is_down_and_renewed_when_it_is_back() {
    with_pebble(Behaviour { lifetime: 3600, ..Behaviour::default() }, async |world, pebble| {
        let acme = world.acme(pebble.directory());
        let server = world.server(&acme, &["a.test"]);
        world.lead_to(&server);
        server.tend().await;
        let first = server.connect("a.test").await.expect("a certificate");
        pebble.stop();
        world.clock.advance(Duration::from_secs(2 * 3600));
        let restarted = world.server(&acme, &["a.test"]);
        world.lead_to(&restarted);
        assert_eq!(restarted.connect("a.test").await.unwrap(), first, "expired, but better than none");
        restarted.tend().await;
        assert!(restarted.state("a.test").last_error.is_some());
        assert_eq!(restarted.connect("a.test").await.unwrap(), first);

        // It has lost its data, so it does not know the account any more.
        pebble.start_again().await;
        world.clock.advance(MINUTE);
        restarted.tend().await;
        let error = restarted.last_error("a.test");
        assert!(error.contains("accountDoesNotExist"), "{error}");
        world.clock.advance(2 * MINUTE);
        restarted.tend().await;
        assert_eq!(restarted.state("a.test").last_error, None);
        assert_ne!(restarted.connect("a.test").await.unwrap(), first);
    })
    .await;
}

#[tokio::test]
async fn a_ca_that_refuses_most_nonces_is_asked_on() {
    with_pebble(Behaviour { refused_nonces: 60, ..Behaviour::default() }, async |world, pebble| {
        let server = world.server(&world.acme(pebble.directory()), &["a.test"]);
        world.lead_to(&server);
        server.tend().await;
        assert_eq!(server.state("a.test").last_error, None);
        server.connect("a.test").await.expect("a certificate");
    })
    .await;
}

/// Time is the runtime's, so nobody waits.
#[tokio::test(start_paused = true)]
async fn a_ca_that_never_responds_is_given_up() {
    in_world(async |world| {
        let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let directory = format!("https://{}/dir", silent.local_addr().unwrap());
        std::fs::write(
            world.path("ca.pem"),
            rcgen::generate_simple_self_signed(["a".into()]).unwrap().cert.pem(),
        )
        .unwrap();
        let server = world.server(&world.acme(directory), &["a.test"]);
        server.tend().await;
        assert!(
            server.last_error("a.test").contains("did not respond within 30 s"),
            "{}",
            server.last_error("a.test")
        );
    })
    .await;
}

#[tokio::test]
async fn no_handshake_makes_an_order() {
    with_pebble(Behaviour::default(), async |world, pebble| {
        // The CA reaches nobody.
        let server = world.server(&world.acme(pebble.directory()), &["a.test"]);
        server.tend().await;
        let error = server.last_error("a.test");
        assert!(error.starts_with("the CA could not verify the name by the challenge "), "{error}");
        let orders = pebble.orders();
        assert_eq!(orders, 2, "one for each challenge");
        for _ in 0..200 {
            let refused = server.connect("a.test").await.unwrap_err();
            assert!(refused.contains("UnrecognisedName"), "{refused}");
            server.tend().await;
        }
        assert_eq!(pebble.orders(), orders);
        // Nor does a new configuration, unless it changes something about the name.
        let reloaded = world.server(&world.acme(pebble.directory()), &["a.test"]);
        reloaded.tls.continue_from(&server.tls);
        reloaded.tend().await;
        assert_eq!(pebble.orders(), orders);
        assert_eq!(reloaded.state("a.test"), server.state("a.test"));
        let other = Acme { profile: Some("brief".into()), ..world.acme(pebble.directory()) };
        let changed = world.server(&other, &["a.test"]);
        changed.tls.continue_from(&server.tls);
        changed.tend().await;
        assert!(pebble.orders() > orders);
        assert!(server.state("a.test").next_try.unwrap() > SystemTime::now());
    })
    .await;
}

#[tokio::test]
async fn after_a_failure_the_test_ca_comes_first() {
    with_pebble(Behaviour::default(), async |world, pebble| {
        let test_directory = Some(pebble.directory());
        let acme = Acme { test_directory, ..world.acme(NOWHERE.into()) };
        let server = world.server(&acme, &["a.test"]);
        world.lead_to(&server);
        server.tend().await;
        assert_eq!(pebble.issued(), 0);
        world.clock.advance(MINUTE);
        server.tend().await;
        assert_eq!(pebble.issued(), 1, "the try");
        assert!(server.connect("a.test").await.is_err(), "what the test CA issues is not served");
        assert!(server.last_error("a.test").contains("127.0.0.1:1"));
    })
    .await;
}

#[tokio::test]
async fn a_server_that_is_not_the_cas_gets_no_order() {
    with_pebble(Behaviour::default(), async |world, pebble| {
        let other = world.path("other.pem");
        std::fs::write(&other, rcgen::generate_simple_self_signed(["127.0.0.1".into()]).unwrap().cert.pem())
            .unwrap();
        let acme = Acme { trusted_roots: vec![other], ..world.acme(pebble.directory()) };
        let server = world.server(&acme, &["a.test"]);
        server.tend().await;
        assert!(server.last_error("a.test").contains("certificate"), "{}", server.last_error("a.test"));
        assert_eq!(pebble.orders(), 0);
    })
    .await;
}
