//! `cache`, which Caddy has no JSON for.

use crate::object::Object;
use crate::server::ranges;
use crate::words::{self, Line};
use regent_config::{Cache, CacheFields, Caching, ScriptPurge, VaryCookies};
use std::time::Duration;

pub(super) fn handler(caching: &Caching) -> Object {
    match caching {
        Caching::Off => Line::new(["cache", "off"]).handler(),
        Caching::On(cache) => Line::new(["cache"]).block(options(cache)).handler(),
    }
}

fn options(cache: &Cache) -> Vec<Line> {
    let Cache {
        default_ttl,
        stale_while_revalidate,
        stale_if_error,
        heuristic,
        obey_clients,
        targeted,
        pass_cookies,
        ignore_cookies,
        vary_cookies,
        pass_paths,
        pass_queries,
        ignore_queries,
        wait,
        purge_from,
        script_purge,
        fields,
    } = cache;
    let usual = Cache::default();
    let time = |name: &str, value: Duration, default: Duration| {
        (value != default).then(|| Line::new([name]).word(words::duration(value)))
    };
    let list = |name: &str, values: &[String]| {
        (!values.is_empty()).then(|| Line::new([name]).words(values.iter().cloned()))
    };
    let flag = |name: &str, is_on: bool| is_on.then(|| Line::new([name]));
    // The option adds to the default ones.
    let own_cookies = pass_cookies.strip_prefix(&usual.pass_cookies[..]).unwrap_or(pass_cookies);
    let lines = [
        default_ttl.map(|ttl| Line::new(["default_ttl"]).word(words::duration(ttl))),
        time("stale_while_revalidate", *stale_while_revalidate, usual.stale_while_revalidate),
        time("stale_if_error", *stale_if_error, usual.stale_if_error),
        flag("heuristic", *heuristic),
        flag("obey_clients", *obey_clients),
        list("targeted", targeted).filter(|_| *targeted != usual.targeted),
        list("pass_cookie", own_cookies),
        list("ignore_cookie", ignore_cookies),
        (*vary_cookies == VaryCookies::Ignored).then(|| Line::new(["vary_cookie", "off"])),
        list("pass_path", pass_paths),
        list("pass_query", pass_queries),
        list("ignore_query", ignore_queries),
        time("wait", *wait, usual.wait),
        list("purge_from", &ranges(purge_from)),
        script_purge_line(*script_purge),
    ];
    lines.into_iter().flatten().chain(field_lines(*fields)).collect()
}

fn script_purge_line(purge: ScriptPurge) -> Option<Line> {
    match purge {
        ScriptPurge::Site => None,
        ScriptPurge::Server => Some(Line::new(["script_purge", "server"])),
        ScriptPurge::Off => Some(Line::new(["script_purge", "off"])),
    }
}

fn field_lines(fields: CacheFields) -> Vec<Line> {
    let CacheFields { status, tags } = fields;
    let status = (!status).then(|| Line::new(["status", "off"]));
    let tags = tags.then(|| Line::new(["tags", "on"]));
    status.into_iter().chain(tags).collect()
}
