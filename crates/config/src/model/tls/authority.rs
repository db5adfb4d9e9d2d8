//! `pki`: what the local CA is like.

use super::CertificateFiles;
use serde::Serialize;
use std::time::Duration;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct LocalCa {
    /// Common names of certificates that are made. `None`: Regent's.
    pub root_name: Option<String>,
    pub intermediate_name: Option<String>,
    /// `None`: 7 days.
    pub intermediate_lifetime: Option<Duration>,
    /// A root of somebody else's. `None`: one is made.
    pub root: Option<CertificateFiles>,
}

impl LocalCa {
    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}
