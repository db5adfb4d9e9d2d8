//! Another configuration: as the body of `POST /load`, as Caddy has it, or from a file that the server reads.

use super::{Shared, changes, configuration};
use crate::answer::{Answer, ok};
use crate::control::{Adapted, Control, Force, Language, Reload, Source};
use crate::failure::Failure;
use crate::query::{self, ReloadQuery};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of a configuration: some ten thousand sites.
const LONGEST_BODY: usize = 16 << 20;
const BODY_PATIENCE: Duration = Duration::from_secs(5);

/// The media type of Caddy's adapter for Caddyfiles.
const CADDYFILE: &str = "text/caddyfile";

pub(crate) async fn load(shared: &Shared, request: Request<Incoming>) -> Result<Answer, Failure> {
    let (Parts { uri, headers, .. }, body_of_it) = request.into_parts();
    query::none(uri.query())?;
    let (language, force) = (language_or_json(&headers)?, force(&headers));
    let text = body(body_of_it).await?;
    match language {
        Language::Json => configuration::load_json(shared, text, force).await,
        Language::Caddyfile => {
            let source = Source::Text(Language::Caddyfile, caddyfile(text)?);
            carry_out(&shared.control, Reload { source, force, replaces: None, wait: None }).await
        }
    }
}

pub(crate) async fn adapt(shared: &Shared, request: Request<Incoming>) -> Result<Answer, Failure> {
    let (Parts { uri, headers, .. }, body_of_it) = request.into_parts();
    query::none(uri.query())?;
    let language = language_or_json(&headers)?;
    let text = body(body_of_it).await?;
    Ok(ok(&match language {
        Language::Caddyfile => {
            let text = caddyfile(text)?;
            let mut adapted = shared.control.adapt(text.clone()).await?;
            // Those of imported files are for nobody, as in `GET /config/`.
            shared.editing.secrets.hide_unknown(&mut adapted.result, &text);
            adapted
        }
        // It is what it would be made to.
        Language::Json => {
            Adapted { result: serde_json::from_slice(&text).map_err(Failure::Json)?, warnings: Vec::new() }
        }
    }))
}

pub(crate) async fn reload(control: &Arc<dyn Control>, query: Option<&str>) -> Result<Answer, Failure> {
    let ReloadQuery { config, adapter, force, wait } = ReloadQuery::parse(query)?;
    let source = config.map_or(Source::Own, |path| Source::File(path, adapter));
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

fn caddyfile(text: Bytes) -> Result<String, Failure> {
    String::from_utf8(text.into()).map_err(|_| Failure::NoText)
}

/// Where nothing is said it is JSON (caddyconfig/load.go, adaptByContentType).
fn language_or_json(headers: &HeaderMap) -> Result<Language, Failure> {
    if headers.contains_key(CONTENT_TYPE) { language(headers) } else { Ok(Language::Json) }
}

/// What the body is said to be: of several types of JSON each is one.
pub(super) fn language(headers: &HeaderMap) -> Result<Language, Failure> {
    let named = headers.get(CONTENT_TYPE).map(|value| String::from_utf8_lossy(value.as_bytes()));
    let named = named.unwrap_or_default();
    let essence = named.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match essence.as_str() {
        CADDYFILE => Ok(Language::Caddyfile),
        json if json.ends_with("/json") => Ok(Language::Json),
        _ => Err(Failure::MediaType(named.into_owned())),
    }
}

/// Caddy's way to ask for it (caddyconfig/load.go): among other words too.
pub(super) fn force(headers: &HeaderMap) -> Force {
    let values = headers.get_all(CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    let mut words = values.flat_map(|value| value.split(','));
    let is_asked = words.any(|word| word.trim().eq_ignore_ascii_case("must-revalidate"));
    if is_asked { Force::Yes } else { Force::No }
}

pub(super) async fn body(body: Incoming) -> Result<Bytes, Failure> {
    let read = Limited::new(body, LONGEST_BODY).collect();
    match tokio::time::timeout(BODY_PATIENCE, read).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Failure::LongBody(LONGEST_BODY)),
        Ok(Err(_)) => Err(Failure::BrokenBody),
        Err(_) => Err(Failure::SlowBody(BODY_PATIENCE.as_secs())),
    }
}
