//! What the configuration says of TLS, as the crate for it takes it.

use crate::StartError;
use regent_config::{self as config, Config, HttpProtocol, Server};
use regent_tls::{
    CertificateSource, ClientAuth, ClientAuthMode, Options, Policy, ProtocolVersion, Site, SiteTable,
    Tickets, Tls,
};
use std::sync::Arc;

/// The TLS of a server.
pub(crate) struct Https {
    /// `None`: no address has TLS, and nothing of it is touched.
    pub tls: Option<Tls>,
    /// By listening address; `None`: plain HTTP.
    pub tables: Vec<Option<Arc<SiteTable>>>,
}

impl Https {
    /// Blocks: it reads certificates, and makes those of the local CA.
    pub fn open(config: &Config) -> Result<Self, StartError> {
        if config.servers.iter().all(|server| server.tls.is_none()) {
            return Ok(Self { tls: None, tables: vec![None; config.servers.len()] });
        }
        let global = &config.global.tls;
        let tls = Tls::open(Options {
            storage: global.storage.clone(),
            default_sni: global.default_sni.clone(),
            tickets: Tickets::Stored,
        })?;
        let table = |server: &Server| match server.tls {
            Some(_) => tls.site_table(&sites(server)?).map(Some).map_err(StartError::from),
            None => Ok(None),
        };
        let tables = config.servers.iter().map(table).collect::<Result<_, _>>()?;
        Ok(Self { tls: Some(tls), tables })
    }
}

fn sites(server: &Server) -> Result<Vec<Site>, StartError> {
    let with_tls = server.sites.iter().filter_map(|site| site.tls.as_ref().map(|tls| (site, tls)));
    with_tls
        .map(|(site, tls)| {
            Ok(Site {
                names: site.hosts.clone(),
                certificate: certificate(&tls.source)?,
                policy: policy(tls, server)?,
                client_auth: tls.client_auth.as_ref().map(client_auth),
            })
        })
        .collect()
}

fn certificate(source: &config::CertificateSource) -> Result<CertificateSource, StartError> {
    match source {
        config::CertificateSource::Internal { .. } => Ok(CertificateSource::Internal),
        config::CertificateSource::Files { pairs, directories }
            if pairs.len() == 1 && directories.is_empty() =>
        {
            let files = pairs[0].clone();
            Ok(CertificateSource::Files { certificate: files.certificate, key: files.key })
        }
        _ => Err(StartError::CertificateSource),
    }
}

fn policy(tls: &config::SiteTls, server: &Server) -> Result<Policy, StartError> {
    let version = |version| match version {
        config::TlsVersion::Tls12 => ProtocolVersion::Tls12,
        config::TlsVersion::Tls13 => ProtocolVersion::Tls13,
    };
    Ok(Policy {
        min_version: version(tls.versions.min),
        max_version: version(tls.versions.max),
        alpn: alpn(tls, server),
        ..Policy::default()
    })
}

fn alpn(tls: &config::SiteTls, server: &Server) -> Vec<String> {
    if !tls.alpn.is_empty() {
        return tls.alpn.clone();
    }
    // What is better for the client goes first.
    let known = [(HttpProtocol::H2, "h2"), (HttpProtocol::H1, "http/1.1")];
    let spoken = known.into_iter().filter(|(protocol, _)| server.protocols.contains(protocol));
    spoken.map(|(_, name)| name.to_owned()).collect()
}

fn client_auth(auth: &config::ClientAuth) -> ClientAuth {
    let mode = match auth.mode {
        config::ClientAuthMode::Request => ClientAuthMode::Request,
        config::ClientAuthMode::Require => ClientAuthMode::Require,
        config::ClientAuthMode::VerifyIfGiven => ClientAuthMode::VerifyIfGiven,
        config::ClientAuthMode::RequireAndVerify => ClientAuthMode::RequireAndVerify,
    };
    ClientAuth { mode, trusted_ca: auth.trusted_cas.clone() }
}
