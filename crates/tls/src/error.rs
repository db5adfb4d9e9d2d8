//! What can be wrong with certificates, keys, the store and the options.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Each names the file or the option that it is about.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("{} is not valid PEM: {reason}", path.display())]
    Pem { path: PathBuf, reason: String },
    #[error("{} holds no certificate (no section BEGIN CERTIFICATE)", path.display())]
    NoCertificate { path: PathBuf },
    #[error("{} holds a certificate that cannot be used: {reason}", path.display())]
    BadCertificate { path: PathBuf, reason: String },
    #[error("{} holds no private key (no section BEGIN … PRIVATE KEY)", path.display())]
    NoKey { path: PathBuf },
    #[error("the private key in {} is encrypted; decrypt it first, as with `openssl pkey`", path.display())]
    EncryptedKey { path: PathBuf },
    #[error("the private key in {} cannot be used: {reason}", path.display())]
    BadKey { path: PathBuf, reason: String },
    #[error("the private key in {} does not belong to the certificate in {}", key.display(), certificate.display())]
    KeyMismatch { certificate: PathBuf, key: PathBuf },
    #[error("the root certificate of the local CA, {}, has expired; put a new one there, or remove it and its key to have one made", path.display())]
    RootExpired { path: PathBuf },
    #[error("the local CA cannot sign a certificate for {subject}: {reason}")]
    Sign { subject: String, reason: String },
    #[error("the certificates of the local CA have run out, and are being renewed")]
    Outlived,
    #[error("the lock {} is held by another process for more than {seconds} s", path.display())]
    Locked { path: PathBuf, seconds: u64 },
    #[error("the storage {url} cannot be used: {reason}")]
    Redis { url: String, reason: String },
    #[error("{key} cannot be used: {reason}")]
    RedisValue { key: String, reason: String },
    #[error("{name:?} is not a host name that a certificate can be for")]
    BadName { name: String },
    #[error("a certificate that is made or ordered is for names, and the site has none")]
    NoName,
    #[error("{} is in two sites of one listening address with different TLS settings", name_or_rest(name))]
    DuplicateName {
        /// Empty: that of all names without a site of their own.
        name: String,
    },
    #[error("no connection could be made with these TLS settings: {reason}")]
    Policy { reason: String },
    #[error("the settings for a public CA cannot be used: {reason}")]
    Acme { reason: String },
    #[error("`on_demand_tls` cannot ask {url:?}, which is no URL such as `http://localhost:5555/check`")]
    AskUrl { url: String },
    #[error(
        "client certificates are to be verified, but neither a trusted CA nor a trusted certificate is given"
    )]
    NothingTrusted,
    #[error(
        "no root certificate to verify servers with: install the system's CA certificates (package ca-certificates) {0}"
    )]
    NoRoots(String),
    #[error("there is no certificate: {} {} no .pem file", directories(.0), if .0.len() == 1 { "holds" } else { "hold" })]
    NoFiles(Vec<PathBuf>),
}

impl Error {
    pub(crate) fn read(path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Read { path: path.into(), source }
    }

    pub(crate) fn write(path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Write { path: path.into(), source }
    }
}

fn directories(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

fn name_or_rest(name: &str) -> String {
    if name.is_empty() { "the site without names".to_owned() } else { format!("{name:?}") }
}

/// All that is wrong with a list of sites, each with the index of its site in that list; never empty.
#[derive(Debug)]
pub struct SiteErrors(pub Vec<(usize, Error)>);

impl fmt::Display for SiteErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (_, error)) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for SiteErrors {}
