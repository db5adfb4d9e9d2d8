//! What another process and its threads do at an instant.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

/// Files of threads that were not asked for in so many calls are closed.
const FORGOTTEN: u32 = 1_000;
/// The kernel's name of a thread, and what stands before the state besides, are shorter.
const ENOUGH: usize = 64;

/// Reads the states of threads from `/proc`, and keeps the files open: a state then costs one system call. Measured: 90 µs
/// for 100 threads, and 5 µs more for each that is new.
#[derive(Debug, Default)]
pub struct ThreadStates {
    files: HashMap<u32, Kept>,
    calls: u32,
}

#[derive(Debug)]
struct Kept {
    file: File,
    /// The number of the call.
    used: u32,
}

impl ThreadStates {
    /// Whether each thread is on the CPU or waits for it at this instant, in the order of `threads`, which are the kernel
    /// ids of a process and of a thread of it. One that is gone, or that the process never had, does not.
    pub fn runnable(&mut self, threads: &[(u32, u32)]) -> Vec<bool> {
        self.calls = self.calls.wrapping_add(1);
        if self.calls.is_multiple_of(FORGOTTEN) {
            let now = self.calls;
            self.files.retain(|_, kept| now.wrapping_sub(kept.used) < FORGOTTEN);
        }
        threads.iter().map(|&(pid, thread)| self.state(pid, thread) == Some(b'R')).collect()
    }

    /// Closes the files of all other threads. To be called when threads have ended.
    pub fn keep_only(&mut self, threads: &[u32]) {
        self.files.retain(|thread, _| threads.contains(thread));
    }

    /// The letter that proc(5) explains.
    fn state(&mut self, pid: u32, thread: u32) -> Option<u8> {
        // The kernel gives the id of a thread that is gone to another one at times.
        self.read(thread).or_else(|| {
            self.open(pid, thread)?;
            self.read(thread)
        })
    }

    fn read(&mut self, thread: u32) -> Option<u8> {
        let kept = self.files.get_mut(&thread)?;
        kept.used = self.calls;
        let mut text = [0; ENOUGH];
        let state = kept.file.read_at(&mut text, 0).ok().and_then(|length| parse(&text[..length]));
        if state.is_none() {
            self.files.remove(&thread);
        }
        state
    }

    fn open(&mut self, pid: u32, thread: u32) -> Option<()> {
        let file = (thread > 0).then(|| open_stat(pid, thread))??;
        self.files.insert(thread, Kept { file, used: self.calls });
        Some(())
    }
}

/// Of a thread of the process, or of a process of its group that has this id: an engine's threads may be processes.
fn open_stat(pid: u32, thread: u32) -> Option<File> {
    File::open(format!("/proc/{pid}/task/{thread}/stat")).ok().or_else(|| {
        let file = File::open(format!("/proc/{thread}/stat")).ok()?;
        let mut text = [0; ENOUGH];
        let length = file.read_at(&mut text, 0).ok()?;
        (group(&text[..length]) == Some(pid)).then_some(file)
    })
}

/// Who keeps a process from running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Halt {
    None,
    /// A signal did.
    Stopped,
    /// A debugger is attached, which may hold any of its threads at any time.
    Traced,
    /// It has crashed, and the kernel writes its core dump.
    Dumping,
}

/// Reads it from `/proc`. Of a process that is gone: nobody.
pub fn halt(pid: u32) -> Halt {
    fs::read_to_string(format!("/proc/{pid}/status")).map_or(Halt::None, |status| Halt::parse(&status))
}

impl Halt {
    /// `status`: as proc(5) explains. `CoreDumping` is there since Linux 4.15.
    fn parse(status: &str) -> Self {
        let field =
            |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map_or("", str::trim);
        let is_set = |name| !matches!(field(name), "" | "0");
        match field("State:").as_bytes().first() {
            _ if is_set("TracerPid:") => Self::Traced,
            _ if is_set("CoreDumping:") => Self::Dumping,
            Some(b'T') => Self::Stopped,
            _ => Self::None,
        }
    }
}

/// Why a thread does nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// For the CPU, unless it has it, or for the disk, or for something else in the kernel that no signal ends, such as
    /// a core dump.
    Machine,
    /// For whom it was stopped by: a signal or a debugger.
    Halted,
    /// For something else; or it has ended.
    Other,
}

/// Reads it from `/proc`, for a thread of this process or of its group.
pub fn wait(pid: u32, thread: u32) -> Wait {
    let mut text = [0; ENOUGH];
    let length = open_stat(pid, thread).and_then(|file| file.read_at(&mut text, 0).ok());
    let state = length.and_then(|length| parse(&text[..length]));
    state.map_or(Wait::Other, Wait::of)
}

impl Wait {
    fn of(state: u8) -> Self {
        match state {
            b'R' | b'D' | b'I' => Self::Machine,
            b'T' | b't' => Self::Halted,
            _ => Self::Other,
        }
    }
}

/// Of `17 (name) R 1 …`; the name may hold anything.
fn parse(stat: &[u8]) -> Option<u8> {
    let end = stat.iter().rposition(|&byte| byte == b')')?;
    stat.get(end + 2).copied()
}

/// The process group: the third number behind the name.
fn group(stat: &[u8]) -> Option<u32> {
    let end = stat.iter().rposition(|&byte| byte == b')')?;
    let fields = std::str::from_utf8(stat.get(end + 1..)?).ok()?;
    fields.split_ascii_whitespace().nth(2)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::{self, Receiver, Sender};
    use std::thread::JoinHandle;

    /// A thread that waits until it is told to spin, and then for its end.
    struct Subject {
        id: u32,
        spins: Sender<()>,
        ends: Arc<AtomicBool>,
        handle: Option<JoinHandle<()>>,
        spinning: Receiver<()>,
    }

    impl Subject {
        fn start() -> Self {
            let (tell_id, id) = mpsc::channel();
            let (spins, spin) = mpsc::channel();
            let (tell_spinning, spinning) = mpsc::channel();
            let ends = Arc::new(AtomicBool::new(false));
            let end = Arc::clone(&ends);
            let handle = std::thread::spawn(move || {
                tell_id.send(rustix::thread::gettid().as_raw_nonzero().get() as u32).unwrap();
                if spin.recv().is_err() {
                    return;
                }
                tell_spinning.send(()).unwrap();
                while !end.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            Self { id: id.recv().unwrap(), spins, ends, handle: Some(handle), spinning }
        }

        fn spin(&self) {
            self.spins.send(()).unwrap();
            self.spinning.recv().unwrap();
        }

        fn end(&mut self) {
            self.ends.store(true, Ordering::Relaxed);
            self.spins = mpsc::channel().0;
            self.handle.take().unwrap().join().unwrap();
        }
    }

    /// Asks again until the answer is as expected: a thread that is about to sleep is runnable until it does.
    fn becomes(states: &mut ThreadStates, threads: &[u32], expected: &[bool]) {
        while states.runnable(&of_this_process(threads)) != expected {
            std::thread::yield_now();
        }
    }

    fn of_this_process(threads: &[u32]) -> Vec<(u32, u32)> {
        threads.iter().map(|thread| (std::process::id(), *thread)).collect()
    }

    #[test]
    fn a_thread_that_spins_is_runnable_and_one_that_waits_is_not() {
        let (mut waiting, mut spinning) = (Subject::start(), Subject::start());
        let mut states = ThreadStates::default();
        spinning.spin();
        becomes(&mut states, &[waiting.id, spinning.id], &[false, true]);
        becomes(&mut states, &[spinning.id, waiting.id], &[true, false]);

        waiting.spin();
        becomes(&mut states, &[waiting.id, spinning.id], &[true, true]);
        waiting.end();
        spinning.end();
    }

    #[test]
    fn a_thread_that_is_gone_is_not_runnable() {
        let mut subject = Subject::start();
        let mut states = ThreadStates::default();
        subject.spin();
        becomes(&mut states, &[subject.id], &[true]);
        subject.end();
        becomes(&mut states, &[subject.id], &[false]);
        assert!(states.files.is_empty());
    }

    #[test]
    fn a_thread_of_another_process_is_not_taken_for_one_of_this() {
        let mut subject = Subject::start();
        subject.spin();
        let mut states = ThreadStates::default();
        assert_eq!(states.runnable(&[(1, subject.id), (1, 0), (1, u32::MAX)]), [false, false, false]);
        subject.end();
    }

    #[test]
    fn files_of_threads_that_nobody_asks_for_are_closed() {
        let mut subject = Subject::start();
        let mut states = ThreadStates::default();
        states.runnable(&of_this_process(&[subject.id]));
        assert_eq!(states.files.len(), 1);
        for _ in 0..2 * FORGOTTEN {
            states.runnable(&[]);
        }
        assert!(states.files.is_empty());
        subject.end();
    }

    #[test]
    fn files_of_threads_that_have_ended_are_closed_at_once() {
        let (mut one, mut other) = (Subject::start(), Subject::start());
        let mut states = ThreadStates::default();
        states.runnable(&of_this_process(&[one.id, other.id]));
        assert_eq!(states.files.len(), 2);
        one.end();
        states.keep_only(&[other.id]);
        assert_eq!(states.files.keys().collect::<Vec<_>>(), [&other.id]);
        other.end();
    }

    #[test]
    fn who_waits_for_the_cpu_is_told_from_who_waits_for_something_else() {
        let mut subject = Subject::start();
        let me = std::process::id();
        while wait(me, subject.id) != Wait::Other {
            std::thread::yield_now();
        }
        subject.spin();
        assert_eq!(wait(me, subject.id), Wait::Machine);
        subject.end();
        assert_eq!((wait(me, u32::MAX), wait(u32::MAX, 1)), (Wait::Other, Wait::Other));
    }

    #[test]
    fn a_thread_that_is_held_or_waits_in_the_kernel_for_a_core_dump_waits_for_nothing_else() {
        let waits = *b"RDITtSZX";
        let expected =
            [[Wait::Machine; 3].as_slice(), [Wait::Halted; 2].as_slice(), [Wait::Other; 3].as_slice()];
        assert_eq!(waits.map(Wait::of).as_slice(), expected.concat());
    }

    #[test]
    fn who_keeps_a_process_from_running_is_told_by_its_status() {
        let status = |state, tracer, dumping| {
            format!(
                "Name:\tTracerPid: 7\nState:\t{state}\nPid:\t17\nTracerPid:\t{tracer}\nCoreDumping:\t{dumping}\n"
            )
        };
        let cases = [
            (status("S (sleeping)", 0, 0), Halt::None),
            (status("T (stopped)", 0, 0), Halt::Stopped),
            (status("S (sleeping)", 9, 0), Halt::Traced),
            (status("t (tracing stop)", 9, 0), Halt::Traced),
            (status("D (disk sleep)", 0, 1), Halt::Dumping),
            ("Name:\tx\nState:\tT (stopped)\n".to_owned(), Halt::Stopped),
            (String::new(), Halt::None),
        ];
        for (status, expected) in cases {
            assert_eq!(Halt::parse(&status), expected, "{status}");
        }
        assert_eq!(halt(u32::MAX), Halt::None);
    }

    #[test]
    fn a_name_may_look_like_a_state() {
        assert_eq!(parse(b"17 (a) S (b) R 1 2"), Some(b'R'));
        assert_eq!(parse(b"17 (name) S 1 2"), Some(b'S'));
        assert_eq!(parse(b"17 (name)"), None);
        assert_eq!(parse(b""), None);
        assert_eq!(group(b"17 (a) S (b) R 1 2 3"), Some(2));
        assert_eq!(group(b"17 (a) R 1"), None);
    }
}
