//! Certificates that somebody has to renew.

use crate::{Finding, Machine};
use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);
/// Time enough for whoever renews it.
const SOON: Duration = DAY.saturating_mul(14);

pub(super) fn check(machine: &Machine, findings: &mut Vec<Finding>) {
    for (file, expiry) in &machine.certificates {
        let file = file.display();
        match expiry {
            Err(reason) => findings.push(Finding::problem(
                "certificate",
                format!("a certificate cannot be read: {reason}"),
                "The server would not start.",
                "Name another file in `tls`, or give this one to the server's user; without `tls` certificates come by \
                 themselves.",
            )),
            Ok(expiry) => match expiry.duration_since(machine.now) {
                Err(_) => findings.push(Finding::problem(
                    "certificate",
                    format!("the certificate {file} has expired"),
                    "Browsers refuse to show the site.",
                    "Put a new one into this file: a running server takes it by itself.",
                )),
                Ok(left) if left < SOON => findings.push(Finding::advice(
                    "certificate",
                    format!("the certificate {file} expires in {} days", left.as_secs() / DAY.as_secs()),
                    "Browsers refuse to show the site then.",
                    "Put a new one into this file: a running server takes it by itself.",
                )),
                Ok(_) => {}
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{machine, words};
    use super::*;

    #[test]
    fn certificates_are_to_be_renewed_in_time() {
        let now = machine().now;
        let of = |expiry| {
            words(|found| {
                check(&Machine { certificates: vec![("/c.pem".into(), expiry)], ..machine() }, found)
            })
        };
        assert_eq!(of(Ok(now + DAY * 15)), "");
        assert!(of(Ok(now + DAY * 3)).starts_with("Advice: the certificate /c.pem expires in 3 days"));
        assert!(of(Ok(now - DAY)).starts_with("Problem: the certificate /c.pem has expired"));
        assert!(of(Err("cannot read /c.pem".into())).contains("cannot read /c.pem"));
    }
}
