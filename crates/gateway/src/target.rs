//! What a request asks of an engine: which pool, how it is delivered, and the variables that say what is to run.

use crate::keys;
use crate::response_head::BufferedResponse;
use bytes::Bytes;
use regent_config::HubId;
use regent_engines::Subject;
use regent_handlers::{Delivery, Exchange, PhpTarget};
use regent_wire::{Head, HeadBuilder};
use std::os::unix::ffi::OsStrExt;

/// A request's aim, of one kind of engine. Known to the compiler, so that requests to PHP pay nothing for the others.
pub trait Target {
    /// An index into the pools of the kind.
    fn pool(&self) -> usize;

    fn delivery(&self) -> &Delivery;

    /// What runs, as far as that tells requests to the pool apart before a path is known. Not the client's choice.
    fn code(&self) -> &[u8];

    /// Writes the variables that say what is to run.
    fn write(&self, head: &mut HeadBuilder, exchange: &Exchange);

    /// Where the updates go that it publishes.
    fn hub(&self) -> Option<HubId> {
        None
    }

    /// The number of what it may have the cache forget.
    fn cache_scope(&self) -> Option<u64> {
        None
    }

    /// For the log.
    fn subject(&self) -> Subject;

    /// Whether the server answers it itself, once its body is there.
    fn is_answered_here(&self, _exchange: &Exchange) -> bool {
        false
    }

    /// The answer to a request that [is answered here](Self::is_answered_here). `head`: as an engine would get it.
    fn answer_here(&self, _exchange: &Exchange, _head: Head<'_>, _body: Bytes) -> BufferedResponse {
        BufferedResponse::default()
    }
}

impl Target for PhpTarget {
    fn pool(&self) -> usize {
        self.worker.map_or(0, |worker| usize::from(worker.0) + 1)
    }

    fn delivery(&self) -> &Delivery {
        &self.delivery
    }

    fn code(&self) -> &[u8] {
        self.script_filename().as_os_str().as_bytes()
    }

    fn write(&self, head: &mut HeadBuilder, _: &Exchange) {
        head.known(keys::DOCUMENT_ROOT, self.document_root().as_os_str().as_bytes());
        head.known(keys::SCRIPT_FILENAME, self.script_filename().as_os_str().as_bytes());
        head.known(keys::SCRIPT_NAME, self.script_name());
        head.known(keys::DOCUMENT_URI, self.script_name());
        head.known(keys::PHP_SELF, self.url_path());
        if !self.path_info().is_empty() {
            head.known(keys::PATH_INFO, self.path_info());
            head.known(keys::PATH_TRANSLATED, &self.path_translated());
        }
    }

    fn hub(&self) -> Option<HubId> {
        self.hub
    }

    fn cache_scope(&self) -> Option<u64> {
        self.cache_scope
    }

    fn subject(&self) -> Subject {
        Subject::Script(self.script_filename().display().to_string())
    }
}
