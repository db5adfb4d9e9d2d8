//! Several processes on one storage, and what Caddy has left there.

use super::pebble::Behaviour;
use super::world::{in_world, with_pebble};
use crate::{CertificateOrigin, CertificateSource, Issuance, Site};

#[tokio::test]
async fn two_processes_order_once() {
    with_pebble(Behaviour::default(), async |world, pebble| {
        let acme = world.acme(pebble.directory());
        let (one, other) = (world.server(&acme, &["a.test"]), world.server(&acme, &["a.test"]));
        world.lead_to(&one);
        tokio::join!(one.tend(), other.tend());
        assert_eq!(one.connect("a.test").await.unwrap(), other.connect("a.test").await.unwrap());
        assert_eq!(pebble.issued(), 1);
    })
    .await;
}

#[tokio::test]
async fn another_process_meets_the_challenge() {
    with_pebble(Behaviour::default(), async |world, pebble| {
        let acme = world.acme(pebble.directory());
        let (one, other) = (world.server(&acme, &["a.test"]), world.server(&acme, &["a.test"]));
        world.lead_to(&other);
        one.tend().await;
        assert_eq!(one.state("a.test").last_error, None);
        assert_eq!(pebble.orders(), 1);
        assert!(other.connect("a.test").await.is_err());
        other.tend().await;
        assert_eq!(one.connect("a.test").await.unwrap(), other.connect("a.test").await.unwrap());
        assert_eq!(pebble.orders(), 1);
    })
    .await;
}

/// As Caddy 2.11 writes it: the key is SEC 1.
const CADDY_KEY: &str = "-----BEGIN EC PRIVATE KEY-----
MHcCAQEEINGU8vUjt/VbsT959+UVNnad7J38G1J1PyugN03c+Dp5oAoGCCqGSM49
AwEHoUQDQgAEPyfGhTBEfZc1GToLak9S0OXgyHU7NaAJPse9NHS6Y4PJ8zsQwJ7D
k1s+1w15VNhztC7qaKzQFX7RuG/3doiIjA==
-----END EC PRIVATE KEY-----
";

#[tokio::test]
async fn a_certificate_that_caddy_has_obtained_is_served() {
    in_world(async |world| {
        let key = rustls::pki_types::pem::PemObject::from_pem_slice(CADDY_KEY.as_bytes()).unwrap();
        let pair = pkcs8(&key);
        let made = rcgen::CertificateParams::new(["a.test".to_owned()]).unwrap().self_signed(&pair).unwrap();
        let directory = world.path("storage/certificates/ca.test-directory/a.test");
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("a.test.crt"), made.pem()).unwrap();
        std::fs::write(directory.join("a.test.key"), CADDY_KEY).unwrap();
        let json = r#"{"sans":["a.test"],"issuer_data":{"url":"https://ca.test/cert/1","ca":"https://ca.test/directory",
            "renewal_info":{"suggestedWindow":{"start":"2126-01-01T00:00:00Z","end":"2126-01-02T00:00:00Z"},
            "_uniqueIdentifier":"a.b","_retryAfter":"2126-01-01T00:00:00Z","_selectedTime":"2126-01-01T12:00:00Z"}}}"#;
        std::fs::write(directory.join("a.test.json"), json).unwrap();
        let acme = crate::Acme { directory: Some("https://ca.test/directory".into()), ..Default::default() };
        let server = world.server(&acme, &["a.test"]);
        assert_eq!(server.connect("a.test").await.unwrap(), made.der().to_vec());
        let state = server.state("a.test");
        assert_eq!(state.source, CertificateOrigin::Acme);
        // Nothing is due, not even a question: there is no such CA.
        server.tend().await;
        assert_eq!(server.state("a.test"), state);
    })
    .await;
}

fn pkcs8(key: &rustls::pki_types::PrivateKeyDer<'_>) -> rcgen::KeyPair {
    use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
    let pair =
        EcdsaKeyPair::from_private_key_der(&ECDSA_P256_SHA256_FIXED_SIGNING, key.secret_der()).unwrap();
    rcgen::KeyPair::try_from(pair.to_pkcs8v1().unwrap().as_ref()).unwrap()
}

#[tokio::test]
async fn what_no_try_would_mend_is_an_error_at_start() {
    in_world(async |world| {
        let fails = |acme: crate::Acme, name: &str| {
            let certificate = CertificateSource::Acme(vec![acme], Issuance::AtStart);
            let names = vec![name.to_owned()];
            let site = Site { names, certificate, policy: crate::Policy::default(), client_auth: None };
            let server = world.server(
                &crate::Acme { directory: Some("https://ca.test".into()), ..Default::default() },
                &["b.test"],
            );
            match server.tls.site_table(&[site]) {
                Ok(_) => panic!("accepted"),
                Err(errors) => errors.to_string(),
            }
        };
        let error = fails(crate::Acme::default(), "*.a.test");
        assert!(error.contains("by the DNS challenge only"), "{error}");
        let error = fails(crate::Acme { challenges: Vec::new(), ..Default::default() }, "a.test");
        assert!(error.contains("all challenges are disabled"), "{error}");
        let error = fails(
            crate::Acme { trusted_roots: vec![world.path("none.pem")], ..Default::default() },
            "a.test",
        );
        assert!(error.contains("none.pem"), "{error}");
        let eab = Some(crate::ExternalAccount { key_id: "kid".into(), mac_key: "?".into() });
        let error = fails(crate::Acme { eab, ..Default::default() }, "a.test");
        assert!(error.contains("base64url"), "{error}");
    })
    .await;
}

#[tokio::test]
async fn a_storage_that_cannot_be_written_to_gets_no_order() {
    with_pebble(Behaviour::default(), async |world, pebble| {
        let server = world.server(&world.acme(pebble.directory()), &["a.test"]);
        world.lead_to(&server);
        std::fs::remove_dir(world.path("storage/locks")).unwrap();
        std::fs::write(world.path("storage/locks"), b"a file where a directory should be").unwrap();
        server.tend().await;
        assert!(server.last_error("a.test").contains("cannot write"), "{}", server.last_error("a.test"));
        assert_eq!(pebble.orders(), 0);
    })
    .await;
}
