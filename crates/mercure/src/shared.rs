//! A history that several hubs have in common, in a stream of Redis: those hubs are one for publishers and subscribers.
//!
//! An update goes into the stream ([`Publisher`]) and nowhere else. Each hub reads the stream ([`reader`]) and does with
//! every entry what it does with an update of its own: into the history in memory, and to its subscribers. So the order of
//! the stream is that of all subscribers, and the one dispatcher of a hub sees to it that there is no gap and no double
//! between a subscriber's past and what comes, wherever that subscriber was before.

mod entry;
mod publisher;
mod reader;

pub(crate) use publisher::Publisher;

use crate::dispatcher::Command;
use crate::hub::HubError;
use crate::load::Budget;
use crate::options::HistoryOptions;
use entry::Place;
use redis::RedisResult;
use regent_redis::{Client, Connection};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tokio::sync::{oneshot, watch};

/// A hub's part of a shared history. Its threads end with it.
pub(crate) struct Shared {
    publisher: Publisher,
    /// How far the stream was read and dispatched. `None`: not at all yet.
    place: watch::Receiver<Option<Place>>,
    /// How long a subscriber waits for that.
    patience: Duration,
    _reading: mpsc::Sender<()>,
}

/// The history was not read yet, and Redis cannot be reached.
#[derive(Debug)]
pub(crate) struct Away;

/// Which stream.
struct Stream {
    client: Client,
    key: String,
    /// Entries that Redis keeps, about.
    size: usize,
}

/// Starts the threads that read and write. Redis need not be there.
pub(crate) fn open(
    options: &HistoryOptions,
    budget: &Budget,
    dispatcher: mpsc::Sender<Command>,
) -> Result<Shared, HubError> {
    let HistoryOptions::Shared { server, stream, size } = options else {
        unreachable!("invariant: other histories are no other hub's")
    };
    let patience = server.timeout;
    let stream = Arc::new(Stream { client: Client::new(server)?, key: stream.clone(), size: *size });
    let publisher = publisher::start(Arc::clone(&stream), budget.clone()).map_err(HubError::Thread)?;
    let (reading, stopped) = mpsc::channel();
    let place = reader::start(stream, options.clone(), dispatcher, stopped).map_err(HubError::Thread)?;
    Ok(Shared { publisher, place, patience, _reading: reading })
}

impl Stream {
    /// To the server that has it.
    fn connect(&self) -> RedisResult<Connection> {
        self.client.connect(&self.key)
    }
}

impl Shared {
    pub fn publisher(&self) -> Publisher {
        self.publisher.clone()
    }

    /// A subscriber that names an update may have it from another hub: what is in the stream now is in the history of this
    /// one then. While Redis is away it is not waited for: what was published meanwhile comes when it is back.
    pub async fn catch_up(&self, since: Option<&str>) -> Result<(), Away> {
        let mut place = self.place.clone();
        let read = tokio::time::timeout(self.patience, place.wait_for(Option::is_some));
        read.await.map_err(|_| Away)?.map_err(|_| Away)?;
        if since.is_none() {
            return Ok(());
        }
        let (told, latest) = oneshot::channel();
        self.publisher.ask_for_latest(told);
        let reached = async {
            let Ok(latest) = latest.await else { return };
            let _ = place.wait_for(|place| place.is_some_and(|place| place >= latest)).await;
        };
        // If that takes too long, it is as if Redis had gone in between.
        let _ = tokio::time::timeout(self.patience, reached).await;
        Ok(())
    }
}
