//! The configuration: read in whole or in part, and the two calls by which Laravel Octane looks after a server.

use super::changes;
use crate::answer::{Answer, ok};
use crate::control::Control;
use crate::failure::Failure;
use crate::pool::{Engine, Pool};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Octane sends back what it read, which is some hundred bytes for each worker.
const LONGEST_BODY: usize = 64 * 1024;
const BODY_PATIENCE: Duration = Duration::from_secs(5);

/// The part that a path names: keys, and indices of lists, between slashes.
pub(crate) fn read(configuration: &Value, path: &str) -> Result<Answer, Failure> {
    let path = path.trim_end_matches('/');
    let pointer = if path.is_empty() { String::new() } else { format!("/{path}") };
    let part = configuration.pointer(&pointer);
    part.map(ok).ok_or_else(|| Failure::NotConfigured { path: format!("/config/{path}") })
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
            return Err(Failure::NotBuilt(
                "a part of the configuration is not changed here; send back what `GET` of this path answers, or nothing, \
                 to start the workers anew, or change the Caddyfile and load it with `regent reload`",
            ));
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
