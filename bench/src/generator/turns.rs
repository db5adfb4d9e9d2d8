//! How long all users of a closed loop take to have their turn.

use std::collections::VecDeque;
use std::time::Duration;

use super::histogram::Latencies;
use super::plan::Pace;

/// The times in which as many answers came as there are users.
///
/// A server that answers in the order of arrival has exactly these as its latencies: all other users come in between
/// two answers of one. So a tail of the latencies beyond the tail of these is requests that others overtook, and the tail
/// of these is a throughput that is not even: of the server, the generator, or the machine that both share.
#[derive(Debug)]
pub struct Turns {
    /// 0: the loop is not closed.
    users: usize,
    /// The latest answers, as many as there are users at most.
    ends: VecDeque<Duration>,
    lengths: Latencies,
}

impl Turns {
    pub fn new(pace: &Pace) -> Self {
        let users = if let Pace::Closed { users } = pace { *users as usize } else { 0 };
        Self { users, ends: VecDeque::new(), lengths: Latencies::default() }
    }

    /// A request has ended.
    pub fn add(&mut self, now: Duration) {
        if self.users == 0 {
            return;
        }
        if self.ends.len() == self.users {
            let earlier = self.ends.pop_front().expect("invariant: there are as many as users");
            self.lengths.record(now.saturating_sub(earlier));
        }
        self.ends.push_back(now);
    }

    pub fn into_lengths(self) -> Latencies {
        self.lengths
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(pace: &Pace, ends: &[u64]) -> Latencies {
        let mut turns = Turns::new(pace);
        ends.iter().for_each(|end| turns.add(Duration::from_millis(*end)));
        turns.into_lengths()
    }

    #[test]
    fn a_turn_is_as_many_answers_as_there_are_users() {
        let lengths = lengths(&Pace::Closed { users: 3 }, &[1, 2, 3, 11, 22, 33]);
        let quantile = |q: f64| lengths.quantile_ms(q).map(f64::round);
        assert_eq!((lengths.count(), quantile(0.0), quantile(1.0)), (3, Some(10.0), Some(30.0)));
    }

    #[test]
    fn an_open_loop_has_none() {
        let open = Pace::Open { rate: 1.0, most_connections: 3 };
        assert_eq!(lengths(&open, &[1, 2, 3, 4, 5]).count(), 0);
    }
}
