//! What the fuzz targets in `fuzz/` look at and no other crate may: each function is one of this crate, with types that
//! can be named outside.

use crate::files::range::{self, Wanted};
use crate::log::access_log::{self, AccessRecord};
use crate::paths::glob::Glob;
use crate::paths::url_path;
use http::{HeaderMap, HeaderValue, header};
use regent_config::LogLevel;
use std::time::UNIX_EPOCH;

/// What a `Range` field asks of a file, as first byte and length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ranges {
    Whole,
    Parts(Vec<(u64, u64)>),
    Unsatisfiable,
}

/// The normal form of a request's path; `None` if the request is refused.
pub fn normalize(raw: &str) -> Option<Vec<u8>> {
    url_path::normalize(raw).ok().map(|path| path.unwrap_or_else(|| raw.into()))
}

pub fn clean(path: &[u8]) -> Vec<u8> {
    url_path::clean(path)
}

pub fn decode(raw: &[u8]) -> Option<Vec<u8>> {
    url_path::decode(raw)
}

pub fn decode_query(raw: &str) -> Vec<u8> {
    url_path::decode_query(raw)
}

pub fn encode_path(path: &[u8]) -> Vec<u8> {
    written(|out| url_path::encode_path(path, out))
}

pub fn encode_query_value(value: &[u8]) -> Vec<u8> {
    written(|out| url_path::encode_query_value(value, out))
}

pub fn encode_unsafe(text: &[u8]) -> Vec<u8> {
    written(|out| url_path::encode_unsafe(text, out))
}

/// Whether the text fits the pattern; `None` if that is none.
pub fn glob_fits(pattern: &[u8], text: &[u8]) -> Option<bool> {
    Glob::parse(pattern).map(|glob| glob.matches(text))
}

pub fn ranges(field: &HeaderValue, size: u64) -> Ranges {
    let headers = HeaderMap::from_iter([(header::RANGE, field.clone())]);
    match range::wanted(&headers, size) {
        Wanted::Whole => Ranges::Whole,
        Wanted::One(one) => Ranges::Parts(vec![(one.start, one.len)]),
        Wanted::Several(several) => {
            Ranges::Parts(several.iter().map(|part| (part.start, part.len)).collect())
        }
        Wanted::Unsatisfiable => Ranges::Unsatisfiable,
    }
}

/// The line of an access log in JSON, at the beginning of 1970.
pub fn access_log_line(record: &AccessRecord<'_>) -> Vec<u8> {
    access_log::json_line(LogLevel::Info, record, UNIX_EPOCH)
}

fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}
