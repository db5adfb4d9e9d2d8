//! The apps `tls` and `pki`: where certificates come from.

mod connection;
mod issuer;

pub(crate) use connection::is_redirect;

use crate::Writer;
use crate::object::{Object, nanoseconds};
use crate::words::{self, Line};
use issuer::Policy;
use regent_config::{
    CertificateFiles, CertificateSource, GlobalTls, InstallTrust, Issuance, LocalCa, OcspStapling,
    OrderLimit, Site, escaped,
};
use std::path::Path;

impl Writer<'_> {
    pub(crate) fn tls(&self) -> Object {
        let GlobalTls {
            // Of the app `http`, of connection policies, of `storage` and of `pki`.
            https_port: _,
            default_sni: _,
            fallback_sni: _,
            storage: _,
            is_storage_default: _,
            redis: _,
            install_trust: _,
            local_ca: _,
            ocsp_stapling,
            renew_interval,
            on_demand_ask,
            on_demand_limit,
        } = &self.config.global.tls;
        let mut automation = Object::new();
        automation.set_list("policies", self.policies());
        automation.set_duration("renew_interval", *renew_interval, GlobalTls::default().renew_interval);
        if let (Some(url), None) = (on_demand_ask, on_demand_limit) {
            let mut permission = Object::of_kind("module", "http");
            permission.set("endpoint", escaped(url));
            let mut on_demand = Object::new();
            on_demand.set("permission", permission);
            automation.set("on_demand", on_demand);
        }
        let mut app = Object::new();
        app.non_empty("certificates", self.certificates());
        app.non_empty("automation", automation);
        app.set_if("disable_ocsp_stapling", *ocsp_stapling == OcspStapling::Off);
        app
    }

    pub(crate) fn pki(&self) -> Object {
        let GlobalTls { install_trust, local_ca, .. } = &self.config.global.tls;
        let LocalCa { root_name, intermediate_name, intermediate_lifetime, root } = local_ca;
        let mut ca = Object::new();
        ca.set_some("root_common_name", root_name.as_ref().map(|name| escaped(name)));
        ca.set_some("intermediate_common_name", intermediate_name.as_ref().map(|name| escaped(name)));
        ca.set_some("intermediate_lifetime", intermediate_lifetime.map(nanoseconds));
        ca.set_some("root", root.as_ref().map(|files| pair(files, "private_key")));
        if *install_trust == InstallTrust::Never {
            ca.set("install_trust", false);
        }
        let (mut authorities, mut app) = (Object::new(), Object::new());
        authorities.non_empty("local", ca);
        app.non_empty("certificate_authorities", authorities);
        app
    }

    /// The bound on orders that Caddy had until 2.8, with whom to ask, as a line of the global options.
    pub(crate) fn on_demand_line(&self) -> Option<Line> {
        let OrderLimit { orders, interval } = self.config.global.tls.on_demand_limit?;
        let ask =
            self.config.global.tls.on_demand_ask.iter().map(|url| Line::new(["ask"]).word(escaped(url)));
        let bound = [
            Line::new(["interval"]).word(words::duration(interval)),
            Line::new(["burst"]).word(orders.to_string()),
        ];
        Some(Line::new(["on_demand_tls"]).block(ask.chain(bound).collect()))
    }

    /// What stands in `certificates`: files, and names that have a certificate of their own although a wildcard covers them.
    fn certificates(&self) -> Object {
        let mut folders: Vec<String> = Vec::new();
        for directory in
            self.secured_sites().filter_map(|site| files(site)).flat_map(|(_, directories)| directories)
        {
            let directory = path(directory);
            if !folders.contains(&directory) {
                folders.push(directory);
            }
        }
        let load = self.pairs().into_iter().enumerate().map(|(number, files)| {
            let mut object = pair(files, "key");
            object.set("tags", vec![tag(number)]);
            object
        });
        let mut object = Object::new();
        object.set_list("load_files", load);
        object.set_list("load_folders", folders);
        object.set_list("automate", self.automated());
        object
    }

    fn automated(&self) -> Vec<String> {
        let mut names = Vec::new();
        for site in self.secured_sites() {
            let is_managed = Policy::of(site).is_some_and(|policy| policy.issuance == Issuance::AtStart);
            let covered = site.hosts.iter().filter(|host| is_managed && self.is_covered(host));
            for host in covered {
                if !names.contains(host) {
                    names.push(host.clone());
                }
            }
        }
        names
    }

    /// Whether another site with a certificate has a wildcard for the name.
    pub(crate) fn is_covered(&self, host: &str) -> bool {
        let parent = |pattern: &str| pattern.strip_prefix("*.").map(str::to_owned);
        let rest = host.split_once('.').map(|(_, rest)| rest.to_owned());
        let has_own =
            |site: &&Site| site.tls.as_ref().is_some_and(|tls| tls.source != CertificateSource::Shared);
        let mut patterns = self.secured_sites().filter(has_own).flat_map(|site| &site.hosts);
        patterns.any(|pattern| pattern != host && rest.is_some() && parent(pattern) == rest)
    }

    fn policies(&self) -> Vec<Object> {
        let mut policies: Vec<(Policy<'_>, Vec<&str>)> = Vec::new();
        let mut usual = 0;
        // Its policy would be that of all names which have none.
        let has_one_for_all =
            self.secured_sites().any(|site| site.hosts.is_empty() && Policy::of(site).is_some());
        for site in self.secured_sites() {
            let Some(policy) = Policy::of(site) else { continue };
            let hosts = site
                .hosts
                .iter()
                .map(String::as_str)
                .filter(|host| has_one_for_all || !policy.is_usual_for(host))
                .collect::<Vec<_>>();
            usual += site.hosts.len() - hosts.len();
            if hosts.is_empty() && !site.hosts.is_empty() {
                continue;
            }
            match policies
                .iter_mut()
                .find(|(known, own)| *known == policy && own.is_empty() == hosts.is_empty())
            {
                Some((_, own)) => own.extend(hosts),
                None => policies.push((policy, hosts)),
            }
        }
        // What is for any name comes last; one that all sites have is for any name too.
        policies.sort_by_key(|(_, hosts)| hosts.is_empty());
        let is_for_all = usual == 0 && policies.len() == 1 && policies[0].0.is_public();
        policies
            .into_iter()
            .map(|(policy, mut hosts)| {
                hosts.dedup();
                self.automation_policy(&policy, if is_for_all { &[] } else { &hosts })
            })
            .collect()
    }

    /// All pairs of files, each once.
    fn pairs(&self) -> Vec<&CertificateFiles> {
        let mut pairs = Vec::new();
        for files in self.secured_sites().filter_map(files).flat_map(|(pairs, _)| pairs) {
            if !pairs.contains(&files) {
                pairs.push(files);
            }
        }
        pairs
    }

    fn secured_sites(&self) -> impl Iterator<Item = &Site> {
        self.config.servers.iter().flat_map(|server| &server.sites).filter(|site| site.tls.is_some())
    }
}

fn files(site: &Site) -> Option<(&Vec<CertificateFiles>, &Vec<std::path::PathBuf>)> {
    match &site.tls.as_ref()?.source {
        CertificateSource::Files { pairs, directories } => Some((pairs, directories)),
        _ => None,
    }
}

fn pair(files: &CertificateFiles, key_name: &str) -> Object {
    let CertificateFiles { certificate, key } = files;
    let mut object = Object::new();
    object.set("certificate", path(certificate));
    object.set(key_name, path(key));
    object
}

fn path(path: &Path) -> String {
    escaped(&path.display().to_string())
}

/// By which connection policies choose files.
fn tag(number: usize) -> String {
    format!("cert{number}")
}
