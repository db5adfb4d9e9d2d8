//! One module as it was loaded for one service: what `regent_instance` points to.

use crate::abi::RawInstance;
use crate::exchange::{Level, LogSink};
use crate::setup::Setup;
use crate::statistics::Statistics;
use std::sync::{Arc, Mutex, PoisonError};

pub struct Instance {
    module: String,
    config: Vec<(String, String)>,
    log: LogSink,
    pub statistics: Statistics,
    /// While init runs.
    setup: Mutex<Option<Setup>>,
}

impl Instance {
    /// An instance whose init is about to run.
    pub fn new(module: &str, config: Vec<(String, String)>, log: LogSink, setup: Setup) -> Arc<Self> {
        Arc::new(Self {
            module: module.to_owned(),
            config,
            log,
            statistics: Statistics::default(),
            setup: Mutex::new(Some(setup)),
        })
    }

    /// The name of the module.
    pub fn module(&self) -> &str {
        &self.module
    }

    /// As the module is given it: valid as long as the `Arc`.
    pub fn raw(self: &Arc<Self>) -> RawInstance {
        Arc::as_ptr(self).cast_mut().cast()
    }

    pub fn sink(&self) -> &LogSink {
        &self.log
    }

    pub fn log(&self, level: Level, message: &str) {
        (self.log)(level, &format!("{}: {message}", self.module));
    }

    /// The first line of that name.
    pub fn configuration(&self, name: &[u8]) -> Option<&str> {
        self.config.iter().find(|(other, _)| other.as_bytes() == name).map(|(_, value)| value.as_str())
    }

    pub fn configuration_at(&self, index: usize) -> Option<(&str, &str)> {
        self.config.get(index).map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// `None` once init has returned.
    pub fn with_setup<T>(&self, change: impl FnOnce(&mut Setup) -> T) -> Option<T> {
        self.setup.lock().unwrap_or_else(PoisonError::into_inner).as_mut().map(change)
    }

    /// Ends the time of init.
    pub fn take_setup(&self) -> Option<Setup> {
        self.setup.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
