//! TLS from the configuration.

use super::*;

/// The expectations in [`policy`] hold.
#[test]
fn every_cipher_and_curve_of_the_model_is_known() {
    for cipher in config::CipherSuite::ALL {
        assert!(cipher.name().parse::<regent_tls::CipherSuite>().is_ok(), "{cipher:?}");
    }
    for curve in config::Curve::ALL {
        assert!(curve.name().parse::<regent_tls::Curve>().is_ok(), "{curve:?}");
    }
}

fn config(text: &str) -> Config {
    let environment = config::Environment::of_process().unwrap();
    config::parse("Caddyfile", text, std::path::Path::new("/"), &environment).unwrap().config
}

#[test]
fn a_reload_does_not_install_the_root_again() {
    let local = config("{\nstorage file_system /a\n}\nlocalhost {\nrespond a\n}");
    let changed = config("{\nstorage file_system /a\n}\nlocalhost {\nrespond b\n}");
    let elsewhere = config("{\nstorage file_system /b\n}\nlocalhost {\nrespond a\n}");
    let skipped = config("{\nskip_install_trust\n}\nlocalhost {\nrespond a\n}");
    let plain = config("http://localhost {\nrespond a\n}");
    assert!(wants_trust_anew(None, &local));
    assert!(!wants_trust_anew(Some(&local), &changed));
    assert!(wants_trust_anew(Some(&local), &elsewhere));
    for before in [&skipped, &plain] {
        assert!(wants_trust_anew(Some(before), &local));
    }
    assert!(!wants_trust_anew(None, &skipped) && !wants_trust_anew(None, &plain));
}

/// The least that is to be written of each who sets records of DNS.
const PROVIDERS: &[(&str, &str)] = &[
    ("alidns", "alidns {\naccess_key_id a\naccess_key_secret b\n}"),
    (
        "azure",
        "azure {\nsubscription_id a\nresource_group_name b\ntenant_id c\nclient_id d\nclient_secret e\n}",
    ),
    ("bunny", "bunny a"),
    ("cloudflare", "cloudflare a"),
    ("desec", "desec {\ntoken a\n}"),
    ("digitalocean", "digitalocean a"),
    ("dnsimple", "dnsimple a {\naccount_id 1\n}"),
    ("dnsmadeeasy", "dnsmadeeasy {\napi_key a\nsecret_key b\n}"),
    ("domainnameshop", "domainnameshop a b"),
    ("dreamhost", "dreamhost a"),
    ("duckdns", "duckdns a"),
    ("dynu", "dynu a"),
    ("easydns", "easydns {\napi_token a\napi_key b\n}"),
    ("exec", "exec /bin/true"),
    ("gandi", "gandi a"),
    ("glesys", "glesys a b"),
    ("godaddy", "godaddy a:b"),
    ("googleclouddns", "googleclouddns {\ngcp_project a\ngcp_application_default DIRECTORY/account.json\n}"),
    ("hetzner", "hetzner a"),
    ("hostinger", "hostinger a"),
    ("huaweicloud", "huaweicloud {\naccess_key_id a\nsecret_access_key b\n}"),
    ("infomaniak", "infomaniak a"),
    ("inwx", "inwx {\nusername a\npassword b\nendpoint_url https://api.ote.domrobot.com/jsonrpc/\n}"),
    ("ionos", "ionos a.b"),
    ("linode", "linode a"),
    ("luadns", "luadns {\nemail a\napi_key b\n}"),
    ("mythicbeasts", "mythicbeasts {\nkey_id a\nsecret b\n}"),
    ("namecheap", "namecheap {\napi_key a\nuser b\nclient_ip 192.0.2.1\n}"),
    ("namedotcom", "namedotcom {\ntoken a\nuser b\n}"),
    ("namesilo", "namesilo a"),
    ("netcup", "netcup {\ncustomer_number 1\napi_key a\napi_password b\n}"),
    ("netlify", "netlify a"),
    ("ovh", "ovh {\nendpoint ovh-ca\napplication_key a\napplication_secret b\nconsumer_key c\n}"),
    ("porkbun", "porkbun {\napi_key a\napi_secret_key b\n}"),
    ("powerdns", "powerdns http://127.0.0.1:8081 a"),
    ("rfc2136", "rfc2136 {\nserver 192.0.2.1\n}"),
    ("route53", "route53 {\naccess_key_id a\nsecret_access_key b\nregion eu-west-1\n}"),
    ("scaleway", "scaleway {\nsecret_key a\n}"),
    ("simplydotcom", "simplydotcom a b"),
    ("spaceship", "spaceship a b"),
    ("tencentcloud", "tencentcloud {\nsecret_id a\nsecret_key b\n}"),
    ("transip", "transip {\nlogin a\nprivate_key DIRECTORY/key.pem\n}"),
    ("vercel", "vercel a"),
    ("vultr", "vultr a"),
];

fn site_at(provider: &str, directory: &std::path::Path) -> Config {
    let directory = directory.display().to_string();
    let provider = provider.replace("DIRECTORY", &directory);
    config(&format!("{{\nstorage file_system {directory}\n}}\n*.a.test {{\ntls {{\ndns {provider}\n}}\n}}"))
}

#[test]
fn everyone_who_is_listed_as_setting_records_can_be_used() {
    let directory = tempfile::tempdir().unwrap();
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_RSA_SHA256).unwrap().serialize_pem();
    let account =
        serde_json::json!({ "client_email": "a@b", "private_key": key, "token_uri": "https://a.test" });
    std::fs::write(directory.path().join("key.pem"), &key).unwrap();
    std::fs::write(directory.path().join("account.json"), account.to_string()).unwrap();
    let listed = config::modules()
        .into_iter()
        .filter_map(|name| name.strip_prefix("dns.providers.").map(str::to_owned));
    assert!(listed.eq(PROVIDERS.iter().map(|(name, _)| (*name).to_owned())));
    for (name, provider) in PROVIDERS {
        Https::open(&site_at(provider, directory.path())).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[test]
fn a_service_that_cannot_be_used_is_an_error_at_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let failed =
        |provider: &str| Https::open(&site_at(provider, directory.path())).err().unwrap().to_string();
    let error = failed("route53 {\naccess_key_id a\nsecret_access_key b\nregion eu/west\n}");
    assert!(error.contains("route53, cannot be used as it is configured"), "{error}");
}
