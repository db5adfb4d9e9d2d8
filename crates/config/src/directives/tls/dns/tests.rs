//! `dns SERVICE`, from text to the model.

use super::services::{SERVICES, Service, ServiceOption};
use crate::directives::testing::{file_errors, load, load_with};
use crate::model::{Acme, CertificateSource, DnsProvider};
use std::time::Duration;

fn text(dns: &str) -> String {
    format!("*.example.com {{\ntls {{\n{dns}\n}}\n}}")
}

fn acme_of(mut config: crate::Config) -> Acme {
    match config.servers.remove(0).sites.remove(0).tls.unwrap().source {
        CertificateSource::Acme { mut cas, .. } => cas.remove(0),
        other => panic!("{other:?}"),
    }
}

fn acme(dns: &str) -> Acme {
    acme_of(load(&text(dns)).unwrap().config)
}

fn service(name: &str, options: &[(&str, &str)]) -> Option<DnsProvider> {
    let options = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Some(DnsProvider::Hosted { service: name.to_owned(), options: options.collect() })
}

#[test]
fn what_it_is_given_stands_on_the_line_or_in_the_block() {
    let cloudflare = service("cloudflare", &[("api_token", "a")]);
    assert_eq!(acme("dns cloudflare a").dns, cloudflare);
    assert_eq!(acme("dns cloudflare {\napi_token \" a \"\n}").dns, cloudflare);
    let all = [("api_token", "b"), ("server_id", "c"), ("server_url", "http://a")];
    assert_eq!(acme("dns powerdns http://a b c").dns, service("powerdns", &all));
    assert_eq!(acme("dns powerdns http://a b {\nserver_id c\n}").dns, service("powerdns", &all));
}

/// Caddy's JSON has names of libdns, some of which are others than those of its Caddyfile.
#[test]
fn both_words_of_an_option_are_known() {
    let token = service("digitalocean", &[("auth_token", "a")]);
    for line in ["digitalocean a", "digitalocean {\napi_token a\n}", "digitalocean {\nauth_token a\n}"] {
        assert_eq!(acme(&format!("dns {line}")).dns, token, "{line}");
    }
}

#[test]
fn what_is_left_out_is_in_the_environment_where_the_module_looks_there() {
    let variables =
        [("OVH_APPLICATION_KEY", "a"), ("OVH_APPLICATION_SECRET", "b"), ("OVH_CONSUMER_KEY", "c")];
    let loaded = load_with(&text("dns ovh {\nconsumer_key d\n}"), &variables).unwrap();
    let expected = [("application_key", "a"), ("application_secret", "b"), ("consumer_key", "d")];
    assert_eq!(acme_of(loaded.config).dns, service("ovh", &expected));
    let wrong =
        load_with(&text("dns ovh"), &[("OVH_ENDPOINT", "https://eu.api.ovh.com")]).err().unwrap().to_string();
    assert!(wrong.contains("`endpoint`, of the variable OVH_ENDPOINT, is one of ovh-eu"), "{wrong}");
    assert!(
        file_errors(&text("dns ovh"))[0]
            .contains("needs `application_key`, or the variable OVH_APPLICATION_KEY")
    );
}

#[test]
fn words_that_change_nothing_are_taken_with_a_warning() {
    let usual =
        load(&text("dns easydns {\napi_token a\napi_key b\napi_url https://rest.easydns.net/\n}")).unwrap();
    assert_eq!(usual.warnings.len(), 0);
    let found = load(&text("dns scaleway {\nsecret_key a\norganization_id b\n}")).unwrap();
    assert_eq!(found.warnings.len(), 1);
    assert_eq!(acme_of(found.config).dns, service("scaleway", &[("secret_key", "a")]));
}

#[test]
fn how_long_and_where_the_record_is_looked_for() {
    let found = acme("dns cloudflare a\npropagation_timeout 5m\nresolvers 1.1.1.1 [2606:4700::1111]:53");
    assert_eq!(found.propagation_timeout, Some(Duration::from_secs(300)));
    let resolvers: Vec<_> = found.resolvers.iter().map(ToString::to_string).collect();
    assert_eq!(resolvers, ["1.1.1.1:53", "[2606:4700::1111]:53"]);
    assert_eq!(acme("dns cloudflare a\npropagation_timeout -1").propagation_timeout, Some(Duration::ZERO));
    assert_eq!(acme("dns cloudflare a").propagation_timeout, None);
}

/// As docs/https.md has them.
fn row(service: &Service) -> String {
    let word = |option: &ServiceOption| option.word();
    let on_line: Vec<_> =
        service.options.iter().take(service.on_line).map(|option| word(option).to_uppercase()).collect();
    let on_line = if on_line.is_empty() {
        String::new()
    } else {
        format!("`dns {} {}`", service.name, on_line.join(" "))
    };
    let (required, optional): (Vec<_>, Vec<_>) =
        service.options.iter().partition(|option| option.is_required);
    let words = |options: Vec<&ServiceOption>| {
        options.into_iter().map(|option| format!("`{}`", word(option))).collect::<Vec<_>>().join(", ")
    };
    format!("| `{}` | {on_line} | {} | {} |", service.name, words(required), words(optional))
}

#[test]
fn the_page_about_https_has_all_services() {
    let page = include_str!("../../../../../../docs/https.md");
    for service in SERVICES {
        let row = row(service);
        assert!(page.lines().any(|line| line == row), "{row}");
    }
}

#[test]
fn mistakes() {
    for (dns, message) in [
        (
            "dns cloudflare",
            "`dns cloudflare` needs `api_token` (a variable that is not set says nothing); write: dns cloudflare API_TOKEN | dns cloudflare { api_token API_TOKEN }",
        ),
        ("dns cloudflare a b", "too many arguments"),
        ("dns cloudflare {env.NOBODY_SETS_THIS}", "`api_token` is empty; is the variable set"),
        ("dns cloudflare {http.request.host}", "cannot depend on the request"),
        (
            "dns cloudflare {\nzone_token a\n}",
            "Regent has no `zone_token` of `dns cloudflare`: write one `api_token`",
        ),
        ("dns cloudflare {\napi_tokn a\n}", "did you mean `api_token`?"),
        ("dns cloudflare a {\napi_token a\n}", "`api_token` is given twice"),
        ("dns desec a", "too many arguments for `dns`"),
        ("dns godaddy token", "`api_token` is a key and a secret, as `KEY:SECRET`"),
        ("dns ovh {\nendpoint ovh-fr\n}", "`endpoint` is one of ovh-eu, ovh-us"),
        (
            "dns namedotcom {\ntoken a\nuser b\nserver https://api.dev.name.com\n}",
            "`server` can only be `https://api.name.com`",
        ),
        ("dns transip a key.pem", "`private_key` is the path of a file, and /srv/key.pem is none"),
        ("dns powerdns 127.0.0.1:8081 a", "`server_url` is no URL"),
        ("dns cloudflar a", "did you mean `cloudflare`?; `regent list-modules` names"),
        ("dns cloudflare a\nresolvers dns.example", "no address of a DNS server"),
    ] {
        let found = file_errors(&text(dns));
        assert!(found.first().is_some_and(|first| first.contains(message)), "{dns}: {found:?}");
    }
}

#[test]
fn what_is_given_is_not_printed() {
    let acme = acme("dns route53 {\naccess_key_id topsecret\nsecret_access_key topsecret\n}");
    for shown in [serde_json::to_string(&acme).unwrap(), format!("{acme:?}")] {
        assert!(shown.contains("access_key_id") && !shown.contains("topsecret"), "{shown}");
    }
}
