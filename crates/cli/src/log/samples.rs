//! Of lines that come again and again, a part.

use regent_config::LogSampling;
use regent_server::Sampler;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use tracing::Metadata;
use tracing::callsite::Identifier;

/// Of lines that say the same, a part: those of one place in the program.
pub(super) struct Samples {
    rules: LogSampling,
    samplers: Mutex<HashMap<Identifier, Sampler>>,
}

impl Samples {
    pub(super) fn new(rules: LogSampling) -> Self {
        Self { rules, samplers: Mutex::default() }
    }

    /// Whether the line from there is one of them.
    pub(super) fn take(&self, metadata: &Metadata<'_>) -> bool {
        let mut samplers = self.samplers.lock().unwrap_or_else(PoisonError::into_inner);
        let sampler = samplers.entry(metadata.callsite()).or_insert_with(|| Sampler::new(self.rules.clone()));
        sampler.takes(Instant::now())
    }
}
