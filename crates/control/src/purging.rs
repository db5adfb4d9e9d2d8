//! What the cache is to forget, as the admin API and scripts say it.

use regent_admin::CachePurge;
use regent_cache::{Key, Purge, Scope, Store};
use regent_config::ascii_authority;
use regent_engines::{Answer, PurgeSink};
use regent_wire::control::Purging;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Purges that wait for the one that is carried out, for each engine. Each of its threads waits for one at most.
const MOST_WAITING: usize = 1024;
/// A response may have been asked for by either.
const SCHEMES: [&str; 2] = ["http", "https"];

/// What a site may purge, and what is stored.
pub type Purgeable = (Arc<Scope>, Vec<Arc<Store>>);

/// Looks at all that is stored, but for a URL. Returns how many responses there were.
pub fn purge(stores: &[Arc<Store>], purge: CachePurge) -> u64 {
    let purges = match purge {
        CachePurge::Url(url) => urls(url.split_once("://").unwrap_or_default().1),
        CachePurge::Prefix(prefix) => vec![Purge::Prefix(prefix)],
        CachePurge::Tags(tags) => vec![Purge::Tags(tags)],
        CachePurge::Everything => vec![Purge::Everything],
    };
    carry_out(stores, &purges)
}

/// Where an engine puts the purges of its scripts; they are carried out one after the other, in the background. `find`: what a
/// site may purge, and where. `None`: the site has gone with its configuration.
pub fn sink(find: impl Fn(u64) -> Option<Purgeable> + Send + Sync + 'static) -> PurgeSink {
    let (purges, waiting) = mpsc::channel(MOST_WAITING);
    tokio::spawn(follow(waiting, Arc::new(find)));
    // What does not fit is refused: its answer is dropped.
    PurgeSink(Arc::new(move |asked, answer| drop(purges.try_send((asked, answer)))))
}

async fn follow<F>(mut waiting: mpsc::Receiver<(Purging, Answer)>, find: Arc<F>)
where
    F: Fn(u64) -> Option<Purgeable> + Send + Sync + 'static,
{
    while let Some((asked, answer)) = waiting.recv().await {
        let find = Arc::clone(&find);
        let purging = tokio::task::spawn_blocking(move || {
            find(asked.scope).map(|(scope, stores)| purge_for_script(&scope, &stores, asked))
        });
        if let Ok(Some(purged)) = purging.await {
            answer.give(purged);
        }
    }
}

/// Within what the script's site may purge.
fn purge_for_script(scope: &Arc<Scope>, stores: &[Arc<Store>], asked: Purging) -> u64 {
    let tags = (!asked.tags.is_empty()).then_some(Purge::Tags(asked.tags));
    let urls = asked.url.iter().flat_map(|url| urls(url));
    let prefixes = asked.prefix.iter().flat_map(|prefix| prefixes(prefix));
    let purges = tags.into_iter().chain(urls).chain(prefixes);
    let purges: Vec<_> = purges.map(|purge| Purge::Within(Arc::clone(scope), Box::new(purge))).collect();
    tracing::debug!(?purges, "a script purges the cache");
    carry_out(stores, &purges)
}

fn carry_out(stores: &[Arc<Store>], purges: &[Purge]) -> u64 {
    let purged = stores.iter().map(|store| purges.iter().map(|purge| store.purge(purge)).sum::<u64>()).sum();
    // Who is told that they are gone finds them nowhere, after a crash of the server neither.
    stores.iter().for_each(|store| store.settle());
    purged
}

/// `url`: without its scheme.
fn urls(url: &str) -> Vec<Purge> {
    let (host, target) = split(url);
    let target = if target.starts_with('/') { target.to_owned() } else { format!("/{target}") };
    let host = ascii_authority(host).unwrap_or_default();
    SCHEMES.into_iter().filter_map(|scheme| Key::new(scheme, &host, &target)).map(Purge::Url).collect()
}

/// `prefix`: without its scheme.
fn prefixes(prefix: &str) -> Vec<Purge> {
    let (host, target) = split(prefix);
    let host = prefix_host(host, target);
    SCHEMES.iter().map(|scheme| Purge::Prefix(format!("{scheme}://{host}{target}"))).collect()
}

/// A name in Unicode that may go on is no name yet, and none begins with it.
fn prefix_host(host: &str, target: &str) -> String {
    let whole = ascii_authority(host).filter(|_| !target.is_empty());
    whole.as_deref().unwrap_or(host).to_ascii_lowercase()
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
        let unicode = Key::new("http", "xn--bcher-kva.example:81", "/a").unwrap();
        assert_eq!(urls("Bücher.example:81/a")[0], Purge::Url(unicode));
        assert_eq!(prefixes("bücher.example/")[0], prefix("http://xn--bcher-kva.example/"));
        assert_eq!(prefixes("Example.com"), [prefix("http://example.com"), prefix("https://example.com")]);
    }
}
