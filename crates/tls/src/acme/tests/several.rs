//! Names that several CAs may certify.

use super::pebble::{Behaviour, Pebble};
use super::world::{World, in_world, with_pebble};
use crate::{Acme, CertificateSource, ExternalAccount, Issuance, OnDemand};
use std::time::Duration;

/// Where nothing listens.
const NOWHERE: &str = "https://127.0.0.1:1/dir";

const DAY: Duration = Duration::from_secs(86_400);

impl World {
    fn cas(&self, directories: &[&str]) -> Vec<Acme> {
        directories.iter().map(|directory| self.acme((*directory).to_owned())).collect()
    }

    fn server_of_cas(&self, cas: &[Acme]) -> super::world::Server {
        let source = CertificateSource::Acme(cas.to_vec(), Issuance::AtStart);
        self.server_of(source, &["a.test"], OnDemand::default())
    }
}

#[tokio::test]
async fn what_the_first_ca_does_not_issue_the_next_one_does() {
    let binding =
        ("kid-1".to_owned(), "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W".to_owned());
    with_pebble(Behaviour::default(), async |world, second| {
        let behaviour = Behaviour { external_account: Some(binding.clone()), ..Behaviour::default() };
        let first = Pebble::start(world.directory.path(), world.ports, &behaviour).await.unwrap();
        let refusing = world.cas(&[&first.directory(), &second.directory()]);
        let server = world.server_of_cas(&refusing);
        world.lead_to(&server);
        server.tend().await;
        let of_second = server.connect("a.test").await.expect("a certificate");
        let of_second_by = server.state("a.test");
        assert_eq!((second.issued(), of_second_by.last_error), (1, None));
        // It says when it wants it to be renewed, whoever is asked first.
        server.tend().await;
        assert_eq!(second.renewal_questions(), 1);

        // It is served as long as it is good, by a new process too.
        let (key_id, mac_key) = binding;
        let mut willing = refusing;
        willing[0].eab = Some(ExternalAccount { key_id, mac_key });
        let restarted = world.server_of_cas(&willing);
        world.lead_to(&restarted);
        restarted.tend().await;
        assert_eq!(restarted.connect("a.test").await.unwrap(), of_second);
        assert_eq!(second.issued(), 1);

        // When it is due, it is the first one's turn again.
        world.clock.advance(85 * DAY);
        restarted.tend().await;
        assert_ne!(restarted.connect("a.test").await.unwrap(), of_second);
        assert_eq!((first.issued(), second.issued()), (1, 1));
        assert_ne!(restarted.state("a.test").issuer, of_second_by.issuer);
    })
    .await;
}

#[tokio::test]
async fn handshakes_on_demand_get_what_the_next_ca_issues() {
    with_pebble(Behaviour::default(), async |world, pebble| {
        let cas = world.cas(&[NOWHERE, &pebble.directory()]);
        let source = CertificateSource::Acme(cas, Issuance::OnDemand);
        let server = world.server_of(source, &[], OnDemand::default());
        world.lead_to(&server);
        let connected = server.maintain_while(server.connect("a.test")).await;
        connected.expect("a certificate");
        assert_eq!(pebble.issued(), 1);
    })
    .await;
}

#[tokio::test]
async fn when_no_ca_issues_each_one_says_why() {
    in_world(async |world| {
        std::fs::write(
            world.path("ca.pem"),
            rcgen::generate_simple_self_signed(["a".into()]).unwrap().cert.pem(),
        )
        .unwrap();
        let elsewhere = "https://127.0.0.1:2/dir";
        let server = world.server_of_cas(&world.cas(&[NOWHERE, elsewhere]));
        server.tend().await;
        let error = server.last_error("a.test");
        let prefix = format!("no CA has issued a certificate: {NOWHERE}: ");
        assert!(error.starts_with(&prefix) && error.contains(&format!("; {elsewhere}: ")), "{error}");
        // One after the other is one try.
        let next = server.state("a.test").next_try.unwrap();
        let wait = next.duration_since(crate::Clock::now(&*world.clock)).unwrap();
        assert!(wait <= Duration::from_secs(60), "{wait:?}");
    })
    .await;
}
