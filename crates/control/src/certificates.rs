//! Certificates, in the words of the admin API and of the metrics.

use regent_admin::{Certificate, CertificateAuthority, CertificateSource, days_between};
use regent_metrics::CertificateGauge;
use regent_tls::{CertificateOrigin, CertificateState, LocalAuthority, Tls};
use std::collections::BTreeMap;
use std::time::SystemTime;

pub(crate) fn list(tls: Option<&Tls>) -> Vec<Certificate> {
    let now = SystemTime::now();
    tls.map(Tls::certificates).unwrap_or_default().into_iter().map(|state| certificate(state, now)).collect()
}

/// The local CA, if it is there.
pub(crate) fn authority(tls: Option<&Tls>) -> Option<CertificateAuthority> {
    let LocalAuthority { root, intermediate } = tls?.stored_local_authority()?;
    Some(CertificateAuthority {
        id: "local".to_owned(),
        // What Caddy calls it, whose storage it may be.
        name: "Caddy Local Authority".to_owned(),
        root_common_name: root.name,
        intermediate_common_name: intermediate.name,
        root_certificate: root.pem,
        intermediate_certificate: intermediate.pem,
    })
}

fn certificate(state: CertificateState, now: SystemTime) -> Certificate {
    Certificate {
        name: state.name,
        issuer: state.issuer,
        source: match state.source {
            CertificateOrigin::Files => CertificateSource::Files,
            CertificateOrigin::Internal => CertificateSource::Internal,
            CertificateOrigin::Acme => CertificateSource::Acme,
        },
        not_after: state.not_after,
        days_left: state.not_after.map(|end| days_between(now, end)),
        last_error: state.last_error,
        next_try: state.next_try,
    }
}

/// One for each name and source: Prometheus takes no series twice.
pub(crate) fn gauges(tls: Option<&Tls>) -> Vec<CertificateGauge> {
    let mut latest = BTreeMap::new();
    for state in tls.map(Tls::certificates).unwrap_or_default() {
        let Some(not_after) = state.not_after else { continue };
        let source = match state.source {
            CertificateOrigin::Files => "files",
            CertificateOrigin::Internal => "internal",
            CertificateOrigin::Acme => "acme",
        };
        let known = latest.entry((state.name, source)).or_insert(not_after);
        *known = not_after.max(*known);
    }
    let gauge = |((name, source), not_after)| CertificateGauge { name, source, not_after };
    latest.into_iter().map(gauge).collect()
}
