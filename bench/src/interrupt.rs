//! Ctrl-C and SIGTERM: the servers run in process groups of their own, so an interrupted run must end them itself.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, bail};
use signal_hook::consts::{SIGINT, SIGTERM};

/// Set once a signal asked the program to end; whoever waits for something asks it between two waits.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Turns SIGINT and SIGTERM into this flag for the rest of the program.
    pub fn install() -> io::Result<Self> {
        let interrupt = Self::default();
        signal_hook::flag::register(SIGINT, Arc::clone(&interrupt.0))?;
        signal_hook::flag::register(SIGTERM, Arc::clone(&interrupt.0))?;
        Ok(interrupt)
    }

    /// An error once the program was asked to end; returning it drops, and so ends, every server.
    pub fn check(&self) -> Result<()> {
        if self.0.load(Ordering::Relaxed) {
            bail!(
                "interrupted; the servers were stopped; a suite that is started again goes on where it was"
            );
        }
        Ok(())
    }
}
