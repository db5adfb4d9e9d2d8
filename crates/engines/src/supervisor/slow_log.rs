//! Requests that run for long, as their engine tells of them while they go on: in the server's log, or in a file.

use super::State;
use super::overdue::{LONGEST_STACK, LONGEST_TEXT, text_of};
use crate::error::EngineError;
use regent_wire::control::Slow;
use rustix::fs::OFlags;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Of a new file: the server's own, and its group reads.
const MODE: u32 = 0o640;

/// What is told of a request.
struct Entry {
    pool: String,
    thread: u16,
    script: String,
    uri: String,
    ran: Duration,
    stack: String,
    omitted: u64,
}

impl State {
    /// Tells of the request where the configuration says.
    pub fn slow(&self, id: u64, request: &Slow) {
        let pool = self.generations.get(id).and_then(|generation| generation.threads.pool(request.index));
        let Some(plan) = pool.and_then(|pool| self.setup.plan.pools.get(usize::from(pool))) else { return };
        let entry = Entry {
            pool: plan.name.clone(),
            thread: request.index,
            script: text_of(&request.script, LONGEST_TEXT),
            uri: text_of(&request.uri, LONGEST_TEXT),
            ran: Duration::from_millis(request.ran_ms),
            stack: text_of(&request.stack, LONGEST_STACK),
            omitted: request.omitted,
        };
        match &self.setup.plan.slow_log {
            None => entry.log(),
            Some(file) => entry.append_to(file.clone()),
        }
    }
}

/// Whether the file can be written, which is better known at the start than with the first slow request.
pub(super) fn check(file: Option<&Path>) -> Result<(), EngineError> {
    let opened = file.map_or(Ok(()), |file| append(file, ""));
    opened.map_err(|cause| EngineError::SlowLog { file: file.map(Path::to_owned).unwrap_or_default(), cause })
}

impl Entry {
    fn log(&self) {
        let Self { pool, thread, script, uri, ran, stack, omitted } = self;
        tracing::warn!(pool, thread, script, uri, ?ran, omitted, stack, "a request is slow");
    }

    /// Beside the supervisor: the disk may be slow.
    fn append_to(self, file: PathBuf) {
        tokio::task::spawn_blocking(move || {
            if let Err(error) = append(&file, &self.text(SystemTime::now())) {
                tracing::error!(%error, file = %file.display(), "the slow log cannot be written");
            }
        });
    }

    /// As in php-fpm's slowlog, but for the order of the words: a paragraph.
    fn text(&self, now: SystemTime) -> String {
        let Self { pool, thread, script, uri, ran, stack, omitted } = self;
        let time = OffsetDateTime::from(now).format(&Rfc3339).unwrap_or_default();
        let uri: String = uri.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let more = if *omitted > 0 { format!(", {omitted} more before it") } else { String::new() };
        format!(
            "[{time}] pool {pool}, thread {thread}, {:.3} s{more}\nscript = {script}\nuri = {uri}\n{stack}\n\n",
            ran.as_secs_f64()
        )
    }
}

/// In one write, so that entries do not mix. Opened each time: the file may have been moved away.
fn append(file: &Path, text: &str) -> io::Result<()> {
    // A pipe that nobody reads is an error, and not a wait.
    let flags = OFlags::NONBLOCK.bits() as i32;
    let mut file = OpenOptions::new().append(true).create(true).mode(MODE).custom_flags(flags).open(file)?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_a_paragraph() {
        let entry = Entry {
            pool: "classic".into(),
            thread: 3,
            script: "/srv/a.php".into(),
            uri: "/a?b\nc".into(),
            ran: Duration::from_millis(1002),
            stack: "#0 sleep()\n#1 {main} /srv/a.php:3".into(),
            omitted: 2,
        };
        assert_eq!(
            entry.text(SystemTime::UNIX_EPOCH),
            "[1970-01-01T00:00:00Z] pool classic, thread 3, 1.002 s, 2 more before it\nscript = /srv/a.php\n\
             uri = /a?b c\n#0 sleep()\n#1 {main} /srv/a.php:3\n\n"
        );
    }

    #[test]
    fn entries_are_appended() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("slow.log");
        append(&file, "one\n").unwrap();
        append(&file, "two\n").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "one\ntwo\n");
        append(directory.path(), "x").unwrap_err();
    }
}
