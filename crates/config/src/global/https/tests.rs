//! Global options about TLS, from text to the model.

use crate::Environment;
use crate::directives::testing::{config, file_errors, load};
use crate::model::*;
use std::path::Path;
use std::time::Duration;

fn tls(options: &str) -> GlobalTls {
    config(&format!("{{\n{options}\n}}\n:80 {{\n}}")).global.tls
}

fn errors(options: &str) -> Vec<String> {
    file_errors(&format!("{{\n{options}\n}}\n:80 {{\n}}"))
}

#[test]
fn values() {
    let found = tls(
        "default_sni A.example\nfallback_sni b.example\nskip_install_trust\nocsp_stapling off\nrenew_interval 1m\n\
         on_demand_tls {\nask http://localhost:5555/check\ninterval 2m\nburst 5\n}\nhttps_port 444\nstorage file_system data",
    );
    let expected = GlobalTls {
        https_port: 444,
        default_sni: Some("a.example".into()),
        fallback_sni: Some("b.example".into()),
        storage: "/srv/data".into(),
        is_storage_default: false,
        redis: None,
        install_trust: InstallTrust::Never,
        ocsp_stapling: OcspStapling::Off,
        renew_interval: Duration::from_secs(60),
        on_demand_ask: Some("http://localhost:5555/check".into()),
        on_demand_limit: Some(OrderLimit { orders: 5, interval: Duration::from_secs(120) }),
        local_ca: LocalCa::default(),
    };
    assert_eq!(found, expected);
    assert_eq!(tls("storage file_system {\nroot /data\n}").storage, Path::new("/data"));
}

#[test]
fn certificates_are_kept_where_caddy_keeps_them() {
    let storage = |variables: &[(&str, &str)]| {
        let variables = variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let environment = Environment { variables, current_dir: "/srv".into() };
        crate::parse("Caddyfile", "", Path::new("/srv"), &environment).unwrap().config.global.tls.storage
    };
    assert_eq!(storage(&[("XDG_DATA_HOME", "/data"), ("HOME", "/home/user")]), Path::new("/data/caddy"));
    assert_eq!(
        storage(&[("XDG_DATA_HOME", ""), ("HOME", "/home/user")]),
        Path::new("/home/user/.local/share/caddy")
    );
    assert_eq!(storage(&[]), Path::new("/srv/caddy"));
}

#[test]
fn what_is_about_a_public_ca_goes_for_all_sites() {
    let text = "email\nemail a@b\nacme_ca https://ca.example/directory\nacme_eab {\nkey_id i\nmac_key k\n}\nacme_ca_root root.pem";
    assert_eq!(errors(text), [""; 0]);
    for order in [["email a@b", "cert_issuer acme"], ["cert_issuer acme", "email a@b"]] {
        let servers = config(&format!("{{\n{}\n}}\nlocalhost {{\n}}", order.join("\n"))).servers;
        let source = servers.iter().find_map(|server| Some(&server.sites[0].tls.as_ref()?.source)).unwrap();
        let CertificateSource::Acme { cas, .. } = source else { panic!("{source:?}") };
        assert_eq!(cas[0].email.as_deref(), Some("a@b"));
    }
}

#[test]
fn protocols() {
    let protocols = |option: &str| {
        config(&format!("{{\nservers {{\n{option}\n}}\n}}\n:80 {{\n}}")).servers[0].options.protocols.clone()
    };
    assert_eq!(protocols(""), [HttpProtocol::H1, HttpProtocol::H2, HttpProtocol::H3]);
    assert_eq!(protocols("protocols h1 h2c"), [HttpProtocol::H1, HttpProtocol::H2c]);
    let udp_port = |option: &str| {
        config(&format!("{{\nservers {{\n{option}\n}}\n}}\n:80 {{\n}}")).servers[0].options.udp_port
    };
    assert_eq!(udp_port(""), UdpPort::Optional);
    assert_eq!(udp_port("protocols h1 h3"), UdpPort::Required);
    assert_eq!(udp_port("protocols h1 h2"), UdpPort::Optional);
    for option in ["protocols", "protocols h2", "protocols h1 h1", "protocols h1 spdy"] {
        assert_eq!(errors(&format!("servers {{\n{option}\n}}")).len(), 1, "{option}");
    }
}

#[test]
fn an_old_name_of_what_wildcards_do_is_a_warning() {
    let warnings = load("{\nauto_https disable_redirects prefer_wildcard\n}\n:80 {\n}").unwrap().warnings;
    assert!(
        warnings[0].to_string().starts_with("Caddyfile:2:30: `prefer_wildcard` has no effect"),
        "{warnings:?}"
    );
}

#[test]
fn mistakes() {
    for (option, message) in [
        ("auto_https", "too few arguments"),
        ("auto_https on", "unknown value of `auto_https` `on`"),
        ("auto_https disable_redirect", "did you mean `disable_redirects`?"),
        ("default_sni", "too few arguments"),
        ("default_sni \"a b\"", "is no server name"),
        ("local_certs yes", "too many arguments"),
        ("key_type p521", "unknown type of key"),
        ("storage redis x", "too many arguments"),
        ("storage file_system", "too few arguments"),
        ("storage file_system a {\nroot b\n}", "has a path already"),
        ("renew_interval 0", "too short"),
        ("ocsp_stapling on", "can only be `off`"),
        ("on_demand_tls", "needs `ask`"),
        ("on_demand_tls {\nask check\n}", "is no URL"),
        ("on_demand_tls {\nask http://a\nburst 3\n}", "write both, or none"),
        ("on_demand_tls {\nask http://a\nburst 0\ninterval 1m\n}", "burst"),
        ("on_demand_tls {\nburst 3\ninterval 1m\n}", "needs `ask`"),
        ("on_demand_tls {\npermission http\n}", "permission"),
        ("acme_ca http://ca.example/", "is no URL of a CA"),
        ("acme_eab {\nkey_id x\n}", "needs both"),
        ("cert_issuer tailscale", "unknown issuer"),
        ("cert_issuer acme\ncert_issuer internal", "stands beside no other"),
        ("cert_issuer internal\ncert_issuer zerossl key", "stands beside no other"),
        ("https_port 0", "must be a whole number"),
        ("servers {\nstrict_sni_host off\n}", "unknown value of `strict_sni_host`"),
    ] {
        let found = errors(option);
        assert!(found.len() == 1 && found[0].contains(message), "{option}: {found:?}");
    }
}
