//! The site under load: its files, and the configurations and releases that follow each other.

use super::question::{ROUND, STATIC_FILES, Versions};
use crate::Setup;
use crate::apps::{copy_tree, fixture};
use crate::{native, process};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

/// The user of PHP and of the modules, where the server is root's.
const USER: &str = "nobody";
/// KiB of private memory that an engine may have (RLIMIT_DATA), far above what it needs.
const DATA_LIMIT: u32 = 1 << 20;
/// With `USER`, `ROUND` and `ENGINE` to be filled in.
const CADDYFILE: &str = include_str!("Caddyfile");
/// Attacks that are faults, too.
const ATTACKS: [&str; 3] = ["becomes_another.php", "writes_into_memory.php", "babbles.php"];

/// A site, and the rights of its PHP.
#[derive(Debug, Clone, Copy)]
pub struct Site {
    user: Option<&'static str>,
}

impl Site {
    /// Whose engines have the rights of the server.
    pub fn plain() -> Self {
        Self { user: None }
    }

    /// Whose engines have a user of their own, where the server is root's.
    pub fn confined() -> Self {
        Self { user: rustix::process::geteuid().is_root().then_some(USER) }
    }

    /// Whether the engines are not the server's user's.
    pub fn has_user(&self) -> bool {
        self.user.is_some()
    }

    /// With all files, to be started.
    pub fn setup(&self, versions: &Versions) -> Setup {
        let text = self.caddyfile(versions.round.newest(), 0);
        let setup = Setup::new().caddyfile(&text).env("XDG_DATA_HOME", "DIRECTORY/data");
        let setup = if self.has_user() { setup.for_every_user() } else { setup };
        copy_tree(&fixture("chaos"), &setup.root());
        for name in ATTACKS {
            let to = setup.root().join("faults").join(name);
            fs::copy(fixture("attacks").join(name), to).expect("the directory is ours");
        }
        let files = setup.root().join("static");
        fs::create_dir(&files).expect("the directory is ours");
        for number in 0..STATIC_FILES {
            fs::write(files.join(format!("{number}.txt")), format!("static {number}")).expect("it is ours");
        }
        write_text(&setup.root(), versions.text.newest());
        release(setup.directory(), versions.release.newest());
        let setup = setup.module("server", &native::fixture("server.c"), &[]);
        setup.module("troubles", &native::fixture("troubles.c"), &[])
    }

    /// The same, with engines whose memory has a bound, so that all of it can be used up.
    pub fn bounded_setup(&self, versions: &Versions) -> Setup {
        let setup = self.setup(versions);
        let script = setup.directory().join("limited-php");
        let engine = match self.user {
            Some(_) => setup.directory().join("engine/regent-php"),
            None => crate::server::program().with_file_name("regent-php"),
        };
        let text = format!("#!/bin/sh\nulimit -d {DATA_LIMIT}\nexec {} \"$@\"\n", engine.display());
        process::write_program(&script, &text);
        setup.env("REGENT_ENGINE", "DIRECTORY/limited-php")
    }

    /// The configuration of this round, with the settings of PHP of that one.
    pub fn caddyfile(&self, round: u64, engine: u64) -> String {
        let user = self.user.map(|user| format!("user {user}")).unwrap_or_default();
        CADDYFILE
            .replace("USER", &user)
            .replace("ROUND", &format!("{ROUND} {round}"))
            .replace("ENGINE", &engine.to_string())
    }
}

/// Writes a release, and has the link lead to it.
pub fn release(directory: &Path, version: u64) {
    let release = directory.join("releases").join(version.to_string());
    fs::create_dir_all(&release).expect("the directory is ours");
    // Both parts say of which release they are.
    let files = [
        (
            "release.php",
            format!("<?php echo 'release {version} ', require __DIR__.'/part.php', ' ', $_GET['n'];"),
        ),
        ("part.php", format!("<?php return {version};")),
    ];
    for (name, text) in files {
        fs::write(release.join(name), text).expect("the directory is ours");
    }
    let (link, next) = (directory.join("current"), directory.join("next"));
    symlink(&release, &next).and_then(|()| fs::rename(next, link)).expect("the directory is ours");
}

/// Deletes a release.
pub fn delete_release(directory: &Path, version: u64) {
    fs::remove_dir_all(directory.join("releases").join(version.to_string())).expect("it was written before");
}

/// Writes the watched file, as editors do: a new one takes its place.
pub fn write_text(root: &Path, version: u64) {
    let (next, file) = (root.join("text.next"), root.join("watched/text.php"));
    fs::create_dir_all(root.join("watched")).expect("the directory is ours");
    fs::write(&next, format!("<?php return {version};")).expect("the directory is ours");
    fs::rename(next, file).expect("the directory is ours");
}
