//! When to look again: the kernel's word, or the clock.

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;
use std::collections::HashSet;
use std::io;
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Between two looks where nothing is reported.
const LOOK: Duration = Duration::from_secs(1);
/// Bytes of events that are read at once.
const EVENTS: usize = 16 * 1024;
/// `f_type` of file systems that report only what this machine does, or nothing (statfs(2), linux/magic.h), as those
/// of containers on desktops are.
const SILENT: [(i64, &str); 8] = [
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB2"),
    (0x6573_5546, "FUSE"),
    (0x0102_1997, "9P"),
    (0x786f_4256, "vboxsf"),
    (0x013f_ae6a, "Parallels"),
];

/// What waiting came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Woken {
    /// Something may have changed.
    Hint,
    /// Nothing has been reported for as long as was to be waited.
    Quiet,
    /// Nobody wants to know any more.
    Ended,
}

/// Ends the waiting of an [`Events`].
#[derive(Debug, Clone)]
pub(crate) struct Bell(Arc<OwnedFd>);

impl Bell {
    pub fn ring(&self) {
        // Its counter is full otherwise, and it rings.
        let _ = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }
}

pub(crate) struct Events {
    /// `None`: the clock decides.
    inotify: Option<OwnedFd>,
    watched: HashSet<PathBuf>,
    bell: Bell,
}

impl Events {
    pub fn new() -> io::Result<Self> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        // Without, as where too many instances are open (`fs.inotify.max_user_instances`), the clock does.
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK);
        if let Err(error) = &inotify {
            polls(&format!("inotify cannot be used ({error})"));
        }
        Ok(Self { inotify: inotify.ok(), watched: HashSet::new(), bell: Bell(Arc::new(bell)) })
    }

    pub fn bell(&self) -> Bell {
        self.bell.clone()
    }

    /// Has these directories reported, and those before no more. Returns whether there was a new one: it may have changed
    /// before it was followed.
    pub fn follow(&mut self, directories: &[PathBuf]) -> bool {
        // Those that have gone are no longer followed by the kernel, and when they come again they are new.
        self.watched.retain(|watched| directories.binary_search(watched).is_ok());
        let mut is_new = false;
        for directory in directories {
            let Some(inotify) = &self.inotify else { return false };
            if self.watched.contains(directory) {
                continue;
            }
            match add(inotify, directory) {
                Ok(()) => {
                    self.watched.insert(directory.clone());
                    is_new = true;
                }
                Err(Silence::Gone) => {}
                Err(Silence::Never(reason)) => {
                    polls(&reason);
                    self.inotify = None;
                    self.watched.clear();
                }
            }
        }
        is_new
    }

    /// Waits for the next hint, or for so long.
    pub fn wait(&self, most: Option<Duration>) -> io::Result<Woken> {
        let clock = self.inotify.is_none().then_some(LOOK);
        let most = most.or(clock);
        let timeout =
            most.map(|most| Timespec { tv_sec: most.as_secs() as i64, tv_nsec: most.subsec_nanos().into() });
        let mut descriptors = vec![PollFd::new(&*self.bell.0, PollFlags::IN)];
        descriptors.extend(self.inotify.as_ref().map(|inotify| PollFd::new(inotify, PollFlags::IN)));
        match poll(&mut descriptors, timeout.as_ref()) {
            Ok(0) if self.inotify.is_none() && most == clock => Ok(Woken::Hint),
            Ok(0) => Ok(Woken::Quiet),
            Ok(_) if !descriptors[0].revents().is_empty() => Ok(Woken::Ended),
            Ok(_) => {
                self.inotify.iter().for_each(drain);
                Ok(Woken::Hint)
            }
            Err(Errno::INTR) => Ok(Woken::Hint),
            Err(error) => Err(error.into()),
        }
    }
}

/// Why a directory is not reported.
enum Silence {
    /// It is not there any more.
    Gone,
    /// Nor will be others.
    Never(String),
}

fn add(inotify: &OwnedFd, directory: &Path) -> Result<(), Silence> {
    let silent = rustix::fs::statfs(directory).ok().and_then(|system| name_of(system.f_type));
    if let Some(name) = silent {
        return Err(Silence::Never(format!(
            "{} is on {name}, which reports no changes",
            directory.display()
        )));
    }
    let events = WatchFlags::CREATE
        | WatchFlags::CLOSE_WRITE
        | WatchFlags::MODIFY
        | WatchFlags::ATTRIB
        | WatchFlags::DELETE
        | WatchFlags::MOVE
        | WatchFlags::DELETE_SELF
        | WatchFlags::MOVE_SELF
        | WatchFlags::ONLYDIR;
    match inotify::add_watch(inotify, directory, events) {
        Ok(_) => Ok(()),
        Err(Errno::NOSPC) => Err(Silence::Never(
            "there are more directories than inotify may watch (sysctl fs.inotify.max_user_watches)"
                .to_owned(),
        )),
        Err(Errno::NOMEM) => Err(Silence::Never("there is no memory to watch directories".to_owned())),
        Err(_) => Err(Silence::Gone),
    }
}

fn name_of(kind: i64) -> Option<&'static str> {
    // The field is signed on some machines.
    SILENT.iter().find(|(magic, _)| kind & 0xffff_ffff == *magic).map(|(_, name)| *name)
}

fn polls(reason: &str) {
    tracing::info!("watched files are looked at each second: {reason}");
}

/// What exactly has happened is found by looking.
fn drain(inotify: &OwnedFd) {
    let mut buffer = [MaybeUninit::uninit(); EVENTS];
    let mut reader = Reader::new(inotify.as_fd(), &mut buffer);
    while let Ok(event) = reader.next() {
        if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
            tracing::debug!("inotify has lost events");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_systems_of_containers_and_networks_are_known_by_their_magic() {
        assert_eq!(name_of(0x6969), Some("NFS"));
        assert_eq!(name_of(0xff53_4d42_u32 as i32 as i64), Some("CIFS"), "a signed field");
        assert_eq!(name_of(0xef53), None, "ext4");
    }

    #[test]
    fn the_bell_ends_the_waiting_and_goes_before_events() {
        let directory = tempfile::tempdir().unwrap();
        let mut events = Events::new().unwrap();
        assert!(events.follow(&[directory.path().to_owned()]), "it is new");
        assert!(!events.follow(&[directory.path().to_owned()]), "it is followed already");
        assert_eq!(events.wait(Some(Duration::ZERO)).unwrap(), Woken::Quiet);
        std::fs::write(directory.path().join("a"), "1").unwrap();
        assert_eq!(events.wait(None).unwrap(), Woken::Hint);
        events.bell().ring();
        assert_eq!(events.wait(None).unwrap(), Woken::Ended);
    }
}
