//! `tls`, from text to the model.

use crate::directives::testing::{config, file_errors, load};
use crate::model::*;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// TLS of `localhost` with these lines.
fn tls(lines: &str) -> SiteTls {
    config(&format!("localhost {{\n{lines}\n}}")).servers.remove(0).sites.remove(0).tls.unwrap()
}

fn errors(lines: &str) -> Vec<String> {
    file_errors(&format!("localhost {{\n{lines}\n}}"))
}

/// A directory with these files in it, which need no content.
fn directory(files: &[&str]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    files.iter().for_each(|name| std::fs::write(directory.path().join(name), "").unwrap());
    directory
}

fn internal(seconds: u64, issuance: Issuance) -> CertificateSource {
    CertificateSource::Internal { lifetime: Duration::from_secs(seconds), issuance }
}

#[test]
fn internal_certificates() {
    assert_eq!(tls("tls internal").source, internal(12 * 3600, Issuance::AtStart));
    assert_eq!(
        tls("tls {\nissuer internal {\nlifetime 1d\nca local\n}\n}").source,
        internal(86_400, Issuance::AtStart)
    );
    assert_eq!(tls("tls internal {\non_demand\n}").source, internal(12 * 3600, Issuance::OnDemand));
    assert_eq!(tls("tls {\nkey_type rsa2048\n}").key_type, KeyType::Rsa2048);
}

#[test]
fn certificates_from_files() {
    let dir = directory(&["a.crt", "a.key", "b.crt", "b.key"]);
    let path = |name: &str| dir.path().join(name);
    let d = dir.path().display();
    let pair = |name: &str| CertificateFiles {
        certificate: path(&format!("{name}.crt")),
        key: path(&format!("{name}.key")),
    };
    let files = |pairs: Vec<CertificateFiles>, directories: Vec<PathBuf>| CertificateSource::Files {
        pairs,
        directories,
    };
    assert_eq!(tls(&format!("tls {d}/a.crt {d}/a.key")).source, files(vec![pair("a")], vec![]));
    assert_eq!(
        tls(&format!("tls {d}/a.crt {d}/a.key\ntls {d}/b.crt {d}/b.key")).source,
        files(vec![pair("a"), pair("b")], vec![])
    );
    assert_eq!(tls(&format!("tls {{\nload {d}\n}}")).source, files(vec![], vec![dir.path().into()]));
    let found = errors(&format!("tls {d}/a.crt {d}/c.key\ntls {d}/a.crt {d}\ntls {{\nload {d}/a.crt\n}}"));
    assert!(
        found[0].contains("the file does not exist") && found[1].contains("this is no file"),
        "{found:?}"
    );
    assert!(found[2].contains("this is no directory"), "{found:?}");
    assert!(errors(&format!("tls {d}/a.crt {d}/a.key {{\nissuer internal\n}}"))[0].contains("not from both"));
}

#[test]
fn versions_suites_and_curves() {
    let found = tls(
        "tls {\nprotocols tls1.2 tls1.2\nciphers TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 TLS_AES_128_GCM_SHA256\n\
         curves secp384r1 x25519mlkem768\nalpn http/1.1 h2\n}",
    );
    assert_eq!(found.versions, TlsVersions { min: TlsVersion::Tls12, max: TlsVersion::Tls12 });
    assert_eq!(found.ciphers, [CipherSuite::EcdheRsaAes256GcmSha384]);
    assert_eq!(found.curves, [Curve::Secp384r1, Curve::X25519MlKem768]);
    assert_eq!(found.alpn, ["http/1.1", "h2"]);
    let warnings = load("localhost {\ntls {\nalpn h2 h3\n}\n}").unwrap().warnings;
    assert_eq!(
        warnings[0].to_string(),
        "Caddyfile:3:9: `h3` needs no mention: `servers { protocols }` has the addresses with HTTP/3"
    );
    assert_eq!(tls("tls {\nprotocols tls1.3\n}").versions.min, TlsVersion::Tls13);
}

#[test]
fn client_certificates() {
    let dir = directory(&["ca.pem", "more.pem", "leaf.pem"]);
    let path = |name: &str| dir.path().join(name);
    let d = dir.path().display();
    let auth =
        |options: &str| tls(&format!("tls {{\nclient_auth {{\n{options}\n}}\n}}")).client_auth.unwrap();
    let found = auth(&format!("trust_pool file {d}/ca.pem {{\npem_file {d}/more.pem\n}}"));
    assert_eq!(found.mode, ClientAuthMode::RequireAndVerify);
    assert_eq!(found.trusted_cas, [path("ca.pem"), path("more.pem")]);
    let found = auth(&format!(
        "mode verify_if_given\ntrusted_ca_cert_file {d}/ca.pem\ntrusted_leaf_cert_file {d}/leaf.pem"
    ));
    assert_eq!((found.mode, found.trusted_leaves), (ClientAuthMode::VerifyIfGiven, vec![path("leaf.pem")]));
    assert_eq!(auth("").mode, ClientAuthMode::Require);
    assert_eq!(auth("mode request").mode, ClientAuthMode::Request);
}

#[test]
fn cas_of_clients_come_from_many_places() {
    let dir = directory(&["ca.pem", "a.pem", "b.crt"]);
    let d = dir.path().display();
    let auth =
        |options: &str| tls(&format!("tls {{\nclient_auth {{\n{options}\n}}\n}}")).client_auth.unwrap();
    let inline = |text: &str| TrustSource::Inline(text.into());
    let found = auth("trust_pool inline {\ntrust_der MAA= MAI=\n}");
    assert_eq!(found.other_cas, [inline("MAA="), inline("MAI=")]);
    assert_eq!(found.mode, ClientAuthMode::RequireAndVerify);
    assert_eq!(auth("trusted_ca_cert MAA=").other_cas, [inline("MAA=")]);
    assert_eq!(auth("trust_pool system").other_cas, [TrustSource::System]);
    assert_eq!(auth("trust_pool pki_root {\nauthority local\n}").other_cas, [TrustSource::LocalRoot]);
    let found = auth(&format!(
        "trust_pool combined {{\nsource pki_root local\nsource file {d}/ca.pem\nsource inline {{\ntrust_der MAA=\n}}\n}}"
    ));
    assert_eq!(found.other_cas, [TrustSource::LocalRoot, inline("MAA=")]);
    assert_eq!(found.trusted_cas, [dir.path().join("ca.pem")]);
    let found = auth(&format!("verifier leaf file {d}/b.crt"));
    assert_eq!(
        (found.trusted_leaves, found.mode),
        (vec![dir.path().join("b.crt")], ClientAuthMode::RequireAndVerify)
    );
    let mut found = auth(&format!("mode request\nverifier leaf {{\nfolder {d}\n}}"));
    found.trusted_leaves.sort();
    assert_eq!(found.trusted_leaves, [dir.path().join("a.pem"), dir.path().join("ca.pem")]);
    let found = auth(
        "trusted_leaf_cert MAI=\nverifier leaf pem \"-----BEGIN CERTIFICATE-----\nMA\nA=\n-----END CERTIFICATE-----\"",
    );
    assert_eq!(found.inline_leaves, ["MAI=", "MAA="]);
}

#[test]
fn a_client_certificate_of_any_public_ca_was_good_enough() {
    let found = errors("tls {\nclient_auth {\nmode require_and_verify\n}\n}");
    assert!(found[0].contains("trusts none"), "{found:?}");
}

#[test]
fn hosts_are_checked_against_the_handshake_where_clients_have_certificates() {
    let sni_host = |options: &str, lines: &str| {
        config(&format!("{{\n{options}\n}}\nlocalhost {{\n{lines}\n}}")).servers[0]
            .tls
            .clone()
            .unwrap()
            .sni_host
    };
    let auth = "tls {\nclient_auth {\nmode require\n}\n}";
    assert_eq!((sni_host("", ""), sni_host("", auth)), (SniHost::Free, SniHost::Strict));
    assert_eq!(sni_host("servers {\nstrict_sni_host\n}", ""), SniHost::Strict);
    assert_eq!(sni_host("servers {\nstrict_sni_host insecure_off\n}", auth), SniHost::Free);
}

#[test]
fn certificates_of_a_public_ca_are_asked_for_in_several_ways() {
    for lines in [
        "tls me@example.com",
        "tls {\nissuer acme\n}",
        "tls {\nissuer acme https://ca.example/dir {\nemail a@b\ndisable_http_challenge\n}\n}",
        "tls {\nca https://ca.example/directory\n}",
        "tls {\ndns exec /bin/true zone\n}",
        "tls {\neab id key\n}",
    ] {
        assert!(matches!(tls(lines).source, CertificateSource::Acme { .. }), "{lines}");
    }
    let none = "tls {\nissuer acme {\ndisable_http_challenge\ndisable_tlsalpn_challenge\n}\n}";
    assert!(errors(none)[0].starts_with("no challenge is left"), "{:?}", errors(none));
}

#[test]
fn an_account_at_zerossl_may_have_the_certificates() {
    let lines = "tls {\nissuer zerossl key {\ndns exec hook\n}\n}";
    let CertificateSource::Acme { cas, .. } = tls(lines).source else { panic!() };
    let [Acme { directory: Some(directory), zerossl_key: Some(key), dns: Some(_), eab: None, .. }] = &cas[..]
    else {
        panic!("{cas:?}")
    };
    assert_eq!((directory.as_str(), key.0.as_str()), ("https://acme.zerossl.com/v2/DV90", "key"));
}

#[test]
fn a_name_server_that_takes_updates() {
    let parsed = |options: &str| match tls(&format!(
        "tls {{\ndns rfc2136 {{\n{options}\n}}\npropagation_delay 5s\n}}"
    ))
    .source
    {
        CertificateSource::Acme { mut cas, .. } => {
            assert_eq!(cas[0].propagation_delay, Duration::from_secs(5));
            cas.remove(0).dns.unwrap()
        }
        other => panic!("{other:?}"),
    };
    let key =
        TsigKey { name: "acme.".into(), algorithm: TsigAlgorithm::HmacSha512, secret: b"secret".to_vec() };
    assert_eq!(
        parsed("key_name acme.\nkey_alg hmac-sha512\nkey \"c2VjcmV0\"\nserver 192.0.2.1:5353"),
        DnsProvider::Rfc2136 { host: "192.0.2.1".into(), port: 5353, key: Some(key) }
    );
    for (server, host, port) in [
        ("ns.example.com", "ns.example.com", 53),
        ("2001:db8::1", "2001:db8::1", 53),
        ("[2001:db8::1]:54", "2001:db8::1", 54),
    ] {
        let expected = DnsProvider::Rfc2136 { host: host.into(), port, key: None };
        assert_eq!(parsed(&format!("server {server}")), expected);
    }
}

#[test]
fn records_of_challenges_may_be_elsewhere_and_set_by_all_alike() {
    let loaded = |global: &str, lines: &str| {
        load(&format!("{{\n{global}\n}}\na.example.com {{\ntls {{\n{lines}\n}}\n}}")).unwrap()
    };
    let acme = |global: &str, lines: &str| {
        let mut site = loaded(global, lines).config.servers.remove(0).sites.remove(0);
        match site.tls.take().unwrap().source {
            CertificateSource::Acme { mut cas, .. } => cas.remove(0),
            other => panic!("{other:?}"),
        }
    };
    let found =
        acme("dns exec /bin/true", "dns\ndns_challenge_override_domain _acme.example.net\ndns_ttl 5m");
    assert_eq!(found.dns, Some(DnsProvider::Exec { program: "/bin/true".into(), arguments: Vec::new() }));
    assert_eq!((found.dns_override_domain.as_deref(), found.dns_ttl), (Some("_acme.example.net"), Some(300)));
    assert!(acme("acme_dns\ndns exec /bin/true", "issuer acme").dns.is_some());
    let global = file_errors("{\nacme_dns\n}\n:80 {\n}");
    assert!(global[0].contains("in the global option `dns`"), "{global:?}");
    let warnings = |lines: &str| loaded("dns exec /bin/true", lines).warnings;
    assert_eq!(warnings("dns\npropagation_timeout -1").len(), 0);
    let found = warnings("dns\npropagation_timeout 2m\nresolvers 1.1.1.1");
    assert!(found.len() == 1 && found[0].to_string().contains("`propagation_delay` waits"), "{found:?}");
    assert_eq!(loaded("tls_resolvers 1.1.1.1\ndns exec /bin/true", "dns").warnings.len(), 0);
}

#[test]
fn certificates_of_the_local_ca_live_as_long_as_its_own_allow() {
    let source = |global: &str| {
        let text = format!(
            "{{\n{global}\ncert_issuer internal {{\nlifetime 30d\n}}\npki {{\nca {{\nintermediate_lifetime 365d\n}}\n}}\n}}\nlocalhost {{\n}}"
        );
        config(&text).servers.remove(0).sites.remove(0).tls.unwrap().source
    };
    let CertificateSource::Internal { lifetime, .. } = source("") else { panic!("{:?}", source("")) };
    assert_eq!(lifetime, Duration::from_secs(30 * 86_400));
}

#[test]
fn secrets_are_not_printed() {
    let key = TsigKey { name: "k".into(), algorithm: TsigAlgorithm::HmacSha1, secret: b"secret".to_vec() };
    assert_eq!(serde_json::to_value(&key).unwrap()["secret"], "…");
    let eab = Eab { key_id: "id".into(), mac_key: "secret".into() };
    let dns = DnsProvider::Exec { program: "x".into(), arguments: vec!["secret".into()] };
    let zerossl_key = Some(Secret("secret".into()));
    let acme = Acme { eab: Some(eab), dns: Some(dns), zerossl_key, ..Acme::default() };
    assert!(!serde_json::to_string(&acme).unwrap().contains("secret"));
}

#[test]
fn mistakes() {
    for (lines, message) in [
        ("tls", "too few arguments"),
        ("tls {\n}", "too few arguments"),
        ("tls interal", "neither `internal` nor an email address"),
        ("tls a b c", "too many arguments"),
        ("tls {\nprotocols\n}", "too few arguments"),
        ("tls {\nprotocols tls1.1\n}", "is broken and not spoken"),
        ("tls {\nprotocols tls1.3 tls1.2\n}", "the lowest version comes first"),
        ("tls {\nprotocol tls1.3\n}", "did you mean `protocols`?"),
        ("tls {\nciphers TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA\n}", "suites with CBC are weak"),
        ("tls {\nciphers TLS_AES_128_GCM_SHA256\n}", "names no suite of it"),
        ("tls {\nciphers RC4\n}", "unknown cipher suite `RC4`"),
        ("tls {\ncurves secp521r1\n}", "is not built in Regent"),
        ("tls {\ncurves x25518\n}", "did you mean `x25519`?"),
        ("tls {\nalpn h3\n}", "names no protocol that is spoken"),
        ("tls {\nalpn spdy\n}", "unknown application protocol"),
        ("tls {\nkey_type dsa\n}", "unknown type of key"),
        ("tls {\nget_certificate tailscale\n}", "`tls get_certificate` is not built yet"),
        ("tls {\ndns\n}", "in the global option `dns`"),
        ("tls {\ndns_ttl 0\n}", "too short"),
        ("tls {\ndns_ttl 10ms\n}", "1s at least"),
        ("tls {\ndns_challenge_override_domain a/b\n}", "no name of DNS"),
        ("tls {\nissuer zerossl\n}", "too few arguments"),
        ("tls {\nissuer zerossl key {\nvalidity_days 30\n}\n}", "is not built yet"),
        ("tls {\nissuer zerossl key {\nemail a@b\n}\n}", "unknown option"),
        ("tls {\nissuer acme\nissuer internal\n}", "stands beside no other"),
        ("tls {\nissuer internal\nissuer acme\n}", "stands beside no other"),
        ("tls {\nissuer acme\ndns exec hook\n}", "in its own block"),
        ("tls a@b {\nissuer acme\n}", "in its own block"),
        ("tls {\nissuer internal {\nlifetime 30d\n}\n}", "120h at most"),
        ("tls {\nissuer internal {\nsign_with_root\n}\n}", "is not built yet"),
        ("tls internal {\nca https://ca.example/\n}", "is about a public CA"),
        ("tls internal {\nissuer internal\n}", "has been named before"),
        ("tls {\nissuer acme ftp://ca\n}", "is no URL of a CA"),
        ("tls {\ndns clouddns token\n}", "Regent sets no DNS records at `clouddns` by itself"),
        ("tls {\ndns exec\n}", "too few arguments"),
        ("tls {\ndns rfc2136\n}", "`dns rfc2136` needs `server`"),
        ("tls {\ndns rfc2136 {\nserver a b\n}\n}", "too many arguments"),
        ("tls {\ndns rfc2136 {\nserver a:0\n}\n}", "is no name server"),
        ("tls {\ndns rfc2136 {\nserver a\nkey_name k\n}\n}", "both `key_name` and `key`"),
        ("tls {\ndns rfc2136 {\nserver a\nkey_name k\nkey ???\n}\n}", "no key in base64"),
        ("tls {\ndns rfc2136 {\nserver a\nkey_alg hmac-md5\n}\n}", "unknown value of `key_alg`"),
        ("tls {\ndns rfc2136 {\nserver a\nalg hmac-md5\n}\n}", "unknown"),
        ("tls {\nclient_auth {\nmode maybe\n}\n}", "unknown mode"),
        ("tls {\nclient_auth {\nverifier dummy\n}\n}", "`client_auth verifier dummy` is not built yet"),
        ("tls {\nclient_auth {\nverifier leaf\n}\n}", "too few arguments"),
        ("tls {\nclient_auth {\ntrust_pool http\n}\n}", "`trust_pool http` is not built yet"),
        ("tls {\nclient_auth {\ntrust_pool inline\n}\n}", "too few arguments"),
        ("tls {\nclient_auth {\ntrust_pool inline {\ntrust_der AAA=\n}\n}\n}", "no certificate"),
        ("tls {\nclient_auth {\ntrust_pool pki_root other\n}\n}", "a CA beside `local`"),
        ("tls {\nclient_auth {\ntrust_pool combined\n}\n}", "has no `source`"),
        ("tls {\nclient_auth {\ntrust_pool file\n}\n}", "too few arguments"),
        ("tls {path} {path}", "cannot depend on the request"),
        ("handle {\ntls internal\n}", "directly in a site block"),
    ] {
        let found = errors(lines);
        assert!(found.first().is_some_and(|first| first.contains(message)), "{lines}: {found:?}");
    }
}

#[test]
fn relative_files_start_from_the_working_directory() {
    let found = errors("tls certificates/a.crt certificates/a.key");
    let path = Path::new("/srv/certificates/a.crt");
    assert_eq!(found[0], format!("the file does not exist: {}", path.display()));
}
