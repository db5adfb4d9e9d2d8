//! A collector of OpenTelemetry, and what is sent to it beside [traces](super::Traces).

use super::{Secret, as_text};
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;

/// What the environment says of metrics (`OTEL_…`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MetricsExport {
    #[serde(flatten)]
    pub collector: OtlpCollector,
    /// Between two times that all metrics are sent.
    pub interval: Duration,
}

/// Where a collector is, and how it is spoken to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OtlpCollector {
    pub endpoint: OtlpEndpoint,
    /// Of each request to it.
    pub headers: Vec<(String, Secret)>,
    pub compression: OtlpCompression,
    /// Of one request to it.
    pub timeout: Duration,
    /// PEM files of the roots that its certificate is verified with. `None`: those of the system.
    #[serde(serialize_with = "as_optional_text")]
    pub certificate: Option<PathBuf>,
    /// What it is shown if it asks for a certificate.
    pub client: Option<OtlpClientCertificate>,
    /// What is said of this server. No name occurs twice.
    pub resource: Vec<(String, String)>,
}

/// A URL, taken apart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OtlpEndpoint {
    pub is_https: bool,
    /// Without brackets.
    pub host: String,
    pub port: u16,
    /// With the query. Begins with a slash.
    pub path: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OtlpCompression {
    None,
    Gzip,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OtlpClientCertificate {
    #[serde(serialize_with = "as_text")]
    pub certificate: PathBuf,
    #[serde(serialize_with = "as_text")]
    pub key: PathBuf,
}

fn as_optional_text<S: serde::Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    path.as_ref().map(|path| path.display().to_string()).serialize(serializer)
}
