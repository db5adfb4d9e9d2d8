//! How much a thread of another process has computed.

use std::fs;
use std::time::Duration;

/// The CPU time of a thread so far. A thread that is a process is the only one of its own, whatever process is named.
/// `None`: it is gone, or the kernel keeps no such account.
pub fn cpu_time(pid: u32, thread: u32) -> Option<Duration> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{thread}/schedstat"))
        .or_else(|_| fs::read_to_string(format!("/proc/{thread}/schedstat")));
    parse(&text.ok()?)
}

/// Of `12345 678 9`, of which the first is the time on the CPU in ns (the kernel's sched-stats.rst).
fn parse(text: &str) -> Option<Duration> {
    text.split_ascii_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_computes_has_more() {
        let (pid, thread) = (std::process::id(), rustix::thread::gettid().as_raw_nonzero().get() as u32);
        let begin = cpu_time(pid, thread).unwrap();
        while cpu_time(pid, thread).unwrap() < begin + Duration::from_millis(5) {}
        assert_eq!(cpu_time(pid, u32::MAX), None);
    }

    #[test]
    fn what_is_no_number_is_no_time() {
        assert_eq!(parse("1500000 7 8\n"), Some(Duration::from_micros(1500)));
        assert_eq!((parse(""), parse("many 7 8")), (None, None));
    }
}
