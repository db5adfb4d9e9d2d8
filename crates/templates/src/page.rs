//! What a template is given, and what becomes of it.

use crate::listing::Listing;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

/// A page to be rendered.
#[derive(Debug)]
pub struct Page {
    /// What messages call it: the path of the request.
    pub name: String,
    pub source: String,
    /// Around actions: `{{` and `}}`.
    pub delimiters: (String, String),
    /// Where `include` and the like find files; nothing outside of it can be named.
    pub root: PathBuf,
    pub request: Request,
    /// The header of the response, as it stands before the template changes it.
    pub fields: Vec<(String, String)>,
    /// The time that `now` is, however often the page is rendered.
    pub now: Timestamp,
    /// The directory that the page lists, if it is such a page.
    pub listing: Option<Listing>,
}

impl Page {
    /// The time that is so long after 1970.
    pub fn time(since: Duration) -> Timestamp {
        let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
        Timestamp::new(seconds, since.subsec_nanos().cast_signed()).unwrap_or(Timestamp::MAX)
    }
}

/// The request that is answered with the page.
#[derive(Debug, Default, Clone)]
pub struct Request {
    pub method: String,
    /// Path and query after rewrites, encoded.
    pub uri: String,
    /// The same path, decoded.
    pub path: String,
    /// As the client sent it.
    pub original_method: String,
    pub original_uri: String,
    pub original_path: String,
    /// With the port, if the client named one.
    pub host: String,
    /// `HTTP/1.1` and so on.
    pub protocol: String,
    /// Address and port of the connection; empty on a Unix socket.
    pub remote: String,
    pub remote_ip: String,
    pub client_ip: String,
    pub headers: Vec<(String, String)>,
}

/// What a page needed that only the server knows.
#[derive(Debug, Default, Clone)]
pub struct Supplied {
    pub placeholders: BTreeMap<String, String>,
    /// Bodies of the pages of `httpInclude`, or why there is none.
    pub pages: BTreeMap<String, Result<String, String>>,
}

/// What only the server knows, by name.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Needs {
    pub placeholders: BTreeSet<String>,
    /// URIs of `httpInclude`.
    pub pages: BTreeSet<String>,
}

/// What a template did to the header of the response.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldChange {
    Add(String, String),
    Set(String, String),
    Remove(String),
}

/// Why there is no page.
#[derive(Debug, Clone, PartialEq)]
pub enum Failed {
    /// The template asks for an error (`httpError`).
    Status(u16),
    /// It is wrong, or exceeds a bound.
    Template(String),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    Done {
        body: String,
        changes: Vec<FieldChange>,
    },
    /// To be rendered once more, with these.
    Needs(Needs),
    Failed(Failed),
}

impl Needs {
    pub fn is_empty(&self) -> bool {
        self.placeholders.is_empty() && self.pages.is_empty()
    }
}
