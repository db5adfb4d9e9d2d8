//! Engine processes and the queues into them. Nothing here knows HTTP or PHP: a request is a head of variables, a body of
//! bytes and a place in a queue.
//!
//! An [`Engine`] is all that a server has once for each kind of engine: the plan, the memory, the pools, and the
//! [`Supervisor`] that starts processes, replaces and scales them. Each I/O thread has an [`EngineClient`], by which it
//! queues requests and reads responses, and an [`AdmissionControl`], which lets requests in.
#![forbid(unsafe_code)]

mod admission;
mod circuits;
mod engine;
mod engine_client;
mod engine_log;
mod entrance;
mod error;
mod kind;
mod machine;
mod plan;
mod pools;
mod process;
mod program;
mod queue_signal;
mod rules;
mod setup;
mod supervisor;
mod tasks;
mod thread_table;

pub use admission::{Admission, AdmissionControl, Aim, Course, Held, InFlight, Observer, Shed};
pub use circuits::CircuitBreaker;
pub use engine::{Engine, EngineControl};
pub use engine_client::{ClientStart, ClientWatch, EngineClient, EngineClients, Refused, Running, Submitted};
pub use engine_log::{LogPace, Origin, Subject, log_line};
pub use entrance::Entrance;
pub use error::EngineError;
pub use kind::EngineKind;
pub use machine::{Memory, cpus, memory};
pub use plan::{EnginePlan, PoolPlan, ServerFacts, ThreadCounts};
pub use pools::{Pool, Pools};
pub use program::{Descriptors, EngineChild, Launch, Launcher, Program};
pub use regent_wire::control::Published;
pub use rules::{AdmissionBounds, QueueRules};
pub use setup::{Answer, PurgeSink, Sinks, StartUntil, UpdateSink};
pub use supervisor::{
    CommandRefused, GenerationView, Php, PoolView, ProfileWish, ScaleEvent, Supervisor, SupervisorHandle,
    ThreadListing, View,
};
pub use tasks::{RunEnd, TaskBoard, TaskOrder, TaskPhase, TaskRefused, TaskRun, TaskView, Tasks, Unchanged};
pub use thread_table::ThreadStage;
