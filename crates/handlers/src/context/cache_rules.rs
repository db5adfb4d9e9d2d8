//! What a `cache` directive says.

use regent_cache::{CookieRule, Policy, Store};
use regent_config::Networks;
use std::sync::Arc;
use std::time::Duration;

/// A compiled `cache` directive, and the store that it shares with all others.
pub(crate) struct CacheRules {
    pub(crate) store: Arc<Store>,
    /// Names the site: requests to another never get its responses.
    pub(crate) site: Arc<str>,
    pub(crate) policy: Policy,
    pub(crate) cookies: CookieRule,
    pub(crate) pass_paths: Vec<String>,
    pub(crate) pass_queries: Vec<String>,
    pub(crate) ignored_queries: Vec<String>,
    pub(crate) wait: Duration,
    /// `None`: `PURGE` is as any other method.
    pub(crate) purge_from: Option<Networks>,
    /// Fields with tags, as clients get them.
    pub(crate) tags: Shown,
    /// `Cache-Status`.
    pub(crate) status: Shown,
}

/// Whether clients get a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    Yes,
    No,
}
