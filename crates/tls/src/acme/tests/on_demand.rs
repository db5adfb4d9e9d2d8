//! Certificates that are ordered by the first handshake for a name.

use super::pebble::Behaviour;
use super::world::{in_world, with_pebble};
use crate::{CertificateSource, Internal, Issuance, OnDemand, OrderLimit, certificate};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::spawn_local;

const HOUR: Duration = Duration::from_secs(3600);

/// Who is asked. It ends with the task of the test.
#[derive(Clone, Default)]
struct Authority {
    allowed: Rc<RefCell<BTreeSet<String>>>,
    asked: Rc<RefCell<Vec<String>>>,
}

impl Authority {
    async fn start(allowed: &[&str]) -> (Self, OnDemand) {
        let authority = Self::default();
        authority.allow(allowed);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let ask = Some(format!("http://{}/check", listener.local_addr().unwrap()));
        let own = authority.clone();
        spawn_local(async move {
            while let Ok((stream, _)) = listener.accept().await {
                spawn_local(own.clone().respond(stream));
            }
        });
        (authority, OnDemand { ask, limit: None })
    }

    async fn respond(self, mut stream: TcpStream) {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        let head = String::from_utf8(head).unwrap();
        let name = head.split(['=', ' ']).nth(2).unwrap().to_owned();
        let status = if self.allowed.borrow().contains(&name) { "200 OK" } else { "404 Not Found" };
        self.asked.borrow_mut().push(name);
        stream.write_all(format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n").as_bytes()).await.unwrap();
    }

    fn allow(&self, names: &[&str]) {
        *self.allowed.borrow_mut() = names.iter().map(|name| name.to_string()).collect();
    }

    fn asked(&self) -> usize {
        self.asked.borrow().len()
    }
}

fn names(der: &[u8]) -> Vec<String> {
    certificate::facts(der).unwrap().1
}

#[tokio::test]
async fn the_first_handshake_for_an_allowed_name_waits_for_its_certificate() {
    with_pebble(Behaviour::default(), async |world, pebble| {
        let (authority, on_demand) = Authority::start(&["a.test", "b.test"]).await;
        let server = world.server_on_demand(&world.acme(pebble.directory()), on_demand);
        world.lead_to(&server);
        server
            .maintain_while(async {
                let (first, second, other) = tokio::join!(
                    server.connect("a.test"),
                    server.connect("a.test"),
                    server.connect("b.test")
                );
                let first = first.expect("a certificate");
                assert_eq!(names(&first), ["a.test"]);
                assert_eq!(second.unwrap(), first);
                assert_eq!(names(&other.unwrap()), ["b.test"]);
                assert_eq!(server.connect("A.test").await.unwrap(), first);
            })
            .await;
        assert_eq!((pebble.orders(), authority.asked()), (2, 2));
        assert!(server.state("a.test").last_error.is_none());
    })
    .await;
}

#[tokio::test]
async fn nothing_is_ordered_for_a_name_that_is_refused() {
    with_pebble(Behaviour::default(), async |world, pebble| {
        let (authority, on_demand) = Authority::start(&[]).await;
        let server = world.server_on_demand(&world.acme(pebble.directory()), on_demand);
        world.lead_to(&server);
        server
            .maintain_while(async {
                for _ in 0..200 {
                    let refused = server.connect("a.test").await.unwrap_err();
                    assert!(refused.contains("UnrecognisedName"), "{refused}");
                }
                assert_eq!(authority.asked(), 1);
                // What is allowed later is not refused for long.
                authority.allow(&["a.test"]);
                world.clock.advance(Duration::from_secs(60));
                assert_eq!(names(&server.connect("a.test").await.unwrap()), ["a.test"]);
            })
            .await;
        assert_eq!((pebble.orders(), authority.asked()), (1, 2));
    })
    .await;
}

#[tokio::test]
async fn two_hundred_handshakes_after_a_failure_order_nothing() {
    with_pebble(Behaviour::default(), async |world, pebble| {
        // The CA reaches nobody.
        let (authority, on_demand) = Authority::start(&["a.test"]).await;
        let server = world.server_on_demand(&world.acme(pebble.directory()), on_demand.clone());
        server
            .maintain_while(async {
                for _ in 0..200 {
                    server.connect("a.test").await.unwrap_err();
                }
            })
            .await;
        assert_eq!((pebble.orders(), authority.asked()), (2, 1), "an order for each challenge");
        // Nor after a reload.
        let reloaded = world.server_on_demand(&world.acme(pebble.directory()), on_demand);
        reloaded.tls.continue_from(&server.tls);
        reloaded.maintain_while(async { reloaded.connect("a.test").await.unwrap_err() }).await;
        assert_eq!((pebble.orders(), authority.asked()), (2, 1));
    })
    .await;
}

#[tokio::test]
async fn what_is_stored_is_served_after_a_restart_unless_the_name_is_refused() {
    with_pebble(Behaviour::default(), async |world, pebble| {
        let (authority, on_demand) = Authority::start(&["a.test"]).await;
        let acme = world.acme(pebble.directory());
        let server = world.server_on_demand(&acme, on_demand.clone());
        world.lead_to(&server);
        let first = server.maintain_while(async { server.connect("a.test").await.unwrap() }).await;
        let again = |on_demand| {
            let server = world.server_on_demand(&acme, on_demand);
            async move { server.maintain_while(server.connect("a.test")).await }
        };
        assert_eq!(again(on_demand.clone()).await.unwrap(), first);
        let silent = OnDemand { ask: Some("http://127.0.0.1:1/".into()), limit: None };
        assert_eq!(again(silent).await.unwrap(), first, "it was allowed once");
        authority.allow(&[]);
        again(on_demand).await.unwrap_err();
        assert_eq!(pebble.orders(), 1);
    })
    .await;
}

#[tokio::test]
async fn a_certificate_is_renewed_by_a_handshake_that_does_not_wait_for_it() {
    with_pebble(Behaviour { lifetime: 6 * 3600, ..Behaviour::default() }, async |world, pebble| {
        let (authority, on_demand) = Authority::start(&["a.test"]).await;
        let server = world.server_on_demand(&world.acme(pebble.directory()), on_demand);
        world.lead_to(&server);
        server
            .maintain_while(async {
                let first = server.connect("a.test").await.unwrap();
                world.clock.advance(6 * HOUR - Duration::from_secs(17 * 60));
                assert_eq!(server.connect("a.test").await.unwrap(), first);
                while server.connect("a.test").await.unwrap() == first {
                    // clock: a round of a loop that ends with an event.
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            })
            .await;
        assert_eq!(pebble.orders(), 2);
        assert_eq!(authority.asked(), 2, "for each order");
    })
    .await;
}

#[tokio::test]
async fn no_more_orders_than_the_limit_allows() {
    with_pebble(Behaviour::default(), async |world, pebble| {
        let limit = Some(OrderLimit { orders: 2, interval: HOUR });
        let (_authority, on_demand) = Authority::start(&["a.test", "b.test", "c.test"]).await;
        let server = world.server_on_demand(&world.acme(pebble.directory()), OnDemand { limit, ..on_demand });
        world.lead_to(&server);
        server
            .maintain_while(async {
                server.connect("a.test").await.unwrap();
                server.connect("b.test").await.unwrap();
                server.connect("c.test").await.unwrap_err();
                server.connect("a.test").await.unwrap();
            })
            .await;
        assert_eq!(pebble.orders(), 2);
    })
    .await;
}

#[tokio::test]
async fn the_local_ca_signs_for_allowed_names_only() {
    in_world(async |world| {
        let (authority, on_demand) = Authority::start(&["a.test"]).await;
        let internal = Internal { issuance: Issuance::OnDemand, ..Internal::default() };
        let server = world.server_of(CertificateSource::Internal(internal), &[], on_demand);
        assert_eq!(names(&server.connect("a.test").await.unwrap()), ["a.test"]);
        server.connect("a.test").await.unwrap();
        server.connect("b.test").await.unwrap_err();
        server.connect("b.test").await.unwrap_err();
        assert_eq!(*authority.asked.borrow(), ["a.test", "b.test"]);
    })
    .await;
}
