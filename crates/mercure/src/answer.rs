//! Requests to a hub, and their responses.

use crate::credentials::{self, Source, parameter};
use crate::form;
use crate::hub::{Hub, Refused, Subscription};
use crate::options::{Anonymous, Subscriptions};
use crate::registry::Interest;
use crate::selector::Selector;
use crate::subscriptions::Listing;
use crate::template::Topic;
use crate::token::Grant;
use crate::{cors, update::Publication};
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use http_body::Body;
use regent_exchange::{EventStream, RequestBody, ResponseBody};
use std::collections::HashSet;
use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

/// Where a hub is (draft-dunglas-mercure-07, section 2).
pub const PATH: &str = "/.well-known/mercure";
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Subscriptions of one connection.
const MOST_SUBSCRIPTIONS: usize = 100;
/// Bytes of one topic selector.
const LONGEST_SELECTOR: usize = 8 * 1024;
/// Bytes of all topic selectors of one connection.
const MOST_BYTES: usize = 32 * 1024;
/// Variables of all templates of one connection: each has a part in what an update costs.
const MOST_VARIABLES: usize = 400;
const FORM: &[u8] = b"application/x-www-form-urlencoded";
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, OPTIONS");

/// The head of a request to a hub.
pub struct Asked<'a> {
    pub method: &'a Method,
    /// As it stands in the request, not decoded.
    pub path: &'a str,
    pub query: &'a str,
    pub headers: &'a HeaderMap,
}

/// Bounds on the body of a publication.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    pub bytes: u64,
    /// Longest time that nothing comes.
    pub silence: Duration,
}

/// Why a request is not answered as it was meant to be: for its sender to read.
struct Refusal {
    status: StatusCode,
    reason: String,
}

fn refuse(status: StatusCode, reason: impl ToString) -> Refusal {
    Refusal { status, reason: reason.to_string() }
}

impl Hub {
    /// Answers a request to `/.well-known/mercure` or below.
    pub async fn answer(
        &self,
        asked: Asked<'_>,
        body: RequestBody,
        bounds: Bounds,
    ) -> Response<ResponseBody> {
        let is_hub = asked.path == PATH;
        let result = match *asked.method {
            Method::GET | Method::HEAD if !is_hub => self.answer_about_subscriptions(&asked).await,
            Method::GET | Method::HEAD => self.answer_subscriber(&asked).await,
            Method::POST if is_hub => self.answer_publisher(&asked, body, bounds).await,
            Method::OPTIONS => Ok(self.answer_preflight(&asked)),
            _ => {
                let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed\n".into());
                response.headers_mut().insert(header::ALLOW, METHODS);
                Ok(response)
            }
        };
        let mut response = result.unwrap_or_else(Refusal::response);
        if asked.method != Method::OPTIONS {
            self.cors.mark(asked.headers, response.headers_mut());
        }
        response
    }

    fn answer_preflight(&self, asked: &Asked<'_>) -> Response<ResponseBody> {
        let mut response = Response::new(ResponseBody::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        response.headers_mut().insert(header::ALLOW, METHODS);
        self.cors.mark_preflight(asked.headers, response.headers_mut());
        response
    }

    async fn answer_publisher(
        &self,
        asked: &Asked<'_>,
        body: RequestBody,
        bounds: Bounds,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let grant = self.publisher(asked)?;
        let kind = asked.headers.get(header::CONTENT_TYPE).map_or(&[][..], HeaderValue::as_bytes);
        let kind = kind.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        if !kind.eq_ignore_ascii_case(FORM) {
            let reason = "An update is sent as application/x-www-form-urlencoded";
            return Err(refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, reason));
        }
        let body = collect(body, bounds).await?;
        let publication = form::parse(&body).map_err(|error| refuse(StatusCode::BAD_REQUEST, error))?;
        may_publish(&grant, &publication)?;
        let (id, done) = self.publish(publication).map_err(|refused| match refused {
            Refused::Update(error) => refuse(StatusCode::BAD_REQUEST, error),
            Refused::Overload => refuse(StatusCode::SERVICE_UNAVAILABLE, refused),
        })?;
        let lost =
            "It is not certain that the update is published: Redis does not answer. Publish it again later";
        done.await.map_err(|_| refuse(StatusCode::SERVICE_UNAVAILABLE, lost))?;
        Ok(text(StatusCode::OK, id))
    }

    /// Who publishes. What the update is about is looked at when it is there.
    fn publisher(&self, asked: &Asked<'_>) -> Result<Grant, Refusal> {
        let credentials = credentials::find(asked.headers, asked.query, &self.options.cookie_name);
        let grant = credentials::grant(&self.publishers, credentials.as_ref());
        let grant = grant.ok_or_else(|| refuse(StatusCode::UNAUTHORIZED, "Unauthorized"))?;
        // A page of anybody's can make a browser send a form with its cookies.
        let by_cookie = credentials.is_some_and(|credentials| credentials.source == Source::Cookie);
        if by_cookie && !cors::comes_from(&self.options.publish_origins, asked.headers) {
            let reason = "This origin may not publish with a cookie: it is not among `publish_origins`";
            return Err(refuse(StatusCode::FORBIDDEN, reason));
        }
        Ok(grant)
    }

    async fn answer_subscriber(&self, asked: &Asked<'_>) -> Result<Response<ResponseBody>, Refusal> {
        let credentials = credentials::find(asked.headers, asked.query, &self.options.cookie_name);
        let grant = credentials::grant(&self.subscribers, credentials.as_ref());
        // An invalid token is refused where none would do: its owner counts on it.
        let grant = match (grant, self.options.anonymous) {
            (Some(grant), _) => grant,
            (None, Anonymous::Allowed) if credentials.is_none() => Grant::default(),
            _ => return Err(refuse(StatusCode::UNAUTHORIZED, "Unauthorized")),
        };
        let topics = topics(asked.query)?;
        let since = last_event_id(asked);
        let is_asked_for_more = since.is_some();
        let mut response = Response::new(ResponseBody::empty());
        mark_event_stream(response.headers_mut());
        if asked.method == Method::HEAD {
            return Ok(response);
        }
        let interest = Interest::new(topics, grant.subscribe);
        let subscription = Subscription { payload: grant.payload, valid_for: grant.valid_for };
        let joined = self.subscribe(interest, subscription, since).await;
        let (stream, after) = joined.map_err(|reason| refuse(StatusCode::SERVICE_UNAVAILABLE, reason))?;
        if let (true, Ok(after)) = (is_asked_for_more, HeaderValue::from_maybe_shared(Bytes::from(after))) {
            response.headers_mut().insert(LAST_EVENT_ID, after);
        }
        response.extensions_mut().insert(EventStream);
        *response.body_mut() = ResponseBody::stream(stream);
        Ok(response)
    }

    /// The subscription API, for those whose token names the path that they ask for.
    async fn answer_about_subscriptions(&self, asked: &Asked<'_>) -> Result<Response<ResponseBody>, Refusal> {
        let not_found = || refuse(StatusCode::NOT_FOUND, "Not Found");
        if self.options.subscriptions == Subscriptions::Hidden {
            return Err(not_found());
        }
        let credentials = credentials::find(asked.headers, asked.query, &self.options.cookie_name);
        let grant = credentials::grant(&self.subscribers, credentials.as_ref());
        let grant = grant.ok_or_else(|| refuse(StatusCode::UNAUTHORIZED, "Unauthorized"))?;
        let listing = Listing::of_path(asked.path).ok_or_else(not_found)?;
        let path = listing.path();
        let paths = [Topic::new(&path), Topic::new(asked.path)];
        if !grant.subscribe.iter().any(|selector| paths.iter().any(|path| selector.fits(path))) {
            return Err(refuse(StatusCode::FORBIDDEN, "The token does not allow to see these subscriptions"));
        }
        let (document, last_event_id) = self.list(listing).await.ok_or_else(not_found)?;
        let mut response = Response::new(ResponseBody::full(document.ok_or_else(not_found)?));
        let length = response.body().len().unwrap_or_default();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_LENGTH, length.into());
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/ld+json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, must-revalidate"));
        headers.insert(header::LINK, HeaderValue::from_static("</.well-known/mercure>; rel=\"mercure\""));
        if let Ok(tag) = HeaderValue::try_from(format!("\"{}\"", last_event_id.replace('"', "%22"))) {
            headers.insert(header::ETAG, tag);
        }
        Ok(response)
    }
}

/// An update may be published if all its topics may.
fn may_publish(grant: &Grant, publication: &Publication) -> Result<(), Refusal> {
    let allowed = grant.publish.as_deref().unwrap_or_default();
    let fits = |topic: Topic<'_>| allowed.iter().any(|selector| selector.fits(&topic));
    if grant.publish.is_some() && publication.topics.iter().map(|topic| Topic::new(topic)).all(fits) {
        return Ok(());
    }
    Err(refuse(StatusCode::FORBIDDEN, "The token does not allow to publish to all of these topics"))
}

fn topics(query: &str) -> Result<Vec<Selector>, Refusal> {
    let mut topics = HashSet::new();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        if name != "topic" || value.is_empty() {
            continue;
        }
        if value.len() > LONGEST_SELECTOR || value.chars().any(char::is_control) {
            let reason = "Invalid \"topic\" parameter: it must not be longer than 8192 bytes or contain control characters";
            return Err(refuse(StatusCode::BAD_REQUEST, reason));
        }
        topics.insert(value);
        if topics.len() > MOST_SUBSCRIPTIONS {
            return Err(refuse(StatusCode::BAD_REQUEST, "Too many \"topic\" parameters: 100 are allowed"));
        }
    }
    if topics.is_empty() {
        return Err(refuse(StatusCode::BAD_REQUEST, "Missing \"topic\" parameter"));
    }
    let selectors: Vec<_> = topics.iter().map(|topic| Selector::new(topic)).collect();
    if selectors.iter().map(|selector| selector.text().len()).sum::<usize>() > MOST_BYTES {
        return Err(refuse(
            StatusCode::BAD_REQUEST,
            "Too long \"topic\" parameters: 32768 bytes are allowed",
        ));
    }
    if selectors.iter().map(Selector::variables).sum::<usize>() > MOST_VARIABLES {
        let reason = "Too many variables in \"topic\" parameters: 400 are allowed";
        return Err(refuse(StatusCode::BAD_REQUEST, reason));
    }
    Ok(selectors)
}

/// The field goes before the parameter, which is there for the first connection of a browser.
fn last_event_id(asked: &Asked<'_>) -> Option<String> {
    let field =
        asked.headers.get(LAST_EVENT_ID).map(|id| String::from_utf8_lossy(id.as_bytes()).into_owned());
    let field = field.filter(|id| !id.is_empty());
    // That of the protocol, and those of its older versions.
    let names = ["lastEventID", "last_event_id", "Last-Event-ID"];
    field.or_else(|| names.iter().find_map(|name| parameter(asked.query, name)))
}

fn mark_event_stream(headers: &mut HeaderMap) {
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    // `no-transform`: an encoder for each of ten thousand connections would take more memory than all else.
    let cache = "private, no-cache, no-store, must-revalidate, max-age=0, no-transform";
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
    // nginx in front does not collect events then.
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
}

/// All of a body, within its bounds.
async fn collect(mut body: RequestBody, bounds: Bounds) -> Result<Bytes, Refusal> {
    let too_large =
        || refuse(StatusCode::PAYLOAD_TOO_LARGE, format!("An update may have {} bytes", bounds.bytes));
    if body.size_hint().lower() > bounds.bytes {
        return Err(too_large());
    }
    let mut collected = BytesMut::new();
    loop {
        let frame = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx));
        let frame = tokio::time::timeout(bounds.silence, frame).await;
        let frame = frame.map_err(|_| refuse(StatusCode::REQUEST_TIMEOUT, "Request Timeout"))?;
        let Some(frame) = frame else { return Ok(collected.freeze()) };
        let frame = frame.map_err(|_| refuse(StatusCode::BAD_REQUEST, "The body broke off"))?;
        if let Ok(data) = frame.into_data() {
            if (collected.len() + data.len()) as u64 > bounds.bytes {
                return Err(too_large());
            }
            collected.extend_from_slice(&data);
        }
    }
}

impl Refusal {
    fn response(self) -> Response<ResponseBody> {
        let mut response = text(self.status, self.reason + "\n");
        if self.status == StatusCode::UNAUTHORIZED {
            // RFC 6750 §3.
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

fn text(status: StatusCode, text: String) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::full(text));
    *response.status_mut() = status;
    let length = response.body().len().unwrap_or_default();
    response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
