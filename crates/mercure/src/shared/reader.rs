//! The thread that reads the stream, from its last `size` entries on, and gives what it reads to the dispatcher. Where it
//! was, it knows by the id of the last entry, so that nothing is left out when it has to connect anew.

use super::Stream;
use super::entry::{Entry, Place};
use crate::dispatcher::Command;
use crate::history::History;
use crate::options::HistoryOptions;
use redis::streams::{StreamId, StreamRangeReply, StreamReadReply};
use redis::{RedisError, RedisResult, cmd};
use regent_redis::Connection;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;
use tokio::sync::{oneshot, watch};

/// Entries of one answer at most.
const MOST_TOGETHER: usize = 64;
/// How long Redis waits for an entry before it says that there is none.
const WAIT: Duration = Duration::from_secs(1);
/// Between tries to connect, from the first on; then twice as long each time.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

struct Reader {
    stream: Arc<Stream>,
    options: HistoryOptions,
    dispatcher: mpsc::Sender<Command>,
    /// Where others see how far it has come.
    place: watch::Sender<Option<Place>>,
    /// Ends when nobody needs the reader any more.
    stopped: mpsc::Receiver<()>,
    is_connected: bool,
    has_complained: bool,
}

/// Why nothing is read at the moment.
enum Stop {
    /// Nobody needs it any more.
    Unneeded,
    Failure(RedisError),
}

impl From<RedisError> for Stop {
    fn from(error: RedisError) -> Self {
        Self::Failure(error)
    }
}

/// Tells how far the stream was read and dispatched.
pub(super) fn start(
    stream: Arc<Stream>,
    options: HistoryOptions,
    dispatcher: mpsc::Sender<Command>,
    stopped: mpsc::Receiver<()>,
) -> std::io::Result<watch::Receiver<Option<Place>>> {
    let (place, receiver) = watch::channel(None);
    let reader =
        Reader { stream, options, dispatcher, place, stopped, is_connected: false, has_complained: false };
    std::thread::Builder::new().name("mercure-read".into()).spawn(move || reader.run())?;
    Ok(receiver)
}

impl Reader {
    fn run(mut self) {
        let mut pause = FIRST_PAUSE;
        loop {
            match self.follow() {
                Stop::Unneeded => return,
                Stop::Failure(error) => self.complain(&error),
            }
            if std::mem::take(&mut self.is_connected) {
                pause = FIRST_PAUSE;
            }
            if self.stopped.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            pause = longer(pause);
        }
    }

    /// Until the connection breaks.
    fn follow(&mut self) -> Stop {
        self.try_to_follow().err().unwrap_or(Stop::Unneeded)
    }

    fn try_to_follow(&mut self) -> Result<(), Stop> {
        let mut connection = self.stream.connect()?;
        connection.set_read_timeout(WAIT + self.stream.client.timeout())?;
        let known = *self.place.borrow();
        let mut place = match known {
            Some(place) if self.has(&mut connection, place)? => place,
            _ => self.read_all(&mut connection)?,
        };
        self.is_connected = true;
        self.tell_of_connection();
        while self.stopped.try_recv() != Err(mpsc::TryRecvError::Disconnected) {
            let entries = self.next(&mut connection, place)?;
            let Some(last) = entries.last() else { continue };
            place = last.place;
            self.deliver(entries)?;
            self.place.send_replace(Some(place));
        }
        Ok(())
    }

    /// If the entry is gone, so may be some behind it that were not read: Redis has lost its memory, or keeps fewer than were
    /// added meanwhile. A stream that was empty has no entry, and whatever there is now was added since.
    fn has(&self, connection: &mut Connection, place: Place) -> RedisResult<bool> {
        if place == Place::default() {
            return Ok(true);
        }
        let place = place.to_string();
        let reply: StreamRangeReply =
            cmd("XRANGE").arg(&self.stream.key).arg(&place).arg(&place).query(connection)?;
        Ok(!reply.ids.is_empty())
    }

    /// The history, from the last entry backwards as far as there is room for it.
    fn read_all(&self, connection: &mut Connection) -> Result<Place, Stop> {
        let mut history = History::sized(&self.options);
        let (mut updates, mut bytes, mut end) = (Vec::new(), 0, "+".to_owned());
        let mut latest = None;
        loop {
            let mut command = cmd("XREVRANGE");
            command.arg(&self.stream.key).arg(&end).arg("-").arg("COUNT").arg(MOST_TOGETHER);
            let reply: StreamRangeReply = command.query(connection)?;
            let entries = entries(&reply.ids)?;
            let Some(first) = entries.last().map(|entry| entry.place) else { break };
            latest = latest.or(entries.first().map(|entry| entry.place));
            for update in entries.into_iter().filter_map(|entry| entry.update) {
                bytes += update.size();
                updates.push(update);
            }
            if history.is_full_with(updates.len(), bytes) {
                break;
            }
            end = format!("({first}");
        }
        updates.iter().rev().for_each(|update| history.add(update));
        let place = latest.unwrap_or_default();
        self.dispatch(|done| Command::Replace { history, done })?;
        self.place.send_replace(Some(place));
        Ok(place)
    }

    /// The entries behind this place; none if there are none after a while.
    fn next(&self, connection: &mut Connection, place: Place) -> RedisResult<Vec<Entry>> {
        let mut command = cmd("XREAD");
        command.arg("COUNT").arg(MOST_TOGETHER).arg("BLOCK").arg(WAIT.as_millis() as u64);
        command.arg("STREAMS").arg(&self.stream.key).arg(place.to_string());
        let reply: Option<StreamReadReply> = command.query(connection)?;
        let keys = reply.map(|reply| reply.keys).unwrap_or_default();
        keys.iter().try_fold(Vec::new(), |mut all, key| {
            all.extend(entries(&key.ids)?);
            Ok(all)
        })
    }

    fn deliver(&self, entries: Vec<Entry>) -> Result<(), Stop> {
        let updates = entries.into_iter().filter_map(|entry| entry.update).collect();
        self.dispatch(|done| Command::Deliver { updates, done })
    }

    /// Waits until it is done, so that no more than one answer of Redis waits for the dispatcher.
    fn dispatch(&self, command: impl FnOnce(oneshot::Sender<()>) -> Command) -> Result<(), Stop> {
        let (done, dispatched) = oneshot::channel();
        self.dispatcher.send(command(done)).map_err(|_| Stop::Unneeded)?;
        dispatched.blocking_recv().map_err(|_| Stop::Unneeded)
    }

    fn tell_of_connection(&mut self) {
        let (redis, stream) = (self.stream.client.url(), self.stream.key.as_str());
        if std::mem::take(&mut self.has_complained) {
            tracing::info!(redis, stream, "the updates of a Mercure hub are read from Redis again");
        } else {
            tracing::info!(redis, stream, "a Mercure hub shares its updates with others by Redis");
        }
    }

    fn complain(&mut self, error: &RedisError) {
        if !std::mem::replace(&mut self.has_complained, true) {
            let redis = self.stream.client.url();
            tracing::error!(redis, %error, "the updates of a Mercure hub cannot be read: what others publish comes when they can");
        }
    }
}

fn longer(pause: Duration) -> Duration {
    (pause * 2).min(LONGEST_PAUSE)
}

fn entries(ids: &[StreamId]) -> RedisResult<Vec<Entry>> {
    let bad = || RedisError::from((redis::ErrorKind::Parse, "an entry of the stream has no id"));
    ids.iter().map(|id| Entry::of(id).ok_or_else(bad)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_become_rarer_up_to_a_bound() {
        let pauses: Vec<_> =
            std::iter::successors(Some(FIRST_PAUSE), |pause| Some(longer(*pause))).take(8).collect();
        let milliseconds: Vec<_> = pauses.iter().map(Duration::as_millis).collect();
        assert_eq!(milliseconds, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
    }
}
