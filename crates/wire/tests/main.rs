//! The shared-memory protocol between threads and processes. One program, so that it is linked once.
#![cfg(not(loom))]

mod c_engine;
mod common;
mod damage;
mod hostile;
mod processes;
mod repeat;
mod requests;
mod rescue;
mod start_order;
mod stress;
