//! `tls_connection_policies` and `automatic_https`: what a server says of TLS.

use super::{files, tag};
use crate::Writer;
use crate::handlers::proxy::transport::pem_files;
use crate::object::Object;
use regent_config::{
    CertificateSource, CipherSuite, ClientAuth, ClientAuthMode, Curve, Handler, Listen, Part, Purpose, Route,
    Server, Site, SiteTls, Template, TlsVersion, TlsVersions, TrustSource,
};
use std::path::PathBuf;

impl Writer<'_> {
    /// Servers that differ in their addresses alone.
    pub(crate) fn set_https(&self, object: &mut Object, alike: &[&Server], sites: &[&Site]) {
        match alike[0].tls {
            Some(_) => self.set_tls(object, sites),
            None => self.set_plain(object, alike, sites),
        }
    }

    fn set_tls(&self, object: &mut Object, sites: &[&Site]) {
        let has_last =
            sites.iter().any(|site| site.hosts.is_empty() && !self.connection_policy(site).is_empty());
        let mut policies: Vec<Object> = sites
            .iter()
            .map(|site| match self.connection_policy(site) {
                // It would have what the site for any host says.
                policy if policy.is_empty() && has_last => named_policy(site),
                policy => policy,
            })
            .filter(|policy| !policy.is_empty())
            .collect();
        let mut others = Object::new();
        others.set_some("default_sni", self.config.global.tls.default_sni.as_deref());
        others.set_some("fallback_sni", self.config.global.tls.fallback_sni.as_deref());
        let is_open = sites.iter().any(|site| site.hosts.is_empty());
        if (!policies.is_empty() || is_open || !others.is_empty() || self.https_words().contains(&"disable"))
            && !has_last
        {
            policies.push(others);
        }
        object.set_list("tls_connection_policies", policies);
        let mut https = Object::new();
        self.https_words().into_iter().for_each(|word| https.set(word, true));
        object.non_empty("automatic_https", https);
    }

    /// Plain HTTP, which automatic HTTPS must not take for something else.
    fn set_plain(&self, object: &mut Object, alike: &[&Server], sites: &[&Site]) {
        let global = &self.config.global;
        let is_at_port = |server: &Server, port: u16| matches!(server.listen, Listen::Tcp(address) if address.port() == port);
        let is_at = |port: u16| alike.iter().all(|server| is_at_port(server, port));
        let hosts: Vec<_> = sites.iter().flat_map(|site| site.hosts.iter().cloned()).collect();
        let mut https = Object::new();
        // Without any HTTPS, all servers say so or none.
        let is_off = self.config.servers.iter().all(|server| server.tls.is_none())
            && self.config.servers.iter().any(|server| is_at_port(server, global.tls.https_port));
        if is_off || is_at(global.tls.https_port) {
            https.set("disable", true);
        } else if !is_at(global.http_port) {
            https.set_list("skip", hosts);
        }
        object.non_empty("automatic_https", https);
    }

    /// What the file says of automatic HTTPS, by what is not there that would be there without it.
    fn https_words(&self) -> Vec<&'static str> {
        let secured = || self.config.servers.iter().filter(|server| server.tls.is_some());
        let is_bare = |site: &Site| {
            let is_shared = site.tls.as_ref().is_some_and(|tls| tls.source == CertificateSource::Shared);
            is_shared && site.hosts.iter().any(|host| !self.is_covered(host))
        };
        let has_redirects = self.config.servers.iter().flat_map(|server| &server.sites).any(is_redirect)
            || self.config.servers.iter().any(|server| server.purpose == Purpose::Redirects);
        let wants = secured().any(|server| {
            matches!(server.listen, Listen::Tcp(_))
                && server.sites.iter().any(|site| !self.is_served_plainly(site))
        });
        let mut words = Vec::new();
        if wants && !has_redirects {
            words.push("disable_redirects");
        }
        if secured().flat_map(|server| &server.sites).any(is_bare) {
            words.push("disable_certificates");
        }
        words
    }

    /// Whether each host of the site has one of plain HTTP, so that nothing would be redirected.
    fn is_served_plainly(&self, site: &Site) -> bool {
        let port = self.config.global.http_port;
        let plain = self.config.servers.iter().filter(|server| {
            server.tls.is_none() && matches!(server.listen, Listen::Tcp(address) if address.port() == port)
        });
        let sites: Vec<_> = plain.flat_map(|server| &server.sites).collect();
        let covers = |pattern: &String, host: &String| {
            let parent = pattern.strip_prefix("*.");
            pattern == host
                || parent.is_some_and(|parent| host.split_once('.').is_some_and(|(_, rest)| rest == parent))
        };
        match &site.hosts[..] {
            [] => sites.iter().any(|plain| plain.hosts.is_empty()),
            hosts => hosts
                .iter()
                .all(|host| sites.iter().flat_map(|plain| &plain.hosts).any(|own| covers(own, host))),
        }
    }

    fn connection_policy(&self, site: &Site) -> Object {
        let Some(tls) = &site.tls else { return Object::new() };
        let SiteTls { source: _, key_type: _, versions, ciphers, curves, alpn, client_auth } = tls;
        let mut policy = Object::new();
        if let Some((pairs, _)) = files(site) {
            let all = self.pairs();
            let tags = pairs.iter().filter_map(|pair| all.iter().position(|known| *known == pair)).map(tag);
            let mut selection = Object::new();
            selection.set_list("any_tag", tags);
            policy.non_empty("certificate_selection", selection);
        }
        set_versions(&mut policy, *versions);
        policy.set_list("cipher_suites", ciphers.iter().map(|suite: &CipherSuite| suite.name()));
        policy.set_list("curves", curves.iter().map(|curve: &Curve| curve.name()));
        policy.set_list("alpn", alpn.iter().cloned());
        policy.set_some("client_authentication", client_auth.as_ref().map(client_authentication));
        let is_managed = !matches!(tls.source, CertificateSource::Files { .. } | CertificateSource::Shared);
        let covered = is_managed && site.hosts.iter().any(|host| self.is_covered(host));
        if (!policy.is_empty() || covered) && !site.hosts.is_empty() {
            policy.set("match", names(site));
        }
        if site.hosts.is_empty() && !policy.is_empty() {
            policy.set_some("default_sni", self.config.global.tls.default_sni.as_deref());
            policy.set_some("fallback_sni", self.config.global.tls.fallback_sni.as_deref());
        }
        policy
    }
}

/// A policy for the names of a site, without any option.
fn named_policy(site: &Site) -> Object {
    let mut policy = Object::new();
    if !site.hosts.is_empty() {
        policy.set("match", names(site));
    }
    policy
}

fn names(site: &Site) -> Object {
    let mut names = Object::new();
    names.set("sni", site.hosts.clone());
    names
}

/// Whether the site does nothing but redirect to HTTPS, as one does that the file says nothing of.
pub(crate) fn is_redirect(site: &Site) -> bool {
    let Site { hosts: _, tls: None, routes, error_routes, access_logs } = site else { return false };
    let [Route { group: None, matchers, handler: Handler::Redirect { to, status } }] = &routes[..] else {
        return false;
    };
    let begins = matches!(to.0.first(), Some(Part::Text(text)) if text.starts_with("https://"));
    let ends = to.0.last() == Some(&Part::Placeholder("http.request.uri".into()));
    begins
        && ends
        && to.0.len() <= 4
        && matchers.is_empty()
        && error_routes.is_empty()
        && access_logs.is_empty()
        && *status == Template::text("308")
}

fn set_versions(policy: &mut Object, versions: TlsVersions) {
    let TlsVersions { min, max } = versions;
    if min == TlsVersion::Tls13 {
        policy.set("protocol_min", "tls1.3");
    }
    if max == TlsVersion::Tls12 {
        policy.set("protocol_max", "tls1.2");
    }
}

fn client_authentication(auth: &ClientAuth) -> Object {
    let ClientAuth { mode, trusted_cas, trusted_leaves, other_cas, inline_leaves } = auth;
    let has_cas = !trusted_cas.is_empty() || !other_cas.is_empty();
    let has_leaves = !trusted_leaves.is_empty() || !inline_leaves.is_empty();
    let usual =
        if has_cas || has_leaves { ClientAuthMode::RequireAndVerify } else { ClientAuthMode::Require };
    let mut object = Object::new();
    if *mode != usual || !(has_cas || has_leaves) {
        object.set("mode", mode_name(*mode));
    }
    object.set_some("ca", trust_pool(trusted_cas, other_cas));
    if !trusted_leaves.is_empty() {
        object.set("verifiers", vec![leaf_verifier(trusted_leaves).build()]);
    }
    object.set_list("trusted_leaf_certs", inline_leaves.iter().cloned());
    object
}

/// Where trusted CAs come from: one source, or several together.
fn trust_pool(files: &[PathBuf], others: &[TrustSource]) -> Option<Object> {
    let mut sources = Vec::new();
    if !files.is_empty() {
        sources.push(pem_files(files));
    }
    let inline = others.iter().filter_map(|source| match source {
        TrustSource::Inline(certificate) => Some(certificate.clone()),
        TrustSource::System | TrustSource::LocalRoot => None,
    });
    let inline: Vec<_> = inline.collect();
    if !inline.is_empty() {
        let mut object = Object::of_kind("provider", "inline");
        object.set("trusted_ca_certs", inline);
        sources.push(object);
    }
    if others.contains(&TrustSource::System) {
        sources.push(Object::of_kind("provider", "system"));
    }
    if others.contains(&TrustSource::LocalRoot) {
        let mut object = Object::of_kind("provider", "pki_root");
        object.set("authority", vec!["local"]);
        sources.push(object);
    }
    if sources.len() < 2 {
        return sources.pop();
    }
    let mut combined = Object::of_kind("provider", "combined");
    combined.set_list("sources", sources);
    Some(combined)
}

fn leaf_verifier(files: &[PathBuf]) -> Object {
    let mut loader = Object::of_kind("loader", "file");
    loader.set_list("files", files.iter().map(|file| super::path(file)));
    let mut verifier = Object::of_kind("verifier", "leaf");
    verifier.set("leaf_certs_loaders", vec![loader.build()]);
    verifier
}

fn mode_name(mode: ClientAuthMode) -> &'static str {
    match mode {
        ClientAuthMode::Request => "request",
        ClientAuthMode::Require => "require",
        ClientAuthMode::VerifyIfGiven => "verify_if_given",
        ClientAuthMode::RequireAndVerify => "require_and_verify",
    }
}
