//! A hub, as the server sees it.

use crate::cors::Cors;
use crate::dispatcher::{self, Command, Commands, Full, Joined};
use crate::history::{History, Past};
use crate::journal::JournalError;
use crate::mailbox::Mailbox;
use crate::options::HubOptions;
use crate::registry::{Interest, Subscriber};
use crate::shared::Away;
use crate::stream::{EventStream, Membership, Start};
use crate::subscriptions::Listing;
use crate::token::{KeyError, Verifier};
use crate::update::{Publication, Update, UpdateError};
use crate::uuid;
use regent_redis::ClientError;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;
use tokio::sync::oneshot;

/// A hub. It ends when it is dropped and its last connection has ended.
pub struct Hub {
    pub(crate) options: HubOptions,
    pub(crate) publishers: Verifier,
    pub(crate) subscribers: Verifier,
    pub(crate) cors: Cors,
    commands: Commands,
    next_number: AtomicU64,
    succession: Mutex<Option<Succession>>,
}

/// What a hub takes over from the one before, when its configuration is in use.
struct Succession {
    before: Commands,
    heir: mpsc::Sender<History>,
}

/// Why a hub cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    #[error("`publisher_jwt`: {0}")]
    Publisher(KeyError),
    #[error("`subscriber_jwt`: {0}")]
    Subscriber(KeyError),
    #[error("`transport`: {0}")]
    History(#[from] JournalError),
    #[error("`transport redis`: {0}")]
    Redis(#[from] ClientError),
    #[error("the hub's thread cannot be started: {0}")]
    Thread(io::Error),
}

/// Why an update is not published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error(transparent)]
    Update(#[from] UpdateError),
    #[error("too many updates wait to be dispatched")]
    Overload,
}

/// Why somebody cannot subscribe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotJoined {
    #[error("The hub is closing; come again")]
    Closed,
    #[error("The hub's updates cannot be had at the moment; come again later")]
    Away,
    #[error("The hub's subscribers have too many different topics at the moment; come again later")]
    Full,
}

impl Hub {
    /// Starts a hub with a thread of its own.
    ///
    /// # Errors
    /// When a key is none, the history cannot be read, or there can be no thread. Blocks while a file is read.
    pub fn open(options: HubOptions) -> Result<Self, HubError> {
        let history = History::open(&options.history)?;
        Self::start(options, history, None)
    }

    /// The same for a hub that takes the place of another one, which has its history at the same place. The new one does
    /// nothing before [`Self::succeed`].
    ///
    /// # Errors
    /// When a key is none, or there can be no thread.
    pub fn open_after(before: &Self, options: HubOptions) -> Result<Self, HubError> {
        let history = History::sized(&options.history);
        let (heir, inheritance) = mpsc::channel();
        let succession = Succession { before: before.commands.clone(), heir };
        let hub = Self::start(options, history, Some(inheritance))?;
        *lock(&hub.succession) = Some(succession);
        Ok(hub)
    }

    /// Takes the place of the hub that this one was opened after, if it has not done so yet. That one closes.
    pub fn succeed(&self) {
        if let Some(Succession { before, heir }) = lock(&self.succession).take() {
            before.send(Command::Bequeath(heir));
        }
    }

    fn start(
        options: HubOptions,
        history: History,
        inheritance: Option<mpsc::Receiver<History>>,
    ) -> Result<Self, HubError> {
        let publishers = Verifier::new(options.publisher.as_ref()).map_err(HubError::Publisher)?;
        let subscribers = Verifier::new(options.subscriber.as_ref()).map_err(HubError::Subscriber)?;
        Ok(Self {
            publishers,
            subscribers,
            cors: Cors::new(&options.cors_origins),
            commands: dispatcher::start(&options, history, inheritance)?,
            options,
            next_number: AtomicU64::new(0),
            succession: Mutex::new(None),
        })
    }

    pub fn options(&self) -> &HubOptions {
        &self.options
    }

    /// Ends the connections of all subscribers, who are told to come again; nobody can subscribe any more.
    pub fn close(&self) {
        self.commands.send(Command::Close);
    }

    /// Ends when the file of the history, or Redis, has all that was published before.
    pub async fn written(&self) {
        let (done, written) = oneshot::channel();
        self.commands.flush(done);
        // Without a file there is nobody to say so.
        let _ = written.await;
    }

    /// Publishes an update, whoever may. Returns its id; the update is in the history, and on its way, when the receiver
    /// says so. If the receiver ends without that, the update is not known to be published: Redis has not answered.
    ///
    /// # Errors
    /// When a part of it cannot be in an event stream, or too many updates wait.
    pub fn publish(&self, publication: Publication) -> Result<(String, oneshot::Receiver<()>), Refused> {
        let update = Update::new(publication)?;
        let id = update.id().to_owned();
        let done = self.commands.publish(update).ok_or(Refused::Overload)?;
        Ok((id, done))
    }

    pub(crate) async fn subscribe(
        &self,
        interest: Interest,
        subscription: Subscription,
        since: Option<String>,
    ) -> Result<(EventStream, String), NotJoined> {
        self.commands.catch_up(since.as_deref()).await.map_err(|Away| NotJoined::Away)?;
        let mailbox = Arc::<Mailbox>::default();
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        let subscriber = Subscriber {
            id: uuid::urn(),
            interest: Arc::new(interest),
            payload: subscription.payload,
            mailbox: Arc::clone(&mailbox),
        };
        let (joined, answer) = oneshot::channel();
        self.commands.send(Command::Subscribe { number, subscriber, since, joined });
        // The subscriber leaves too if its client goes while this waits.
        let membership = Membership { number, commands: self.commands.clone() };
        let answer = answer.await.map_err(|_| NotJoined::Closed)?;
        let Joined { past: Past { updates, after }, interest } = answer.map_err(|Full| NotJoined::Full)?;
        let start = Start {
            membership,
            interest,
            mailbox,
            past: updates,
            heartbeat: self.options.heartbeat,
            lifetime: lifetime(self.options.write_timeout, subscription.valid_for),
        };
        Ok((EventStream::new(start), after))
    }

    /// The document, if there is one, and the id of the latest update. `None`: the hub has ended.
    pub(crate) async fn list(&self, listing: Listing) -> Option<(Option<Vec<u8>>, String)> {
        let (listed, document) = oneshot::channel();
        self.commands.send(Command::List { listing, listed });
        document.await.ok()
    }
}

/// What a token says of its owner's subscriptions.
#[derive(Default)]
pub(crate) struct Subscription {
    pub payload: Option<serde_json::Value>,
    pub valid_for: Option<Duration>,
}

/// A connection lasts no longer than the token that it was opened with.
fn lifetime(write_timeout: Duration, valid_for: Option<Duration>) -> Option<Duration> {
    let timeout = (!write_timeout.is_zero()).then_some(write_timeout);
    timeout.into_iter().chain(valid_for).min()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
