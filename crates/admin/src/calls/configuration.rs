//! The configuration: read and changed, in whole or in part.

use super::{Shared, changes, load};
use crate::answer::{Answer, ok};
use crate::control::{Control, Force, Language, Refusal, Reload, Restarted, Source};
use crate::document::secrets::Secrets;
use crate::document::{Change, PartError, Path, changed, ids, part};
use crate::failure::Failure;
use crate::query;
use bytes::Bytes;
use http::header::{ETAG, HeaderValue, IF_MATCH};
use http::request::Parts;
use http::{HeaderMap, Method, Request};
use hyper::body::Incoming;
use serde_json::Value;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// Where Laravel Octane sends back what it has read there, to have the workers started anew.
const APPLICATION: [&str; 2] = ["apps", "frankenphp"];

/// A part, as it is shown. Its tag is for `If-Match`.
pub(crate) async fn read(shared: &Shared, place: Place<'_>) -> Result<Answer, Failure> {
    let (configuration, editing) = (shared.control.configuration(), Arc::clone(&shared.editing));
    let place = place.to_owned();
    let reading = move || {
        let path = place.path(&configuration)?;
        let shown = editing.secrets.hide(&configuration);
        let found = part(&shown, &path)?;
        let mut answer = ok(found);
        let tag = HeaderValue::from_str(&tag(&path, found));
        answer.headers_mut().insert(ETAG, tag.expect("invariant: a path in a URL is ASCII"));
        Ok(answer)
    };
    blocking(reading).await
}

/// How a URL names a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place<'a> {
    /// `/config/…`
    Path(&'a str),
    /// `/id/NAME/…`
    Id(&'a str),
}

/// The same, for who outlives the request.
#[derive(Debug, Clone)]
enum Named {
    Path(Path),
    Id(String, Path),
}

impl Place<'_> {
    fn to_owned(&self) -> Named {
        match self {
            Self::Path(text) => Named::Path(Path::of_url(text)),
            Self::Id(text) => {
                let (id, rest) = text.split_once('/').unwrap_or((text, ""));
                Named::Id(Path::of_url(id).only_key(), Path::of_url(rest))
            }
        }
    }
}

impl Named {
    fn path(&self, configuration: &Value) -> Result<Path, Failure> {
        match self {
            Self::Path(path) => Ok(path.clone()),
            Self::Id(id, rest) => match ids::find(configuration, id) {
                Some(path) => Ok(path.join(rest)),
                None => Err(Failure::UnknownId(id.clone())),
            },
        }
    }
}

/// Path and hash of a part, as Caddy's tags have them (admin.go, makeEtag).
fn tag(path: &Path, part: &Value) -> String {
    // Nobody gains by another part with the same hash: whoever may ask may change everything.
    let mut hash = DefaultHasher::new();
    part.to_string().hash(&mut hash);
    format!("\"{path} {:016x}\"", hash.finish())
}

/// What all changes of the configuration have in common.
#[derive(Default)]
pub(crate) struct Editing {
    /// Held by who changes it, so that each finds what the one before has left.
    turn: tokio::sync::Mutex<()>,
    pub(super) secrets: Secrets,
}

/// A change that was asked for.
struct Edit {
    method: Method,
    place: Named,
    body: Bytes,
    /// The tag of a part that has to be as it was.
    if_match: Option<String>,
    force: Force,
}

/// What comes of it.
enum Outcome {
    /// This text is to be loaded.
    Load(String),
    /// Nothing changes, and the workers are to be started anew.
    Restart,
}

pub(crate) async fn change(
    shared: &Shared,
    place: Place<'_>,
    request: Request<Incoming>,
) -> Result<Answer, Failure> {
    let (Parts { method, uri, headers, .. }, body) = request.into_parts();
    query::none(uri.query())?;
    let mut edit = Edit {
        method,
        place: place.to_owned(),
        body: Bytes::new(),
        if_match: if_match(&headers),
        force: load::force(&headers),
    };
    if edit.method != Method::DELETE {
        let language = load::language(&headers);
        edit.body = load::body(body).await?;
        match language {
            Ok(Language::Json) => {}
            Ok(Language::Caddyfile) if edit.is_of_whole() => return replace(shared, edit).await,
            Ok(Language::Caddyfile) => return Err(Failure::PartInCaddyfile),
            Err(failure) => return Err(failure),
        }
    }
    let (control, editing) = (Arc::clone(&shared.control), Arc::clone(&shared.editing));
    changes::to_the_end(async move { carry_out(control, editing, edit).await }).await?
}

/// The configuration as JSON is there whatever it was before; what stands for its secrets is put back.
pub(super) async fn load_json(shared: &Shared, body: Bytes, force: Force) -> Result<Answer, Failure> {
    let place = Named::Path(Path::default());
    let edit = Edit { method: Method::POST, place, body, if_match: None, force };
    let (control, editing) = (Arc::clone(&shared.control), Arc::clone(&shared.editing));
    changes::to_the_end(async move { carry_out(control, editing, edit).await }).await?
}

/// A Caddyfile in place of the whole configuration.
async fn replace(shared: &Shared, edit: Edit) -> Result<Answer, Failure> {
    let configuration = shared.control.configuration();
    edit.check(&configuration, &shared.editing.secrets)?;
    if edit.method == Method::PUT && !configuration.is_null() {
        return Err(PartError::Exists(Path::default()).into());
    }
    let text = String::from_utf8(edit.body.into()).map_err(|_| Failure::NoText)?;
    let replaces = edit.if_match.map(|_| configuration);
    let source = Source::Text(Language::Caddyfile, text);
    load::carry_out(&shared.control, Reload { source, force: edit.force, replaces, wait: None }).await
}

/// One change waits for another. What changes the configuration besides, as a signal does, is found out when this one is to be
/// loaded, which is then made once more, of what is there by then.
async fn carry_out(control: Arc<dyn Control>, editing: Arc<Editing>, edit: Edit) -> Result<Answer, Failure> {
    let turn = editing.turn.lock().await;
    let edit = Arc::new(edit);
    loop {
        let configuration = control.configuration();
        let (current, editing, edit_of_it) =
            (Arc::clone(&configuration), Arc::clone(&editing), Arc::clone(&edit));
        let outcome = blocking(move || edit_of_it.outcome(&current, &editing.secrets)).await?;
        let text = match outcome {
            Outcome::Load(text) => text,
            Outcome::Restart => {
                drop(turn);
                let restarted: Restarted = control.restart_workers().await?;
                tracing::info!(
                    threads = restarted.restarted,
                    "workers restarted, as asked for by the admin API"
                );
                return Ok(ok(&restarted));
            }
        };
        tracing::info!(method = %edit.method, force = ?edit.force, "changing the configuration, as asked for by the admin API");
        let source = Source::Text(Language::Json, text);
        let reload = Reload { source, force: edit.force, replaces: Some(configuration), wait: None };
        match control.reload(reload).await {
            Ok(reloaded) => return Ok(ok(&reloaded)),
            Err(Refusal::Replaced) => {}
            Err(refusal) => {
                tracing::error!(%refusal, "the configuration was not changed");
                return Err(refusal.into());
            }
        }
    }
}

impl Edit {
    fn is_of_whole(&self) -> bool {
        matches!(&self.place, Named::Path(path) if path.is_root())
    }

    /// Whether the configuration is still the one that the client means.
    fn check(&self, configuration: &Value, secrets: &Secrets) -> Result<(), Failure> {
        let Some(wanted) = &self.if_match else { return Ok(()) };
        let inner = wanted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let path =
            inner.and_then(|inner| inner.strip_prefix("/config/")?.split_once(' ')).map(|(path, _)| path);
        let Some(path) = path else { return Err(Failure::Tag(wanted.clone())) };
        let path = Path::of_url(path);
        let shown = secrets.hide(configuration);
        let is_same = part(&shown, &path).is_ok_and(|part| tag(&path, part) == *wanted);
        if is_same { Ok(()) } else { Err(Refusal::Replaced.into()) }
    }

    fn outcome(&self, configuration: &Value, secrets: &Secrets) -> Result<Outcome, Failure> {
        self.check(configuration, secrets)?;
        let path = self.place.path(configuration)?;
        let is_octanes = self.method == Method::PATCH && path.is(&APPLICATION);
        if is_octanes && self.body.is_empty() {
            return Ok(Outcome::Restart);
        }
        let (path, change) = self.change(path)?;
        let is_null = change == Change::Patch(Value::Null);
        if is_octanes && is_null && part(configuration, &path).is_ok_and(Value::is_null) {
            return Ok(Outcome::Restart);
        }
        let mut changed = changed(configuration, &path, change)?;
        let has_put_back = secrets.put_back(&mut changed, configuration)?;
        ids::check_ids(&changed)?;
        if is_octanes && changed == *configuration {
            return Ok(Outcome::Restart);
        }
        // As it was sent, so that what is wrong with it is told with its line.
        let as_sent = (path.is_root() && self.method != Method::DELETE && !has_put_back)
            .then(|| String::from_utf8(self.body.to_vec()).ok())
            .flatten();
        Ok(Outcome::Load(as_sent.unwrap_or_else(|| format!("{changed:#}"))))
    }

    fn change(&self, path: Path) -> Result<(Path, Change), Failure> {
        if self.method == Method::DELETE {
            return Ok((path, Change::Delete));
        }
        let value: Value = serde_json::from_slice(&self.body).map_err(Failure::Json)?;
        if self.method == Method::PUT {
            return Ok((path, Change::Put(value)));
        }
        if self.method == Method::PATCH {
            return Ok((path, Change::Patch(value)));
        }
        match (path.before_ellipsis(), value) {
            (None, value) => Ok((path, Change::Post(value))),
            (Some(list), Value::Array(values)) => Ok((list, Change::PostEach(values))),
            (Some(_), _) => Err(PartError::NoElements.into()),
        }
    }
}

fn if_match(headers: &HeaderMap) -> Option<String> {
    headers.get(IF_MATCH).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// A large document takes its time.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        tracing::error!(%error, "a call of the admin API broke off");
        Failure::Broken
    })?
}
