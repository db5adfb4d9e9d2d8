//! Moments at which requests are given up. All of one queue come the same time after their request's start, so the
//! order of starting is the order of expiry: no heap, no wheel.

use std::collections::VecDeque;
use std::time::Duration;

/// A request by the place that it has and its number there, which tells whether it is still the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    pub place: usize,
    pub number: u32,
}

/// Deadlines of requests that were started in order.
#[derive(Debug)]
pub struct Deadlines {
    after: Duration,
    queue: VecDeque<(Duration, Ticket)>,
}

impl Deadlines {
    pub fn new(after: Duration) -> Self {
        Self { after, queue: VecDeque::new() }
    }

    /// Adds a request; `start` must not be before that of the last one.
    pub fn push(&mut self, start: Duration, ticket: Ticket) {
        self.queue.push_back((start.saturating_add(self.after), ticket));
    }

    /// Forgets requests at the front that are over, so that the queue is about as long as requests are under way, and
    /// returns the next one whose time has come.
    pub fn pop_expired(&mut self, now: Duration, is_over: impl Fn(Ticket) -> bool) -> Option<Ticket> {
        while self.queue.front().is_some_and(|(_, ticket)| is_over(*ticket)) {
            self.queue.pop_front();
        }
        self.queue.front().filter(|(deadline, _)| *deadline <= now)?;
        self.queue.pop_front().map(|(_, ticket)| ticket)
    }

    /// The next moment at which something may expire.
    pub fn next(&self) -> Option<Duration> {
        self.queue.front().map(|(deadline, _)| *deadline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn ticket(place: usize) -> Ticket {
        Ticket { place, number: 0 }
    }

    #[test]
    fn requests_expire_in_order_and_not_before_their_time() {
        let mut deadlines = Deadlines::new(3 * SECOND);
        deadlines.push(SECOND, ticket(1));
        deadlines.push(2 * SECOND, ticket(2));
        assert_eq!(deadlines.next(), Some(4 * SECOND));
        assert_eq!(deadlines.pop_expired(3 * SECOND, |_| false), None);
        assert_eq!(deadlines.pop_expired(4 * SECOND, |_| false), Some(ticket(1)));
        assert_eq!(deadlines.pop_expired(4 * SECOND, |_| false), None);
        assert_eq!(deadlines.pop_expired(5 * SECOND, |_| false), Some(ticket(2)));
        assert_eq!(deadlines.next(), None);
    }

    #[test]
    fn requests_that_are_over_are_forgotten_before_their_time() {
        let mut deadlines = Deadlines::new(3 * SECOND);
        (0..10).for_each(|place| deadlines.push(SECOND, ticket(place)));
        assert_eq!(deadlines.pop_expired(SECOND, |ticket| ticket.place < 9), None);
        assert_eq!(deadlines.queue.len(), 1);
        assert_eq!(deadlines.pop_expired(4 * SECOND, |_| false), Some(ticket(9)));
    }
}
