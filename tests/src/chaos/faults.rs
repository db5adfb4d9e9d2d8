//! What goes wrong: every fault with what it must be answered, what it ends, and whom it may harm.

use super::Engine;
use rustix::process::Signal;
use std::fmt;

/// A fault that can be injected again and again.
pub struct Fault {
    pub name: &'static str,
    pub kind: Kind,
    pub deed: Deed,
    /// The engine that dies of it.
    pub kills: Option<Engine>,
    pub harms: Harm,
}

/// For the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Crash,
    Hang,
    Exhaustion,
    Mischief,
    Operation,
}

/// Who may get no answer because of it, beside the request that is the fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Harm {
    Nobody,
    /// What ran in the engine at the instant of its death, as the server's log names it: 502.
    Running,
    /// The same, and 504 if the time of such a request is over before the engine is given up.
    Stopped,
    /// What was in the engine from the fault to its death: the process was not itself any more.
    Process,
}

pub enum Deed {
    /// So many requests at once, and how each is answered.
    Ask(usize, &'static str, Expected),
    /// From outside.
    Signal(Signal),
    Operate(Operation),
}

pub enum Expected {
    Status(&'static [u16]),
    /// Status 200.
    Text(&'static str),
}

/// What operators do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    RestartWorkers,
    RestartNative,
    /// A configuration for which no engine is replaced.
    Reload,
    /// One for which the engine of PHP is.
    ReloadEngine,
    /// Everything anew.
    ReloadForced,
    /// One that is wrong.
    ReloadWrong,
    /// A file that is watched changes.
    Touch,
    /// The link to the current release leads elsewhere, and the old release goes.
    Deploy,
    /// Another process takes the server's place.
    Upgrade,
}

const LOST: Expected = Expected::Status(&[502]);
const TIMED_OUT: Expected = Expected::Status(&[504]);
const FAILED: Expected = Expected::Status(&[500]);

/// All of them. In the order of the report.
pub static FAULTS: &[Fault] = &[
    crash("SIGSEGV in a script", "/faults/segfault.php", Engine::Php),
    crash("null pointer in C, in a worker", "/worker.php?run=null", Engine::Php),
    crash("abort() in C", "/faults/abort.php", Engine::Php),
    crash("_exit(77), in a worker", "/worker.php?run=ends_process", Engine::Php),
    crash("becomes another program", "/faults/becomes_another.php", Engine::Php),
    killed("SIGKILL to PHP", Signal::KILL, Engine::Php),
    Fault { harms: Harm::Stopped, ..killed("SIGSTOP to PHP", Signal::STOP, Engine::Php) },
    crash("SIGSEGV in a module", "/trouble/segv", Engine::Native),
    crash("abort() in a module", "/trouble/abort", Engine::Native),
    crash("_exit(0) in a module", "/trouble/exit", Engine::Native),
    crash("stack overflow in a module", "/trouble/overflow", Engine::Native),
    killed("SIGKILL to the modules", Signal::KILL, Engine::Native),
    ruin("closes all descriptors", "/faults/closes.php"),
    ruin("writes into the shared memory", "/faults/writes_into_memory.php"),
    ruin("babbles into all sockets", "/faults/babbles.php"),
    hang("sleep()", "/faults/sleeps.php"),
    hang("TCP read", "/faults/reads.php"),
    hang("TCP read, in a worker", "/worker.php?run=reads"),
    hang("flock()", "/faults/locks.php"),
    hang("loop", "/faults/computes.php"),
    hang("loop, in a worker", "/worker.php?run=computes"),
    hang("function of C", "/faults/never_returns.php"),
    Fault { deed: Deed::Ask(12, "/faults/sleeps.php?many", TIMED_OUT), ..hang("sleep(), 12 at once", "") },
    exhaustion("memory_limit", "/faults/memory_limit.php"),
    exhaustion("memory_limit, in a worker", "/worker.php?run=memory_limit"),
    exhaustion("deep recursion", "/faults/recursion.php"),
    Fault {
        deed: Deed::Ask(1, "/faults/memory.php", Expected::Status(&[500, 502])),
        harms: Harm::Process,
        ..exhaustion("all memory of the process", "")
    },
    mischief("exit(-1)", "/faults/exits.php", "left"),
    mischief("exit(-1), in a worker", "/worker.php?run=exits", "left"),
    mischief("pcntl_fork()", "/faults/forks.php", "forked"),
    mischief(KILLS_PARENT, "/faults/kills_parent.php", "refused 4"),
    mischief("opcache_reset()", "/faults/resets_opcache.php", "reset"),
    operation("workers restart", Operation::RestartWorkers),
    operation("native restart", Operation::RestartNative),
    operation("reload", Operation::Reload),
    operation("reload, another engine", Operation::ReloadEngine),
    operation("reload --force", Operation::ReloadForced),
    operation("reload of what is wrong", Operation::ReloadWrong),
    operation("watched file changes", Operation::Touch),
    operation("new release, the old one deleted", Operation::Deploy),
    operation("upgrade", Operation::Upgrade),
];

/// Only where engines have a user of their own.
const KILLS_PARENT: &str = "kills its parent";

impl Fault {
    /// Whether it is refused by the kernel only if PHP has another user than the server.
    pub fn needs_user(&self) -> bool {
        self.name == KILLS_PARENT
    }

    pub fn is(&self, operation: Operation) -> bool {
        matches!(self.deed, Deed::Operate(own) if own == operation)
    }
}

const fn crash(name: &'static str, target: &'static str, engine: Engine) -> Fault {
    let deed = Deed::Ask(1, target, LOST);
    Fault { name, kind: Kind::Crash, deed, kills: Some(engine), harms: Harm::Running }
}

const fn killed(name: &'static str, signal: Signal, engine: Engine) -> Fault {
    let deed = Deed::Signal(signal);
    Fault { name, kind: Kind::Crash, deed, kills: Some(engine), harms: Harm::Running }
}

const fn ruin(name: &'static str, target: &'static str) -> Fault {
    let deed = Deed::Ask(1, target, LOST);
    Fault { name, kind: Kind::Crash, deed, kills: Some(Engine::Php), harms: Harm::Process }
}

const fn hang(name: &'static str, target: &'static str) -> Fault {
    Fault { name, kind: Kind::Hang, deed: Deed::Ask(1, target, TIMED_OUT), kills: None, harms: Harm::Nobody }
}

const fn exhaustion(name: &'static str, target: &'static str) -> Fault {
    Fault {
        name,
        kind: Kind::Exhaustion,
        deed: Deed::Ask(1, target, FAILED),
        kills: None,
        harms: Harm::Nobody,
    }
}

const fn mischief(name: &'static str, target: &'static str, text: &'static str) -> Fault {
    let deed = Deed::Ask(1, target, Expected::Text(text));
    Fault { name, kind: Kind::Mischief, deed, kills: None, harms: Harm::Nobody }
}

const fn operation(name: &'static str, operation: Operation) -> Fault {
    let deed = Deed::Operate(operation);
    Fault { name, kind: Kind::Operation, deed, kills: None, harms: Harm::Nobody }
}

impl Expected {
    /// What is wrong with this answer.
    pub fn check(&self, status: u16, text: &str) -> Result<(), String> {
        let is_right = match self {
            Self::Status(expected) => expected.contains(&status),
            Self::Text(expected) => status == 200 && text == *expected,
        };
        if is_right { Ok(()) } else { Err(format!("{status} {text:.200}")) }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Crash => "crash",
            Self::Hang => "hang",
            Self::Exhaustion => "exhaustion",
            Self::Mischief => "mischief",
            Self::Operation => "operation",
        })
    }
}
