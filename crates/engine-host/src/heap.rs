//! Memory of the process: its pages, and what ended threads have left behind.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The server has no huge pages for itself, and what it starts inherits that; whether PHP and modules have them is as the
/// machine is set up. To be called first of all.
pub fn allow_huge_pages() {
    // A kernel that was built without them (Linux 3.15 has the call) has none to allow.
    let _ = rustix::thread::disable_transparent_huge_pages(false);
}

/// Gives it back to the system, for all threads of a process.
#[derive(Debug, Default)]
pub struct Heap {
    /// Threads whose memory is being given back.
    leftovers: AtomicUsize,
}

impl Heap {
    /// The calling thread is about to end. The allocator keeps what it has freed for later ones, which may never come.
    pub fn give_back(&self) {
        self.give_back_by(trim);
    }

    /// Threads end by the dozen, and each trim goes through all of the heap, with interrupts to every core: while one of them
    /// is at it, it trims for the others.
    fn give_back_by(&self, trim: impl Fn()) {
        if self.leftovers.fetch_add(1, Ordering::AcqRel) > 0 {
            return;
        }
        let mut seen = 1;
        loop {
            trim();
            match self.leftovers.compare_exchange(seen, 0, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }
}

fn trim() {
    #[cfg(target_env = "gnu")]
    // SAFETY: law 5 is not touched: no pointer is passed; the allocator locks what it looks at.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_trim_that_another_thread_missed_is_made_up_for() {
        let heap = Heap::default();
        let trims = Cell::new(0);
        let another_thread_ends = || heap.give_back_by(|| panic!("two trims at once"));
        heap.give_back_by(|| {
            trims.set(trims.get() + 1);
            if trims.get() < 3 {
                another_thread_ends();
                another_thread_ends();
            }
        });
        assert_eq!((trims.get(), heap.leftovers.into_inner()), (3, 0));
    }
}
