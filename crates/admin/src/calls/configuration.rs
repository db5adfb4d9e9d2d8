//! The configuration: read in whole or in part, and the two calls by which Laravel Octane looks after a server.

use super::{changes, load};
use crate::answer::{Answer, ok};
use crate::control::{Control, Force, Refusal, Reload, Source};
use crate::failure::Failure;
use crate::pool::{Engine, Pool};
use crate::query;
use bytes::Bytes;
use http::header::{ETAG, HeaderValue, IF_MATCH};
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use serde_json::{Value, json};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

/// Octane sends back what it read, which is some hundred bytes for each worker.
const LONGEST_BODY: usize = 64 * 1024;
const BODY_PATIENCE: Duration = Duration::from_secs(5);

/// The part that a path names: keys, and indices of lists, between slashes. Its tag is for `If-Match`.
pub(crate) fn read(configuration: &Value, path: &str) -> Result<Answer, Failure> {
    let found = part(configuration, path).ok_or_else(|| {
        let path = path.trim_end_matches('/');
        Failure::NotConfigured { path: format!("/config/{path}") }
    })?;
    let mut answer = ok(found);
    let tag = HeaderValue::from_str(&tag(path, found));
    // A path with what no field may have is not found.
    tag.into_iter().for_each(|tag| drop(answer.headers_mut().insert(ETAG, tag)));
    Ok(answer)
}

fn part<'a>(configuration: &'a Value, path: &str) -> Option<&'a Value> {
    let path = path.trim_end_matches('/');
    let pointer = if path.is_empty() { String::new() } else { format!("/{path}") };
    configuration.pointer(&pointer)
}

/// Path and hash of a part, as Caddy's tags have them (admin.go, makeEtag).
fn tag(path: &str, part: &Value) -> String {
    // Nobody gains by another part with the same hash: whoever may ask may change everything.
    let mut hash = DefaultHasher::new();
    part.to_string().hash(&mut hash);
    format!("\"/config/{path} {:016x}\"", hash.finish())
}

/// The configuration, if `If-Match` asks for one, and it is still the one that was read; `None`: whatever it is.
fn expected(control: &Arc<dyn Control>, headers: &HeaderMap) -> Result<Option<Arc<Value>>, Failure> {
    let Some(wanted) = headers.get(IF_MATCH) else { return Ok(None) };
    let wanted = String::from_utf8_lossy(wanted.as_bytes()).into_owned();
    let path = wanted.strip_prefix("\"/config/").and_then(|rest| rest.split_once(' ')).map(|(path, _)| path);
    let Some(path) = path else { return Err(Failure::Tag(wanted)) };
    let configuration = control.configuration();
    let is_same = part(&configuration, path).is_some_and(|part| tag(path, part) == wanted);
    if is_same { Ok(Some(configuration)) } else { Err(Refusal::Replaced.into()) }
}

/// The body is a Caddyfile, in place of the one before.
pub(crate) async fn replace(
    control: &Arc<dyn Control>,
    request: Request<Incoming>,
) -> Result<Answer, Failure> {
    let replaces = expected(control, request.headers())?;
    load::load_over(control, request, replaces).await
}

/// As Caddy: the server goes on, and serves nothing.
pub(crate) async fn delete(
    control: &Arc<dyn Control>,
    request: Request<Incoming>,
) -> Result<Answer, Failure> {
    query::none(request.uri().query())?;
    let replaces = expected(control, request.headers())?;
    let nothing = Reload { source: Source::Text(String::new()), force: Force::No, replaces, wait: None };
    load::carry_out(control, nothing).await
}

/// What FrankenPHP would have under `apps.frankenphp`, as far as its users look at it.
pub(crate) fn application(pools: &[Pool]) -> Value {
    let worker = |pool: &Pool| {
        let file = pool.worker.as_ref()?;
        Some(json!({ "name": pool.name, "file_name": file, "num": pool.least, "max_threads": pool.most }))
    };
    let php = || pools.iter().filter(|pool| pool.engine == Engine::Php);
    json!({
        "num_threads": php().map(|pool| u32::from(pool.least)).sum::<u32>(),
        "workers": pools.iter().filter_map(worker).collect::<Vec<_>>(),
    })
}

/// Octane reloads by sending back what it read. Anything else would be a change that is not made, and is refused.
pub(crate) async fn reload(
    control: &Arc<dyn Control>,
    request: Request<Incoming>,
) -> Result<Answer, Failure> {
    let body = body(request.into_body(), LONGEST_BODY).await?;
    if !body.is_empty() {
        let wanted: Value = serde_json::from_slice(&body).map_err(Failure::Json)?;
        if wanted != application(&control.pools().await?) {
            return Err(Failure::Application);
        }
    }
    changes::restart_workers(control).await
}

pub(super) async fn body(body: Incoming, longest: usize) -> Result<Bytes, Failure> {
    let read = Limited::new(body, longest).collect();
    match tokio::time::timeout(BODY_PATIENCE, read).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Failure::LongBody(longest)),
        Ok(Err(_)) => Err(Failure::BrokenBody),
        Err(_) => Err(Failure::SlowBody(BODY_PATIENCE.as_secs())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(path: &str) -> u16 {
        let configuration = json!({ "servers": [{ "listen": ":8080" }] });
        read(&configuration, path).map_or_else(|failure| failure.status(), |answer| answer.status()).as_u16()
    }

    #[test]
    fn parts_are_named_by_keys_and_indices() {
        for path in ["", "servers", "servers/", "servers/0/listen"] {
            assert_eq!(status(path), 200, "{path}");
        }
        for path in ["server", "servers/1", "servers//0", "servers/x"] {
            assert_eq!(status(path), 404, "{path}");
        }
    }
}
