//! What can be wrong with a request, and what the answer says.

use crate::answer::{Answer, json};
use crate::control::Refusal;
use crate::document::PartError;
use crate::document::ids::IdError;
use crate::document::secrets::UnknownSecret;
use crate::router;
use http::header::{ALLOW, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use serde::Serialize;

/// Why a call is not answered with what it asks for. The texts are for people, and say what to do.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("there is no {path} here; see `endpoints` for what there is")]
    UnknownPath { path: String },
    #[error(
        "there is no {path} here: it is about programs in Go; `GET /regent/profile` shows where PHP spends its time, and \
         `GET /metrics` what the server needs"
    )]
    OfGo { path: String },
    #[error(
        "there is no local CA: no site has a certificate of it; `tls internal` or a name such as `localhost` makes it"
    )]
    NoAuthority,
    #[error("{path} does not take {method}; it takes {allow}")]
    Method { method: Method, path: String, allow: String },
    #[error(
        "the host `{0}` is not one of this listener; ask for it as localhost, by the address that it listens on, or \
         allow the host with `admin {{ origins … }}` in the Caddyfile"
    )]
    Host(String),
    #[error(
        "pages of `{0}` may not use this listener; open it by its own address, or allow the origin with \
         `admin {{ origins … }}` in the Caddyfile"
    )]
    Origin(String),
    #[error(
        "a page of another site (`{0}`) may not use this listener; type its address into the address bar"
    )]
    Site(String),
    #[error(
        "every request has to name its origin here (`enforce_origin`): send `Origin: http://` and the host"
    )]
    NoOrigin,
    #[error("the field `{0}` must come once, and in ASCII")]
    Head(HeaderName),
    #[error("the parameter `{name}` is not known here; {known}")]
    UnknownParameter { name: String, known: &'static str },
    #[error("the parameter `{0}` comes twice; give it once")]
    RepeatedParameter(&'static str),
    #[error("`count={0}` is no number of threads; give one from 1 to 65535")]
    Count(String),
    #[error("`index={0}` is no number of a thread; `GET /regent/threads` lists them")]
    Index(String),
    #[error("name a thread, as `index=3`; `GET /regent/threads` lists them")]
    NoIndex,
    #[error("name a background script, as `task=NAME`; `GET /regent/tasks` lists them")]
    NoTask,
    #[error("no worker or native service has the file or name `{name}`; {known}")]
    UnknownWorker { name: String, known: String },
    #[error("there are no classic threads; name a worker with `worker=FILE`")]
    NoClassicPool,
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("not ready: {0}")]
    NotReady(String),
    #[error(transparent)]
    Part(#[from] PartError),
    #[error(transparent)]
    Ids(#[from] IdError),
    #[error(transparent)]
    Secret(#[from] UnknownSecret),
    #[error("no object of the configuration has the `@id` \"{0}\"")]
    UnknownId(String),
    #[error("the body is no JSON: {0}")]
    Json(serde_json::Error),
    #[error("the body is longer than {0} bytes, which nothing is that is taken here")]
    LongBody(usize),
    #[error("the body did not come within {0} seconds; send it at once")]
    SlowBody(u64),
    #[error("the body broke off; send it again")]
    BrokenBody,
    #[error(
        "the body is of the type `{0}`; send JSON, as `application/json`, or a whole Caddyfile, as `text/caddyfile`"
    )]
    MediaType(String),
    #[error("the body is no text in UTF-8; send a Caddyfile")]
    NoText,
    #[error("`config={0}` is no absolute path of a file; the server reads it, from its own directory")]
    ConfigPath(String),
    #[error("`{name}={value}` is no whole number from {least} to {most}")]
    Number { name: &'static str, value: String, least: u32, most: u32 },
    #[error("`format={0}` is none; there are `html`, `svg`, `folded`, `folded-cpu`, `speedscope` and `json`")]
    Format(String),
    #[error(
        "name what is to be purged by one of `url=https://HOST/PATH`, `prefix=https://HOST/…`, `tag=TAG` (as often as there \
         are tags) and `all=true`"
    )]
    Purge,
    #[error("`force={0}` is neither `true` nor `false`")]
    Force(String),
    #[error("`{parameter}={text}` is no number of seconds; give one from 1 to 65535")]
    Seconds { parameter: &'static str, text: String },
    #[error("`If-Match: {0}` is none of the tags that `GET /config/` answers with")]
    Tag(String),
    #[error(
        "a part of the configuration is JSON; a Caddyfile takes the place of all of it, by `POST /config/` or `POST /load`"
    )]
    PartInCaddyfile,
    #[error("`adapter={0}` is none that there is: `caddyfile` or `json`")]
    Adapter(String),
    #[error(
        "the change broke off within the server; its log says why, and `GET /regent/threads` what is now"
    )]
    Broken,
}

impl Failure {
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Head(_)
            | Self::UnknownParameter { .. }
            | Self::RepeatedParameter(_)
            | Self::Count(_)
            | Self::Index(_)
            | Self::NoIndex
            | Self::NoTask
            | Self::Json(_)
            | Self::BrokenBody
            | Self::NoText
            | Self::ConfigPath(_)
            | Self::Force(_)
            | Self::Purge
            | Self::Number { .. }
            | Self::Format(_)
            | Self::Seconds { .. }
            | Self::Tag(_)
            | Self::Adapter(_)
            | Self::Ids(_)
            | Self::Secret(_)
            | Self::Part(
                PartError::NoList(_) | PartError::NoIndex(_) | PartError::NoElements | PartError::Deep,
            )
            | Self::Refused(Refusal::Configuration(_)) => StatusCode::BAD_REQUEST,
            Self::MediaType(_) | Self::PartInCaddyfile => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Host(_) | Self::Origin(_) | Self::Site(_) | Self::NoOrigin => StatusCode::FORBIDDEN,
            Self::UnknownPath { .. }
            | Self::OfGo { .. }
            | Self::NoAuthority
            | Self::UnknownWorker { .. }
            | Self::NoClassicPool
            | Self::UnknownId(_)
            | Self::Part(PartError::Missing(_))
            | Self::Refused(
                Refusal::UnknownPool(_)
                | Refusal::UnknownThread(_)
                | Refusal::NoPhp(_)
                | Refusal::UnknownTask(_),
            ) => StatusCode::NOT_FOUND,
            Self::Method { .. } => StatusCode::METHOD_NOT_ALLOWED,
            Self::SlowBody(_) => StatusCode::REQUEST_TIMEOUT,
            Self::Part(PartError::Exists(_))
            | Self::Refused(
                Refusal::TooMany { .. }
                | Refusal::TooFew { .. }
                | Refusal::ProfileUnderWay
                | Refusal::TaskRuns(_),
            ) => StatusCode::CONFLICT,
            Self::LongBody(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Broken => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Refused(Refusal::Replaced) => StatusCode::PRECONDITION_FAILED,
            Self::NotReady(_) | Self::Refused(Refusal::Unavailable(_)) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    pub fn answer(&self) -> Answer {
        let endpoints = match self {
            Self::UnknownPath { .. } => {
                Some(router::endpoints().map(|(m, path)| format!("{m} {path}")).collect())
            }
            _ => None,
        };
        let mut answer = json(self.status(), &Report { error: self.to_string(), endpoints });
        if let Self::Method { allow, .. } = self {
            let allow = HeaderValue::from_str(allow).expect("invariant: names of methods are ASCII");
            answer.headers_mut().insert(ALLOW, allow);
        }
        answer
    }
}

#[derive(Serialize)]
struct Report {
    error: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoints: Option<Vec<String>>,
}
