//! Whether `confine` can be carried out here, and what it would break.

use crate::machine::{Directory, Purpose};
use crate::{Finding, Machine};
use regent_config::{Config, Confine, Confinement, Enforcement, Programs};

pub(super) fn check(config: &Config, machine: &Machine, findings: &mut Vec<Finding>) {
    let Confine::Asked(confinement) = &config.global.php.confine else { return };
    check_kernel(confinement, machine, findings);
    check_mailers(confinement, machine, findings);
    check_directories(confinement, machine, findings);
}

fn check_kernel(confinement: &Confinement, machine: &Machine, findings: &mut Vec<Finding>) {
    let kernel = machine.kernel;
    let has_files = confinement.read.is_some() || confinement.write.is_some();
    let missing: Vec<&str> = [
        (has_files && !kernel.limits_files, "files (Landlock of Linux 5.19)"),
        (confinement.write.is_some() && !kernel.limits_truncation, "truncation (Landlock of Linux 6.2)"),
        (!kernel.limits_signals, "signals (Landlock of Linux 6.12)"),
        (!kernel.filters_calls, "system calls (seccomp)"),
    ]
    .into_iter()
    .filter_map(|(is_missing, what)| is_missing.then_some(what))
    .collect();
    if missing.is_empty() {
        return;
    }
    let what = format!("`confine`: this kernel does not limit {}", missing.join(", "));
    findings.push(match confinement.enforcement {
        Enforcement::Strict => Finding::problem(
            "confine",
            what,
            "With `strict` engines that cannot be confined do not start.",
            "Use a newer kernel, switch Landlock on (`lsm=landlock,…` of the kernel's command line), or leave `strict` out.",
        ),
        Enforcement::BestEffort => Finding::advice(
            "confine",
            what,
            "Scripts are kept from less than the configuration says.",
            "Use a newer kernel, or switch Landlock on (`lsm=landlock,…` of the kernel's command line).",
        ),
    });
}

fn check_mailers(confinement: &Confinement, machine: &Machine, findings: &mut Vec<Finding>) {
    if let (Programs::Allowed, Some(mailer)) = (confinement.programs, machine.set_id_mailers.first()) {
        findings.push(Finding::advice(
            "confine_mail",
            format!(
                "`confine` takes the rights away that {} has by its set-user-ID or set-group-ID bit",
                mailer.display()
            ),
            "mail() fails where that program needs them, as those of Postfix and Exim do.",
            "Send mail over SMTP, have a mailer without such bits in `sendmail_path` (msmtp), or leave `confine` out.",
        ));
    }
}

fn check_directories(confinement: &Confinement, machine: &Machine, findings: &mut Vec<Finding>) {
    let Some(write) = &confinement.write else { return };
    let is_open = |directory: &Directory| {
        directory.path.starts_with(&machine.temporary_files)
            || write.iter().any(|path| directory.path.starts_with(path))
    };
    let of_php = machine
        .directories
        .iter()
        .filter(|directory| matches!(directory.purpose, Purpose::Sessions | Purpose::Uploads));
    for directory in of_php.filter(|directory| !is_open(directory)) {
        findings.push(Finding::problem(
            "confine_directory",
            format!("`confine` keeps PHP from writing to {}", directory.path.display()),
            "php.ini has sessions or uploads kept there: nobody stays logged in, or uploads are lost.",
            format!("Name it in `confine {{ write {} }}`.", directory.path.display()),
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{config, machine, words};
    use super::*;
    use crate::machine::{Kernel, WriteState};

    fn of(confine: &str, machine: &Machine) -> String {
        let config = config(&format!(
            "{{\n\tregent {{\n\tconfine {confine}\n\t}}\n}}\nhttp://:8080 {{\n\tphp_server\n}}\n"
        ));
        words(|found| check(&config, machine, found))
    }

    #[test]
    fn a_kernel_that_cannot_is_told_of() {
        assert_eq!(of("", &machine()), "");
        let old = Kernel {
            limits_files: false,
            limits_truncation: false,
            limits_signals: false,
            filters_calls: true,
        };
        let old = Machine { kernel: old, ..machine() };
        assert_eq!(of("off", &old), "");
        let found = of("", &old);
        assert!(found.starts_with("Advice: `confine`: this kernel does not limit signals"), "{found}");
        let found = of("{\nwrite /tmp\nstrict\n}", &old);
        assert!(found.starts_with("Problem: `confine`: this kernel does not limit files"), "{found}");
    }

    #[test]
    fn mailers_that_lose_their_rights_are_told_of() {
        let machine = Machine { set_id_mailers: vec!["/usr/sbin/postdrop".into()], ..machine() };
        assert!(of("", &machine).contains("/usr/sbin/postdrop"));
        assert_eq!(of("{\nexec off\n}", &machine), "");
        assert_eq!(of("off", &machine), "");
    }

    #[test]
    fn directories_of_php_have_to_be_open() {
        let sessions = |path: &str| Directory {
            path: path.into(),
            purpose: Purpose::Sessions,
            state: WriteState::Writable,
            in_memory: false,
            free: None,
        };
        let with = |path: &str| Machine { directories: vec![sessions(path)], ..machine() };
        let found = of("{\nwrite /usr\n}", &with("/var/lib/php"));
        assert!(found.contains("keeps PHP from writing to /var/lib/php"), "{found}");
        for open in ["/usr/share", "/tmp/sessions"] {
            assert_eq!(of("{\nwrite /usr\n}", &with(open)), "");
        }
        assert_eq!(of("", &with("/var/lib/php")), "");
    }
}
