//! How much a client may do of what costs it less than the server.

use regent_net::CoarseInstant;
use std::cell::Cell;

/// A number that is taken from, and grows with time.
#[derive(Debug)]
pub(crate) struct Allowance {
    left: Cell<u32>,
    most: u32,
    per_second: u32,
    /// When it last grew.
    grown: Cell<CoarseInstant>,
}

impl Allowance {
    /// `most` at first and at any time.
    pub fn new(most: u32, per_second: u32) -> Self {
        Self { left: Cell::new(most), most, per_second, grown: Cell::new(CoarseInstant::now()) }
    }

    /// Takes one, or says that there is none. The clock is looked at only when it seems so.
    pub fn take(&self) -> bool {
        if self.left.get() == 0 {
            self.grow(CoarseInstant::now());
        }
        let left = self.left.get().checked_sub(1);
        self.left.set(left.unwrap_or_default());
        left.is_some()
    }

    pub fn give(&self, more: u32) {
        self.left.set(self.left.get().saturating_add(more).min(self.most));
    }

    fn grow(&self, now: CoarseInstant) {
        let seconds = now.since(self.grown.get()).as_secs();
        if seconds > 0 {
            self.grown.set(now);
            self.give(u32::try_from(seconds).unwrap_or(u32::MAX).saturating_mul(self.per_second));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn it_is_used_up_and_grows_again() {
        let allowance = Allowance::new(3, 2);
        assert_eq!([(); 5].map(|()| allowance.take()), [true, true, true, false, false]);
        allowance.give(1);
        assert_eq!([(); 2].map(|()| allowance.take()), [true, false]);
        let later = allowance.grown.get().after(Duration::from_secs(1));
        allowance.grow(later);
        assert_eq!([(); 3].map(|()| allowance.take()), [true, true, false]);
        allowance.grow(later.after(Duration::from_secs(3600)));
        assert_eq!([(); 4].map(|()| allowance.take()), [true, true, true, false], "never more than at first");
    }
}
