//! Directories that the server and PHP write to.

use super::modes::{SEARCH, WRITE, permits};
use crate::php::PhpFacts;
use regent_config::{Config, EngineUser, LogConfig, LogOutput};
use rustix::fs::{Access, FsWord, access, statfs, statvfs};
use std::path::{Path, PathBuf};

/// `f_type` of a tmpfs (statfs(2)).
const TMPFS: FsWord = 0x0102_1994;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directory {
    pub path: PathBuf,
    pub purpose: Purpose,
    pub state: WriteState,
    /// Its files are memory.
    pub in_memory: bool,
    /// Bytes that this user may still write; `None`: not known.
    pub free: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Certificates,
    Log,
    Spool,
    Sessions,
    Uploads,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteState {
    Writable,
    /// It is not there, but can be made.
    CanBeMade,
    /// It is not there, and this user cannot make it.
    Missing,
    /// It is there, but this user may not write to it.
    Forbidden,
}

/// Those that the configuration and PHP name.
pub fn read(config: &Config, php: Option<&PhpFacts>) -> Vec<Directory> {
    let global = &config.global;
    let temporary = std::env::temp_dir();
    let mut wanted =
        vec![(Purpose::Spool, global.php.spool.directory.clone().unwrap_or_else(|| temporary.clone()))];
    let sites = config.servers.iter().flat_map(|server| &server.sites);
    if sites.clone().any(|site| site.tls.is_some()) {
        wanted.push((Purpose::Certificates, global.tls.storage.clone()));
    }
    let of_server = std::iter::once(&global.log).chain(global.logs.iter().map(|log| &log.config));
    let logs = sites.flat_map(|site| &site.access_logs).chain(of_server);
    wanted.extend(logs.filter_map(log_directory).map(|path| (Purpose::Log, path)));
    if let Some(php) = php {
        let files = php.value("session.save_handler") == Some("files");
        wanted
            .extend(files.then(|| (Purpose::Sessions, php_directory(php, "session.save_path", &temporary))));
        wanted.push((Purpose::Uploads, php_directory(php, "upload_tmp_dir", &temporary)));
    }
    wanted.dedup();
    let php_user = config.global.php.user.as_ref();
    wanted.into_iter().map(|(purpose, path)| directory(path, purpose, php_user)).collect()
}

fn log_directory(log: &LogConfig) -> Option<PathBuf> {
    match &log.output {
        LogOutput::File(file) => file.path.parent().map(Path::to_owned),
        _ => None,
    }
}

/// The last part of a value such as `2;0600;/var/lib/sessions`.
fn php_directory(php: &PhpFacts, setting: &str, temporary: &Path) -> PathBuf {
    let value = php.value(setting).and_then(|value| value.rsplit(';').next());
    value.filter(|path| !path.is_empty()).map_or_else(|| temporary.to_owned(), PathBuf::from)
}

fn directory(path: PathBuf, purpose: Purpose, php_user: Option<&EngineUser>) -> Directory {
    // What is to be made lies where its nearest ancestor does.
    let existing = path.ancestors().find(|ancestor| ancestor.is_dir()).unwrap_or(Path::new("/")).to_owned();
    let writable = match php_user.filter(|_| matches!(purpose, Purpose::Sessions | Purpose::Uploads)) {
        Some(user) => permits(&existing, user, WRITE | SEARCH),
        None => access(&existing, Access::WRITE_OK | Access::EXEC_OK).is_ok(),
    };
    let state = match (existing == path, writable) {
        (true, true) => WriteState::Writable,
        (true, false) => WriteState::Forbidden,
        // PHP makes none of its directories.
        (false, true) if matches!(purpose, Purpose::Certificates | Purpose::Log) => WriteState::CanBeMade,
        (false, _) => WriteState::Missing,
    };
    let in_memory = statfs(&existing).is_ok_and(|system| system.f_type == TMPFS);
    let free = statvfs(&existing).ok().map(|system| system.f_bavail.saturating_mul(system.f_frsize));
    Directory { path, purpose, state, in_memory, free }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regent_config::UserWish;
    use std::fs;
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::fs::PermissionsExt;

    fn state(path: &Path, purpose: Purpose) -> WriteState {
        directory(path.to_owned(), purpose, None).state
    }

    #[test]
    fn a_directory_is_writable_or_can_be_made_by_who_makes_it() {
        let base = tempfile::tempdir().unwrap();
        assert_eq!(state(base.path(), Purpose::Sessions), WriteState::Writable);
        let new = base.path().join("a/b");
        assert_eq!(state(&new, Purpose::Log), WriteState::CanBeMade);
        assert_eq!(state(&new, Purpose::Sessions), WriteState::Missing);
        assert_eq!(state(Path::new("/proc/nothing"), Purpose::Spool), WriteState::Missing);
        assert!(directory(base.path().to_owned(), Purpose::Spool, None).free.is_some());
    }

    #[test]
    fn what_php_writes_has_to_be_open_to_its_user() {
        let base = tempfile::tempdir().unwrap();
        let own = base.path().metadata().unwrap();
        let user = |uid, gid| EngineUser {
            name: "web".into(),
            uid,
            gid,
            group: None,
            home: None,
            wish: UserWish::Firm,
        };
        let set_mode = |mode| fs::set_permissions(base.path(), fs::Permissions::from_mode(mode)).unwrap();
        for (mode, user, expected) in [
            (0o700, user(own.uid(), 0), true),
            (0o700, user(4321, 4321), false),
            (0o770, user(4321, own.gid()), true),
            (0o702, user(4321, 4321), false),
            (0o703, user(4321, 4321), true),
        ] {
            set_mode(mode);
            assert_eq!(permits(base.path(), &user, WRITE | SEARCH), expected, "{mode:o} {user:?}");
        }
        set_mode(0o700);
        let state = |purpose| directory(base.path().to_owned(), purpose, Some(&user(4321, 4321))).state;
        assert_eq!(state(Purpose::Sessions), WriteState::Forbidden);
        assert_eq!(state(Purpose::Log), WriteState::Writable, "which the server writes itself");
    }

    #[test]
    fn the_directory_of_sessions_is_the_last_part_of_its_setting() {
        let mut php = PhpFacts::default();
        let path = |php: &PhpFacts| php_directory(php, "session.save_path", Path::new("/tmp"));
        assert_eq!(path(&php), Path::new("/tmp"));
        php.settings.insert("session.save_path".into(), Some("2;0600;/var/lib/sessions".into()));
        assert_eq!(path(&php), Path::new("/var/lib/sessions"));
        php.settings.insert("session.save_path".into(), Some(String::new()));
        assert_eq!(path(&php), Path::new("/tmp"));
    }
}
