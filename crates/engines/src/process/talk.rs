//! What an engine says over its control socket, read within bounds: whatever it writes, the server's memory and time are
//! not its own.

use bytes::BytesMut;
use regent_wire::control::{self, Event, MAX_EVENT};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::Instant;

/// Lines that may be no events. Engines write none; a line that was cut off may come of a server that did not read.
const NONSENSE: u32 = 8;
/// Bytes that are read at once.
const PART: usize = 8 * 1024;
/// Bytes that may come at once after a rest, and for each second in the long run. More waits in the socket. All that
/// honest engines have to say is a small part of it.
const BURST: i64 = 4 << 20;
const RATE: i64 = 4 << 20;
/// What a line takes beside its bytes.
const LINE: i64 = 256;

/// The reading end of a control socket.
pub(super) struct Talk<S> {
    socket: S,
    /// What was read and is no whole line yet.
    unread: BytesMut,
    /// Bytes of `unread` that hold no line end.
    searched: usize,
    nonsense: u32,
    allowance: Allowance,
}

/// What no engine says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Offence {
    #[error("it wrote a line to its control socket that has no end")]
    Endless,
    #[error("it wrote what is no event to its control socket, again and again")]
    Nonsense,
}

impl<S: AsyncRead + Unpin> Talk<S> {
    pub fn new(socket: S) -> Self {
        Self { socket, unread: BytesMut::new(), searched: 0, nonsense: 0, allowance: Allowance::new() }
    }

    /// The next event; `None`: the socket was closed. Nothing is lost when it is dropped before it ends.
    pub async fn next(&mut self) -> Result<Option<Event>, Offence> {
        loop {
            if let Some(line) = self.take_line() {
                match event(&line) {
                    Some(event) => return Ok(Some(event)),
                    None => self.note_nonsense(&line)?,
                }
                continue;
            }
            if self.unread.len() >= MAX_EVENT {
                return Err(Offence::Endless);
            }
            self.allowance.left().await;
            self.unread.reserve(PART);
            if !matches!(self.socket.read_buf(&mut self.unread).await, Ok(1..)) {
                return Ok(None);
            }
        }
    }

    fn take_line(&mut self) -> Option<BytesMut> {
        let found = self.unread[self.searched..].iter().position(|byte| *byte == b'\n');
        let Some(end) = found.map(|position| self.searched + position) else {
            self.searched = self.unread.len();
            return None;
        };
        self.searched = 0;
        self.allowance.spend(end as i64 + LINE);
        Some(self.unread.split_to(end + 1))
    }

    fn note_nonsense(&mut self, line: &[u8]) -> Result<(), Offence> {
        // A line that was torn is ended by an empty one.
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        self.nonsense += 1;
        tracing::warn!(bytes = line.len(), "the engine sent what is no event");
        if self.nonsense > NONSENSE { Err(Offence::Nonsense) } else { Ok(()) }
    }
}

fn event(line: &[u8]) -> Option<Event> {
    control::decode(std::str::from_utf8(line).ok()?).ok()
}

/// Bytes that may be read now; less than none while too much was.
#[derive(Debug)]
struct Allowance {
    left: i64,
    at: Instant,
}

impl Allowance {
    fn new() -> Self {
        Self { left: BURST, at: Instant::now() }
    }

    fn spend(&mut self, bytes: i64) {
        self.left -= bytes;
    }

    /// Ends when something is left.
    async fn left(&mut self) {
        if self.left > 0 {
            return;
        }
        let due =
            self.at + Duration::from_micros((1 - self.left).unsigned_abs() * 1_000_000 / RATE as u64 + 1);
        tokio::time::sleep_until(due).await;
        let new = self.at.elapsed().as_micros() * RATE as u128 / 1_000_000;
        self.left = self.left.saturating_add(i64::try_from(new).unwrap_or(BURST)).min(BURST);
        self.at = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt;

    /// What becomes of these bytes; the socket stays open.
    async fn said(bytes: &[u8]) -> (Vec<Event>, Result<Option<Event>, Offence>) {
        let (mut engine, socket) = tokio::io::duplex(bytes.len().max(1));
        engine.write_all(bytes).await.unwrap();
        drop(engine);
        let (mut talk, mut events) = (Talk::new(socket), Vec::new());
        loop {
            match talk.next().await {
                Ok(Some(event)) => events.push(event),
                end => return (events, end),
            }
        }
    }

    #[tokio::test]
    async fn events_are_understood_in_whatever_parts_they_come() {
        let (mut engine, socket) = tokio::io::duplex(3);
        let events = vec![
            Event::Ready,
            Event::Log { level: 3, message: "a\nb".repeat(3000), context: "{}".into() },
            Event::Ready,
        ];
        let bytes: Vec<u8> = events.iter().flat_map(control::encode).collect();
        tokio::spawn(async move { engine.write_all(&bytes).await });
        let mut talk = Talk::new(socket);
        for event in events {
            assert_eq!(talk.next().await, Ok(Some(event)));
        }
        assert_eq!(talk.next().await, Ok(None));
    }

    #[tokio::test]
    async fn a_line_without_an_end_is_given_up_before_it_fills_the_memory() {
        let (events, end) = said(&vec![b'{'; 2 * MAX_EVENT]).await;
        assert_eq!((events.len(), end), (0, Err(Offence::Endless)));
    }

    #[tokio::test]
    async fn a_little_nonsense_is_passed_over_and_more_is_an_offence() {
        let nonsense = |lines: usize| [b"{}\n\xFF\n\n".repeat(lines / 2), b"\"ready\"\n".to_vec()].concat();
        assert_eq!(said(&nonsense(8)).await, (vec![Event::Ready], Ok(None)));
        assert_eq!(said(&nonsense(10)).await, (vec![], Err(Offence::Nonsense)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_events_is_read_no_faster_than_it_may_come() {
        let lines = 100_000;
        let begun = Instant::now();
        let (events, _) = said(&b"\"ready\"\n".repeat(lines)).await;
        assert_eq!(events.len(), lines);
        let least = (lines as i64 * LINE - BURST) as u64 / RATE as u64;
        assert!(begun.elapsed() >= Duration::from_secs(least), "{:?}", begun.elapsed());
    }
}
