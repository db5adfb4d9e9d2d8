//! The SAPI alone, run by a small C host instead of the Rust one: what PHP scripts see and what their clients get.

#[path = "sapi/body.rs"]
mod body;
#[path = "sapi/ends_within.rs"]
mod ends_within;
#[path = "sapi/environment.rs"]
mod environment;
#[path = "sapi/errors.rs"]
mod errors;
#[path = "sapi/functions.rs"]
mod functions;
#[path = "sapi/locale.rs"]
mod locale;
#[path = "sapi/opcache.rs"]
mod opcache;
#[path = "sapi/process.rs"]
mod process;
#[path = "sapi/request.rs"]
mod request;
#[path = "sapi/response.rs"]
mod response;
#[path = "sapi/server_array.rs"]
mod server_array;
#[path = "sapi/signals.rs"]
mod signals;
mod support;
#[path = "sapi/text_domain.rs"]
mod text_domain;
#[path = "sapi/thread_state.rs"]
mod thread_state;
#[path = "sapi/time_limit.rs"]
mod time_limit;
#[path = "sapi/worker.rs"]
mod worker;
#[path = "sapi/worker_start.rs"]
mod worker_start;
#[path = "sapi/worker_state.rs"]
mod worker_state;
