//! Another configuration: as the body of `POST /load`, as Caddy has it, or from a file that the server reads.

use super::changes;
use super::configuration::body;
use crate::answer::{Answer, ok};
use crate::control::{Control, Force, Reload, Source};
use crate::failure::Failure;
use crate::query::{self, ReloadQuery};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, Request};
use hyper::body::Incoming;
use serde_json::Value;
use std::sync::Arc;

/// Bytes of a Caddyfile: some ten thousand sites.
const LONGEST_CADDYFILE: usize = 4 << 20;

/// The media type of Caddy's adapter for Caddyfiles.
const CADDYFILE: &str = "text/caddyfile";

pub(crate) async fn load(control: &Arc<dyn Control>, request: Request<Incoming>) -> Result<Answer, Failure> {
    load_over(control, request, None).await
}

/// `replaces`: what the configuration has to be.
pub(super) async fn load_over(
    control: &Arc<dyn Control>,
    request: Request<Incoming>,
    replaces: Option<Arc<Value>>,
) -> Result<Answer, Failure> {
    let force = force(request.headers());
    let text = caddyfile(request).await?;
    carry_out(control, Reload { source: Source::Text(text), force, replaces, wait: None }).await
}

pub(crate) async fn adapt(control: &Arc<dyn Control>, request: Request<Incoming>) -> Result<Answer, Failure> {
    let text = caddyfile(request).await?;
    Ok(ok(&control.adapt(text).await?))
}

async fn caddyfile(request: Request<Incoming>) -> Result<String, Failure> {
    let (Parts { uri, headers, .. }, body_of_it) = request.into_parts();
    query::none(uri.query())?;
    check_type(&headers)?;
    let text = body(body_of_it, LONGEST_CADDYFILE).await?;
    String::from_utf8(text.into()).map_err(|_| Failure::NoText)
}

pub(crate) async fn reload(control: &Arc<dyn Control>, query: Option<&str>) -> Result<Answer, Failure> {
    let ReloadQuery { config, force, wait } = ReloadQuery::parse(query)?;
    let source = config.map_or(Source::Own, Source::File);
    carry_out(control, Reload { source, force, replaces: None, wait }).await
}

pub(super) async fn carry_out(control: &Arc<dyn Control>, reload: Reload) -> Result<Answer, Failure> {
    tracing::info!(force = ?reload.force, "loading a configuration, as asked for by the admin API");
    let control = Arc::clone(control);
    let loaded = changes::to_the_end(async move { control.reload(reload).await }).await?;
    let reloaded =
        loaded.inspect_err(|refusal| tracing::error!(%refusal, "the configuration was not loaded"))?;
    Ok(ok(&reloaded))
}

/// As Caddy's `/load` takes it, but for JSON.
fn check_type(headers: &HeaderMap) -> Result<(), Failure> {
    let named = headers.get(CONTENT_TYPE).map(|value| String::from_utf8_lossy(value.as_bytes()));
    let named = named.unwrap_or_default();
    let essence = named.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case(CADDYFILE) { Ok(()) } else { Err(Failure::MediaType(named.into_owned())) }
}

/// Caddy's way to ask for it (caddyconfig/load.go).
fn force(headers: &HeaderMap) -> Force {
    match headers.get(CACHE_CONTROL) {
        Some(value) if value == "must-revalidate" => Force::Yes,
        _ => Force::No,
    }
}
