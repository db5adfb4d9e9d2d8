//! The services by their names in Caddy, and what their records are like. The configuration has checked what is required.

use crate::acme::options::DnsService;
use dns_update::DnsUpdater;
use dns_update::providers::azuredns::{AzureDnsConfig, AzureEnvironment};
use dns_update::providers::google_cloud_dns::GoogleCloudDnsConfig;
use dns_update::providers::ovh::OvhEndpoint;
use dns_update::providers::route53::Route53Config;
use std::time::Duration;

/// Of one request.
const TIMEOUT: Option<Duration> = Some(Duration::from_secs(30));

/// In seconds, where the configuration says nothing: short, as a record is there for a minute, but not below what the
/// service takes.
pub(super) fn ttl(service: &str) -> u32 {
    match service {
        "alidns" | "godaddy" | "porkbun" | "tencentcloud" => 600,
        "desec" | "namesilo" => 3600,
        "domainnameshop" | "gandi" | "huaweicloud" | "infomaniak" | "inwx" | "linode" | "luadns"
        | "namedotcom" | "netlify" | "transip" => 300,
        _ => 120,
    }
}

/// How many values a name has at a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Values {
    Many,
    One,
}

/// Of this name.
pub(super) fn values(service: &str, fqdn: &str) -> Result<Values, String> {
    match service {
        "duckdns" if fqdn.ends_with(".duckdns.org.") => Ok(Values::One),
        "duckdns" => Err("has names below duckdns.org alone; `dns_challenge_override_domain` names the one that yours is an alias for".to_owned()),
        _ => Ok(Values::Many),
    }
}

/// Blocks: it reads files.
pub(super) fn updater(service: &DnsService) -> Result<DnsUpdater, String> {
    let optional = |name: &str| service.options.get(name).map(String::as_str);
    let get = |name: &str| optional(name).unwrap_or_default();
    let owned = |name: &str| get(name).to_owned();
    let made = match service.name.as_str() {
        "alidns" => DnsUpdater::new_alidns(
            get("access_key_id"),
            get("access_key_secret"),
            optional("region_id"),
            optional("security_token"),
            None::<&str>,
            TIMEOUT,
        ),
        "azure" => DnsUpdater::new_azuredns(AzureDnsConfig {
            tenant_id: owned("tenant_id"),
            client_id: owned("client_id"),
            client_secret: owned("client_secret"),
            subscription_id: owned("subscription_id"),
            resource_group: owned("resource_group_name"),
            environment: AzureEnvironment::Public,
            request_timeout: TIMEOUT,
        }),
        "bunny" => DnsUpdater::new_bunny(get("access_key"), TIMEOUT),
        "cloudflare" => DnsUpdater::new_cloudflare(get("api_token"), TIMEOUT),
        "desec" => DnsUpdater::new_desec(get("token"), TIMEOUT),
        "digitalocean" => DnsUpdater::new_digitalocean(get("auth_token"), TIMEOUT),
        "dnsimple" => DnsUpdater::new_dnsimple(get("api_access_token"), get("account_id"), TIMEOUT),
        "dnsmadeeasy" => DnsUpdater::new_dnsmadeeasy(get("api_key"), get("secret_key"), TIMEOUT),
        "domainnameshop" => DnsUpdater::new_domeneshop(get("api_token"), get("api_secret"), TIMEOUT),
        "dreamhost" => DnsUpdater::new_dreamhost(get("api_key"), TIMEOUT),
        "duckdns" => DnsUpdater::new_duckdns(get("api_token"), TIMEOUT),
        "dynu" => DnsUpdater::new_dynu(get("api_token"), TIMEOUT),
        "easydns" => DnsUpdater::new_easydns(get("api_token"), get("api_key"), TIMEOUT),
        "gandi" => DnsUpdater::new_gandiv5(get("bearer_token"), TIMEOUT),
        "glesys" => DnsUpdater::new_glesys(get("project"), get("api_key"), TIMEOUT),
        "godaddy" => {
            let (key, secret) = get("api_token").split_once(':').unwrap_or_default();
            DnsUpdater::new_godaddy(key, secret, TIMEOUT)
        }
        "googleclouddns" => return google_cloud_dns(service),
        "hetzner" => DnsUpdater::new_hetzner(get("api_token"), TIMEOUT),
        "hostinger" => DnsUpdater::new_hostinger(get("api_token"), TIMEOUT),
        "huaweicloud" => DnsUpdater::new_huaweicloud(
            get("access_key_id"),
            get("secret_access_key"),
            optional("region_id").unwrap_or("cn-south-1"),
            TIMEOUT,
        ),
        "infomaniak" => DnsUpdater::new_infomaniak(get("api_token"), TIMEOUT),
        "inwx" => {
            let is_test = get("endpoint_url").contains("api.ote.");
            DnsUpdater::new_inwx(get("username"), get("password"), is_test, TIMEOUT)
        }
        "ionos" => DnsUpdater::new_ionos(get("auth_api_token"), TIMEOUT),
        "linode" => DnsUpdater::new_linode(get("api_token"), TIMEOUT),
        "luadns" => DnsUpdater::new_luadns(get("email"), get("api_key"), TIMEOUT),
        "mythicbeasts" => DnsUpdater::new_mythicbeasts(get("key_id"), get("secret"), TIMEOUT),
        "namecheap" => {
            DnsUpdater::new_namecheap(get("user"), get("api_key"), get("client_ip"), None::<&str>, TIMEOUT)
        }
        "namedotcom" => DnsUpdater::new_namedotcom(get("user"), get("api_token"), TIMEOUT),
        "namesilo" => DnsUpdater::new_namesilo(get("api_token"), TIMEOUT),
        "netcup" => {
            DnsUpdater::new_netcup(get("customer_number"), get("api_key"), get("api_password"), TIMEOUT)
        }
        "netlify" => DnsUpdater::new_netlify(get("personal_access_token"), TIMEOUT),
        "ovh" => optional("endpoint").unwrap_or("ovh-eu").parse().and_then(|endpoint: OvhEndpoint| {
            let (key, secret) = (get("application_key"), get("application_secret"));
            DnsUpdater::new_ovh(key, secret, get("consumer_key"), endpoint, TIMEOUT)
        }),
        "porkbun" => DnsUpdater::new_porkbun(get("api_key"), get("api_secret_key"), TIMEOUT),
        "powerdns" => {
            let (url, server) = (optional("server_url"), optional("server_id"));
            DnsUpdater::new_pdns(get("api_token"), url, server, TIMEOUT)
        }
        "route53" => DnsUpdater::new_route53(Route53Config {
            access_key_id: owned("access_key_id"),
            secret_access_key: owned("secret_access_key"),
            session_token: optional("session_token").map(str::to_owned),
            region: optional("region").map(str::to_owned),
            hosted_zone_id: optional("hosted_zone_id").map(str::to_owned),
            private_zone_only: None,
            endpoint: None,
        }),
        "scaleway" => DnsUpdater::new_scaleway(get("secret_key"), TIMEOUT),
        "simplydotcom" => DnsUpdater::new_simplycom(get("account_name"), get("api_key"), TIMEOUT),
        "spaceship" => DnsUpdater::new_spaceship(get("api_key"), get("api_secret"), TIMEOUT),
        "tencentcloud" => DnsUpdater::new_tencentcloud(
            get("SecretId"),
            get("SecretKey"),
            optional("Region"),
            optional("SessionToken"),
            TIMEOUT,
        ),
        "transip" => return transip(service),
        "vercel" => DnsUpdater::new_vercel(get("auth_api_token"), None::<&str>, TIMEOUT),
        "vultr" => DnsUpdater::new_vultr(get("api_token"), TIMEOUT),
        _ => return Err("is not known".to_owned()),
    };
    made.map_err(|error| format!("cannot be used as it is configured: {error}"))
}

fn google_cloud_dns(service: &DnsService) -> Result<DnsUpdater, String> {
    let get = |name: &str| service.options.get(name).cloned().unwrap_or_default();
    let path = get("gcp_application_default");
    let account = std::fs::read_to_string(&path)
        .map_err(|error| format!("cannot be used: the account's file {path} cannot be read: {error}"))?;
    let made = DnsUpdater::new_google_cloud_dns(GoogleCloudDnsConfig {
        service_account_json: account,
        project_id: get("gcp_project"),
        managed_zone: None,
        private_zone: false,
        impersonate_service_account: None,
        request_timeout: TIMEOUT,
    });
    made.map_err(|error| format!("cannot be used with the account's file {path}: {error}"))
}

/// Its key is written itself, or the path of its file.
fn transip(service: &DnsService) -> Result<DnsUpdater, String> {
    let get = |name: &str| service.options.get(name).map_or("", String::as_str);
    let key = get("private_key");
    let key = match key.contains("-----BEGIN") {
        true => key.to_owned(),
        false => std::fs::read_to_string(key)
            .map_err(|error| format!("cannot be used: the file of `private_key` cannot be read: {error}"))?,
    };
    let is_global = get("not_global_key") != "true";
    let made = DnsUpdater::new_transip(get("login"), key, is_global, TIMEOUT);
    made.map_err(|error| format!("cannot be used as it is configured: {error}"))
}
