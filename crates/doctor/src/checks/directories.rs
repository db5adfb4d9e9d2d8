//! Whether what has to be written can be.

use crate::machine::{Directory, Purpose, WriteState};
use crate::{Finding, Machine};

/// Below that the disk is as good as full.
const LEAST_FREE: u64 = 256 << 20;

pub(super) fn check(machine: &Machine, findings: &mut Vec<Finding>) {
    for directory in &machine.directories {
        check_rights(directory, findings);
        check_space(directory, findings);
    }
}

fn check_rights(directory: &Directory, findings: &mut Vec<Finding>) {
    let state = match directory.state {
        WriteState::Writable | WriteState::CanBeMade => return,
        WriteState::Missing => "is not there, and is not made by itself",
        WriteState::Forbidden => "cannot be written to by its user",
    };
    let remedy = if directory.state == WriteState::Missing && directory.purpose == Purpose::Sessions {
        "Make it, for the server's user alone: PHP does not make it."
    } else {
        "Give it to the server's user (`user` of the `regent` block for what PHP writes), name another, or run `regent doctor` \
         as the server's user if that may write."
    };
    let what = format!("{}: {} {state}", name(directory.purpose), directory.path.display());
    findings.push(Finding::problem("directory", what, consequence(directory.purpose), remedy));
}

fn check_space(directory: &Directory, findings: &mut Vec<Finding>) {
    let path = directory.path.display();
    if directory.purpose == Purpose::Spool && directory.in_memory {
        findings.push(Finding::advice(
            "spool_in_memory",
            format!("{}: {path} is a tmpfs, and so is memory", name(directory.purpose)),
            "Large uploads and responses that wait there take the memory that they were to spare.",
            "Name a directory on a disk: `spool { directory /var/tmp }` in the `regent` block, or TMPDIR.",
        ));
    } else if let Some(free) = directory.free.filter(|free| *free < LEAST_FREE) {
        findings.push(Finding::problem(
            "disk",
            format!("{}: {path} has {} MiB left", name(directory.purpose), free >> 20),
            consequence(directory.purpose),
            "Make room on this disk, or name a directory on another.",
        ));
    }
}

fn name(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Certificates => "storage of certificates",
        Purpose::Log => "directory of a log",
        Purpose::Spool => "directory of the spool",
        Purpose::Sessions => "directory of PHP's sessions",
        Purpose::Uploads => "directory of PHP's uploads",
    }
}

fn consequence(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Certificates => {
            "Certificates cannot be kept: each start asks for new ones, until the CA refuses."
        }
        Purpose::Log => "The log is not written, or the server does not start.",
        Purpose::Spool => "Large uploads are refused with 507, and large responses break off.",
        Purpose::Sessions => "Nobody stays logged in.",
        Purpose::Uploads => "Uploaded files are lost.",
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{GIB, machine, words};
    use super::*;

    fn of(changed: Directory) -> String {
        words(|found| check(&Machine { directories: vec![changed], ..machine() }, found))
    }

    fn directory(purpose: Purpose, state: WriteState) -> Directory {
        Directory { path: "/d".into(), purpose, state, in_memory: false, free: Some(GIB) }
    }

    #[test]
    fn what_cannot_be_written_to_is_a_problem() {
        assert_eq!(of(directory(Purpose::Log, WriteState::Writable)), "");
        assert_eq!(of(directory(Purpose::Log, WriteState::CanBeMade)), "");
        let found = of(directory(Purpose::Certificates, WriteState::Forbidden));
        assert!(found.starts_with("Problem: storage of certificates: /d cannot be written to"), "{found}");
        let found = of(directory(Purpose::Sessions, WriteState::Missing));
        assert!(found.contains("is not there") && found.contains("PHP does not make it"), "{found}");
    }

    #[test]
    fn a_spool_in_memory_and_a_full_disk_are_told_of() {
        let full = Directory { free: Some(1 << 20), ..directory(Purpose::Uploads, WriteState::Writable) };
        assert!(of(full).contains("has 1 MiB left"));
        let spool = Directory { in_memory: true, ..directory(Purpose::Spool, WriteState::Writable) };
        assert!(of(spool).starts_with("Advice: directory of the spool: /d is a tmpfs"));
    }
}
