//! Questions of scripts that the server answers: asked over the control socket, and answered in the memory of the thread, where
//! processes have theirs too.

use crate::clock;
use crate::engine::EngineThread;
use crate::region::Region;
use crate::sync::{Ordering, futex_wait_for, futex_wake};
use std::time::Duration;

impl Region {
    /// Server: answers a question of a thread's script. Nothing happens if there is no such thread. Answers to one thread are
    /// given in the order of its questions.
    pub fn answer(&self, thread: usize, number: u32, answer: u64) {
        if thread >= self.geometry().threads as usize {
            return;
        }
        let control = self.thread(thread);
        control.answer.store(answer, Ordering::Relaxed);
        control.answered.store(number, Ordering::Release);
        futex_wake(&control.answered);
    }
}

impl EngineThread {
    /// A number for a question to the server, which no question of this thread has had for long.
    pub fn next_question(&self) -> u32 {
        self.control().asked.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }

    /// Waits for the answer ([`Region::answer`]). `None`: there was none so long, or one to a later question.
    pub fn wait_for_answer(&self, number: u32, patience: Duration) -> Option<u64> {
        let control = self.control();
        let deadline = clock::now() + patience;
        loop {
            let answered = control.answered.load(Ordering::Acquire);
            if answered == number {
                return Some(control.answer.load(Ordering::Relaxed));
            }
            let left = deadline.checked_sub(clock::now()).filter(|left| !left.is_zero())?;
            futex_wait_for(&control.answered, answered, left);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::layout::Geometry;
    use crate::{Engine, Region};
    use std::sync::Arc;

    #[test]
    fn an_answer_wakes_who_asked_and_an_old_one_is_none() {
        let geometry = Geometry {
            io_threads: 1,
            slots_per_io: 64,
            pools: 1,
            threads: 2,
            head_capacity: 65536,
            request_capacity: 65536,
            response_capacity: 65536,
            frame_capacity: 131_072,
        };
        let doorbell = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).unwrap();
        let engine = Arc::new(Engine::new(0, Region::create(geometry).unwrap(), vec![doorbell]));
        let thread = EngineThread::new(Arc::clone(&engine), 1, 0);
        let first = thread.next_question();
        assert_eq!(thread.wait_for_answer(first, Duration::from_millis(1)), None);
        engine.region().answer(1, first, 7);
        let second = thread.next_question();
        assert_ne!(first, second);
        assert_eq!(thread.wait_for_answer(second, Duration::from_millis(1)), None, "that was to the first");
        engine.region().answer(1000, second, 8); // no such thread
        let server = std::thread::spawn(move || engine.region().answer(1, second, 9));
        assert_eq!(thread.wait_for_answer(second, Duration::from_secs(60)), Some(9));
        server.join().unwrap();
    }
}
