//! What the policy decides, and why.

use std::fmt;
use std::time::Duration;

/// What to do with a pool. Counts are not zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Decision {
    Keep,
    /// Start threads, all at once.
    Add {
        count: u16,
        reason: Reason,
    },
    /// End threads: idle ones first, and busy ones when their request is over.
    Remove {
        count: u16,
        reason: Reason,
    },
}

/// Why a pool is changed, in the words of the log: "queue head waited 3.2 ms, 96 % blocked: 10 → 26".
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reason {
    pub cause: Cause,
    /// The pool's threads before.
    pub from: u32,
    /// The pool's threads after.
    pub to: u32,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cause {
    /// Requests wait though the CPU does not limit them. `blocked` is the share of busy threads that are off the CPU.
    Stall {
        waited: Duration,
        blocked: f64,
    },
    /// Requests wait behind others that take far longer, and the CPU is the limit.
    BesideSlow {
        waited: Duration,
        slow: u32,
    },
    /// Stalls were seen, and boots are slow.
    Reserve,
    BelowLeast,
    AboveMost,
    /// So many threads were not needed at any time in the last `since`.
    Idle {
        surplus: u32,
        since: Duration,
    },
    /// Runnable threads crowd the CPU.
    Crowd,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} → {}", self.cause, self.from, self.to)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stall { waited, blocked } => {
                let (ms, percent) = (waited.as_secs_f64() * 1e3, blocked * 100.0);
                write!(f, "queue head waited {ms:.1} ms, {percent:.0} % blocked")
            }
            Self::BesideSlow { waited, slow } => {
                write!(
                    f,
                    "queue head waited {:.1} ms beside {slow} slow requests",
                    waited.as_secs_f64() * 1e3
                )
            }
            Self::Reserve => f.write_str("too few in reserve after a stall"),
            Self::BelowLeast => f.write_str("below the minimum"),
            Self::AboveMost => f.write_str("above the maximum"),
            Self::Idle { surplus, since } => write!(f, "{surplus} not needed for {since:?}"),
            Self::Crowd => f.write_str("more runnable than the CPU can use"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_reads_as_a_sentence() {
        let cause = Cause::Stall { waited: Duration::from_micros(3_180), blocked: 0.961 };
        let reason = Reason { cause, from: 10, to: 26 };
        assert_eq!(reason.to_string(), "queue head waited 3.2 ms, 96 % blocked: 10 → 26");

        let cause = Cause::BesideSlow { waited: Duration::from_millis(7), slow: 3 };
        let reason = Reason { cause, from: 4, to: 5 };
        assert_eq!(reason.to_string(), "queue head waited 7.0 ms beside 3 slow requests: 4 → 5");

        let cause = Cause::Idle { surplus: 6, since: Duration::from_secs(5) };
        assert_eq!(Reason { cause, from: 30, to: 28 }.to_string(), "6 not needed for 5s: 30 → 28");
    }
}
