//! What the configuration says of TLS, as the crate for it takes it.

use regent_config::{self as config, Config, InstallTrust, Listen, Server};
use regent_tls::{
    Acme, AuthorityOptions, CertificateFiles, CertificateSource, ChallengeKind, ClientAuth, ClientAuthMode,
    Compression, DnsChallenge, DnsHook, DnsProvider, DnsService, DnsUpdateServer, ExternalAccount, Internal,
    Issuance, KeyPairFiles, KeyType, OnDemand, Options, OrderLimit, Policy, ProtocolVersion, RedisAddress,
    RedisPlace, RedisSentinels, RedisServer, RedisStorage, RedisTls, Site, SiteTable, Tickets, Tls,
    TrustSource, TrustStores, TsigAlgorithm, TsigKey, ZeroSslKey,
};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What follows on a stream, by its name in ALPN, that is served; what is better for clients goes first. Nothing else is
/// ever offered.
const SPOKEN: [&str; 2] = ["h2", "http/1.1"];

/// The TLS of a server.
pub struct Https {
    /// `None`: no address has TLS, and nothing of it is touched.
    pub tls: Option<Tls>,
    /// By listening address; `None`: plain HTTP.
    pub tables: Vec<Option<Arc<SiteTable>>>,
}

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub enum HttpsError {
    #[error("TLS: {0}")]
    Tls(#[from] regent_tls::Error),
    #[error(transparent)]
    Sites(#[from] SiteErrors),
}

/// All that is wrong with the TLS of sites; never empty.
#[derive(Debug)]
pub struct SiteErrors(Vec<SiteError>);

/// What is wrong with the TLS of a site.
#[derive(Debug, thiserror::Error)]
#[error("TLS of {site} on {address}: {cause}")]
struct SiteError {
    site: String,
    address: String,
    cause: regent_tls::Error,
}

impl fmt::Display for SiteErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<_> = self.0.iter().map(SiteError::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for SiteErrors {}

impl Https {
    /// Blocks: it reads certificates, and makes those of the local CA.
    pub fn open(config: &Config) -> Result<Self, HttpsError> {
        if config.servers.iter().all(|server| server.tls.is_none()) {
            return Ok(Self { tls: None, tables: vec![None; config.servers.len()] });
        }
        let tls = Tls::open(tls_options(&config.global.tls))?;
        let (mut tables, mut errors) = (Vec::new(), Vec::new());
        for server in &config.servers {
            match server.tls.as_ref().map(|_| site_table(&tls, server)).transpose() {
                Ok(table) => tables.push(table),
                Err(of_server) => errors.extend(of_server),
            }
        }
        if !errors.is_empty() {
            return Err(SiteErrors(errors).into());
        }
        Ok(Self { tls: Some(tls), tables })
    }
}

/// What the global options say, for [`Tls::open`].
pub fn tls_options(global: &config::GlobalTls) -> Options {
    Options {
        storage: global.storage.clone(),
        redis: global.redis.as_ref().map(redis),
        default_sni: global.default_sni.clone(),
        fallback_sni: global.fallback_sni.clone(),
        tickets: Tickets::Stored,
        renew_interval: global.renew_interval,
        on_demand: OnDemand {
            ask: global.on_demand_ask.clone(),
            limit: global
                .on_demand_limit
                .map(|limit| OrderLimit { orders: limit.orders, interval: limit.interval }),
        },
        authority: authority(&global.local_ca),
    }
}

fn authority(ca: &config::LocalCa) -> AuthorityOptions {
    let pair = |files: &config::CertificateFiles| KeyPairFiles {
        certificate: files.certificate.clone(),
        key: files.key.clone(),
    };
    AuthorityOptions {
        root_name: ca.root_name.clone(),
        intermediate_name: ca.intermediate_name.clone(),
        intermediate_lifetime: ca.intermediate_lifetime,
        root: ca.root.as_ref().map(pair),
    }
}

fn redis(storage: &config::RedisStorage) -> RedisStorage {
    let key = storage.encryption_key.as_ref();
    RedisStorage {
        server: redis_server(&storage.server),
        key_prefix: storage.key_prefix.clone(),
        encryption_key: key.map(|key| key.0.as_bytes().try_into().expect("invariant: it has 32 bytes")),
        compression: match storage.compression {
            config::RedisCompression::None => Compression::None,
            config::RedisCompression::Flate => Compression::Flate,
            config::RedisCompression::Zlib => Compression::Zlib,
        },
    }
}

fn redis_server(server: &config::RedisServer) -> RedisServer {
    RedisServer {
        place: match &server.place {
            config::RedisPlace::Servers(addresses) => RedisPlace::OneOf(redis_addresses(addresses)),
            config::RedisPlace::Sentinels(sentinels) => RedisPlace::ToldBy(RedisSentinels {
                addresses: redis_addresses(&sentinels.addresses),
                primary: sentinels.master_name.clone(),
                username: sentinels.username.clone(),
                password: sentinels.password.as_ref().map(|password| password.0.clone()),
            }),
            config::RedisPlace::Cluster(addresses) => RedisPlace::Cluster(redis_addresses(addresses)),
        },
        username: server.username.clone(),
        password: server.password.as_ref().map(|password| password.0.clone()),
        database: server.database,
        timeout: server.timeout,
        tls: server.tls.as_ref().map(|verification| match verification {
            config::RedisTls::SystemRoots => RedisTls::SystemRoots,
            config::RedisTls::Roots(file) => RedisTls::Roots(file.clone()),
            config::RedisTls::Insecure => RedisTls::Insecure,
        }),
    }
}

fn redis_addresses(addresses: &[config::RedisAddress]) -> Vec<RedisAddress> {
    addresses.iter().map(|address| RedisAddress { host: address.host.clone(), port: address.port }).collect()
}

fn site_table(tls: &Tls, server: &Server) -> Result<Arc<SiteTable>, Vec<SiteError>> {
    let configured = || server.sites.iter().filter_map(|site| Some((site, site.tls.as_ref()?)));
    let sites: Vec<_> = configured()
        .map(|(site, tls)| Site {
            names: site.hosts.clone(),
            certificate: certificate(tls),
            policy: policy(tls, server),
            client_auth: tls.client_auth.as_ref().map(client_auth),
        })
        .collect();
    tls.site_table(&sites).map_err(|errors| {
        let named = |(index, cause): (usize, regent_tls::Error)| SiteError {
            site: site_name(&sites[index].names),
            address: listen_name(&server.listen),
            cause,
        };
        errors.0.into_iter().map(named).collect()
    })
}

fn site_name(hosts: &[String]) -> String {
    if hosts.is_empty() { "the site for every host".to_owned() } else { hosts.join(", ") }
}

fn listen_name(listen: &Listen) -> String {
    match listen {
        Listen::Tcp(address) => address.to_string(),
        Listen::Unix(socket) => format!("unix/{}", socket.path.display()),
        Listen::Descriptor(number) => format!("fd/{number}"),
    }
}

fn has_internal(config: &Config) -> bool {
    let sites = config.servers.iter().flat_map(|server| &server.sites);
    let mut sources = sites.filter_map(|site| Some(&site.tls.as_ref()?.source));
    sources.any(|source| matches!(source, config::CertificateSource::Internal { .. }))
}

/// Has this machine trust the root of the local CA, if a configuration that is in use from now on wants that anew.
pub fn trust_at_start(before: Option<&Config>, config: &Config, tls: Option<&Tls>) {
    if let Some(tls) = tls
        && wants_trust_anew(before, config)
    {
        install_root(tls.clone());
    }
}

/// Unless the configuration before it, with the same root, did too.
fn wants_trust_anew(before: Option<&Config>, config: &Config) -> bool {
    let wants =
        |config: &Config| config.global.tls.install_trust == InstallTrust::AtStart && has_internal(config);
    let root = |config: &Config| {
        let tls = &config.global.tls;
        (tls.storage.clone(), tls.redis.clone(), tls.local_ca.root.clone())
    };
    let has_done = |before: &Config| wants(before) && root(before) == root(config);
    wants(config) && !before.is_some_and(has_done)
}

/// Nothing waits for it: it runs programs of the system, and clients can do without.
fn install_root(tls: Tls) {
    tokio::task::spawn_blocking(move || {
        let report = tls.local_root().and_then(|root| TrustStores::of_this_process().install(&root));
        match report {
            Ok(report) if report.has_failed() => {
                let report = report.to_string();
                tracing::warn!(
                    report = report.trim_end(),
                    "the root of the local CA was not installed everywhere; `skip_install_trust` ends this attempt"
                );
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "the root of the local CA was not installed"),
        }
    });
}

fn certificate(tls: &config::SiteTls) -> CertificateSource {
    match &tls.source {
        config::CertificateSource::Internal { lifetime, issuance } => CertificateSource::Internal(Internal {
            lifetime: *lifetime,
            key_type: key_type(tls.key_type),
            issuance: self::issuance(*issuance),
        }),
        config::CertificateSource::Files { pairs, directories } => {
            let pairs = pairs.iter().cloned();
            CertificateSource::Files(CertificateFiles {
                pairs: pairs
                    .map(|pair| KeyPairFiles { certificate: pair.certificate, key: pair.key })
                    .collect(),
                directories: directories.clone(),
            })
        }
        config::CertificateSource::Shared => CertificateSource::Shared,
        config::CertificateSource::Acme { cas, issuance } => {
            let cas = cas.iter().map(|of_site| acme(of_site, key_type(tls.key_type))).collect();
            CertificateSource::Acme(cas, self::issuance(*issuance))
        }
    }
}

fn issuance(issuance: config::Issuance) -> Issuance {
    match issuance {
        config::Issuance::AtStart => Issuance::AtStart,
        config::Issuance::OnDemand => Issuance::OnDemand,
    }
}

/// As certmagic's DNSManager.
const PROPAGATION_TIMEOUT: Duration = Duration::from_secs(120);

fn acme(acme: &config::Acme, key_type: KeyType) -> Acme {
    let challenges =
        [(ChallengeKind::Http, acme.http_challenge), (ChallengeKind::TlsAlpn, acme.tls_alpn_challenge)];
    let is_enabled = |(_, challenge): &(_, config::Challenge)| *challenge == config::Challenge::Enabled;
    Acme {
        directory: acme.directory.clone(),
        test_directory: acme.test_directory.clone(),
        email: acme.email.clone(),
        eab: acme
            .eab
            .as_ref()
            .map(|eab| ExternalAccount { key_id: eab.key_id.clone(), mac_key: eab.mac_key.clone() }),
        zerossl_key: acme.zerossl_key.as_ref().map(|key| ZeroSslKey(key.0.clone())),
        trusted_roots: acme.trusted_roots.clone(),
        profile: acme.profile.clone(),
        key_type,
        challenges: challenges.into_iter().filter(is_enabled).map(|(kind, _)| kind).collect(),
        dns: acme.dns.as_ref().map(|dns| DnsChallenge {
            provider: dns_provider(dns),
            propagation_delay: acme.propagation_delay,
            propagation_timeout: Some(acme.propagation_timeout.unwrap_or(PROPAGATION_TIMEOUT))
                .filter(|timeout| !timeout.is_zero()),
            resolvers: acme.resolvers.clone(),
            override_domain: acme.dns_override_domain.clone(),
            ttl: acme.dns_ttl,
        }),
    }
}

fn dns_provider(dns: &config::DnsProvider) -> DnsProvider {
    match dns {
        config::DnsProvider::Exec { program, arguments } => {
            DnsProvider::Exec(DnsHook { program: program.clone(), arguments: arguments.clone() })
        }
        config::DnsProvider::Rfc2136 { host, port, key } => {
            let key = key.as_ref().map(tsig_key);
            DnsProvider::Rfc2136(DnsUpdateServer { host: host.clone(), port: *port, key })
        }
        config::DnsProvider::Hosted { service, options } => {
            DnsProvider::Hosted(DnsService { name: service.clone(), options: options.clone() })
        }
    }
}

fn tsig_key(key: &config::TsigKey) -> TsigKey {
    let algorithm = match key.algorithm {
        config::TsigAlgorithm::HmacSha1 => TsigAlgorithm::HmacSha1,
        config::TsigAlgorithm::HmacSha224 => TsigAlgorithm::HmacSha224,
        config::TsigAlgorithm::HmacSha256 => TsigAlgorithm::HmacSha256,
        config::TsigAlgorithm::HmacSha384 => TsigAlgorithm::HmacSha384,
        config::TsigAlgorithm::HmacSha512 => TsigAlgorithm::HmacSha512,
    };
    TsigKey { name: key.name.clone(), algorithm, secret: key.secret.clone() }
}

fn key_type(key_type: config::KeyType) -> KeyType {
    match key_type {
        config::KeyType::Ed25519 => KeyType::Ed25519,
        config::KeyType::P256 => KeyType::P256,
        config::KeyType::P384 => KeyType::P384,
        config::KeyType::Rsa2048 => KeyType::Rsa2048,
        config::KeyType::Rsa4096 => KeyType::Rsa4096,
    }
}

fn policy(tls: &config::SiteTls, server: &Server) -> Policy {
    let version = |version| match version {
        config::TlsVersion::Tls12 => ProtocolVersion::Tls12,
        config::TlsVersion::Tls13 => ProtocolVersion::Tls13,
    };
    let cipher = |cipher: &config::CipherSuite| {
        cipher.name().parse().expect("invariant: the model has IANA's names, as regent-tls")
    };
    let curve = |curve: &config::Curve| {
        curve.name().parse().expect("invariant: regent-tls has all curves of the model")
    };
    Policy {
        min_version: version(tls.versions.min),
        max_version: version(tls.versions.max),
        ciphers: tls.ciphers.iter().map(cipher).collect(),
        curves: tls.curves.iter().map(curve).collect(),
        alpn: alpn(tls, server),
    }
}

/// What is offered: what the site or else its server says, as far as it is spoken.
fn alpn(tls: &config::SiteTls, server: &Server) -> Vec<String> {
    let is_spoken = |name: &&str| match *name {
        "h2" => server.options.protocols.contains(&config::HttpProtocol::H2),
        _ => server.options.protocols.contains(&config::HttpProtocol::H1),
    };
    let spoken = SPOKEN.into_iter().filter(is_spoken);
    match tls.alpn.as_slice() {
        [] => spoken.map(str::to_owned).collect(),
        names => names.iter().filter(|name| SPOKEN.contains(&name.as_str())).cloned().collect(),
    }
}

fn client_auth(auth: &config::ClientAuth) -> ClientAuth {
    let mode = match auth.mode {
        config::ClientAuthMode::Request => ClientAuthMode::Request,
        config::ClientAuthMode::Require => ClientAuthMode::Require,
        config::ClientAuthMode::VerifyIfGiven => ClientAuthMode::VerifyIfGiven,
        config::ClientAuthMode::RequireAndVerify => ClientAuthMode::RequireAndVerify,
    };
    let source = |source: &config::TrustSource| match source {
        config::TrustSource::Inline(text) => TrustSource::Inline(text.clone()),
        config::TrustSource::System => TrustSource::System,
        config::TrustSource::LocalRoot => TrustSource::LocalRoot,
    };
    ClientAuth {
        mode,
        trusted_ca: auth.trusted_cas.clone(),
        trusted_leaves: auth.trusted_leaves.clone(),
        other_ca: auth.other_cas.iter().map(source).collect(),
        inline_leaves: auth.inline_leaves.clone(),
    }
}

#[cfg(test)]
mod tests;
