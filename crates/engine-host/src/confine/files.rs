//! Which files may be read and written, and whom signals reach: Landlock (landlock(7)).
//!
//! Landlock has rights to what is named, and no list of what is not: nothing can be taken out of a directory that is allowed.
//! Files that are open already, pipes, sockets and memory are not its business; neither is who connects to a Unix socket.

use landlock::{
    ABI, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use regent_wire::confine::{Confined, Limits};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What programs and libraries are made of, and what they ask the system for. Not `/run`, where secrets of containers are,
/// but for the files that names are looked up with.
const SYSTEM: &[&str] = &[
    "/bin",
    "/etc",
    "/gnu/store",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/proc",
    "/run/NetworkManager/resolv.conf",
    "/run/nscd",
    "/run/resolvconf",
    "/run/systemd/resolve",
    "/sbin",
    "/sys",
    "/usr",
    "/var/lib/ca-certificates",
];
/// Devices that everybody may write to. Of `/dev` as a whole, root's scripts would have the disks too.
const DEVICES: &[&str] = &[
    "/dev/full",
    "/dev/null",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/random",
    "/dev/shm",
    "/dev/tty",
    "/dev/urandom",
    "/dev/zero",
];

/// All that is asked of a kernel.
const ABI_OF_RIGHTS: ABI = ABI::V3;

/// Limits this thread and all that it makes, as far as the kernel can. `needs`: what this engine has to read.
pub(super) fn limit(limits: &Limits, needs: impl FnOnce() -> Vec<PathBuf>, confined: &mut Confined) {
    let scopes = can(|ruleset| ruleset.scope(Scope::Signal));
    let has_rules = can(|ruleset| ruleset.handle_access(AccessFs::Refer));
    let rules = has_rules.then(|| Rules::of(limits, needs)).filter(|rules| !rules.handled().is_empty());
    let absent = apply(rules.as_ref(), scopes);
    note(scopes, "no signals to other processes", "Linux 6.12", absent.as_ref().err(), confined);
    for (is_limited, words) in [
        (limits.read.is_some(), "reads only what is named"),
        (limits.write.is_some(), "writes only what is named"),
    ] {
        if is_limited {
            note(has_rules, words, "Linux 5.19", absent.as_ref().err(), confined);
        }
    }
    if limits.write.is_some() && has_rules && !can(|ruleset| ruleset.handle_access(AccessFs::Truncate)) {
        confined.missing.push("truncates only what is named (Landlock of Linux 6.2)".to_owned());
    }
    for path in absent.into_iter().flatten() {
        confined.missing.push(format!("{} (it is not there any more, so it is closed)", path.display()));
    }
}

fn note(is_there: bool, words: &str, since: &str, error: Option<&RulesetError>, confined: &mut Confined) {
    match error {
        _ if !is_there => confined.missing.push(format!("{words} (Landlock of {since})")),
        Some(error) => confined.missing.push(format!("{words} ({error})")),
        None => confined.enforced.push(words.to_owned()),
    }
}

/// Whether this kernel has it, and Landlock is switched on.
fn can(handle: impl FnOnce(Ruleset) -> Result<Ruleset, RulesetError>) -> bool {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    handle(ruleset).and_then(Ruleset::create).is_ok()
}

/// Returns the paths of the configuration that are not there.
fn apply(rules: Option<&Rules>, scopes: bool) -> Result<Vec<PathBuf>, RulesetError> {
    let mut ruleset = Ruleset::default();
    if scopes {
        ruleset = ruleset.scope(Scope::Signal)?;
    }
    if let Some(rules) = rules {
        ruleset = ruleset.handle_access(rules.handled())?;
    }
    if !scopes && rules.is_none() {
        return Ok(Vec::new());
    }
    let mut absent = Vec::new();
    let ruleset = match rules {
        Some(rules) => rules.add_to(ruleset.create()?, &mut absent)?,
        None => ruleset.create()?,
    };
    let status = ruleset.restrict_self()?;
    debug_assert_ne!(status.ruleset, RulesetStatus::NotEnforced);
    Ok(absent)
}

/// Who may do what.
struct Rules {
    /// Rights that nobody has but by a rule.
    read: BitFlags<AccessFs>,
    write: BitFlags<AccessFs>,
    readable: BTreeSet<PathBuf>,
    writable: BTreeSet<PathBuf>,
    /// Those of them that the configuration names.
    named: BTreeSet<PathBuf>,
}

impl Rules {
    fn of(limits: &Limits, needs: impl FnOnce() -> Vec<PathBuf>) -> Self {
        let rights = |limit: &Option<Vec<PathBuf>>, rights: BitFlags<AccessFs>| {
            limit.as_ref().map_or(BitFlags::EMPTY, |_| rights)
        };
        let named = |limit: &Option<Vec<PathBuf>>| limit.iter().flatten().cloned().collect::<BTreeSet<_>>();
        let paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<Vec<_>>();
        let mut readable = named(&limits.read);
        readable.extend(paths(SYSTEM));
        if limits.read.is_some() {
            readable.extend(needs());
        }
        let mut writable = named(&limits.write);
        writable.extend(paths(DEVICES));
        writable.insert(std::env::temp_dir());
        Self {
            read: rights(&limits.read, AccessFs::ReadFile | AccessFs::ReadDir),
            write: rights(&limits.write, AccessFs::from_write(ABI_OF_RIGHTS)),
            readable,
            writable,
            named: named(&limits.read).into_iter().chain(named(&limits.write)).collect(),
        }
    }

    /// To move a file elsewhere is a right that each ruleset takes, so this one gives it back where it can.
    fn handled(&self) -> BitFlags<AccessFs> {
        let limited = self.read | self.write;
        if limited.is_empty() { limited } else { limited | AccessFs::Refer }
    }

    fn add_to(
        &self,
        mut ruleset: RulesetCreated,
        absent: &mut Vec<PathBuf>,
    ) -> Result<RulesetCreated, RulesetError> {
        if self.write.is_empty() {
            ruleset = add(ruleset, Path::new("/"), AccessFs::Refer.into())?.0;
        }
        // What may be written may be read too.
        let rules = self
            .readable
            .iter()
            .map(|path| (path, self.read))
            .chain(self.writable.iter().map(|path| (path, self.read | self.write)));
        for (path, rights) in rules.filter(|(_, rights)| !rights.is_empty()) {
            let (next, is_there) = add(ruleset, path, rights)?;
            ruleset = next;
            if !is_there && self.named.contains(path) {
                absent.push(path.clone());
            }
        }
        Ok(ruleset)
    }
}

/// `false`: there is no such file.
fn add(
    ruleset: RulesetCreated,
    path: &Path,
    rights: BitFlags<AccessFs>,
) -> Result<(RulesetCreated, bool), RulesetError> {
    let Ok(opened) = PathFd::new(path) else { return Ok((ruleset, false)) };
    let rights = if path.is_dir() { rights } else { rights & AccessFs::from_file(ABI_OF_RIGHTS) };
    Ok((ruleset.add_rule(PathBeneath::new(opened, rights))?, true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use regent_wire::confine::{Grant, Shortfall};
    use std::fs;
    use std::io::ErrorKind;

    fn limits(read: Option<&Path>, write: Option<&Path>) -> Limits {
        let paths = |path: Option<&Path>| path.map(|path| vec![path.to_owned()]);
        Limits {
            read: paths(read),
            write: paths(write),
            namespaces: Grant::Allowed,
            programs: Grant::Allowed,
            shortfall: Shortfall::IsTold,
        }
    }

    /// In a thread of its own, to which alone the rules apply. `None`: this kernel has none.
    fn confined<T: Send + 'static>(
        limits: Limits,
        attempt: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        if !can(|ruleset| ruleset.handle_access(AccessFs::Truncate)) {
            println!("SKIPPED: this kernel has no Landlock, or too old a one");
            return None;
        }
        let attempt = move || {
            let mut confined = Confined::default();
            limit(&limits, Vec::new, &mut confined);
            let words: Vec<_> = confined.missing.iter().filter(|words| !words.contains("signals")).collect();
            assert!(words.is_empty(), "{words:?}");
            attempt()
        };
        Some(std::thread::spawn(attempt).join().unwrap())
    }

    /// Two directories, of which none is below that of temporary files, as a checkout may be.
    fn directories() -> tempfile::TempDir {
        let program = std::env::current_exe().unwrap();
        let beside = program.parent().unwrap();
        let is_temporary = beside.starts_with(std::env::temp_dir());
        let base = tempfile::tempdir_in(if is_temporary { Path::new("/var/tmp") } else { beside }).unwrap();
        for name in ["a", "b"] {
            fs::create_dir(base.path().join(name)).unwrap();
            fs::write(base.path().join(name).join("file"), name).unwrap();
        }
        base
    }

    fn kind<T>(result: std::io::Result<T>) -> Option<ErrorKind> {
        result.err().map(|error| error.kind())
    }

    #[test]
    fn what_is_not_named_cannot_be_read() {
        let base = directories();
        let (a, b) = (base.path().join("a"), base.path().join("b"));
        let Some(found) = confined(limits(Some(&a), None), move || {
            let denied = [kind(fs::read(b.join("file"))), kind(fs::read_dir(&b))];
            assert_eq!(denied, [Some(ErrorKind::PermissionDenied); 2]);
            assert_eq!(kind(fs::write(b.join("other"), "x")), None, "of writing nothing was said");
            assert_eq!(kind(fs::rename(b.join("other"), a.join("other"))), Some(ErrorKind::CrossesDevices));
            assert_eq!(kind(fs::rename(a.join("file"), b.join("moved"))), None);
            fs::read_to_string(a.join("other")).is_err() && fs::read("/etc/passwd").is_ok()
        }) else {
            return;
        };
        assert!(found);
    }

    #[test]
    fn what_is_not_named_cannot_be_written() {
        let base = directories();
        let (a, b) = (base.path().join("a"), base.path().join("b"));
        confined(limits(None, Some(&a)), move || {
            assert_eq!(fs::read_to_string(b.join("file")).unwrap(), "b");
            for denied in [
                kind(fs::write(b.join("file"), "x")),
                kind(fs::write(b.join("new"), "x")),
                kind(fs::remove_file(b.join("file"))),
                kind(fs::create_dir(b.join("directory"))),
                kind(fs::File::options().append(true).open(b.join("file"))),
            ] {
                assert_eq!(denied, Some(ErrorKind::PermissionDenied));
            }
            fs::write(a.join("new"), "x").unwrap();
            fs::create_dir(a.join("below")).unwrap();
            fs::rename(a.join("new"), a.join("below/new")).unwrap();
            fs::write(tempfile::NamedTempFile::new().unwrap().path(), "x").unwrap();
            fs::write("/dev/null", "x").unwrap();
        });
    }

    #[test]
    fn a_path_that_has_gone_is_told_of_and_the_rest_holds() {
        let base = directories();
        let gone = base.path().join("gone");
        let limits = limits(None, Some(&gone));
        let mut confined = Confined::default();
        std::thread::spawn(move || {
            limit(&limits, Vec::new, &mut confined);
            if can(|ruleset| ruleset.handle_access(AccessFs::Refer)) {
                assert!(confined.missing.iter().any(|words| words.contains("gone")), "{confined:?}");
                assert!(confined.enforced.contains(&"writes only what is named".to_owned()));
            }
        })
        .join()
        .unwrap();
    }
}
