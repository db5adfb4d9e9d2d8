use super::*;
use crate::tests::write_program;
use std::fs;

/// A machine in a directory, with programs that write down how they were called.
struct Machine {
    directory: tempfile::TempDir,
}

const DEBIAN: &str = "usr/local/share/ca-certificates";

impl Machine {
    fn new() -> Self {
        let machine = Self { directory: tempfile::tempdir().unwrap() };
        for directory in ["bin", DEBIAN, "home/.mozilla/firefox/a.default", "home/.mozilla/firefox/empty"] {
            fs::create_dir_all(machine.path(directory)).unwrap();
        }
        fs::write(machine.path("home/.mozilla/firefox/a.default/cert9.db"), "").unwrap();
        let made = rcgen::generate_simple_self_signed(["root".to_owned()]).unwrap();
        fs::write(machine.path("root.crt"), made.cert.pem()).unwrap();
        machine
    }

    fn path(&self, path: &str) -> PathBuf {
        self.directory.path().join(path)
    }

    fn program(&self, name: &str, body: &str) -> &Self {
        let path = self.path("bin").join(name);
        let calls = self.path("calls");
        write_program(&path, &format!("#!/bin/sh\necho {name} \"$@\" >> {}\n{body}\n", calls.display()));
        self
    }

    fn calls(&self) -> String {
        fs::read_to_string(self.path("calls")).unwrap_or_default()
    }

    fn stores(&self) -> TrustStores {
        let root = self.directory.path().to_owned();
        TrustStores { root, home: Some(self.path("home")), path: self.path("bin").into_os_string() }
    }

    fn outcomes(&self, report: Result<TrustReport, Error>) -> Vec<TrustOutcome> {
        report.unwrap().stores.into_iter().map(|(_, outcome)| outcome).collect()
    }

    fn installed(&self) -> usize {
        fs::read_dir(self.path(DEBIAN)).unwrap().count()
    }
}

#[test]
fn what_is_installed_is_removed() {
    use TrustOutcome::{Absent, Installed, NotInstalled, Removed};
    let machine = Machine::new();
    machine.program("update-ca-certificates", "").program("certutil", "");
    let stores = machine.stores();
    let root = machine.path("root.crt");

    assert_eq!(machine.outcomes(stores.install(&root)), [Installed, Absent, Installed]);
    assert_eq!(machine.installed(), 1);
    assert!(machine.calls().contains("certutil -A -t C,, -n regent-local-authority-"), "{}", machine.calls());
    assert_eq!(machine.outcomes(stores.uninstall(&root)), [Removed, Absent, Removed]);
    assert_eq!(machine.installed(), 0);
    assert_eq!(machine.calls().matches("update-ca-certificates").count(), 2);

    machine.program("certutil", "exit 255");
    assert_eq!(machine.outcomes(stores.uninstall(&root)), [NotInstalled, Absent, NotInstalled]);
}

#[test]
fn a_store_that_fails_leaves_the_others_alone_and_says_why() {
    let machine = Machine::new();
    machine.program("update-ca-certificates", "echo no disk >&2; exit 3").program("certutil", "");
    let report = machine.stores().install(&machine.path("root.crt")).unwrap();
    assert!(report.has_failed());
    assert_eq!(report.stores[2].1, TrustOutcome::Installed);
    assert!(
        report.to_string().contains("failed: update-ca-certificates: exit status: 3: no disk"),
        "{report}"
    );
}

#[test]
fn without_the_program_of_a_store_nothing_is_left_in_it() {
    let machine = Machine::new();
    let report = machine.stores().install(&machine.path("root.crt")).unwrap();
    assert!(report.to_string().contains("failed: update-ca-certificates is not installed"), "{report}");
    assert_eq!(machine.installed(), 0);
}

#[test]
fn a_missing_certutil_is_said_with_its_package() {
    let machine = Machine::new();
    machine.program("update-ca-certificates", "");
    let report = machine.stores().install(&machine.path("root.crt")).unwrap();
    assert_eq!(report.stores[0].1, TrustOutcome::Installed);
    assert!(report.to_string().contains("certutil is not installed (package libnss3-tools"), "{report}");
}

#[test]
fn a_root_that_is_none_is_an_error() {
    let machine = Machine::new();
    fs::write(machine.path("root.crt"), "nonsense").unwrap();
    let error = machine.stores().install(&machine.path("root.crt")).unwrap_err().to_string();
    assert!(error.contains("root.crt holds no certificate"), "{error}");
}
