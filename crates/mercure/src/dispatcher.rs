//! The thread of a hub, which does one thing after the other: updates into the history and to subscribers, subscribers in
//! and out. So there is no gap and no double between what a subscriber gets of the past and what comes, and no I/O thread
//! waits for a lock while ten thousand subscribers are looked at.

use crate::history::{History, Past};
use crate::hub::HubError;
use crate::load::{Budget, Load};
use crate::mailbox::End;
use crate::options::{HistoryOptions, HubOptions, Subscriptions};
use crate::registry::{Interest, Number, Registry, Subscriber};
use crate::shared::{self, Away, Publisher, Shared};
use crate::subscriptions::{self, Change, Listing};
use crate::update::Update;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Between two complaints to the log about the same.
const COMPLAINT_PAUSE: Duration = Duration::from_secs(60);

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
        joined: oneshot::Sender<Result<Joined, Full>>,
    },
    Leave(Number),
    /// `None`: there is no such document.
    List {
        listing: Listing,
        listed: oneshot::Sender<(Option<Vec<u8>>, String)>,
    },
    /// What hubs have published that share a history, one after the other.
    Deliver {
        updates: Vec<Arc<Update>>,
        done: oneshot::Sender<()>,
    },
    /// The shared history is another one than before, or was away for longer than it remembers: what subscribers have
    /// missed they get when they come again.
    Replace {
        history: History,
        done: oneshot::Sender<()>,
    },
    /// Ends all connections; nobody can subscribe any more.
    Close,
    /// The file of the history has all that came before this.
    Flush(oneshot::Sender<()>),
    /// As [`Self::Close`], and hands the history over to the hub that comes after this one.
    Bequeath(mpsc::Sender<History>),
}

/// What a subscriber begins with.
pub(crate) struct Joined {
    pub past: Past,
    /// The same as it asked with, of selectors that it has in common with others.
    pub interest: Arc<Interest>,
}

/// The hub has too many different topics.
#[derive(Debug)]
pub(crate) struct Full;

/// What waits. One of each is done at a time, so that publishers wait for one subscriber that comes or goes, and one that
/// was cut off, and not for all.
#[derive(Default)]
struct Waiting {
    updates: VecDeque<Command>,
    subscribers: VecDeque<Command>,
}

/// The way to a dispatcher, which ends with the last of them.
#[derive(Clone)]
pub(crate) struct Commands {
    sender: mpsc::Sender<Command>,
    budget: Budget,
    /// The history that it has in common with other hubs.
    shared: Option<Arc<Shared>>,
}

struct Dispatcher {
    registry: Registry,
    history: History,
    /// Where updates go that are to reach other hubs as well.
    publisher: Option<Publisher>,
    subscriptions: Subscriptions,
    patience: Duration,
    is_closed: bool,
    /// Those that were cut off, until it is told that their subscriptions have ended.
    cut: VecDeque<Subscriber>,
    /// When the log was last told that there are too many different topics.
    complained: Option<Instant>,
}

/// Starts the thread. It ends when all ways to it are gone.
/// `inheritance`: where the history of the hub before comes from; nothing is done until it is there.
pub(crate) fn start(
    options: &HubOptions,
    history: History,
    inheritance: Option<mpsc::Receiver<History>>,
) -> Result<Commands, HubError> {
    let (sender, commands) = mpsc::channel();
    let budget = Budget::default();
    let shared = match &options.history {
        HistoryOptions::Shared { .. } => Some(shared::open(&options.history, &budget, sender.clone())?),
        _ => None,
    };
    let mut dispatcher = Dispatcher {
        registry: Registry::default(),
        history,
        publisher: shared.as_ref().map(|shared| shared.publisher()),
        subscriptions: options.subscriptions,
        patience: options.dispatch_timeout,
        is_closed: false,
        cut: VecDeque::new(),
        complained: None,
    };
    let run = move || {
        if let Some(before) = inheritance.and_then(|inheritance| inheritance.recv().ok()) {
            dispatcher.history.inherit(before);
        }
        dispatcher.run(&commands);
    };
    std::thread::Builder::new().name("mercure".into()).spawn(run).map_err(HubError::Thread)?;
    Ok(Commands { sender, budget, shared: shared.map(Arc::new) })
}

impl Commands {
    /// `None`: too many updates wait.
    pub fn publish(&self, update: Update) -> Option<oneshot::Receiver<()>> {
        let load = self.budget.take(update.size())?;
        let (done, receiver) = oneshot::channel();
        let update = Arc::new(update);
        match &self.shared {
            Some(shared) => shared.publisher().publish(update, load, done),
            None => self.send(Command::Publish { update, load, done }),
        }
        Some(receiver)
    }

    /// Waits until the history has what other hubs have published so far, as far as that matters to a subscriber that has
    /// this update already. At once for a history that is no other hub's.
    pub async fn catch_up(&self, since: Option<&str>) -> Result<(), Away> {
        match &self.shared {
            Some(shared) => shared.catch_up(since).await,
            None => Ok(()),
        }
    }

    /// `done` is told, or dropped, when all that was published before is kept.
    pub fn flush(&self, done: oneshot::Sender<()>) {
        match &self.shared {
            Some(shared) => shared.publisher().flush(done),
            None => self.send(Command::Flush(done)),
        }
    }

    pub fn send(&self, command: Command) {
        // The thread runs as long as there is a sender.
        let _ = self.sender.send(command);
    }
}

impl Waiting {
    fn push(&mut self, command: Command) {
        match command {
            Command::Subscribe { .. } | Command::Leave(_) | Command::List { .. } => {
                self.subscribers.push_back(command);
            }
            _ => self.updates.push_back(command),
        }
    }

    fn is_empty(&self) -> bool {
        self.updates.is_empty() && self.subscribers.is_empty()
    }
}

impl Dispatcher {
    /// Until nothing will come any more.
    fn run(&mut self, commands: &mpsc::Receiver<Command>) {
        let mut waiting = Waiting::default();
        loop {
            if waiting.is_empty() && self.cut.is_empty() {
                let Ok(command) = commands.recv() else { return };
                waiting.push(command);
            }
            commands.try_iter().for_each(|command| waiting.push(command));
            let next = [waiting.updates.pop_front(), waiting.subscribers.pop_front()];
            next.into_iter().flatten().for_each(|command| self.carry_out(command));
            if let Some(subscriber) = self.cut.pop_front() {
                self.tell(&subscriber, Change::Ended);
            }
        }
    }

    /// Who has asked may be gone when the answer comes.
    fn carry_out(&mut self, command: Command) {
        match command {
            Command::Publish { update, load, done } => {
                self.publish(update);
                drop(load);
                let _ = done.send(());
            }
            // Its client has gone, and the command to leave is on its way.
            Command::Subscribe { joined, .. } if self.is_closed || joined.is_closed() => {}
            Command::Subscribe { number, subscriber, since, joined } => {
                let _ = joined.send(self.join(number, subscriber, since));
            }
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
            Command::Deliver { updates, done } => {
                updates.into_iter().for_each(|update| self.publish(update));
                let _ = done.send(());
            }
            Command::Replace { history, done } => {
                self.history = history;
                self.send_away();
                let _ = done.send(());
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

    fn join(
        &mut self,
        number: Number,
        subscriber: Subscriber,
        since: Option<String>,
    ) -> Result<Joined, Full> {
        if !self.registry.has_room_for(&subscriber.interest) {
            self.complain();
            return Err(Full);
        }
        let past = since.map_or_else(Past::default, |id| self.history.since(&id));
        self.tell(&subscriber, Change::Begun);
        Ok(Joined { past, interest: self.registry.add(number, subscriber) })
    }

    fn complain(&mut self) {
        if self.complained.is_none_or(|last| last.elapsed() > COMPLAINT_PAUSE) {
            self.complained = Some(Instant::now());
            tracing::warn!("a Mercure hub has too many different topics: new ones are refused with 503");
        }
    }

    fn close(&mut self) {
        self.is_closed = true;
        self.send_away();
    }

    /// All come again.
    fn send_away(&mut self) {
        self.registry.subscribers().for_each(|subscriber| subscriber.mailbox.end(End::Closed));
        self.registry.clear();
    }

    /// Publishes the beginning or the end of a subscriber's subscriptions.
    fn tell(&mut self, subscriber: &Subscriber, change: Change) {
        if self.subscriptions == Subscriptions::Shown {
            subscriptions::events(subscriber, change).for_each(|event| self.tell_all(Arc::new(event)));
        }
    }

    /// To the subscribers of other hubs too, if they share the history: it comes back from there.
    fn tell_all(&mut self, event: Arc<Update>) {
        match &self.publisher {
            Some(publisher) => publisher.tell(event),
            None => self.publish(event),
        }
    }

    fn publish(&mut self, update: Arc<Update>) {
        for subscriber in self.dispatch(&update) {
            tracing::debug!("a subscriber was cut off: it did not take its updates in time");
            self.cut.push_back(subscriber);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mailbox::Mailbox;
    use crate::selector::Selector;
    use crate::update::Publication;

    fn dispatcher() -> Dispatcher {
        Dispatcher {
            registry: Registry::default(),
            history: History::sized(&crate::options::HistoryOptions::Memory),
            publisher: None,
            subscriptions: Subscriptions::Shown,
            patience: Duration::from_secs(5),
            is_closed: false,
            cut: VecDeque::new(),
            complained: None,
        }
    }

    fn subscribe(number: Number, topics: usize, joined: oneshot::Sender<Result<Joined, Full>>) -> Command {
        let topics = (0..topics).map(|topic| Selector::new(&format!("{topic}"))).collect();
        let interest = Arc::new(Interest::new(topics, Vec::new()));
        let subscriber = Subscriber { id: "urn:x".into(), interest, payload: None, mailbox: Arc::default() };
        Command::Subscribe { number, subscriber, since: None, joined }
    }

    fn publish(topic: &str, done: oneshot::Sender<()>) -> Command {
        let publication = Publication { topics: vec![topic.into()], ..Publication::default() };
        let update = Arc::new(Update::new(publication).unwrap());
        Command::Publish { update, load: Budget::default().take(0).unwrap(), done }
    }

    #[test]
    fn who_has_gone_does_not_join() {
        let mut dispatcher = dispatcher();
        let (joined, answer) = oneshot::channel();
        drop(answer);
        dispatcher.carry_out(subscribe(1, 100, joined));
        assert_eq!(
            (dispatcher.registry.subscribers().count(), dispatcher.history.last_id()),
            (0, "earliest")
        );
    }

    #[test]
    fn an_update_does_not_wait_for_all_that_came_before_it() {
        let (sender, commands) = mpsc::channel();
        let mut answers = Vec::new();
        for number in 0..3 {
            let (joined, answer) = oneshot::channel();
            sender.send(subscribe(number, 1, joined)).unwrap();
            answers.push(answer);
        }
        let mailbox = Arc::<Mailbox>::default();
        let interest = Arc::new(Interest::new(vec![Selector::new("0")], Vec::new()));
        let subscriber = Subscriber { id: "urn:y".into(), interest, payload: None, mailbox };
        let (joined, mut last) = oneshot::channel();
        let since = Some("earliest".into());
        sender.send(Command::Subscribe { number: 9, subscriber, since, joined }).unwrap();
        sender.send(publish("0", oneshot::channel().0)).unwrap();
        drop(sender);
        dispatcher().run(&commands);
        assert!(answers.iter_mut().all(|answer| answer.try_recv().is_ok_and(|joined| joined.is_ok())));
        let past = last.try_recv().unwrap().unwrap().past.updates;
        assert_eq!(past[0].topics(), ["0"], "it was done first");
    }

    #[test]
    fn the_end_of_those_that_are_cut_off_is_told_later() {
        let mut dispatcher = dispatcher();
        let mailbox = Arc::<Mailbox>::default();
        let interest = Arc::new(Interest::new(vec![Selector::new("0")], Vec::new()));
        let subscriber =
            Subscriber { id: "urn:x".into(), interest, payload: None, mailbox: Arc::clone(&mailbox) };
        dispatcher.registry.add(1, subscriber);
        mailbox.end(End::Slow);
        dispatcher.carry_out(publish("0", oneshot::channel().0));
        assert_eq!((dispatcher.cut.len(), dispatcher.registry.subscribers().count()), (1, 0));
        let before = dispatcher.history.last_id().to_owned();
        let (sender, commands) = mpsc::channel();
        drop(sender);
        dispatcher.run(&commands);
        assert!(dispatcher.cut.is_empty() && dispatcher.history.last_id() != before);
    }
}
