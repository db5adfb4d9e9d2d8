//! Which site gets its certificate from where.

use super::*;
use crate::Environment;
use crate::context::Notation;
use crate::directives::testing::{config, file_errors, load};
use crate::model::{Challenge, DnsProvider};
use regent_caddyfile::Source;
use std::collections::BTreeMap;
use std::path::Path;

/// Hosts and source of every site with TLS.
fn sources(text: &str) -> Vec<String> {
    let servers = config(text).servers;
    let sites = servers.iter().flat_map(|server| &server.sites);
    let show = |source: &CertificateSource| match source {
        CertificateSource::Files { .. } => "files",
        CertificateSource::Shared => "shared",
        CertificateSource::Internal { issuance: Issuance::AtStart, .. } => "internal",
        CertificateSource::Internal { issuance: Issuance::OnDemand, .. } => "internal on demand",
        CertificateSource::Acme { issuance: Issuance::OnDemand, .. } => "acme on demand",
        CertificateSource::Acme { .. } => "acme",
    };
    let found = sites
        .filter_map(|site| Some(format!("{} {}", site.hosts.join(","), show(&site.tls.as_ref()?.source))));
    found.collect()
}

#[test]
fn internal_names_as_certmagic_has_them() {
    for name in [
        "localhost",
        "a.localhost",
        "printer.local",
        "vault.internal",
        "nas.home.arpa",
        "127.0.0.1",
        "::1",
        "192.168.0.7",
        "203.0.113.9",
        "*.localhost",
        "*.com",
    ] {
        assert!(is_internal(name), "{name}");
    }
    for name in ["example.com", "*.example.com", "notlocalhost", "local", "internal", "a.locals", "nolocal"] {
        assert!(!is_internal(name), "{name}");
    }
}

#[test]
fn a_public_name_has_a_certificate_of_a_public_ca() {
    for text in ["example.com {\n}", "https://example.com {\n}", "example.com:8443 {\n}"] {
        assert_eq!(sources(text), ["example.com acme"], "{text}");
    }
    assert_eq!(sources("localhost, example.com {\n}"), ["example.com acme", "localhost internal"]);
}

#[test]
fn a_public_wildcard_needs_the_dns_challenge() {
    let found = load("*.example.com {\n}").unwrap_err().to_string();
    assert!(found.starts_with("Caddyfile:1:1: a public CA issues"), "{found}");
    assert!(found.contains("`tls { dns exec PROGRAM }`"), "{found}");
    assert_eq!(sources("*.example.com {\ntls {\ndns exec hook\n}\n}"), ["*.example.com acme"]);
}

#[test]
fn certificates_of_a_public_ca_on_demand() {
    assert_eq!(sources("example.com {\ntls a@b {\non_demand\n}\n}"), ["example.com acme on demand"]);
    let ask = "{\non_demand_tls {\nask http://localhost/ask\n}\n}\n";
    // Each name has a certificate of its own, so the DNS challenge is not needed.
    let wildcard = format!("{ask}*.example.com {{\ntls {{\non_demand\n}}\n}}");
    assert_eq!(sources(&wildcard), ["*.example.com acme on demand"]);
    assert_eq!(sources(&format!("{ask}https:// {{\ntls {{\non_demand\n}}\n}}")), [" acme on demand"]);
    let found = load("*.example.com {\ntls {\non_demand\n}\n}").unwrap_err().to_string();
    assert!(
        found.starts_with("Caddyfile:1:1: `*.example.com` would get a certificate for any name"),
        "{found}"
    );
}

/// What the site of this file asks for, whether it is built or not.
fn wanted(text: &str) -> Result<CertificateSource, Error> {
    let environment = Environment { variables: BTreeMap::new(), current_dir: "/srv".into() };
    let source = Source::from_text("Caddyfile", text, Path::new("/srv"));
    let file = regent_caddyfile::parse(source, &|_| None).unwrap().file;
    let mut cx = Context::new(&environment, Notation::Caddyfile, Vec::new());
    let options = crate::global::parse(&mut cx, &file.global);
    let lines: Vec<_> = file.sites[0].lines.iter().collect();
    let tls = crate::directives::tls::parse(&mut cx, &options, &lines);
    assert!(cx.errors.is_empty(), "{:?}", cx.errors);
    let token = &file.sites[0].addresses[0];
    let place = crate::address::parse(&options, token).unwrap();
    let listen = crate::Listen::Tcp(([0, 0, 0, 0], place.port).into());
    let door = super::super::Door { listen: listen.clone(), host: place.host };
    let way = Way { door, wide: listen, security: place.security, token };
    Certificates::new(&options, &[]).wanted(tls.as_ref(), &way)
}

/// The only public CA that is asked, and when.
fn first(text: &str) -> (Acme, Issuance) {
    let source = wanted(text).unwrap();
    let CertificateSource::Acme { mut cas, issuance } = source else { panic!("{source:?}") };
    assert_eq!(cas.len(), 1);
    (cas.remove(0), issuance)
}

#[test]
fn where_there_is_an_address_zerossl_issues_what_lets_encrypt_does_not() {
    let cas = |text: &str| {
        let source = wanted(text).unwrap();
        let CertificateSource::Acme { cas, .. } = source else { panic!("{source:?}") };
        cas.iter().map(|acme| acme.directory.clone().unwrap_or_default()).collect::<Vec<_>>()
    };
    let zerossl = "https://acme.zerossl.com/v2/DV90";
    let site = "example.com {\n}";
    assert_eq!(cas(site), [""]);
    assert_eq!(cas(&format!("{{\nemail a@b\n}}\n{site}")), ["", zerossl]);
    assert_eq!(cas("example.com {\ntls a@b {\ndns exec hook\n}\n}"), ["", zerossl]);
    for options in ["email a@b\nacme_ca https://ca.example/", "email a@b\nacme_eab {\nkey_id i\nmac_key k\n}"]
    {
        assert_eq!(cas(&format!("{{\n{options}\n}}\n{site}")).len(), 1, "{options}");
    }
    // The address of all sites is not for sites that say something of their own (Caddy's `implicitACMEIssuers`).
    let site_with_dns = "example.com {\ntls {\ndns exec hook\n}\n}";
    assert_eq!(cas(&format!("{{\nemail a@b\n}}\n{site_with_dns}")), [""]);
    // Who names issuers means those.
    assert_eq!(cas("{\nemail a@b\ncert_issuer acme\n}\nexample.com {\n}"), [""]);
    let several =
        "{\nemail a@b\ncert_issuer zerossl key\ncert_issuer acme https://ca.example/\n}\nexample.com {\n}";
    assert_eq!(cas(several), [zerossl, "https://ca.example/"]);
    let issuers = "{\ncert_issuer acme https://ca.example/\ncert_issuer acme\ncert_issuer zerossl key\n}\n";
    assert_eq!(cas(&format!("{issuers}{site_with_dns}")), ["https://ca.example/", ""]);
    let of_site = "example.com {\ntls {\nissuer acme {\nemail a@b\n}\nissuer acme https://ca.example/\n}\n}";
    assert_eq!(cas(of_site), ["", "https://ca.example/"]);
}

/// It is only the other that cannot do it.
#[test]
fn a_wildcard_needs_one_issuer_with_the_dns_challenge() {
    let issuers =
        |first: &str| format!("*.example.com {{\ntls {{\nissuer acme {first}\nissuer zerossl key\n}}\n}}");
    assert_eq!(sources(&issuers("{\ndns exec hook\n}")), ["*.example.com acme"]);
    let found = load(&issuers("")).unwrap_err().to_string();
    assert!(found.contains("by the DNS challenge only"), "{found}");
}

#[test]
fn the_model_has_what_a_public_ca_needs() {
    let global =
        "{\nemail a@b\nacme_ca https://ca.example/directory\nacme_eab {\nkey_id i\nmac_key k\n}\n}\n";
    let (acme, _) = first(&format!("{global}example.com {{\n}}"));
    assert_eq!(
        (acme.email.as_deref(), acme.directory.as_deref()),
        (Some("a@b"), Some("https://ca.example/directory"))
    );
    assert_eq!(acme.eab.as_ref().map(|eab| eab.key_id.as_str()), Some("i"));
    let site = "example.com {\ntls c@d {\ndns exec hook token\non_demand\n}\n}";
    let (acme, issuance) = first(&format!("{global}{site}"));
    assert_eq!((acme.email.as_deref(), issuance), (Some("c@d"), Issuance::OnDemand));
    let hook = DnsProvider::Exec { program: "hook".into(), arguments: vec!["token".into()] };
    assert_eq!(acme.dns, Some(hook));
    let site = "localhost {\ntls {\nissuer acme https://x.example/ {\ntest_dir https://y.example/\ndisable_tlsalpn_challenge\n}\n}\n}";
    let (acme, _) = first(&format!("{global}{site}"));
    assert_eq!((acme.directory.as_deref(), acme.email.as_deref()), (Some("https://x.example/"), Some("a@b")));
    assert_eq!((acme.http_challenge, acme.tls_alpn_challenge), (Challenge::Enabled, Challenge::Disabled));
}

#[test]
fn names_on_demand_need_a_permission() {
    let on_demand = "https:// {\ntls {\non_demand\n}\n}";
    assert!(wanted(on_demand).unwrap_err().message.contains("on_demand_tls { ask URL }"));
    let ask = "{\non_demand_tls {\nask http://localhost/ask\n}\n}\n";
    assert!(matches!(wanted(&format!("{ask}{on_demand}")), Ok(CertificateSource::Acme { .. })));
}

#[test]
fn the_local_ca_for_all_names() {
    for options in ["local_certs", "cert_issuer internal"] {
        assert_eq!(sources(&format!("{{\n{options}\n}}\nexample.com {{\n}}")), ["example.com internal"]);
    }
    assert_eq!(sources("example.com {\ntls internal\n}"), ["example.com internal"]);
}

#[test]
fn a_wildcard_serves_the_names_that_it_covers() {
    let wildcard = "*.example.com {\ntls internal\n}\n";
    assert_eq!(
        sources(&format!("{wildcard}a.example.com {{\n}}")),
        ["a.example.com shared", "*.example.com internal"]
    );
    assert_eq!(sources(&format!("{wildcard}a.b.example.com {{\n}}"))[0], "a.b.example.com acme");
    let own = format!("{wildcard}a.example.com {{\ntls force_automate\n}}");
    assert_eq!(sources(&own)[0], "a.example.com acme");
    let directory = tempfile::tempdir().unwrap();
    let from_files = format!("*.example.com {{\ntls {{\nload {}\n}}\n}}\n", directory.path().display());
    assert_eq!(
        sources(&format!("{from_files}a.example.com {{\n}}")),
        ["a.example.com shared", "*.example.com files"]
    );
    let ignored = format!("{{\nauto_https ignore_loaded_certs\n}}\n{from_files}a.example.com {{\n}}");
    // The site with the wildcard has no certificate of a public CA, as its files are still its own.
    assert_eq!(sources(&ignored)[0], "a.example.com acme");
}

#[test]
fn sites_for_any_host_share_or_have_certificates_on_demand() {
    assert_eq!(sources("localhost {\n}\n:443 {\n}"), ["localhost internal", " shared"]);
    assert_eq!(sources(":443, localhost {\n}"), ["localhost internal", " shared"]);
    assert_eq!(sources(":443 {\ntls internal {\non_demand\n}\n}"), [" internal on demand"]);
    assert_eq!(sources(":8443 {\ntls internal {\non_demand\n}\n}"), [" internal on demand"]);
}

#[test]
fn tls_that_no_certificate_could_serve_is_an_error() {
    for text in [":443 {\n}", "https:// {\n}", ":8443 {\ntls internal\n}"] {
        let found = file_errors(text);
        assert!(found.len() == 1 && found[0].contains("has TLS but no certificate"), "{text}: {found:?}");
    }
    let with_plain = load(":80, :443 {\n}").unwrap();
    assert_eq!(with_plain.warnings.len(), 1, "{:?}", with_plain.warnings);
    for option in ["off", "disable_certs"] {
        let text = format!("{{\nauto_https {option}\n}}\nlocalhost, app.localhost:8443 {{\n}}");
        let found = file_errors(&text);
        assert!(found.len() == 2 && found[0].contains("`http://` before the address"), "{found:?}");
        assert_eq!(
            sources(&format!("{{\nauto_https {option}\n}}\na.b {{\n}}\nlocalhost {{\ntls internal\n}}"))
                .len(),
            2
        );
    }
}

#[test]
fn names_that_no_certificate_can_have() {
    assert!(file_errors("a.*.localhost {\n}")[0].contains("for the first label"));
    assert_eq!(file_errors("bücher.localhost, http://a.*.b {\n}"), [""; 0]);
}

#[test]
fn the_address_of_a_site_decides_about_its_listener() {
    let listeners = |text: &str| -> Vec<String> {
        let servers = config(&format!("{{\nauto_https disable_redirects\n}}\n{text}")).servers;
        servers.iter().map(|server| format!("{} {}", server.tls.is_some(), server.sites.len())).collect()
    };
    assert_eq!(listeners(":8443 {\n}\nlocalhost:8443 {\n}"), ["true 2"], "a port alone follows");
    assert_eq!(listeners(":8443 {\n}"), ["false 1"]);
    assert_eq!(listeners("localhost {\nbind unix//run/a\n}"), ["true 1"]);
    let found = load("http://a:8080 {\n}\nlocalhost:8080 {\n}").unwrap_err().to_string();
    assert!(
        found.starts_with("Caddyfile:3:1: `localhost:8080` has TLS, but `http://a:8080` (Caddyfile:1:1) on the same port is plain HTTP"),
        "{found}"
    );
    let found = file_errors(":8080 {\ntls internal {\non_demand\n}\n}\nhttp://b:8080 {\n}");
    assert!(found[0].starts_with("`http://b:8080` is plain HTTP, but `:8080`"), "{found:?}");
}

#[test]
fn tls_of_a_plain_site_is_a_warning() {
    let loaded = load(":80 {\ntls internal\n}").unwrap();
    assert_eq!(
        loaded.warnings[0].to_string(),
        "Caddyfile:2:1: `tls` has no effect: every address of this site is plain HTTP"
    );
    assert_eq!(load("localhost, http://localhost {\ntls internal\n}").unwrap().warnings.len(), 0);
}
