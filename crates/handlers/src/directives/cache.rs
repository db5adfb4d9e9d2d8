//! `cache`: how responses are stored is noted of the request; who hands it on asks the store.

use crate::caching;
use crate::context::cache_rules::{CacheRules, Shown};
use crate::context::exchange::Exchange;
use crate::context::flow::Flow;
use crate::directives::Context;
use crate::error::BuildError;
use http::HeaderName;
use regent_cache::{CookieRule, Policy, VaryCookie};
use regent_config::{self as config, Networks, VaryCookies};
use std::sync::Arc;

/// A compiled directive; `None`: nothing is stored.
pub(crate) struct Cache(Option<Arc<CacheRules>>);

impl Cache {
    pub(crate) fn compile(caching: &config::Caching, context: &Context<'_>) -> Result<Self, BuildError> {
        let config::Caching::On(cache) = caching else { return Ok(Self(None)) };
        let name = |name: &String| {
            HeaderName::try_from(name.as_str()).map_err(|_| BuildError::HeaderName(name.clone()))
        };
        let rules = CacheRules {
            store: Arc::clone(context.store),
            site: Arc::clone(context.site),
            policy: Policy {
                default_ttl: cache.default_ttl,
                stale_while_revalidate: cache.stale_while_revalidate,
                stale_if_error: cache.stale_if_error,
                guesses: cache.heuristic,
                obeys_clients: cache.obey_clients,
                targeted: cache.targeted.iter().map(name).collect::<Result<_, _>>()?,
            },
            cookies: CookieRule {
                passed: cache.pass_cookies.clone(),
                ignored: cache.ignore_cookies.clone(),
                vary: match cache.vary_cookies {
                    VaryCookies::Count => VaryCookie::Counts,
                    VaryCookies::Ignored => VaryCookie::IsNothing,
                },
            },
            pass_paths: cache.pass_paths.clone(),
            pass_queries: cache.pass_queries.clone(),
            ignored_queries: cache.ignore_queries.clone(),
            wait: cache.wait,
            purge_from: (!cache.purge_from.is_empty()).then(|| Networks::new(&cache.purge_from)),
            tags: shown(cache.fields.tags),
            status: shown(cache.fields.status),
        };
        Ok(Self(Some(Arc::new(rules))))
    }

    pub(crate) fn handle(&self, exchange: &mut Exchange) -> Flow {
        if let Some(answered) = self.0.as_ref().and_then(|rules| caching::purge(exchange, rules)) {
            return answered;
        }
        exchange.cache = self.0.clone();
        Flow::Next
    }
}

fn shown(is_shown: bool) -> Shown {
    if is_shown { Shown::Yes } else { Shown::No }
}
