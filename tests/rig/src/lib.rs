//! A server in the process of a test, with an engine that the test plays over `wire`: no PHP, no processes.
//!
//! All of the server is the real one, put together by `regent_server::start`: real sockets, connections, sites, queues, the
//! supervisor, the admin API. Only what starts engines ([`regent_server::Launcher`]) is the rig's own. A process of an engine is
//! some threads here, which take requests from the shared memory and hand them to the test as [`Call`]s.
//!
//! ```no_run
//! use regent_rig::Setup;
//!
//! let rig = Setup::new().start();
//! let mut client = rig.ask("/index.php");
//! let call = rig.call();
//! assert_eq!(call.variable("REQUEST_URI"), Some("/index.php"));
//! call.answer(200, "hello");
//! assert_eq!(client.response().expect(200).text(), "hello");
//! ```
//!
//! Nothing here waits for a time to pass: a test says what happens next, and waits for what must come of it.
#![forbid(unsafe_code)]

mod call;
mod log;
mod process;
mod rig;
mod stage;
mod threads;

pub use call::Call;
pub use log::LogReader;
pub use regent_tests::{Admin, Conn, DEADLINE, Response, until};
pub use rig::{Rig, Setup, get};
