//! A stored response.

use crate::disk::FileBody;
use crate::policy::Terms;
use crate::rope::Rope;
use crate::selection::{CookieRule, Selection};
use crate::{date, tags};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use std::time::SystemTime;

/// Fields that are about one connection, or the way to this cache, and not stored (RFC 9111 §3.1).
const UNKEPT: [HeaderName; 10] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    header::PROXY_AUTHENTICATE,
    HeaderName::from_static("proxy-authentication-info"),
    HeaderName::from_static("proxy-connection"),
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::AGE,
];

/// A complete response, as whoever made it sent it.
#[derive(Debug)]
pub struct Stored {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: StoredBody,
    pub terms: Terms,
    pub(crate) selection: Selection,
    pub(crate) tags: Box<[Box<str>]>,
}

/// The body of a stored response.
#[derive(Debug, Clone)]
pub enum StoredBody {
    Memory(Rope),
    File(FileBody),
}

impl StoredBody {
    pub fn len(&self) -> u64 {
        match self {
            Self::Memory(rope) => rope.len() as u64,
            Self::File(file) => file.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory.
    fn weight(&self) -> usize {
        match self {
            Self::Memory(rope) => rope.len(),
            Self::File(_) => 0,
        }
    }
}

impl Stored {
    /// `None`: it has more tags than are kept.
    pub fn new(
        status: StatusCode,
        headers: &HeaderMap,
        body: StoredBody,
        terms: Terms,
        selection: Selection,
        now: SystemTime,
    ) -> Option<Self> {
        let tags = tags::of(headers)?;
        let mut headers = kept(headers);
        // Its age is counted from it by whoever gets it (RFC 9110 §6.6.1).
        headers.entry(header::DATE).or_insert_with(|| written(now));
        headers.remove(header::CONTENT_LENGTH);
        Some(Self { status, headers, body, terms, selection, tags })
    }

    /// One that was stored before, as it was. `None`: it was none.
    pub(crate) fn again(
        status: StatusCode,
        headers: HeaderMap,
        body: StoredBody,
        terms: Terms,
        selection: Selection,
    ) -> Option<Self> {
        let tags = tags::of(&headers)?;
        Some(Self { status, headers, body, terms, selection, tags })
    }

    /// Its fields when it has been found to be still good: those of the 304 instead of its own (RFC 9111 §3.2).
    pub fn freshened(&self, newer: &HeaderMap, now: SystemTime) -> HeaderMap {
        const OF_THE_BODY: [HeaderName; 4] =
            [header::CONTENT_LENGTH, header::CONTENT_ENCODING, header::CONTENT_TYPE, header::CONTENT_RANGE];
        let mut headers = self.headers.clone();
        let mut newer = kept(newer);
        // It is as old as the 304, whether that says so or not.
        newer.entry(header::DATE).or_insert_with(|| written(now));
        for name in newer.keys().filter(|name| !OF_THE_BODY.contains(name)) {
            headers.remove(name);
            newer.get_all(name).iter().for_each(|value| {
                headers.append(name, value.clone());
            });
        }
        headers
    }

    /// The same response with other fields, and terms that follow from them. `None`: there are too many tags.
    pub fn with(&self, headers: HeaderMap, terms: Terms) -> Option<Self> {
        let tags = tags::of(&headers)?;
        let (body, selection) = (self.body.clone(), self.selection.clone());
        Some(Self { status: self.status, headers, body, terms, selection, tags })
    }

    /// What a request has to ask by whether it is still good; without any, it cannot be asked about.
    pub fn conditions(&self) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        let by = [(header::IF_NONE_MATCH, header::ETAG), (header::IF_MODIFIED_SINCE, header::LAST_MODIFIED)];
        by.into_iter().filter_map(|(condition, field)| Some((condition, self.headers.get(field)?.clone())))
    }

    /// Whether a 304 is about this one: it names no other.
    pub fn is_meant_by(&self, not_modified: &HeaderMap) -> bool {
        let weak = |headers: &HeaderMap| {
            let tag = headers.get(header::ETAG)?.as_bytes();
            Some(tag.strip_prefix(b"W/").unwrap_or(tag).to_vec())
        };
        match (weak(not_modified), weak(&self.headers)) {
            (Some(newer), own) => own.is_some_and(|own| own == newer),
            (None, _) => {
                let newer = date::of(not_modified, &header::LAST_MODIFIED);
                newer.is_none() || newer == date::of(&self.headers, &header::LAST_MODIFIED)
            }
        }
    }

    /// Whether a request gets it; as [`Selection::fits`].
    pub fn fits(&self, base: &[u8], request: &HeaderMap, cookies: &CookieRule) -> bool {
        self.selection.fits(base, request, cookies)
    }

    /// What a request is told apart by from others that get responses of this kind.
    pub fn selection_of(&self, base: &[u8], request: &HeaderMap, cookies: &CookieRule) -> Selection {
        self.selection.of_another(base, request, cookies)
    }

    /// Bytes that it takes, about.
    pub(crate) fn weight(&self) -> usize {
        let fields = self.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 64);
        let tags = self.tags.iter().map(|tag| tag.len() + 16);
        // The structures, and what allocators add to them.
        512 + fields.sum::<usize>() + tags.sum::<usize>() + self.selection.weight() + self.body.weight()
    }
}

/// Without what is about a connection, or named so by `Connection`.
fn kept(headers: &HeaderMap) -> HeaderMap {
    let values = headers.get_all(header::CONNECTION).iter();
    let named: Vec<_> = values
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok())
        .collect();
    let mut kept = headers.clone();
    UNKEPT.iter().chain(&named).for_each(|name| drop(kept.remove(name)));
    kept
}

fn written(time: SystemTime) -> HeaderValue {
    HeaderValue::try_from(httpdate::fmt_http_date(time)).expect("invariant: a date is graphic ASCII")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_about_a_connection_is_not_kept() {
        let mut headers = HeaderMap::new();
        let all = [
            "x-kept",
            "keep-alive",
            "proxy-connection",
            "proxy-authenticate",
            "te",
            "upgrade",
            "age",
            "x-hop",
        ];
        for name in all {
            headers.insert(name, HeaderValue::from_static("a"));
        }
        headers.append(header::CONNECTION, HeaderValue::from_static("close, X-Hop"));
        headers.append(header::CONNECTION, HeaderValue::from_static(", keep-alive"));
        let kept = kept(&headers);
        assert_eq!(kept.keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["x-kept"]);
    }
}
