//! The protocol between the server and an engine: shared memory, eventfds and a control socket.
//!
//! This page and the pages it names say all that a second engine, in another language, needs to know;
//! `include/regent_wire.h` says it in C.
//!
//! # What an engine is given
//! A process with the file descriptors of [`control::descriptors`]: the memory, the control socket, one eventfd for
//! each I/O thread of the server. It reads one line from the control socket ([`control::Start`]), maps the memory
//! ([`layout`]), starts its threads and writes [`control::Event`]s to the socket. When the socket closes, or the
//! server dies, it ends at once. Engines in Rust share `regent-engine-host`.
//!
//! # The life of a request
//! 1. The server takes a free slot of the I/O thread, writes the head ([`head`]), as much of the body as is there, sets
//!    the slot's state to *queued* ([`slot`]) and pushes the token on the pool's FIFO ([`fifo`]). It wakes a thread if
//!    one sleeps and no wake is in flight ([`pool`]).
//! 2. An engine thread pops the token and claims the slot with a compare-and-swap from *queued* to *running*. If that
//!    fails the request was withdrawn: it pops the next.
//! 3. The thread reads the body from the request ring ([`ring`]), sleeping on the slot's futex when it is empty, and
//!    writes frames ([`frame`]) to the response ring, sleeping when it is full. After each publication it marks the
//!    slot in the I/O thread's doorbell ([`doorbell`]) and writes the eventfd if that thread sleeps.
//! 4. It sets the state to *done*, marks the slot a last time (without the eventfd: nobody waits for it), and pops the
//!    next token. The server has read the response to its end frame by then or does so now, and the slot is free.
//!
//! # Cancellation
//! A request that waits is withdrawn by the server with a compare-and-swap from *queued* to *free*; its token in the
//! FIFO is void, because the generation no longer fits. For one that runs, the server sets `cancelled` and wakes the
//! thread; the engine may go on, what it writes is thrown away.
//!
//! # Death
//! Each engine has memory of its own. When it dies the server makes new memory, moves what was queued there in order,
//! fails what was running, and starts the next engine on it ([`SlotTable::move_requests`]). A process of a multi-process
//! engine may be killed at any instruction: the FIFO has no state in between (see [`fifo`]), the slot's state says
//! whose request it was, and what the dead had announced is taken back ([`Region::bury`], [`SlotTable::bury`]).
//!
//! # Trust
//! The engine trusts the server. The server trusts nothing it reads: positions are checked against its own copies,
//! frames against the ring, numbers against their bounds. An engine that lies loses its own requests. What cannot be is
//! noted ([`Damage`]), and a few times a second all of it is looked at ([`EngineMemory::inspect`], [`SlotTable::inspect`]), so that
//! no request waits on memory that was damaged: its engine is killed, and the next one gets what had not begun.
//!
//! # What shows it
//! | invariant | shown by |
//! |---|---|
//! | no wake-up, token, mark or byte is lost; a request runs once; a reused slot answers nobody else | `models`: loom, every interleaving within their bounds |
//! | every request is accounted for exactly once, with clients that leave at any moment | `tests/stress.rs` |
//! | every request of an engine that is killed is answered once, lost or moved, in order | `tests/processes.rs`, `tests/rescue.rs` |
//! | a process that dies takes its own requests only | `tests/processes.rs`, `tests/rescue.rs` |
//! | back-pressure, cancellation, drain, retirement, bounds of slots and queue | `tests/requests.rs` |
//! | an engine that writes anything anywhere harms its own requests only | `tests/hostile.rs` |
//! | an engine that keeps the protocol is never taken for one that damages the memory | `tests/stress.rs`, `tests/damage.rs` |
//! | damage by which requests would wait for ever is found | `tests/damage.rs` |
//! | this description is enough for another engine | `include/regent_wire.h`, compared in `c_header`; `tests/engine.c`, written from it |

// The models use a part of it.
#![cfg_attr(loom, allow(dead_code, unused_imports))]

#[cfg_attr(loom, path = "models/area.rs")]
mod area;
#[cfg(not(loom))]
mod assembly;
#[cfg(all(test, not(loom)))]
mod c_header;
#[cfg(not(loom))]
pub mod clock;
#[cfg(not(loom))]
pub mod confine;
#[cfg(not(loom))]
pub mod control;
#[cfg(not(loom))]
mod damage;
mod doorbell;
#[cfg(not(loom))]
mod engine;
#[cfg(not(loom))]
mod engine_memory;
mod fifo;
#[cfg(not(loom))]
pub mod frame;
#[cfg(not(loom))]
#[doc(hidden)]
pub mod fuzzing;
#[cfg(not(loom))]
pub mod head;
mod layout;
#[cfg(not(loom))]
pub mod log_line;
#[cfg(loom)]
mod models;
#[cfg(not(loom))]
pub mod names;
mod pipe;
mod pool;
#[cfg(not(loom))]
mod question;
#[cfg(not(loom))]
mod region;
mod ring;
mod signal;
mod slot;
#[cfg(not(loom))]
mod slot_table;
mod sync;

#[cfg(not(loom))]
pub use damage::Damage;
#[cfg(not(loom))]
pub use engine::{Engine, EngineThread, FIELD, Siblings};
#[cfg(not(loom))]
pub use engine_memory::EngineMemory;
#[cfg(not(loom))]
pub use frame::{Completion, End, Frame, HeadKind, LogLine, ResponseHead, Timing, Trailers};
#[cfg(not(loom))]
pub use head::{Head, HeadBlock, HeadBuilder, RequestLine, Variable};
pub use layout::{
    BodyState, Geometry, GeometryError, MAX_PROCESSES, MAX_SLOTS_PER_IO, MAX_THREADS, Scheduling, ThreadState,
};
pub use pipe::{BodyBroken, ClientGone};
#[cfg(not(loom))]
pub use region::{Heartbeat, Region, RegionError, ThreadView};
pub use slot::{SlotState, Token};
#[cfg(not(loom))]
pub use slot_table::{Cancelled, ReadError, Repeats, Rescued, SlotTable, SubmitError};
