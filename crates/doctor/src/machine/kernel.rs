//! What the kernel can keep PHP from, and what would lose rights by that.

use crate::php::PhpFacts;
use landlock::{AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetError, Scope};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Of a file's mode: set-user-ID and set-group-ID.
const SET_ID: u32 = 0o6000;

/// What `confine` needs of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kernel {
    pub limits_files: bool,
    pub limits_truncation: bool,
    pub limits_signals: bool,
    pub filters_calls: bool,
}

impl Kernel {
    pub fn read() -> Self {
        Self {
            // The first with which files can be moved as before.
            limits_files: can(|ruleset| ruleset.handle_access(AccessFs::Refer)),
            limits_truncation: can(|ruleset| ruleset.handle_access(AccessFs::Truncate)),
            limits_signals: can(|ruleset| ruleset.scope(Scope::Signal)),
            filters_calls: Path::new("/proc/sys/kernel/seccomp/actions_avail").exists(),
        }
    }
}

/// Rules are made, and nobody is bound by them.
fn can(handle: impl FnOnce(Ruleset) -> Result<Ruleset, RulesetError>) -> bool {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    handle(ruleset).and_then(Ruleset::create).is_ok()
}

/// Programs that `mail()` comes to and that have rights of their own: that of PHP's settings, and the one by which Postfix
/// takes mail.
pub fn set_id_mailers(php: Option<&PhpFacts>) -> Vec<PathBuf> {
    let Some(php) = php else { return Vec::new() };
    let program = php.value("sendmail_path").and_then(|command| command.split_whitespace().next());
    let Some(program) = program.map(Path::new).filter(|program| program.is_file()) else { return Vec::new() };
    // It is Postfix's own sendmail that asks for the other.
    let postdrop = program.with_file_name("postdrop");
    [program.to_owned(), postdrop].into_iter().filter(|program| has_set_id(program)).collect()
}

fn has_set_id(program: &Path) -> bool {
    fs::metadata(program).is_ok_and(|found| found.mode() & SET_ID != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn mailers_with_rights_of_their_own_are_found() {
        let base = tempfile::tempdir().unwrap();
        let sendmail = base.path().join("sendmail");
        let make = |name: &str, mode| {
            fs::write(base.path().join(name), "").unwrap();
            fs::set_permissions(base.path().join(name), fs::Permissions::from_mode(mode)).unwrap();
        };
        let mut php = PhpFacts::default();
        php.settings.insert("sendmail_path".into(), Some(format!("{} -t -i", sendmail.display())));
        assert!(set_id_mailers(Some(&php)).is_empty(), "there is none");
        make("sendmail", 0o755);
        assert!(set_id_mailers(Some(&php)).is_empty());
        make("postdrop", 0o2755);
        assert_eq!(set_id_mailers(Some(&php)), [base.path().join("postdrop")]);
    }
}
