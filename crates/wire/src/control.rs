//! What server and engine say to each other over the control socket: one JSON object a line.
//!
//! The server speaks first ([`Start`]), and later orders more threads and asks for signs of life ([`Order`]). When it
//! closes the socket the engine ends at once; an engine that closes it is killed.
//! Everything that has to be fast goes through the shared memory instead.

use crate::confine::{Confined, Confinement};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// File descriptors that an engine finds open when it starts.
pub mod descriptors {
    /// The shared memory.
    pub const MEMORY: i32 = 3;
    /// The control socket.
    pub const CONTROL: i32 = 4;
    /// The first of the eventfds, one for each I/O thread.
    pub const DOORBELLS: i32 = 5;
}

/// Bytes of an event at most, with the line end. An engine that writes a longer line is killed.
pub const MAX_EVENT: usize = 128 * 1024;

/// Server → engine: how to start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// PHP only: `name=value`, over php.ini.
    pub ini: Vec<(String, String)>,
    /// SERVER_SOFTWARE.
    pub software: String,
    /// Of PHP, pool 0 is the classic one.
    pub pools: Vec<PoolStart>,
    /// Compiled modules to load, in the order of the configuration; none for PHP.
    #[serde(default)]
    pub modules: Vec<ModuleStart>,
    /// PHP only: requests that run for longer are told of ([`Event::Slow`]); 0: none.
    #[serde(default)]
    pub slow_after_ms: u64,
    /// PHP only: a request whose client has left and that does nothing but wait for so long is ended ([`Event::Overdue`]); 0: none.
    #[serde(default)]
    pub departed_after_ms: u64,
    /// The number of this process among those that share the memory, below [`crate::MAX_PROCESSES`].
    #[serde(default)]
    pub process: u16,
    /// The threads to begin with.
    pub threads: Vec<ThreadStart>,
    /// What the engine gives up before it does anything else.
    #[serde(default)]
    pub confinement: Confinement,
}

/// Server → engine, at any time after [`Start`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Starts threads, side by side. Threads end by the shared memory ([`crate::Region::retire`]).
    Start { threads: Vec<ThreadStart> },
    /// What is this thread at? Answered with [`Event::Traced`], not necessarily at once.
    Trace { index: u16 },
    /// Looks again and again at what its threads are at. Answered with [`Event::Profiled`], several times; one that is
    /// under way is given up.
    Profile(ProfileOrder),
    /// Is to be answered at once, in the shared memory ([`crate::Engine::answer`]), whatever the threads are doing: an
    /// engine that does not is killed.
    Beat { number: u64 },
}

/// What is to be profiled, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileOrder {
    /// Tells the answers of one order from those of another.
    pub number: u64,
    pub duration_ms: u64,
    /// Looks a second.
    pub hertz: u32,
    /// An index into [`Start::pools`]; `None`: all of them.
    pub pool: Option<u16>,
    /// Only requests whose path begins so; empty: all of them.
    pub path: String,
}

/// A part of a profile. Functions, paths and stacks are numbered in the order that they come in, over all parts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfilePart {
    /// [`ProfileOrder::number`]
    pub number: u64,
    pub functions: Vec<ProfiledFunction>,
    /// Of requests, without the query.
    pub paths: Vec<String>,
    pub stacks: Vec<ProfiledStack>,
    /// In the last part.
    pub end: Option<ProfileEnd>,
}

/// A function of PHP.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProfiledFunction {
    /// `Class::function`; empty: the code of a file outside of functions.
    pub name: String,
    /// Empty of functions that are not of PHP code.
    pub file: String,
}

/// How often threads were seen in these functions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfiledStack {
    pub path: u32,
    /// The outermost first.
    pub functions: Vec<u32>,
    pub samples: u64,
    /// Microseconds that the threads spent on a CPU meanwhile.
    pub cpu_us: u64,
}

/// How a profile went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileEnd {
    pub duration_ms: u64,
    /// Looks at all threads. Fewer than were ordered where the machine is too busy for them.
    pub looks: u64,
    /// Samples that are in no stack, since there were too many different ones.
    pub lost: u64,
}

/// A thread that is to be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadStart {
    /// Its number in the shared memory, which no other thread has.
    pub index: u16,
    /// An index into [`Start::pools`].
    pub pool: u16,
}

/// What the threads of a pool do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolStart {
    pub name: String,
    /// A thread is renewed after this many requests; 0: never.
    pub max_requests: u64,
    /// A thread is renewed after a request that leaves this many bytes allocated; 0: never.
    #[serde(default)]
    pub max_memory: u64,
    /// A thread is renewed after a request when it is so old, in milliseconds; 0: never.
    #[serde(default)]
    pub max_age_ms: u64,
    /// `None`: classic, or not PHP at all.
    pub worker: Option<WorkerStart>,
}

/// A compiled module. One that several services use is named once for each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleStart {
    pub file: PathBuf,
    /// Names and values; a name may occur several times.
    pub config: Vec<(String, String)>,
    /// The pool whose requests it answers, an index into [`Start::pools`]. `None`: it is loaded because other modules
    /// depend on it.
    pub pool: Option<u16>,
}

/// A worker script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerStart {
    pub file: PathBuf,
    /// Entries of `$_SERVER` while it boots.
    pub env: Vec<(String, String)>,
    pub max_consecutive_failures: Option<u32>,
    /// The variables of each request that the script is given after its boot, before it gets those of clients, beside
    /// `env`.
    #[serde(default)]
    pub warmup: Vec<Vec<(String, String)>>,
}

/// What an engine is that runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// PHP's, or the modules' names and versions.
    pub version: String,
    /// Of PHP only.
    pub opcache: Option<Opcache>,
    /// The file of libphp. `None`: it is no PHP, or the system does not say.
    #[serde(default)]
    pub library: Option<PathBuf>,
}

/// Engine → server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The interpreter runs, or the modules are loaded; threads are starting.
    Started(Started),
    /// The threads that it began with have all asked for a client's request at least once.
    Ready,
    /// A thread has ended, and its number can be used again. `error`: it could not be started at all.
    ThreadEnded { index: u16, error: Option<String> },
    /// The process that was this thread has died, and its request with it; the others go on. Only of an engine whose threads
    /// are processes. The thread's number must not be used before [`crate::Region::bury`] and
    /// [`crate::SlotTable::bury`] have been called for it.
    Died {
        index: u16,
        how: String,
        /// What has ended it, if it did not end itself.
        #[serde(default)]
        signal: Option<i32>,
    },
    /// What it has given up, unless it was to give up nothing. Once, before [`Event::Started`].
    Confined(Confined),
    /// A line for the log that belongs to no request.
    Log {
        level: u8,
        message: String,
        /// A JSON object, or empty.
        #[serde(default)]
        context: String,
    },
    /// The engine wants to be replaced by a new generation, since opcache is to be emptied.
    RestartWanted {
        reason: String,
        /// The script that has asked for it; `None`: the cache is full, say.
        #[serde(default)]
        script: Option<String>,
    },
    /// The request that this thread took at this moment, in nanoseconds of [`crate::clock`], does not end for now, though its
    /// time is over. It may yet, but another thread is to take its place; [`Event::Overdue`] follows. Sent once for each.
    Straggles { index: u16, started_ns: u64 },
    /// A request ran for longer than it may: its thread is done with it, or is written off. Sent once for each.
    Overdue(Overdue),
    /// A request has been running for [`Start::slow_after_ms`], and goes on. Sent once for each, unless they are too many.
    Slow(Slow),
    /// What a thread is at, a line for each function, the innermost first; nothing if it runs no code that it could tell of.
    Traced { index: u16, stack: String },
    /// A part of what was ordered.
    Profiled(ProfilePart),
    /// What was ordered cannot be had of this engine.
    ProfileRefused { number: u64, reason: String },
    /// A worker script has ended, and is about to be started again.
    WorkerEnded { worker: String, end: ScriptEnd },
    /// A worker script failed too often in a row; its thread does not start it again.
    WorkerFailed { worker: String, failures: u32 },
    /// A script publishes an update.
    Update(Box<Published>),
    /// A script has stored responses forgotten. Answered in the shared memory ([`crate::Region::answer`]) when they are: how
    /// many they were, or [`REFUSED`].
    Purge(Box<Purging>),
    /// PHP cannot start, or a module cannot be loaded; the engine ends.
    Failed { message: String },
}

/// A request that ran for longer than it may, or after its client had left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overdue {
    /// The thread.
    pub index: u16,
    /// `SCRIPT_FILENAME` and `REQUEST_URI`, which may be cut.
    pub script: String,
    pub uri: String,
    pub limit_ms: u64,
    /// From its start until now.
    pub ran_ms: u64,
    /// Not that: its client had left, and it did nothing but wait for so long as `limit_ms` says.
    #[serde(default)]
    pub departed: bool,
    pub end: OverdueEnd,
    /// What it was at when its time was over, a line for each function, the innermost first; may be empty.
    #[serde(default)]
    pub stack: String,
}

/// A request that runs for long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slow {
    /// As in [`Overdue`].
    pub index: u16,
    pub script: String,
    pub uri: String,
    pub ran_ms: u64,
    /// What it is at, as there.
    pub stack: String,
    /// Others since the last event that were not told of.
    pub omitted: u64,
}

/// What it took to end a request: each means that those before it did not help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OverdueEnd {
    /// PHP ended the script between two opcodes.
    Opcode,
    /// A signal broke a system call off.
    Signal,
    /// The socket that the thread waited for was shut down.
    Socket,
    /// Nothing: the thread does not come back.
    WrittenOff,
    /// Its process was ended, which [`Event::Died`] will tell of.
    Killed,
}

/// An update for the subscribers of a hub of the server's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Published {
    /// As the server has told the engine with the request.
    pub hub: u64,
    pub topics: Vec<String>,
    pub data: String,
    pub private: bool,
    pub id: String,
    pub kind: Option<String>,
    /// Milliseconds.
    pub retry: Option<u64>,
}

/// The answer to what the server does not do.
pub const REFUSED: u64 = u64::MAX;

/// Which stored responses are to be forgotten: all of these.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Purging {
    /// The thread that waits for the answer, and the number of its question.
    pub index: u16,
    pub number: u32,
    /// Within what they must be, as the server has told the engine with the request.
    pub scope: u64,
    pub tags: Vec<String>,
    /// Without the scheme: `example.com/page`.
    pub url: Option<String>,
    /// The same: all whose URLs begin so.
    pub prefix: Option<String>,
}

/// How a worker script ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScriptEnd {
    /// By itself, or because it had handled as many requests as it may.
    Orderly,
    /// By a fatal error, with an exit status that is not 0, or before it asked for a request.
    Crash,
}

/// Whether scripts are cached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Opcache {
    Enabled,
    Disabled,
}

/// A message as it goes over the socket: JSON and a line end.
pub fn encode(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).expect("invariant: our messages have string keys only");
    line.push(b'\n');
    line
}

/// Reads one line.
pub fn decode<'a, T: Deserialize<'a>>(line: &'a str) -> Result<T, serde_json::Error> {
    serde_json::from_str(line)
}
