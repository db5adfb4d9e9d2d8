//! Connections that wait for their next request.

use crate::connection::Task;
use crate::upload::Upload;
use hyper::client::conn::http1;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::{Rc, Weak};
use std::time::Duration;
use tokio::time::Instant;

pub(crate) struct Idle {
    pub sender: http1::SendRequest<Upload>,
    pub task: Task,
    pub since: Instant,
}

/// Those to one upstream, the one that has waited longest first.
pub(crate) struct Waiting<T = Idle>(RefCell<VecDeque<T>>);

/// Those to all upstreams of a directive, on one I/O thread.
pub(crate) struct Shelf<T = Idle> {
    /// 0: no limit.
    most: usize,
    /// Not kept where there is no limit.
    all: RefCell<Vec<Weak<Waiting<T>>>>,
}

/// What has waited since then.
pub(crate) trait Since {
    fn since(&self) -> Instant;
}

impl Since for Idle {
    fn since(&self) -> Instant {
        self.since
    }
}

impl Waiting {
    /// The one that was used last.
    pub fn take(&self, keepalive: Duration) -> Option<Idle> {
        loop {
            let idle = self.0.borrow_mut().pop_back()?;
            if idle.sender.is_ready() && !idle.sender.is_closed() && idle.since.elapsed() < keepalive {
                return Some(idle);
            }
        }
    }

    /// Closes what has waited for too long; how long until more has, if there is more.
    pub fn close_expired(&self, keepalive: Duration) -> Option<Duration> {
        let mut all = self.0.borrow_mut();
        all.retain(|idle| !idle.sender.is_closed() && idle.since.elapsed() < keepalive);
        all.front().map(|idle| keepalive.saturating_sub(idle.since.elapsed()))
    }
}

impl<T> Waiting<T> {
    pub fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    pub fn close_oldest(&self) {
        self.0.borrow_mut().pop_front();
    }

    /// Closes those that have waited longest, if there are more than `most` then.
    pub fn put(&self, idle: T, most: usize) {
        let mut all = self.0.borrow_mut();
        all.push_back(idle);
        while all.len() > most {
            all.pop_front();
        }
    }
}

impl<T: Since> Shelf<T> {
    pub fn new(most: u16) -> Rc<Self> {
        Rc::new(Self { most: usize::from(most), all: RefCell::default() })
    }

    /// A place for those to one more upstream.
    pub fn place(&self) -> Rc<Waiting<T>> {
        let place = Rc::new(Waiting(RefCell::default()));
        if self.most > 0 {
            let mut all = self.all.borrow_mut();
            all.retain(|waiting| waiting.strong_count() > 0);
            all.push(Rc::downgrade(&place));
        }
        place
    }

    /// Closes those that have waited longest, of whichever upstream, until there are no more than there may be.
    pub fn tidy(&self) {
        if self.most == 0 {
            return;
        }
        let all: Vec<_> = self.all.borrow().iter().filter_map(Weak::upgrade).collect();
        let count: usize = all.iter().map(|waiting| waiting.0.borrow().len()).sum();
        for _ in self.most..count {
            let oldest = all.iter().filter(|waiting| !waiting.is_empty());
            let oldest = oldest.min_by_key(|waiting| waiting.0.borrow().front().map(Since::since));
            oldest.into_iter().for_each(|waiting| drop(waiting.0.borrow_mut().pop_front()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Since for Instant {
        fn since(&self) -> Instant {
            *self
        }
    }

    fn waiting(waiting: &Waiting<Instant>, begin: Instant) -> Vec<u64> {
        waiting.0.borrow().iter().map(|since| (*since - begin).as_secs()).collect()
    }

    #[test]
    fn those_that_have_waited_longest_are_closed_of_whichever_upstream() {
        let shelf = Shelf::new(3);
        let (one, other) = (shelf.place(), shelf.place());
        drop(shelf.place());
        let begin = Instant::now();
        for second in [1, 2, 5] {
            one.put(begin + Duration::from_secs(second), 9);
        }
        for second in [3, 4] {
            other.put(begin + Duration::from_secs(second), 9);
        }
        shelf.tidy();
        assert_eq!((waiting(&one, begin), waiting(&other, begin)), (vec![5], vec![3, 4]));
        other.put(begin + Duration::from_secs(6), 2);
        shelf.tidy();
        assert_eq!((waiting(&one, begin), waiting(&other, begin)), (vec![5], vec![4, 6]));
    }

    #[test]
    fn without_a_limit_nothing_is_closed() {
        let shelf = Shelf::new(0);
        let place = shelf.place();
        (0..100).for_each(|_| place.put(Instant::now(), 1000));
        shelf.tidy();
        assert_eq!(place.0.borrow().len(), 100);
        assert!(shelf.all.borrow().is_empty());
    }
}
