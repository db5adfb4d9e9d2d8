//! Files of logs that are renamed when they have grown, as Caddy's are, and the old ones that are kept.
//!
//! `access.log` becomes `access-2026-05-04T03-02-01.678.log`, by UTC, and that a `.gz` or `.zst`.

mod open;

use crate::log::schedule;
use flate2::Compression;
use flate2::write::GzEncoder;
use open::append_to;
use regent_config::{LogCompression, LogFile, LogRolling};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;
use time::{OffsetDateTime, PrimitiveDateTime};

/// Of the name of an old file, as Caddy's lumberjack has it.
const TIME: &[BorrowedFormatItem<'_>] =
    format_description!("[year]-[month]-[day]T[hour]-[minute]-[second].[subsecond digits:3]");
/// Between two tries to rename a file that cannot be renamed.
const RETRY: Duration = Duration::from_secs(60);

/// A file that lines are appended to.
pub struct RollingFile {
    config: LogFile,
    file: File,
    /// Bytes in it.
    size: u64,
    /// When it is to be followed by a new one, however large it is.
    due: Option<SystemTime>,
    /// Not before then, after a try that failed.
    next_try: Option<Instant>,
    /// To the thread that compresses and removes old files, once there is one.
    keeper: Option<Sender<()>>,
}

impl RollingFile {
    /// Opens the file for appending, and makes it and its directory if need be.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open(config: &LogFile) -> io::Result<Self> {
        let file = append_to(config, config.mode)?;
        let metadata = file.metadata()?;
        // What was written before a time at which nobody was there is rolled with the first line.
        let since = if metadata.len() > 0 { metadata.modified()? } else { SystemTime::now() };
        let due = config.rolling.as_ref().and_then(|rolling| schedule::next(rolling, since));
        Ok(Self { config: config.clone(), file, size: metadata.len(), due, next_try: None, keeper: None })
    }

    pub fn path(&self) -> &Path {
        &self.config.path
    }

    /// What counts from now on, of a file at the same path.
    pub fn configure(&mut self, config: LogFile) {
        // A keeper goes by the old rules; the next one is made when it is needed.
        self.keeper = None;
        let rolling = config.rolling.as_ref();
        self.due = rolling.and_then(|rolling| schedule::next(rolling, SystemTime::now()));
        self.config = config;
    }

    /// Opens the path again, after somebody else has renamed the file.
    ///
    /// # Errors
    /// If it cannot be opened; the file before is kept.
    pub fn reopen(&mut self) -> io::Result<()> {
        let file = append_to(&self.config, self.config.mode)?;
        self.size = file.metadata()?.len();
        self.file = file;
        Ok(())
    }

    /// To be called between two lines: begins a new file if these bytes would be too many for the one that is there.
    ///
    /// # Errors
    /// If that is not possible. The old file goes on growing, and for a minute nothing else is tried.
    pub fn make_room(&mut self, bytes: u64) -> io::Result<()> {
        let Some(rolling) = self.config.rolling.clone() else { return Ok(()) };
        self.catch_up()?;
        let is_due = self.due.is_some_and(|due| SystemTime::now() >= due);
        if self.size == 0 && is_due {
            self.due = schedule::next(&rolling, SystemTime::now());
        }
        if self.size == 0 || !is_due && self.size.saturating_add(bytes) <= rolling.size {
            return Ok(());
        }
        if self.next_try.is_some_and(|next| Instant::now() < next) {
            return Ok(());
        }
        let rolled = self.roll(rolling, SystemTime::now());
        self.next_try = rolled.is_err().then(|| Instant::now() + RETRY);
        rolled
    }

    /// Another log of the server may have the same file: then it grows without this one, and may have been followed by a new one.
    fn catch_up(&mut self) -> io::Result<()> {
        let own = self.file.metadata()?;
        match fs::metadata(&self.config.path) {
            Ok(named) if (named.dev(), named.ino()) != (own.dev(), own.ino()) => self.reopen(),
            // One that is gone comes again when it is full, or when somebody says so.
            _ => {
                self.size = own.len();
                Ok(())
            }
        }
    }

    fn roll(&mut self, rolling: LogRolling, now: SystemTime) -> io::Result<()> {
        let path = &self.config.path;
        let mode = self.file.metadata()?.permissions().mode();
        let old = free_name(path, now)?;
        fs::rename(path, &old)?;
        match append_to(&self.config, Some(mode)) {
            Ok(file) => self.file = file,
            Err(error) => {
                // Lines go to the file that is open, by its old name if that can be had again.
                let _ = fs::rename(&old, path);
                return Err(error);
            }
        }
        self.size = 0;
        self.due = schedule::next(&rolling, now);
        self.wake_keeper(rolling)
    }

    fn wake_keeper(&mut self, rolling: LogRolling) -> io::Result<()> {
        if self.keeper.as_ref().is_some_and(|keeper| keeper.send(()).is_ok()) {
            return Ok(());
        }
        let (keeper, rolled) = channel();
        let path = self.config.path.clone();
        thread::Builder::new().name("log-keeper".into()).spawn(move || {
            // It ends with the file. What it has not done then, the next one does.
            loop {
                keep(&path, &rolling, SystemTime::now());
                if rolled.recv().is_err() {
                    return;
                }
            }
        })?;
        self.keeper = Some(keeper);
        Ok(())
    }
}

impl Write for RollingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A name that no file has: within a millisecond, of several files.
fn free_name(path: &Path, now: SystemTime) -> io::Result<PathBuf> {
    (0..1000)
        .map(|step| old_name(path, now + Duration::from_millis(step)))
        .find(|name| !name.exists() && ENDINGS.iter().all(|ending| !with(name, ending).exists()))
        .ok_or_else(|| io::ErrorKind::AlreadyExists.into())
}

fn old_name(path: &Path, now: SystemTime) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push("-");
    name.push(OffsetDateTime::from(now).format(TIME).unwrap_or_default());
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// Of compressed files.
const ENDINGS: [&str; 2] = [".gz", ".zst"];

fn ending(compression: LogCompression) -> &'static str {
    match compression {
        LogCompression::Gzip => ENDINGS[0],
        LogCompression::Zstd => ENDINGS[1],
    }
}

fn with(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    name.into()
}

/// An old file, as its name says.
struct Old {
    path: PathBuf,
    /// As it is written in the name.
    time: PrimitiveDateTime,
    is_compressed: bool,
}

/// Removes what is too old or too much, and compresses the rest. What fails is tried again with the next file.
fn keep(path: &Path, rolling: &LogRolling, now: SystemTime) {
    let mut old = old_files(path);
    // The newest first.
    old.sort_by_key(|file| std::cmp::Reverse(file.time));
    let now = OffsetDateTime::from(now);
    let most = rolling.keep.map_or(usize::MAX, |keep| keep as usize);
    for (index, file) in old.into_iter().enumerate() {
        let age = now - file.time.assume_utc();
        let is_too_old = rolling.keep_for.is_some_and(|most| age > most);
        let result = if index >= most || is_too_old {
            fs::remove_file(&file.path)
        } else if rolling.compress && !file.is_compressed {
            compress(&file.path, rolling.compression)
        } else {
            Ok(())
        };
        if let Err(error) = result {
            tracing::warn!(%error, file = %file.path.display(), "an old log file cannot be compressed or removed");
        }
    }
}

fn old_files(path: &Path) -> Vec<Old> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    entries.filter_map(|entry| old_file(path, &entry.ok()?.path())).collect()
}

fn old_file(path: &Path, candidate: &Path) -> Option<Old> {
    let name = candidate.file_name()?.to_str()?;
    let plain = ENDINGS.iter().find_map(|ending| name.strip_suffix(*ending));
    let (plain, is_compressed) = (plain.unwrap_or(name), plain.is_some());
    let extension = path.extension().map(|extension| format!(".{}", extension.to_string_lossy()));
    let time = plain
        .strip_prefix(path.file_stem()?.to_str()?)?
        .strip_prefix('-')?
        .strip_suffix(extension.as_deref().unwrap_or_default())?;
    let time = PrimitiveDateTime::parse(time, TIME).ok()?;
    Some(Old { path: candidate.to_owned(), time, is_compressed })
}

/// A crash leaves the file and perhaps a piece of the other, which the next try writes anew.
fn compress(path: &Path, compression: LogCompression) -> io::Result<()> {
    let compressed = with(path, ending(compression));
    let unfinished = with(&compressed, ".tmp");
    let result = write_compressed(path, &unfinished, compression);
    if result.is_err() {
        // A full disk has no use for a half of it.
        let _ = fs::remove_file(&unfinished);
        return result;
    }
    fs::rename(&unfinished, compressed)?;
    fs::remove_file(path)
}

fn write_compressed(path: &Path, target: &Path, compression: LogCompression) -> io::Result<()> {
    let mut source = File::open(path)?;
    let mode = source.metadata()?.mode() & 0o777;
    let mut target = OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(target)?;
    match compression {
        LogCompression::Gzip => {
            let mut encoder = GzEncoder::new(target, Compression::default());
            io::copy(&mut source, &mut encoder)?;
            encoder.finish()?.sync_all()
        }
        LogCompression::Zstd => {
            zstd::stream::copy_encode(&mut source, &mut target, zstd::DEFAULT_COMPRESSION_LEVEL)?;
            target.sync_all()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    const ROLLING: LogRolling = LogRolling {
        size: 20,
        interval: None,
        at: Vec::new(),
        keep: Some(2),
        keep_for: None,
        compress: false,
        compression: LogCompression::Gzip,
    };

    fn file(path: &Path) -> LogFile {
        LogFile { path: path.to_owned(), mode: None, directory_mode: None, rolling: Some(ROLLING) }
    }

    #[test]
    fn old_files_may_be_compressed_with_zstd() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("access.log");
        let old = old_name(&path, SystemTime::UNIX_EPOCH);
        fs::write(&old, "a line\n").unwrap();
        let rolling = LogRolling { compress: true, compression: LogCompression::Zstd, ..ROLLING };
        keep(&path, &rolling, SystemTime::UNIX_EPOCH);
        let compressed = with(&old, ".zst");
        assert!(!old.exists() && old_file(&path, &compressed).unwrap().is_compressed);
        assert_eq!(zstd::decode_all(File::open(compressed).unwrap()).unwrap(), b"a line\n");
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn write(file: &mut RollingFile, line: &str) {
        let _ = file.make_room(line.len() as u64);
        file.write_all(line.as_bytes()).unwrap();
    }

    #[test]
    fn a_file_that_is_full_is_followed_by_another() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("access.log");
        fs::write(&path, "0123456789\n").unwrap();
        let mut file = RollingFile::open(&file(&path)).unwrap();
        write(&mut file, "abcdef\n");
        assert_eq!(names(directory.path()), ["access.log"], "there was room");
        write(&mut file, "ghijkl\n");
        assert_eq!(fs::read_to_string(&path).unwrap(), "ghijkl\n");
        let names = names(directory.path());
        assert_eq!(names.len(), 2);
        let old = fs::read_to_string(directory.path().join(&names[0])).unwrap();
        assert_eq!(old, "0123456789\nabcdef\n");
        write(&mut file, "a line that is longer than a file may be\n");
        assert!(fs::read_to_string(&path).unwrap().starts_with("a line"), "it has a file of its own");
    }

    #[test]
    fn a_file_whose_time_is_over_is_followed_by_another() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("access.log");
        fs::write(&path, "old\n").unwrap();
        let long_ago = SystemTime::now() - Duration::from_secs(7200);
        File::options().append(true).open(&path).unwrap().set_modified(long_ago).unwrap();
        let rolling = LogRolling { interval: Some(Duration::from_secs(3600)), ..ROLLING };
        let config = LogFile { rolling: Some(rolling), ..file(&path) };
        let mut file = RollingFile::open(&config).unwrap();
        write(&mut file, "new\n");
        write(&mut file, "more\n");
        assert_eq!(fs::read_to_string(&path).unwrap(), "new\nmore\n");
        assert_eq!(names(directory.path()).len(), 2);
        assert!(file.due.unwrap() > SystemTime::now() + Duration::from_secs(3500));
    }

    #[test]
    fn two_logs_may_have_the_same_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("all.log");
        let (mut one, mut other) =
            (RollingFile::open(&file(&path)).unwrap(), RollingFile::open(&file(&path)).unwrap());
        write(&mut one, "one: 0123456\n");
        write(&mut other, "other: 012345\n");
        assert_eq!(fs::read_to_string(&path).unwrap(), "other: 012345\n", "there was no room for both");
        write(&mut one, "one: 7\n");
        assert_eq!(names(directory.path()).len(), 3);
        assert_eq!(fs::read_to_string(&path).unwrap(), "one: 7\n", "it follows to the new file");
    }

    #[test]
    fn names_tell_the_time_and_what_belongs_to_the_log() {
        let path = Path::new("/logs/access.log");
        let now = SystemTime::UNIX_EPOCH + Duration::from_millis(1_500_000_000_250);
        let old = old_name(path, now);
        assert_eq!(old, Path::new("/logs/access-2017-07-14T02-40-00.250.log"));
        assert!(!old_file(path, &old).unwrap().is_compressed);
        assert!(old_file(path, &with(&old, ".gz")).unwrap().is_compressed);
        for other in [
            "access.log",
            "access-old.log",
            "error-2017-07-14T02-40-00.250.log",
            "access-2017-07-14T02-40-00.250.txt",
        ] {
            assert!(old_file(path, &path.with_file_name(other)).is_none(), "{other}");
        }
        assert!(old_file(Path::new("x"), Path::new("x-2017-07-14T02-40-00.250")).is_some());
    }

    #[test]
    fn old_files_are_compressed_and_the_oldest_removed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("access.log");
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        for seconds in [1000, 2000, 3000] {
            fs::write(old_name(&path, at(seconds)), format!("{seconds}")).unwrap();
        }
        fs::write(directory.path().join("access-notes.log"), "").unwrap();
        keep(&path, &LogRolling { compress: true, ..ROLLING }, at(4000));
        let names = names(directory.path());
        assert_eq!(
            names,
            [
                "access-1970-01-01T00-33-20.000.log.gz",
                "access-1970-01-01T00-50-00.000.log.gz",
                "access-notes.log"
            ]
        );
        let mut text = String::new();
        let file = File::open(directory.path().join(&names[1])).unwrap();
        flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
        assert_eq!(text, "3000");
        keep(&path, &LogRolling { keep_for: Some(Duration::from_secs(1500)), ..ROLLING }, at(4000));
        assert_eq!(self::names(directory.path()).len(), 2, "one was too old");
    }

    #[test]
    fn a_directory_that_nobody_may_write_to_costs_no_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("made/access.log");
        let mut file = RollingFile::open(&file(&path)).unwrap();
        // Renaming it fails, as it is not there; for root, permissions would stop nothing.
        fs::remove_file(&path).unwrap();
        for _ in 0..5 {
            write(&mut file, "0123456789\n");
        }
        assert_eq!(file.file.metadata().unwrap().len(), 55);
        assert!(file.next_try.is_some());
    }
}
