//! The thread that looks.

use crate::events::{Bell, Events, Woken};
use crate::pattern::Pattern;
use crate::snapshot::Snapshot;
use std::io;
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// So long nothing must happen before it is looked what has changed: an editor saves in several steps, and a checkout
/// changes many files. As FrankenPHP's.
const QUIET: Duration = Duration::from_millis(150);
/// And so long that is waited for at most.
const MOST_UNQUIET: Duration = Duration::from_secs(2);

/// Watches until it is dropped.
#[derive(Debug)]
pub struct Watch {
    bell: Bell,
}

impl Watch {
    /// Calls `on_change` with the files that were made, changed or removed, on a thread of its own, after each burst of
    /// changes. What is there when this returns is the beginning: it blocks until all files have been looked at.
    ///
    /// # Errors
    /// When there is no thread or no descriptor left.
    pub fn start(
        patterns: Vec<Pattern>,
        on_change: impl FnMut(&[&Path]) + Send + 'static,
    ) -> io::Result<Self> {
        let events = Events::new()?;
        let watch = Self { bell: events.bell() };
        let (knows, is_known) = mpsc::channel();
        std::thread::Builder::new().name("watch".to_owned()).spawn(move || {
            if let Err(error) = look(&patterns, events, knows, on_change) {
                tracing::error!(%error, "changed files are no longer noticed");
            }
        })?;
        // The thread says why, if it has ended.
        let _ = is_known.recv();
        Ok(watch)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.bell.ring();
    }
}

/// `knows` is told when what is there is known.
fn look(
    patterns: &[Pattern],
    mut events: Events,
    knows: mpsc::Sender<()>,
    mut on_change: impl FnMut(&[&Path]),
) -> io::Result<()> {
    let mut known = take(patterns, &mut events);
    // Who asked waits for it.
    let _ = knows.send(());
    if known.is_cut {
        tracing::warn!("there are more files than can be watched: name fewer directories (`watch`)");
    }
    loop {
        if events.wait(None)? == Woken::Ended || wait_for_quiet(&events)? == Woken::Ended {
            return Ok(());
        }
        let seen = take(patterns, &mut events);
        let changes = known.changes(&seen);
        if !changes.is_empty() {
            on_change(&changes);
        }
        known = seen;
    }
}

/// A directory that has just come is followed first, and looked at again: its files may have come in between.
fn take(patterns: &[Pattern], events: &mut Events) -> Snapshot {
    loop {
        let snapshot = Snapshot::take(patterns);
        if !events.follow(&snapshot.directories) {
            return snapshot;
        }
    }
}

fn wait_for_quiet(events: &Events) -> io::Result<Woken> {
    let begin = Instant::now();
    loop {
        match events.wait(Some(QUIET))? {
            Woken::Hint if begin.elapsed() < MOST_UNQUIET => {}
            woken => return Ok(woken),
        }
    }
}

/// The first of many, as a message names them.
#[must_use]
pub fn named(files: &[&Path]) -> String {
    let mut text = files.iter().take(3).map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ");
    if files.len() > 3 {
        text += &format!(" and {} more", files.len() - 3);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::PathBuf;
    use std::sync::mpsc::Receiver;

    /// More than it ever takes.
    const PATIENCE: Duration = Duration::from_secs(30);

    fn watch(patterns: &[&str], directory: &Path) -> (Watch, Receiver<Vec<PathBuf>>) {
        let (told, changes) = mpsc::channel();
        let patterns = patterns.iter().map(|text| Pattern::new(text, directory).unwrap()).collect();
        let tell = move |files: &[&Path]| {
            let _ = told.send(files.iter().map(|file| file.to_path_buf()).collect());
        };
        (Watch::start(patterns, tell).unwrap(), changes)
    }

    /// Several files are not written at once: they are written until one of them was seen.
    fn until_told(changes: &Receiver<Vec<PathBuf>>, mut write: impl FnMut()) -> Vec<PathBuf> {
        let begin = Instant::now();
        // clock: ends with an event, or when the test hangs.
        while begin.elapsed() < PATIENCE {
            write();
            // clock: a round of the loop.
            if let Ok(files) = changes.recv_timeout(QUIET * 4) {
                return files;
            }
        }
        panic!("nothing was noticed");
    }

    #[test]
    fn a_changed_file_is_told_of_and_others_are_not() {
        let directory = tempfile::tempdir().unwrap();
        let (_watch, changes) = watch(&["**/*.php"], directory.path());
        let mut round = 0;
        let told = until_told(&changes, || {
            round += 1;
            fs::write(directory.path().join("a.txt"), "x".repeat(round)).unwrap();
            fs::write(directory.path().join("a.php"), "x".repeat(round)).unwrap();
        });
        assert_eq!(told, [directory.path().join("a.php")]);
    }

    #[test]
    fn the_first_change_after_the_start_is_told_of() {
        let directory = tempfile::tempdir().unwrap();
        let (_watch, changes) = watch(&["*.php"], directory.path());
        fs::write(directory.path().join("a.php"), "x").unwrap();
        assert_eq!(changes.recv_timeout(PATIENCE).unwrap(), [directory.path().join("a.php")]);
    }

    #[test]
    fn directories_that_come_with_their_files_at_once_are_seen() {
        let directory = tempfile::tempdir().unwrap();
        let (_watch, changes) = watch(&["src/**/*.php"], directory.path());
        let mut round = 0;
        let told = until_told(&changes, || {
            round += 1;
            let deep = directory.path().join(format!("src/{round}/b/c"));
            fs::create_dir_all(&deep).unwrap();
            fs::write(deep.join("new.php"), "1").unwrap();
        });
        assert!(told.iter().all(|file| file.ends_with("b/c/new.php")), "{told:?}");
        // It is followed from then on.
        let known = told[0].clone();
        let told = until_told(&changes, || fs::write(&known, format!("{:?}", Instant::now())).unwrap());
        assert!(told.contains(&known), "{told:?}");
    }

    #[test]
    fn it_ends_when_it_is_dropped() {
        let directory = tempfile::tempdir().unwrap();
        let (watch, changes) = watch(&["."], directory.path());
        drop(watch);
        // The thread has dropped its end.
        assert_eq!(changes.recv_timeout(PATIENCE), Err(mpsc::RecvTimeoutError::Disconnected));
    }

    #[test]
    fn many_files_are_named_by_the_first() {
        let files: Vec<_> = ["a", "b", "c", "d", "e"].iter().map(Path::new).collect();
        assert_eq!(named(&files[..2]), "a, b");
        assert_eq!(named(&files), "a, b, c and 2 more");
    }
}
