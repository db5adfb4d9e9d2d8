//! When an I/O thread stays awake between two events, instead of sleeping until the next.
//!
//! A wake-up costs whoever gives it a few microseconds (on a virtual machine an interrupt to another core), and the
//! thread runs only some 30 µs later. Where events follow each other more closely than that, it is cheaper for all to
//! look for the next one for a moment. So an I/O thread does, if the last ones came that soon, and if its share of
//! the cores has one for it beside those of the requests that it has with engines. docs/design/busy-poll.md has what was measured:
//! much where nothing is handed to an engine, or over one connection; nothing where PHP wants all cores.

use crate::socket::Sockets;
use std::cell::Cell;
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::task::yield_now;

/// The longest look: what a sleep and a wake-up take together.
const LOOK: Duration = Duration::from_micros(50);

/// One I/O thread's.
pub struct BusyPoll {
    /// Requests that may be with engines meanwhile, each on a core of its own; `None`: there is no core to stay awake on.
    spare_cores: Option<usize>,
    /// Counts what came: connections, requests, news of engines.
    events: Cell<u64>,
    credit: Cell<Credit>,
    asleep_since: Cell<Option<Instant>>,
    wanted: Notify,
}

/// Those who work on what the thread has given them, and have news for it: engines.
pub trait Peers {
    /// Requests that they have.
    fn in_use(&self) -> usize;

    /// Wakes the tasks that have news of them. `true` if there were any.
    fn drain(&self) -> bool;
}

/// Whether events have lately come sooner than a wake-up takes. Each that did makes up for a part of one that did not,
/// so that a look that is likely to be in vain is not taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Credit(u8);

impl BusyPoll {
    /// For one of `io_threads` that share `cpus` (in parts of one too).
    pub fn new(cpus: f32, io_threads: usize) -> Self {
        // The cast rounds down: a part of a core is none to spare.
        let cores = cpus as usize / io_threads.max(1);
        Self {
            spare_cores: cores.checked_sub(1).filter(|spare| *spare > 0),
            events: Cell::default(),
            credit: Cell::default(),
            asleep_since: Cell::default(),
            wanted: Notify::new(),
        }
    }

    /// Something came that more may follow.
    pub fn event(&self) {
        self.events.set(self.events.get() + 1);
    }

    /// Before the thread sleeps.
    pub fn asleep(&self) {
        if self.spare_cores.is_some() {
            self.asleep_since.set(Some(Instant::now()));
        }
    }

    /// After it has slept, with so many requests with engines.
    pub fn awake(&self, in_use: usize) {
        let Some(since) = self.asleep_since.take() else { return };
        self.learn(since.elapsed());
        if self.credit.get().is_worthwhile() && self.may_look(in_use) {
            self.wanted.notify_one();
        }
    }

    /// Keeps the thread awake, whenever that is worthwhile, for the news of engines too.
    pub async fn keep(&self, peers: &impl Peers, sockets: &Sockets) {
        loop {
            self.wanted.notified().await;
            self.look(peers, sockets).await;
        }
    }

    /// Looks until nothing has come for a while, or until there is other use for the core.
    async fn look(&self, peers: &impl Peers, sockets: &Sockets) {
        let (mut seen, mut last) = (self.events.get(), Instant::now());
        while self.may_look(peers.in_use()) {
            // The runtime looks at its sockets and timers before it comes back to this task.
            yield_now().await;
            // Engines ring only for threads that sleep.
            if peers.drain() {
                self.event();
            }
            let waited = last.elapsed();
            if self.events.get() != seen {
                (seen, last) = (self.events.get(), Instant::now());
                self.learn(waited);
            } else {
                // Nothing comes from what is not registered.
                sockets.register();
                if waited > LOOK {
                    self.learn(waited);
                    return;
                }
            }
        }
    }

    fn may_look(&self, in_use: usize) -> bool {
        self.spare_cores.is_some_and(|spare| in_use <= spare)
    }

    fn learn(&self, waited: Duration) {
        self.credit.set(self.credit.get().after(waited));
    }
}

impl Credit {
    const MOST: u8 = 16;
    const WORTHWHILE: u8 = 4;
    /// A look in vain takes longer than any other.
    const PRICE_OF_A_MISS: u8 = 3;

    fn after(self, waited: Duration) -> Self {
        Self(match waited <= LOOK {
            true => (self.0 + 1).min(Self::MOST),
            false => self.0.saturating_sub(Self::PRICE_OF_A_MISS),
        })
    }

    fn is_worthwhile(self) -> bool {
        self.0 >= Self::WORTHWHILE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Poll;

    struct NoPeers;

    impl Peers for NoPeers {
        fn in_use(&self) -> usize {
            0
        }

        fn drain(&self) -> bool {
            false
        }
    }

    const SOON: Duration = Duration::from_micros(20);
    const LATE: Duration = Duration::from_millis(1);

    fn after(gaps: &[Duration]) -> Credit {
        gaps.iter().fold(Credit::default(), |credit, gap| credit.after(*gap))
    }

    /// How many of 10,000 events of which so many of a hundred come soon find the thread awake. They are spread evenly.
    fn awake(soon_of_100: usize) -> usize {
        let gap = |i: usize| if (i * 37) % 100 < soon_of_100 { SOON } else { LATE };
        let mut credit = Credit::default();
        (0..10_000)
            .filter(|i| {
                let was_awake = credit.is_worthwhile();
                credit = credit.after(gap(*i));
                was_awake
            })
            .count()
    }

    #[test]
    fn a_thread_stays_awake_when_events_come_soon() {
        assert!(!after(&[SOON; 3]).is_worthwhile());
        assert!(after(&[SOON; 4]).is_worthwhile());
        assert!(awake(100) > 9_990);
        assert!(awake(90) > 9_000);
    }

    #[test]
    fn a_thread_sleeps_when_most_looks_would_be_in_vain() {
        assert_eq!(awake(0), 0);
        assert_eq!(awake(20), 0);
        assert!(awake(50) < 500, "{}", awake(50));
    }

    #[test]
    fn a_long_wait_after_a_busy_time_costs_a_few_looks() {
        let busy = after(&[SOON; 1000]);
        let looks = (0..).scan(busy, |credit, _| {
            let is_worthwhile = credit.is_worthwhile();
            *credit = credit.after(LATE);
            is_worthwhile.then_some(())
        });
        assert_eq!(looks.count(), 5);
    }

    #[test]
    fn cores_are_shared_with_the_other_io_threads_and_with_requests() {
        let may_look = |cpus, io_threads, in_use| BusyPoll::new(cpus, io_threads).may_look(in_use);
        assert!(may_look(2.0, 1, 0) && may_look(2.0, 1, 1) && !may_look(2.0, 1, 2));
        assert!(may_look(16.0, 4, 3) && !may_look(16.0, 4, 4));
        for (cpus, io_threads) in [(0.5, 1), (1.0, 1), (1.9, 1), (4.0, 4)] {
            assert!(!may_look(cpus, io_threads, 0), "{cpus} for {io_threads}");
        }
    }

    /// Awake from the first to the last of events that follow each other, asleep a moment later.
    #[tokio::test]
    async fn a_look_ends_when_nothing_comes() {
        let (busy_poll, sockets) = (BusyPoll::new(2.0, 1), Sockets::default());
        let peers = NoPeers;
        let mut look = std::pin::pin!(busy_poll.look(&peers, &sockets));
        let mut polls = 0;
        std::future::poll_fn(|context| {
            polls += 1;
            if polls < 100 {
                busy_poll.event();
            }
            match look.as_mut().poll(context) {
                Poll::Ready(()) if polls >= 100 => Poll::Ready(()),
                Poll::Ready(()) => panic!("asleep after {polls} events"),
                Poll::Pending => Poll::Pending,
            }
        })
        .await;
    }
}
