//! The private keys of certificates, and whether PHP may read them.

use super::modes::{READ, SEARCH, permits};
use regent_config::{CertificateSource, Config, EngineUser};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// How deep Caddy's layout of a storage has keys: `certificates/ISSUER/NAME/NAME.key`.
const DEPTH: usize = 3;
/// A storage of a hundred thousand names is not read to the end.
const MOST: usize = 10_000;

/// A file with a private key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    pub path: PathBuf,
    /// By the modes of the file and of the directories above; access control lists are not looked at.
    pub is_open_to_php: bool,
}

/// Those that sites name, and those in the storage, as far as who asks may look. `user`: whom PHP runs as; `None`: as the
/// server, which can read them all.
pub fn read(config: &Config, user: Option<&EngineUser>) -> Vec<Key> {
    let sites = config.servers.iter().flat_map(|server| &server.sites);
    let named = sites.filter_map(|site| match &site.tls.as_ref()?.source {
        CertificateSource::Files { pairs, .. } => Some(pairs.iter().map(|pair| pair.key.clone())),
        _ => None,
    });
    let mut paths: BTreeSet<PathBuf> = named.flatten().filter(|path| path.exists()).collect();
    collect(&config.global.tls.storage, DEPTH, &mut paths);
    paths
        .into_iter()
        .map(|path| Key { is_open_to_php: user.is_none_or(|user| may_read(&path, user)), path })
        .collect()
}

fn collect(directory: &Path, depth: usize, keys: &mut BTreeSet<PathBuf>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if keys.len() >= MOST {
            return;
        }
        if path.extension().is_some_and(|ending| ending == "key") {
            keys.insert(path);
        } else if depth > 0 && path.is_dir() && !path.is_symlink() {
            collect(&path, depth - 1, keys);
        }
    }
}

fn may_read(key: &Path, user: &EngineUser) -> bool {
    // What a link leads to is what is read.
    let Ok(key) = key.canonicalize() else { return false };
    permits(&key, user, READ) && key.ancestors().skip(1).all(|directory| permits(directory, user, SEARCH))
}

#[cfg(test)]
mod tests {
    use super::*;
    use regent_config::UserWish;
    use std::os::unix::fs::{PermissionsExt, chown};

    fn close(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_key_is_open_if_it_and_all_directories_above_are() {
        let base = tempfile::tempdir().unwrap();
        let directory = base.path().join("certificates/ca/example.com");
        fs::create_dir_all(&directory).unwrap();
        let file = directory.join("example.com.key");
        fs::write(&file, "").unwrap();
        let text = format!("{{\nstorage file_system {}\n}}\n:80 {{\n}}\n", base.path().display());
        let environment = regent_config::Environment { variables: [].into(), current_dir: "/".into() };
        let config = regent_config::parse("Caddyfile", &text, Path::new("/"), &environment).unwrap().config;
        let stranger = EngineUser {
            name: "web".into(),
            uid: 4321,
            gid: 4321,
            group: None,
            home: None,
            wish: UserWish::Firm,
        };
        let open = |user: Option<&EngineUser>| {
            let keys = read(&config, user);
            assert_eq!(keys.iter().map(|key| key.path.as_path()).collect::<Vec<_>>(), [file.as_path()]);
            keys[0].is_open_to_php
        };
        assert!(open(None));
        for (of_base, of_file, expected) in
            [(0o755, 0o644, true), (0o700, 0o644, false), (0o755, 0o600, false), (0o711, 0o604, true)]
        {
            close(base.path(), of_base);
            close(&file, of_file);
            assert_eq!(open(Some(&stranger)), expected, "{of_base:o} {of_file:o}");
        }
        // Only root can give it away.
        if chown(&file, Some(4321), None).is_ok() {
            close(&file, 0o600);
            assert!(open(Some(&stranger)));
        }
    }
}
