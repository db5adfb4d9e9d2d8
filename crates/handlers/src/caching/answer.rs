//! A stored response as a client gets it (RFC 9111 §4, RFC 9110 §13, §14).

use crate::context::cache_rules::{CacheRules, Shown};
use crate::context::exchange::Exchange;
use crate::context::page;
use crate::files::conditional;
use crate::files::range::{self, Wanted};
use crate::templates::text::Text;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use http_body::{Body, Frame, SizeHint};
use regent_cache::{CacheStatus, Rope, Stored, StoredBody, TAG_FIELDS};
use regent_exchange::ResponseBody;
use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::SystemTime;

/// What a 304 says nothing of (RFC 9110 §15.4.5).
const OF_THE_CONTENT: [HeaderName; 4] =
    [header::CONTENT_ENCODING, header::CONTENT_LANGUAGE, header::CONTENT_TYPE, header::CONTENT_RANGE];
/// The field of access logs.
const LOG_FIELD: &str = "cache";

/// The stored response, the part of it that is asked for, or that the client has it.
pub(super) fn with(
    exchange: &mut Exchange,
    rules: &CacheRules,
    stored: &Stored,
    status: CacheStatus,
    now: SystemTime,
) -> Response<ResponseBody> {
    note(exchange, status);
    let mut headers = stored.headers.clone();
    let age = stored.terms.age(now).as_secs();
    // What has just been made has none.
    if age > 0 || matches!(status, CacheStatus::Hit { .. }) {
        headers.insert(header::AGE, age.into());
    }
    mark(&mut headers, rules, status);
    let is_ok = stored.status == StatusCode::OK;
    if is_ok && is_known(&exchange.headers, stored) {
        OF_THE_CONTENT.iter().for_each(|name| drop(headers.remove(name)));
        return page::with_fields(StatusCode::NOT_MODIFIED, headers, ResponseBody::empty());
    }
    let size = stored.body.len();
    let mut part = (0, stored.body.len());
    let mut code = stored.status;
    if is_ok && *exchange.original_method() == Method::GET && range_applies(&exchange.headers, stored) {
        match range::wanted(&exchange.headers, size) {
            Wanted::One(range) => {
                headers.insert(header::CONTENT_RANGE, range.content_range(size));
                part = (range.start, range.len);
                code = StatusCode::PARTIAL_CONTENT;
            }
            Wanted::Unsatisfiable => {
                let range = HeaderValue::try_from(format!("bytes */{size}"));
                range.into_iter().for_each(|range| drop(headers.insert(header::CONTENT_RANGE, range)));
                headers.remove(header::CONTENT_TYPE);
                part = (0, 0);
                code = StatusCode::RANGE_NOT_SATISFIABLE;
            }
            // A response to several ranges is no shorter to make than the whole.
            Wanted::Whole | Wanted::Several(_) => {}
        }
    }
    if code != StatusCode::NO_CONTENT {
        headers.insert(header::CONTENT_LENGTH, part.1.into());
    }
    let body = match *exchange.original_method() == Method::HEAD {
        true => ResponseBody::empty(),
        false => body(&stored.body, part),
    };
    page::with_fields(code, headers, body)
}

/// For access logs.
pub(super) fn note(exchange: &mut Exchange, status: CacheStatus) {
    exchange.observed.cache = Some(status.word());
    exchange.set_log_field(LOG_FIELD, Arc::new(Text::of_literal(status.word().to_owned())));
}

/// Says what the cache has done, and takes away what is said to caches.
pub(super) fn mark(headers: &mut HeaderMap, rules: &CacheRules, status: CacheStatus) {
    if rules.status == Shown::Yes {
        headers.append(CacheStatus::FIELD, status.value());
    }
    if rules.tags == Shown::No {
        TAG_FIELDS.iter().for_each(|name| drop(headers.remove(*name)));
    }
}

/// Whether the client has this very response (RFC 9110 §13.2.2).
fn is_known(request: &HeaderMap, stored: &Stored) -> bool {
    if request.contains_key(header::IF_NONE_MATCH) {
        let own = stored.headers.get(header::ETAG).map(HeaderValue::as_bytes);
        let own = own.map(|tag| tag.strip_prefix(b"W/").unwrap_or(tag));
        return request.get_all(header::IF_NONE_MATCH).iter().map(HeaderValue::as_bytes).any(|list| {
            list.trim_ascii() == b"*" || conditional::tags(list).any(|(_, tag)| Some(tag) == own)
        });
    }
    let date = |headers: &HeaderMap, name| conditional::date(headers, name);
    let since = date(request, &header::IF_MODIFIED_SINCE);
    let modified =
        date(&stored.headers, &header::LAST_MODIFIED).or_else(|| date(&stored.headers, &header::DATE));
    since.is_some_and(|since| modified.is_some_and(|modified| modified <= since))
}

/// Whether a `Range` counts: only of the response that the client has a part of.
fn range_applies(request: &HeaderMap, stored: &Stored) -> bool {
    let Some(condition) = request.get(header::IF_RANGE) else { return true };
    let by = if condition.as_bytes().starts_with(b"\"") { header::ETAG } else { header::LAST_MODIFIED };
    // A weak tag is equal to none (RFC 9110 §13.1.5).
    !condition.as_bytes().starts_with(b"W/") && stored.headers.get(by) == Some(condition)
}

fn body(stored: &StoredBody, (start, len): (u64, u64)) -> ResponseBody {
    match stored {
        StoredBody::Memory(rope) => from_memory(rope, (start as usize, len as usize)),
        StoredBody::File(_) if len == 0 => ResponseBody::empty(),
        StoredBody::File(file) => ResponseBody::shared_file(Arc::clone(file.fd()), file.offset(start), len),
    }
}

fn from_memory(rope: &Rope, (start, len): (usize, usize)) -> ResponseBody {
    let mut pieces: VecDeque<_> = rope.slice(start, len).into();
    match pieces.len() {
        0 => ResponseBody::empty(),
        1 => ResponseBody::full(pieces.pop_front().unwrap_or_default()),
        _ => ResponseBody::stream(Pieces { pieces, left: len as u64, _rope: rope.clone() }),
    }
}

/// A body of several blocks, which are counted as long as it is there.
struct Pieces {
    pieces: VecDeque<Bytes>,
    left: u64,
    _rope: Rope,
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let body = self.get_mut();
        let piece = body.pieces.pop_front();
        body.left -= piece.as_ref().map_or(0, |piece| piece.len() as u64);
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
