//! What the cache is to forget, as the admin API and scripts say it.

use crate::lasting::{Caches, Lasting};
use regent_admin::CachePurge;
use regent_cache::{Key, Purge};
use regent_engines::{Answer, PurgeSink};
use regent_wire::control::Purging;
use std::sync::{Arc, Weak};
use tokio::sync::mpsc;

/// Purges that wait for the one that is carried out, for each engine. Each of its threads waits for one at most.
const MOST_WAITING: usize = 1024;
/// A response may have been asked for by either.
const SCHEMES: [&str; 2] = ["http", "https"];

/// Looks at all that is stored, but for a URL. Returns how many responses there were.
pub(crate) fn purge(caches: &Caches, purge: CachePurge) -> u64 {
    let purges = match purge {
        CachePurge::Url(url) => urls(url.split_once("://").unwrap_or_default().1),
        CachePurge::Prefix(prefix) => vec![Purge::Prefix(prefix)],
        CachePurge::Tags(tags) => vec![Purge::Tags(tags)],
        CachePurge::Everything => vec![Purge::Everything],
    };
    carry_out(caches, &purges)
}

/// Where an engine puts the purges of its scripts; they are carried out one after the other, in the background.
pub(crate) fn sink(lasting: &Arc<Lasting>) -> PurgeSink {
    let (purges, waiting) = mpsc::channel(MOST_WAITING);
    tokio::spawn(follow(waiting, Arc::downgrade(lasting)));
    // What does not fit is refused: its answer is dropped.
    PurgeSink(Arc::new(move |asked, answer| drop(purges.try_send((asked, answer)))))
}

async fn follow(mut waiting: mpsc::Receiver<(Purging, Answer)>, lasting: Weak<Lasting>) {
    while let Some((asked, answer)) = waiting.recv().await {
        let Some(lasting) = lasting.upgrade() else { continue };
        let purging = tokio::task::spawn_blocking(move || purge_for_script(&lasting.caches, asked));
        if let Ok(Some(purged)) = purging.await {
            answer.give(purged);
        }
    }
}

/// Within what the script's site may purge. `None`: the site has gone with its configuration.
fn purge_for_script(caches: &Caches, asked: Purging) -> Option<u64> {
    let scope = caches.scopes.find(asked.scope)?;
    let tags = (!asked.tags.is_empty()).then_some(Purge::Tags(asked.tags));
    let urls = asked.url.iter().flat_map(|url| urls(url));
    let prefixes = asked.prefix.iter().flat_map(|prefix| prefixes(prefix));
    let purges = tags.into_iter().chain(urls).chain(prefixes);
    let purges: Vec<_> = purges.map(|purge| Purge::Within(Arc::clone(&scope), Box::new(purge))).collect();
    tracing::debug!(?purges, "a script purges the cache");
    Some(carry_out(caches, &purges))
}

fn carry_out(caches: &Caches, purges: &[Purge]) -> u64 {
    let stores = caches.all();
    stores.iter().map(|store| purges.iter().map(|purge| store.purge(purge)).sum::<u64>()).sum()
}

/// `url`: without its scheme.
fn urls(url: &str) -> Vec<Purge> {
    let (host, target) = split(url);
    let target = if target.starts_with('/') { target.to_owned() } else { format!("/{target}") };
    SCHEMES.into_iter().filter_map(|scheme| Key::new(scheme, host, &target)).map(Purge::Url).collect()
}

/// `prefix`: without its scheme.
fn prefixes(prefix: &str) -> Vec<Purge> {
    let (host, target) = split(prefix);
    let host = host.to_ascii_lowercase();
    SCHEMES.iter().map(|scheme| Purge::Prefix(format!("{scheme}://{host}{target}"))).collect()
}

fn split(url: &str) -> (&str, &str) {
    url.split_at(url.find(['/', '?']).unwrap_or(url.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_and_prefixes_are_of_both_schemes_and_as_keys_have_them() {
        let key = |scheme, target| Key::new(scheme, "example.com:81", target).unwrap();
        assert_eq!(
            urls("Example.com:81?q=A"),
            [Purge::Url(key("http", "/?q=A")), Purge::Url(key("https", "/?q=A"))]
        );
        let prefix = |text: &str| Purge::Prefix(text.into());
        assert_eq!(
            prefixes("Example.com/A"),
            [prefix("http://example.com/A"), prefix("https://example.com/A")]
        );
        assert_eq!(prefixes("Example.com"), [prefix("http://example.com"), prefix("https://example.com")]);
    }
}
