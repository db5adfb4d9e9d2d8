//! What lies where in the shared memory. All numbers are little-endian; every structure starts on a cache line.
//!
//! ```text
//! offset 0      Header                       one page: magic, geometry, flags of the whole engine
//!               PoolControl   × pools        head and tail of the FIFO, idle set, wakes in flight
//!               ThreadControl × threads      parker, state, figures
//!               IoControl     × io_threads   "I sleep" flag, summary of dirty words
//!               dirty bits    × io_threads   one u64 for 64 slots
//!               FIFO cells    × pools        one u64 token each
//!               slots         × io_threads × slots_per_io, each on a page boundary:
//!                   SlotControl (512 bytes) │ request head │ request ring │ response ring
//! ```
//! A slot takes much address space and little memory: a page becomes real when it is first written, and a small
//! request touches two (control and head; start of the response ring).

use crate::sync::{AtomicU32, AtomicU64, FutexWord, Ordering};

/// "REGENTW" and the layout's version.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"REGENTW8");
pub(crate) const PAGE: usize = 4096;
const LINE: usize = 64;

/// Most threads of one engine.
pub const MAX_THREADS: usize = 1024;
/// Most processes that share the memory of one engine.
pub const MAX_PROCESSES: usize = 16;
/// Bytes of the payload of the largest frame that a geometry may allow.
const MAX_FRAME: u32 = 1 << 25;
pub(crate) const IDLE_WORDS: usize = MAX_THREADS / 64;
/// Most slots of one I/O thread: what the summary's bits can name.
pub const MAX_SLOTS_PER_IO: usize = SUMMARY_WORDS * 64 * 64;
const SUMMARY_WORDS: usize = 8;

/// The sizes that a server chooses when it makes the memory. Both sides compute every offset from them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// I/O threads of the server, each with slots and a doorbell of its own.
    pub io_threads: u32,
    /// A power of two from 64 to [`MAX_SLOTS_PER_IO`].
    pub slots_per_io: u32,
    pub pools: u32,
    /// At most [`MAX_THREADS`].
    pub threads: u32,
    /// Bytes for a request's encoded head.
    pub head_capacity: u32,
    /// Bytes of a request-body ring; a power of two.
    pub request_capacity: u32,
    /// Bytes of a response ring; a power of two.
    pub response_capacity: u32,
    /// Bytes of the payload of the largest frame.
    pub frame_capacity: u32,
}

/// First page of the memory.
#[repr(C, align(64))]
pub(crate) struct Header {
    pub magic: AtomicU64,
    pub io_threads: AtomicU32,
    pub slots_per_io: AtomicU32,
    pub pools: AtomicU32,
    pub threads: AtomicU32,
    pub head_capacity: AtomicU32,
    pub request_capacity: AtomicU32,
    pub response_capacity: AtomicU32,
    /// 1: threads end when their FIFO is empty.
    pub draining: AtomicU32,
    pub frame_capacity: AtomicU32,
    pad0: u32,
    pad1: [u64; 2],
    /// By the number that the server has given each ([`crate::control::Start::process`]).
    pub processes: [ProcessControl; MAX_PROCESSES],
}

/// A process of the engine that speaks with the server.
#[repr(C)]
pub(crate) struct ProcessControl {
    /// Kernel id of the thread that answers the server's beats, or 0 as long as there is none. Engine.
    pub beat_tid: AtomicU32,
    /// Kernel id of the thread in which a fault ends the process, or 0. Engine.
    pub fault_tid: AtomicU32,
    /// The number of the last beat that was answered. Engine.
    pub beat: AtomicU64,
}

/// Which idle thread gets the next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheduling {
    /// In turn: every thread gets work.
    Spread,
    /// The lowest number first: spare threads stay unused.
    Pack,
}

/// A pool: head and tail on lines of their own, since different processes write them.
#[repr(C, align(64))]
#[derive(Default)]
pub(crate) struct PoolControl {
    pub tail: AtomicU64,
    pad0: [u64; 7],
    pub head: AtomicU64,
    /// Tokens taken whose requests had been withdrawn. Engine.
    pub void_tokens: AtomicU64,
    pad1: [u64; 6],
    /// Wakes in flight.
    pub waking: AtomicU32,
    /// Most wakes in flight; written by the server.
    pub wake_limit: AtomicU32,
    /// Where *spread* goes on.
    pub next_idle: AtomicU32,
    /// 0: spread, 1: pack; written by the server.
    pub scheduling: AtomicU32,
    /// Looks at an empty FIFO before a thread sleeps; written by the server.
    pub spin: AtomicU32,
    /// Idle threads that nobody wakes for a request; written by the server.
    pub kept_asleep: AtomicU32,
    pad2: [u32; 10],
    /// A bit for each thread of the engine that is idle in this pool.
    pub idle: [AtomicU64; IDLE_WORDS],
}

impl PoolControl {
    pub fn scheduling(&self) -> Scheduling {
        match self.scheduling.load(Ordering::Relaxed) {
            1 => Scheduling::Pack,
            _ => Scheduling::Spread,
        }
    }
}

/// What a thread is doing, for lists and metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum ThreadState {
    /// No such thread (yet, or any more).
    Absent = 0,
    /// PHP or the worker script starts.
    Booting = 1,
    Idle = 2,
    Busy = 3,
    /// A worker script that failed waits before it is started again.
    Backoff = 4,
}

impl ThreadState {
    pub(crate) fn from_bits(bits: u32) -> Self {
        match bits {
            1 => Self::Booting,
            2 => Self::Idle,
            3 => Self::Busy,
            4 => Self::Backoff,
            _ => Self::Absent,
        }
    }
}

/// One thread of an engine.
#[repr(C, align(64))]
#[derive(Default)]
pub(crate) struct ThreadControl {
    /// What the thread sleeps on: see `pool`.
    pub parker: FutexWord,
    pub state: AtomicU32,
    pub pool: AtomicU32,
    /// Kernel thread id, or 0.
    pub tid: AtomicU32,
    /// 1: ends before its next request; written by the server.
    pub retire: AtomicU32,
    /// 1: it waits for a request and does nothing else. A script that is not done with the last one is idle, and does
    /// not ask.
    pub asks: AtomicU32,
    /// When it came to its state, in ns of the monotonic clock. A thread that is busy started its request then.
    pub since: AtomicU64,
    /// Time that it has been busy with the requests that have ended, in ns.
    pub busy: AtomicU64,
    /// The token that it runs, as bits; meaningful while busy.
    pub token: AtomicU64,
    /// Requests that it has taken.
    pub requests: AtomicU64,
    /// Script starts after the first one.
    pub restarts: AtomicU64,
    /// Bytes of memory that its last request took at most.
    pub memory: AtomicU64,
    /// The number of its script's last question.
    pub asked: AtomicU32,
    /// The number of the last question that was answered, on which it sleeps; written by the server.
    pub answered: FutexWord,
    /// The answer; written by the server.
    pub answer: AtomicU64,
}

/// One I/O thread's doorbell.
#[repr(C, align(64))]
#[derive(Default)]
pub(crate) struct IoControl {
    /// 1: it sleeps; whoever sets a bit writes its eventfd.
    pub parked: AtomicU32,
    pad0: [u32; 15],
    /// A bit for each word of dirty bits that is not zero.
    pub summary: [AtomicU64; SUMMARY_WORDS],
}

/// One slot. Lines are grouped by writer: the server's, the engine's, and those that both change.
#[repr(C, align(64))]
#[derive(Default)]
pub(crate) struct SlotControl {
    /// Generation and state: see `slot`.
    pub state: AtomicU64,
    /// Bytes of the encoded head.
    pub head_len: AtomicU32,
    pub pool: AtomicU32,
    /// 1: the client has left, or the server gave the request up.
    pub cancelled: AtomicU32,
    /// How the request body stands: see [`BodyState`].
    pub body_state: AtomicU32,
    /// Request ring, bytes written. Server.
    pub request_tail: AtomicU64,
    /// Response ring, bytes read. Server.
    pub response_head: AtomicU64,
    /// When the request began to wait, in ns of the monotonic clock. Server.
    pub submitted: AtomicU64,
    /// How long the request may run from its claim on, in ns; 0: without end. Server.
    pub time_limit: AtomicU64,
    pad0: u64,
    /// Request ring, bytes read. Engine.
    pub request_head: AtomicU64,
    /// Response ring, bytes written. Engine.
    pub response_tail: AtomicU64,
    pad1: [u64; 6],
    /// 1: an engine thread sleeps on `signal`: see `signal`.
    pub engine_waits: AtomicU32,
    /// Counts the server's signals.
    pub signal: FutexWord,
    /// 1: the request ring was full; the server wants to know when there is room.
    pub server_waits: AtomicU32,
    pad2: [u32; 13],
}

/// How the request body stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u32)]
pub enum BodyState {
    /// More may come.
    #[default]
    Open = 0,
    /// What is in the ring is the rest.
    Complete = 1,
    /// It broke off: the client left, was too slow, or sent too much.
    Broken = 2,
}

impl BodyState {
    pub(crate) fn from_bits(bits: u32) -> Self {
        match bits {
            0 => Self::Open,
            1 => Self::Complete,
            _ => Self::Broken,
        }
    }
}

/// Bytes from the start of a slot to the request head.
pub(crate) const SLOT_HEAD: usize = 512;

/// A geometry that no memory can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("invalid geometry of the shared memory: {0}")]
pub struct GeometryError(&'static str);

/// All offsets, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    pub geometry: Geometry,
    pools: usize,
    threads: usize,
    ios: usize,
    dirty: usize,
    cells: usize,
    slots: usize,
    pub slot_size: usize,
    pub total: usize,
}

impl Layout {
    pub fn new(geometry: Geometry) -> Result<Self, GeometryError> {
        check(&geometry)?;
        let g = geometry;
        let pools = PAGE;
        let threads = pools + g.pools as usize * size_of::<PoolControl>();
        let ios = threads + g.threads as usize * size_of::<ThreadControl>();
        let dirty = ios + g.io_threads as usize * size_of::<IoControl>();
        let dirty_size = (g.slots_per_io as usize / 8).next_multiple_of(LINE);
        let cells = dirty + g.io_threads as usize * dirty_size;
        let cells_size = fifo_capacity(&g) * 8;
        let slots = (cells + g.pools as usize * cells_size).next_multiple_of(PAGE);
        let slot_size = (SLOT_HEAD + g.head_capacity as usize).next_multiple_of(PAGE)
            + g.request_capacity as usize
            + g.response_capacity as usize;
        let total = slots + g.io_threads as usize * g.slots_per_io as usize * slot_size;
        Ok(Self { geometry, pools, threads, ios, dirty, cells, slots, slot_size, total })
    }

    pub fn pools(&self) -> usize {
        self.pools
    }

    pub fn threads(&self) -> usize {
        self.threads
    }

    pub fn ios(&self) -> usize {
        self.ios
    }

    pub fn dirty(&self, io: usize) -> usize {
        self.dirty + io * (self.geometry.slots_per_io as usize / 8).next_multiple_of(LINE)
    }

    pub fn cells(&self, pool: usize) -> usize {
        self.cells + pool * fifo_capacity(&self.geometry) * 8
    }

    pub fn slot(&self, slot: usize) -> usize {
        self.slots + slot * self.slot_size
    }

    /// Offset within a slot.
    pub fn request_ring(&self) -> usize {
        (SLOT_HEAD + self.geometry.head_capacity as usize).next_multiple_of(PAGE)
    }

    /// Offset within a slot.
    pub fn response_ring(&self) -> usize {
        self.request_ring() + self.geometry.request_capacity as usize
    }
}

/// Every slot can wait in one pool, four times over: tokens of withdrawn requests stay until they are popped.
pub(crate) fn fifo_capacity(geometry: &Geometry) -> usize {
    (geometry.io_threads as usize * geometry.slots_per_io as usize * 4).next_power_of_two()
}

fn check(g: &Geometry) -> Result<(), GeometryError> {
    let ring = |bytes: u32| bytes.is_power_of_two() && (PAGE as u32..=1 << 24).contains(&bytes);
    let slots = g.slots_per_io as usize;
    let problem = if g.io_threads == 0 || g.io_threads > 256 {
        "I/O threads: 1 to 256"
    } else if !slots.is_power_of_two() || !(64..=MAX_SLOTS_PER_IO).contains(&slots) {
        "slots: a power of two from 64 to 32768"
    } else if g.pools == 0 || g.pools > 4096 {
        "pools: 1 to 4096"
    } else if g.threads == 0 || g.threads as usize > MAX_THREADS {
        "threads: 1 to 1024"
    } else if !(PAGE as u32..=1 << 24).contains(&g.head_capacity) {
        "request head: 4 KiB to 16 MiB"
    } else if !ring(g.request_capacity) || !ring(g.response_capacity) {
        "rings: a power of two from 4 KiB to 16 MiB"
    } else if !(1024..=MAX_FRAME).contains(&g.frame_capacity) {
        "frames: 1 KiB to 32 MiB"
    } else {
        return Ok(());
    };
    Err(GeometryError(problem))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn structures_have_the_documented_sizes() {
        assert_eq!(size_of::<Header>(), 320);
        assert_eq!(size_of::<ProcessControl>(), 16);
        assert_eq!(size_of::<PoolControl>(), 320);
        assert_eq!(size_of::<ThreadControl>(), 128);
        assert_eq!(size_of::<IoControl>(), 128);
        assert_eq!(size_of::<SlotControl>(), 192);
    }
}
