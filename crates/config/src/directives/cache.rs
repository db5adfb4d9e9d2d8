//! `cache [MATCHER] { … }` or `cache [MATCHER] off`: a shared HTTP cache. Responses of PHP, native services and upstreams are
//! stored as `Cache-Control` says and given to whoever asks for the same, without asking again; `encode` and `header` act on
//! what comes out of it. Of several that match, the first counts. More about it: [the cache](cache.md).
//!
//! | option | default | meaning |
//! |---|---|---|
//! | `preset wordpress` \| `mediawiki` \| `symfony` | | what is right for the application; options that follow add to it |
//! | `default_ttl DURATION` | they are not stored | lifetime of responses (200, 203, 204, 300, 301, 308, 404, 410) that say nothing of one |
//! | `stale_while_revalidate DURATION` | 0 | how long an old response is given while one request fetches a new one; `Cache-Control` of the response has the last word |
//! | `stale_if_error DURATION` | 0 | how long it is given instead of 500, 502, 503 or 504, also while PHP is down; the same |
//! | `heuristic` | | guesses lifetimes: a tenth of the age by `Last-Modified`, a day at most |
//! | `obey_clients` | | `Cache-Control` of requests counts: any client can then have PHP run |
//! | `targeted FIELD…` | CDN-Cache-Control | fields that count instead of `Cache-Control` (RFC 9213), the most important first |
//! | `pass_cookie NAME…` | names that contain `sess`, `token`, `auth`, `login`, `logged` or `user`, or begin with `remember` | requests with such a cookie pass the cache; `*` is any text; adds to the default |
//! | `ignore_cookie NAME…` | | such cookies are as if they were not there |
//! | `vary_cookie on` \| `off` | on | `off`: `Vary: Cookie` means nothing, as all cookies that matter pass |
//! | `pass_path PATH…` | | requests for such a path pass; `*` is any text |
//! | `pass_query NAME…` | | requests with such a name in the query pass |
//! | `ignore_query NAME…` | | such names in the query are as if they were not there: PHP does not see them either where the response is for all |
//! | `wait DURATION` | 10s | for a response that another request has asked for; then PHP is asked as well |
//! | `purge_from ADDRESS…` | nobody | clients whose `PURGE` is carried out; `private_ranges`, addresses and ranges |
//! | `script_purge site` \| `server` \| `off` | site | what scripts of the site may purge by `regent_cache_purge()`: what is of its hosts, of all, or nothing; the first `cache` of a site counts |
//! | `status on` \| `off` | on | clients get `Cache-Status` (RFC 9211) |
//! | `tags on` \| `off` | off | clients get `Surrogate-Key`, `Cache-Tag` and `xkey` |
//!
//! ```caddyfile
//! cache {
//!     preset wordpress
//!     default_ttl 5m
//!     purge_from 127.0.0.1
//! }
//! cache /reports/* off
//! ```

use super::Directive;
use crate::call::Call;
use crate::context::Context;
use crate::ip_ranges;
use crate::matchers::Scope;
use crate::model::{Cache, Caching, Handler, ScriptPurge, VaryCookies};
use crate::problems::{error, unknown, unknown_option_of_cache};
use crate::values;
use regent_caddyfile::{Error, Token};
use std::time::Duration;

mod presets;

pub(super) const DIRECTIVE: Directive = super::handler("cache", parse);

const SYNTAX: &str = "cache [MATCHER] { … } or cache [MATCHER] off";
const OPTIONS: &[&str] = &[
    "default_ttl",
    "heuristic",
    "ignore_cookie",
    "ignore_query",
    "obey_clients",
    "pass_cookie",
    "pass_path",
    "pass_query",
    "preset",
    "purge_from",
    "script_purge",
    "stale_if_error",
    "stale_while_revalidate",
    "status",
    "tags",
    "targeted",
    "vary_cookie",
    "wait",
];
/// A longer wait helps nobody.
const LONGEST_WAIT: Duration = Duration::from_secs(600);

fn parse(cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    if let [token] = call.args {
        if token.text != "off" {
            return Err(error(token, format!("`{}` is no argument of `cache`; write: {SYNTAX}", token.text)));
        }
        call.without_block("cache [MATCHER] off")?;
        return Ok(Handler::Cache(Caching::Off));
    }
    call.no_arguments(SYNTAX)?;
    let mut cache = Cache::default();
    // Wherever it stands, the others add to it.
    let (presets, others): (Vec<_>, Vec<_>) = call.options().partition(|option| option.name() == "preset");
    for option in presets.into_iter().chain(others) {
        let result = apply(cx, &option, &mut cache);
        cx.check(result);
    }
    Ok(Handler::Cache(Caching::On(Box::new(cache))))
}

fn apply(cx: &Context<'_>, option: &Call<'_>, cache: &mut Cache) -> Result<(), Error> {
    match option.name() {
        "preset" => presets::apply(option.one("preset wordpress | mediawiki | symfony")?, cache)?,
        "default_ttl" => {
            cache.default_ttl = Some(values::positive_duration(option.one("default_ttl DURATION")?)?);
        }
        "stale_while_revalidate" => cache.stale_while_revalidate = duration(option)?,
        "stale_if_error" => cache.stale_if_error = duration(option)?,
        "heuristic" => cache.heuristic = option.exactly::<0>("heuristic").map(|_| true)?,
        "obey_clients" => cache.obey_clients = option.exactly::<0>("obey_clients").map(|_| true)?,
        "targeted" => cache.targeted = field_names(option.some("targeted FIELD…")?)?,
        "pass_cookie" => cache.pass_cookies.extend(cookie_names(option)?),
        "ignore_cookie" => cache.ignore_cookies.extend(cookie_names(option)?),
        "vary_cookie" => {
            cache.vary_cookies = match values::boolean(option.one("vary_cookie on | off")?)? {
                true => VaryCookies::Count,
                false => VaryCookies::Ignored,
            };
        }
        "pass_path" => cache.pass_paths.extend(paths(option.some("pass_path PATH…")?)?),
        "pass_query" => cache.pass_queries.extend(texts(option.some("pass_query NAME…")?)),
        "ignore_query" => cache.ignore_queries.extend(texts(option.some("ignore_query NAME…")?)),
        "wait" => {
            let token = option.one("wait DURATION")?;
            cache.wait = values::duration(token)?;
            if cache.wait > LONGEST_WAIT {
                return Err(error(token, "`wait` can be 10m at most: behind it stands a client"));
            }
        }
        "purge_from" => cache.purge_from.extend(ip_ranges::parse(cx, option.some("purge_from ADDRESS…")?)?),
        "script_purge" => cache.script_purge = script_purge(option)?,
        "status" => cache.fields.status = values::boolean(option.one("status on | off")?)?,
        "tags" => cache.fields.tags = values::boolean(option.one("tags on | off")?)?,
        _ => return Err(unknown_option_of_cache(option.name, OPTIONS)),
    }
    Ok(())
}

fn script_purge(option: &Call<'_>) -> Result<ScriptPurge, Error> {
    let token = option.one("script_purge site | server | off")?;
    match token.text.as_str() {
        "site" => Ok(ScriptPurge::Site),
        "server" => Ok(ScriptPurge::Server),
        "off" => Ok(ScriptPurge::Off),
        _ => Err(unknown(token, "value of script_purge", &["site", "server", "off"])),
    }
}

fn duration(option: &Call<'_>) -> Result<Duration, Error> {
    values::duration(option.one(&format!("{} DURATION", option.name()))?)
}

fn cookie_names(option: &Call<'_>) -> Result<impl Iterator<Item = String>, Error> {
    let names = option.some(&format!("{} NAME…", option.name()))?;
    match names.iter().find(|name| name.text.contains(['=', ';', ' ', ','])) {
        Some(token) => Err(error(token, format!("`{}` is no name of a cookie", token.text))),
        None => Ok(texts(names)),
    }
}

fn paths(tokens: &[Token]) -> Result<impl Iterator<Item = String>, Error> {
    match tokens.iter().find(|token| !token.text.starts_with(['/', '*'])) {
        Some(token) => {
            Err(error(token, format!("`{}` is no path: it begins with neither `/` nor `*`", token.text)))
        }
        None => Ok(texts(tokens)),
    }
}

fn field_names(tokens: &[Token]) -> Result<Vec<String>, Error> {
    let is_name = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    match tokens.iter().find(|token| !is_name(&token.text)) {
        Some(token) => Err(error(token, format!("`{}` is no name of a field", token.text))),
        None => Ok(texts(tokens).collect()),
    }
}

fn texts(tokens: &[Token]) -> impl Iterator<Item = String> {
    tokens.iter().map(|token| token.text.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directives::testing::{errors, handler, routes};

    fn cache(options: &str) -> Cache {
        match handler(&format!("cache {{\n{options}\n}}")) {
            Handler::Cache(Caching::On(cache)) => *cache,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn options() {
        assert_eq!(cache(""), Cache::default());
        let own = cache(
            "default_ttl 5m\nstale_while_revalidate 30s\nstale_if_error 1d\nheuristic\nobey_clients\ntargeted A B\n\
             pass_cookie a* b\nignore_cookie _ga*\nvary_cookie off\npass_path /x/*\npass_query s\nignore_query ref\nwait 0\n\
             purge_from 10.0.0.1\nscript_purge server\nstatus off\ntags on",
        );
        assert_eq!(own.default_ttl, Some(Duration::from_secs(300)));
        assert_eq!((own.stale_while_revalidate.as_secs(), own.stale_if_error.as_secs()), (30, 86_400));
        assert!(own.heuristic && own.obey_clients && !own.fields.status && own.fields.tags);
        assert_eq!((own.targeted, own.ignore_cookies), (vec!["A".into(), "B".into()], vec!["_ga*".into()]));
        assert_eq!(own.ignore_queries, ["ref"]);
        assert!(own.pass_cookies.ends_with(&["a*".into(), "b".into()]), "{:?}", own.pass_cookies);
        assert_eq!((own.vary_cookies, own.wait), (VaryCookies::Ignored, Duration::ZERO));
        assert_eq!((own.purge_from.len(), own.script_purge), (1, ScriptPurge::Server));
    }

    #[test]
    fn what_an_option_says_counts_more_than_the_preset_wherever_it_stands() {
        let before = cache("default_ttl 5m\npreset wordpress");
        assert_eq!(before, cache("preset wordpress\ndefault_ttl 5m"));
        assert_eq!(before.default_ttl, Some(Duration::from_secs(300)));
        assert!(before.pass_cookies.contains(&"wordpress_logged_in_*".into()));
        assert!(before.pass_cookies.contains(&"*sess*".into()), "those of the default stay");
    }

    #[test]
    fn a_part_of_a_site_can_do_without() {
        let found = routes("cache\ncache /private/* off");
        assert_eq!(found[0].handler, Handler::Cache(Caching::Off));
        assert!(found.iter().all(|route| route.group.is_some()), "the first counts: {found:?}");
    }

    #[test]
    fn mistakes() {
        let found = errors(
            "cache {\npreset drupal\ndefault_ttl 0\npass_cookie a=b\npass_path x\npurge_from x\nwait 1h\ntargeted A:\nstale 1\nstatus x\nscript_purge all\n}",
        );
        assert_eq!(found.len(), 10, "{found:#?}");
        assert!(found[0].contains("unknown preset `drupal`"), "{found:?}");
        assert!(errors("cache /x on")[0].contains("`on` is no argument of `cache`"));
        assert_eq!(errors("cache off {\nheuristic\n}").len(), 1);
    }
}
