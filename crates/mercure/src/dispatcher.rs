//! The thread of a hub, which does everything in one order: updates into the history and to subscribers, subscribers in
//! and out. So there is no gap and no double between what a subscriber gets of the past and what comes, and no I/O thread
//! waits for a lock while ten thousand subscribers are looked at.

use crate::history::{History, Past};
use crate::mailbox::End;
use crate::options::{HubOptions, Subscriptions};
use crate::registry::{Number, Registry, Subscriber};
use crate::subscriptions::{self, Change, Listing};
use crate::update::Update;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Bytes of updates that may wait for the dispatcher.
const MOST_BYTES: usize = 64 << 20;

/// What the dispatcher is asked to do.
pub(crate) enum Command {
    /// `done`: the update is in the history, and with those that get it.
    Publish {
        update: Arc<Update>,
        load: Load,
        done: oneshot::Sender<()>,
    },
    Subscribe {
        number: Number,
        subscriber: Subscriber,
        since: Option<String>,
        joined: oneshot::Sender<Past>,
    },
    Leave(Number),
    /// `None`: there is no such document.
    List {
        listing: Listing,
        listed: oneshot::Sender<(Option<Vec<u8>>, String)>,
    },
    /// Ends all connections; nobody can subscribe any more.
    Close,
    /// The file of the history has all that came before this.
    Flush(oneshot::Sender<()>),
    /// As [`Self::Close`], and hands the history over to the hub that comes after this one.
    Bequeath(mpsc::Sender<History>),
}

/// The way to a dispatcher, which ends with the last of them.
#[derive(Clone)]
pub(crate) struct Commands {
    sender: mpsc::Sender<Command>,
    /// Bytes of the updates that are under way.
    load: Arc<AtomicUsize>,
}

/// What an update adds to the load, as long as it waits.
pub(crate) struct Load {
    bytes: usize,
    total: Arc<AtomicUsize>,
}

struct Dispatcher {
    registry: Registry,
    history: History,
    subscriptions: Subscriptions,
    patience: Duration,
    is_closed: bool,
}

/// Starts the thread. It ends when all ways to it are gone.
/// `inheritance`: where the history of the hub before comes from; nothing is done until it is there.
pub(crate) fn start(
    options: &HubOptions,
    history: History,
    inheritance: Option<mpsc::Receiver<History>>,
) -> std::io::Result<Commands> {
    let (sender, commands) = mpsc::channel();
    let mut dispatcher = Dispatcher {
        registry: Registry::default(),
        history,
        subscriptions: options.subscriptions,
        patience: options.dispatch_timeout,
        is_closed: false,
    };
    let run = move || {
        if let Some(before) = inheritance.and_then(|inheritance| inheritance.recv().ok()) {
            dispatcher.history.inherit(before);
        }
        commands.into_iter().for_each(|command| dispatcher.carry_out(command));
    };
    std::thread::Builder::new().name("mercure".into()).spawn(run)?;
    Ok(Commands { sender, load: Arc::default() })
}

impl Commands {
    /// `None`: too many updates wait.
    pub fn publish(&self, update: Update) -> Option<oneshot::Receiver<()>> {
        let bytes = update.size();
        let before = self.load.fetch_add(bytes, Ordering::Relaxed);
        let load = Load { bytes, total: Arc::clone(&self.load) };
        if before > MOST_BYTES {
            return None;
        }
        let (done, receiver) = oneshot::channel();
        self.send(Command::Publish { update: Arc::new(update), load, done });
        Some(receiver)
    }

    pub fn send(&self, command: Command) {
        // The thread runs as long as there is a sender.
        let _ = self.sender.send(command);
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.total.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Dispatcher {
    /// Who has asked may be gone when the answer comes.
    fn carry_out(&mut self, command: Command) {
        match command {
            Command::Publish { update, load, done } => {
                self.publish(update);
                drop(load);
                let _ = done.send(());
            }
            Command::Subscribe { number, subscriber, since, joined } if !self.is_closed => {
                let past = since.map_or_else(Past::default, |id| self.history.since(&id));
                self.tell(&subscriber, Change::Begun);
                self.registry.add(number, subscriber);
                let _ = joined.send(past);
            }
            Command::Subscribe { .. } => {}
            Command::Leave(number) => {
                if let Some(subscriber) = self.registry.remove(number) {
                    self.tell(&subscriber, Change::Ended);
                }
            }
            Command::List { listing, listed } => {
                let last = self.history.last_id();
                let document = listing.document(self.registry.subscribers(), last);
                let _ = listed.send((document, last.to_owned()));
            }
            Command::Close => self.close(),
            Command::Flush(done) => self.history.flush(done),
            Command::Bequeath(heir) => {
                self.close();
                let history = std::mem::replace(&mut self.history, History::none());
                // The next hub may have ended already.
                let _ = heir.send(history);
            }
        }
    }

    fn close(&mut self) {
        self.is_closed = true;
        self.registry.subscribers().for_each(|subscriber| subscriber.mailbox.end(End::Closed));
        self.registry.clear();
    }

    /// Publishes the beginning or the end of a subscriber's subscriptions.
    fn tell(&mut self, subscriber: &Subscriber, change: Change) {
        if self.subscriptions == Subscriptions::Shown {
            subscriptions::events(subscriber, change).for_each(|event| self.publish(Arc::new(event)));
        }
    }

    /// Who is cut off is the next news.
    fn publish(&mut self, update: Arc<Update>) {
        let mut news = VecDeque::from([update]);
        while let Some(update) = news.pop_front() {
            for subscriber in self.dispatch(&update) {
                tracing::debug!("a subscriber was cut off: it did not take its updates in time");
                if self.subscriptions == Subscriptions::Shown {
                    news.extend(subscriptions::events(&subscriber, Change::Ended).map(Arc::new));
                }
            }
        }
    }

    /// Returns those that had to be cut off.
    fn dispatch(&mut self, update: &Arc<Update>) -> Vec<Subscriber> {
        self.history.add(update);
        let now = Instant::now();
        let recipients = self.registry.recipients(update).into_iter();
        let cut = recipients.filter(|(_, mailbox)| !mailbox.put(update, now, self.patience));
        let cut: Vec<_> = cut.map(|(number, _)| number).collect();
        cut.into_iter().filter_map(|number| self.registry.remove(number)).collect()
    }
}
