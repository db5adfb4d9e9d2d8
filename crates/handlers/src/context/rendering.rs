//! A response on its way through a template.
//!
//! The server reads the body, renders elsewhere what a [`Rendering`] gives it, and supplies what turns out to be missing.

use crate::context::exchange::Exchange;
use crate::context::failure::Failure;
use crate::context::filter;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, header, request};
use regent_exchange::ResponseBody;
use regent_templates::{Failed, FieldChange, Needs, Outcome, Page, Supplied, render};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Bytes of a template, and of each page that it includes.
const MOST_BYTES: usize = 16 << 20;
/// How often a page is rendered, at most: each time it has got what it needed before.
const MOST_ROUNDS: usize = 16;
/// Pages of `httpInclude` in one page.
const MOST_PAGES: usize = 64;
/// Pages that include pages by `httpInclude`, as in Caddy.
const MOST_DEPTH: u16 = 3;
/// Counts them, as in Caddy.
const DEPTH: HeaderName = HeaderName::from_static("caddy-templates-include");

/// What the directive says.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    pub(crate) delimiters: (String, String),
    pub(crate) root: PathBuf,
    /// As Go calls the version of HTTP.
    pub(crate) protocol: &'static str,
    /// The value of a placeholder by its full name, as in Caddy; empty if there is none.
    pub(crate) placeholder: fn(&Exchange, &str) -> String,
}

/// A response that is a template.
pub struct Rendering {
    rules: Rules,
    response: Response<ResponseBody>,
    is_head: bool,
    page: Arc<Page>,
    supplied: Arc<Supplied>,
    rounds: usize,
}

/// What is to be done next.
pub enum Progress {
    /// Go on with this response.
    Done(Response<ResponseBody>),
    /// Get these pages of the site, supply them, and render once more.
    Fetch(Vec<String>),
    /// Render once more.
    Again,
    Failed(Failure),
}

impl fmt::Debug for Rendering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rendering").field("rules", &self.rules).finish_non_exhaustive()
    }
}

impl Rendering {
    /// Bytes that the body of a template may have, and that of a page that is supplied.
    pub const MOST_BYTES: usize = MOST_BYTES;

    pub(crate) fn new(rules: Rules, exchange: &Exchange, response: Response<ResponseBody>) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let page = Page {
            name: String::from_utf8_lossy(exchange.path()).into_owned(),
            source: String::new(),
            delimiters: rules.delimiters.clone(),
            root: rules.root.clone(),
            request: facts(exchange, rules.protocol),
            fields: texts(&filter::with_prepared(exchange, response.headers())),
            now: Page::time(since),
            listing: None,
        };
        Self {
            is_head: exchange.original_method() == Method::HEAD,
            rules,
            response,
            page: Arc::new(page),
            supplied: Arc::default(),
            rounds: 0,
        }
    }

    /// With a directory that the page lists.
    pub(crate) fn with_listing(mut self, listing: regent_templates::Listing) -> Self {
        if let Some(page) = Arc::get_mut(&mut self.page) {
            page.listing = Some(listing);
        }
        self
    }

    /// The body, which is the template; `None` if nobody will see what becomes of it.
    pub fn take_body(&mut self) -> Option<ResponseBody> {
        let body = std::mem::take(self.response.body_mut());
        (!self.is_head).then_some(body)
    }

    /// The response to a request that asks for no body.
    pub fn head(self) -> Response<ResponseBody> {
        let mut response = self.response;
        remove_validators(response.headers_mut());
        response.headers_mut().remove(header::CONTENT_LENGTH);
        response
    }

    pub fn set_source(&mut self, bytes: Vec<u8>) {
        if let Some(page) = Arc::get_mut(&mut self.page) {
            page.source = lossy(bytes);
        }
    }

    /// What is to be run elsewhere: it blocks.
    pub fn job(&self) -> impl FnOnce() -> Outcome + Send + 'static {
        let (page, supplied) = (Arc::clone(&self.page), Arc::clone(&self.supplied));
        move || render(&page, &supplied)
    }

    /// Takes what came of it.
    pub fn advance(&mut self, exchange: &Exchange, outcome: Outcome) -> Progress {
        self.rounds += 1;
        match outcome {
            Outcome::Failed(Failed::Status(status)) => {
                let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                Progress::Failed(Failure::new(status))
            }
            Outcome::Failed(Failed::Template(reason)) => self.failed(&reason),
            Outcome::Needs(_) if self.rounds == MOST_ROUNDS => {
                self.failed("it needs more placeholders and pages each time that it has got some")
            }
            Outcome::Needs(needs) => self.supply_placeholders(exchange, needs),
            Outcome::Done { body, changes } => match self.response(body, changes) {
                Ok(response) => Progress::Done(response),
                Err(reason) => self.failed(&reason),
            },
        }
    }

    fn supply_placeholders(&mut self, exchange: &Exchange, needs: Needs) -> Progress {
        let supplied = Arc::make_mut(&mut self.supplied);
        for name in needs.placeholders {
            let value = match name.strip_prefix("http.response.header.") {
                Some(field) => {
                    let value = self.response.headers().get(field);
                    value.map_or(String::new(), |value| lossy(value.as_bytes().to_vec()))
                }
                None => (self.rules.placeholder)(exchange, &name),
            };
            supplied.placeholders.insert(name, value);
        }
        match needs.pages.len() {
            0 => Progress::Again,
            count if supplied.pages.len() + count > MOST_PAGES => {
                self.failed("it includes more than 64 pages by `httpInclude`")
            }
            _ => Progress::Fetch(needs.pages.into_iter().collect()),
        }
    }

    /// Supplies the body of a page that was to be fetched, or says why there is none.
    pub fn supply(&mut self, uri: String, page: Result<Vec<u8>, String>) {
        Arc::make_mut(&mut self.supplied).pages.insert(uri, page.map(lossy));
    }

    /// A template that cannot be executed is an error of the site.
    pub fn failed(&self, reason: &str) -> Progress {
        tracing::error!(path = self.page.name, reason, "a template failed");
        Progress::Failed(Failure::new(StatusCode::INTERNAL_SERVER_ERROR))
    }

    fn response(
        &mut self,
        body: String,
        changes: Vec<FieldChange>,
    ) -> Result<Response<ResponseBody>, String> {
        let mut response = std::mem::take(&mut self.response);
        let fields = response.headers_mut();
        remove_validators(fields);
        for change in changes {
            apply(fields, change)?;
        }
        fields.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
        *response.body_mut() = ResponseBody::full(body);
        Ok(response)
    }

    /// The request for a page that is included: as the client's own, but for what is about its body.
    ///
    /// # Errors
    /// With the reason, in words.
    pub fn request_for(&self, exchange: &Exchange, uri: &str) -> Result<request::Parts, String> {
        let depth = exchange.headers.get(DEPTH).and_then(|depth| depth.to_str().ok()?.parse::<u16>().ok());
        if depth.is_some_and(|depth| depth >= MOST_DEPTH) {
            return Err("virtual request cycle".into());
        }
        let target: Uri = uri.parse().map_err(|_| format!("`{uri}` is no URI"))?;
        if !target.path().starts_with('/') {
            return Err(format!("`{uri}` has to begin with a slash"));
        }
        let target = target.path_and_query().map_or("/", |target| target.as_str());
        let mut head = Request::builder()
            .uri(target)
            .version(exchange.version)
            .body(())
            .map_err(|error| error.to_string())?
            .into_parts()
            .0;
        head.headers = exchange.headers.clone();
        for name in [
            header::CONTENT_LENGTH,
            header::TRANSFER_ENCODING,
            header::CONTENT_TYPE,
            header::EXPECT,
            header::UPGRADE,
            header::RANGE,
            header::IF_RANGE,
            header::IF_MATCH,
            header::IF_NONE_MATCH,
            header::IF_MODIFIED_SINCE,
            header::IF_UNMODIFIED_SINCE,
        ] {
            head.headers.remove(name);
        }
        if let Ok(host) = HeaderValue::from_bytes(exchange.host_port()) {
            head.headers.insert(header::HOST, host);
        }
        head.headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        head.headers.insert(DEPTH, HeaderValue::from(depth.unwrap_or(0) + 1));
        Ok(head)
    }
}

/// What a page that is made anew each time cannot have.
fn remove_validators(fields: &mut HeaderMap) {
    for name in [header::ACCEPT_RANGES, header::LAST_MODIFIED, header::ETAG] {
        fields.remove(name);
    }
}

fn apply(fields: &mut HeaderMap, change: FieldChange) -> Result<(), String> {
    let name = |name: &str| name.parse::<HeaderName>().map_err(|_| format!("`{name}` is no name of a field"));
    let value =
        |value: &str| value.parse::<HeaderValue>().map_err(|_| format!("`{value}` is no value of a field"));
    match change {
        FieldChange::Add(field, text) => drop(fields.append(name(&field)?, value(&text)?)),
        FieldChange::Set(field, text) => drop(fields.insert(name(&field)?, value(&text)?)),
        FieldChange::Remove(field) => drop(fields.remove(name(&field)?)),
    }
    Ok(())
}

fn facts(exchange: &Exchange, protocol: &str) -> regent_templates::Request {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let target = |uri: &Uri| uri.path_and_query().map_or(String::new(), ToString::to_string);
    let remote = exchange.connection.remote;
    regent_templates::Request {
        method: exchange.method.to_string(),
        uri: target(&exchange.uri),
        path: text(exchange.path()),
        original_method: exchange.original_method().to_string(),
        original_uri: target(&exchange.original_uri),
        original_path: text(&exchange.original_path()),
        host: text(exchange.host_port()),
        protocol: protocol.to_owned(),
        remote: remote.map_or(String::new(), |remote| remote.to_string()),
        remote_ip: remote.map_or(String::new(), |remote| remote.ip().to_string()),
        client_ip: exchange.client_ip().map_or(String::new(), |ip| ip.to_string()),
        headers: texts(&exchange.headers),
    }
}

fn texts(fields: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    fields.iter().map(|(name, value)| (name.to_string(), text(value))).collect()
}

fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}
