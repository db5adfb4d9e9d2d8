//! Limits of the kernel and of the process.

use crate::{Finding, Machine};

/// Below that a busy site runs out of connections.
const LEAST_OPEN_FILES: u64 = 16_384;
/// What each of the server's sockets asks for.
const BACKLOG: u64 = 4096;

pub(super) fn check(machine: &Machine, findings: &mut Vec<Finding>) {
    if machine.open_files < LEAST_OPEN_FILES {
        findings.push(Finding::advice(
            "open_files",
            format!("no more than {} files may be open", machine.open_files),
            "Each connection is one, and each file that is sent; beyond the limit, connections wait.",
            "Raise the hard limit: LimitNOFILE=1048576 in the systemd unit, --ulimit nofile=… of a container.",
        ));
    }
    if let Some(somaxconn) = machine.somaxconn.filter(|somaxconn| *somaxconn < BACKLOG) {
        findings.push(Finding::advice(
            "somaxconn",
            format!("net.core.somaxconn is {somaxconn}"),
            "When many clients connect at once, those beyond it have to try again, a second later.",
            "Set `net.core.somaxconn = 4096` in /etc/sysctl.d (in a container: --sysctl).",
        ));
    }
    if machine.transparent_hugepages.as_deref() == Some("always") {
        findings.push(Finding::advice(
            "transparent_hugepages",
            "transparent huge pages are always on",
            "Threads take more memory than they use, and stall while the kernel makes huge pages.",
            "Write `madvise` to /sys/kernel/mm/transparent_hugepage/enabled, at boot by transparent_hugepage=madvise.",
        ));
    }
    if machine.overcommit == Some(2) {
        findings.push(Finding::advice(
            "overcommit",
            "vm.overcommit_memory is 2",
            "Stacks and shared memory count as used in full, so that threads or engines cannot be started though there is \
             memory.",
            "Set `vm.overcommit_memory = 0` in /etc/sysctl.d.",
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{machine, words};
    use super::*;

    #[test]
    fn each_limit_is_found_alone() {
        for (changed, expected) in [
            (Machine { open_files: 1024, ..machine() }, "no more than 1024 files"),
            (Machine { somaxconn: Some(128), ..machine() }, "somaxconn is 128"),
            (
                Machine { transparent_hugepages: Some("always".into()), ..machine() },
                "huge pages are always on",
            ),
            (Machine { overcommit: Some(2), ..machine() }, "overcommit_memory is 2"),
        ] {
            let found = words(|found| check(&changed, found));
            assert!(found.contains(expected) && !found.contains('\n'), "{found}");
        }
        let unknown = Machine { somaxconn: None, transparent_hugepages: None, overcommit: None, ..machine() };
        assert_eq!(words(|found| check(&unknown, found)), "");
    }
}
