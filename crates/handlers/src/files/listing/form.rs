//! In which form a client wants a listing.

use http::{HeaderMap, header};

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Form {
    Html,
    Json,
    Text,
}

impl Form {
    /// As Caddy reads `Accept`: JSON where it is named, then text.
    pub(super) fn asked(headers: &HeaderMap) -> Self {
        let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let values: Vec<_> = values.map(str::to_ascii_lowercase).collect();
        let names = |kind: &str| values.iter().any(|value| value.contains(kind));
        match (names("application/json"), names("text/plain")) {
            (true, _) => Self::Json,
            (false, true) => Self::Text,
            (false, false) => Self::Html,
        }
    }

    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Html => "text/html; charset=utf-8",
            Self::Json => "application/json; charset=utf-8",
            Self::Text => "text/plain; charset=utf-8",
        }
    }
}
