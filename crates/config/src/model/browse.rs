//! `file_server browse`: pages that list directories.

use super::global::as_optional_text;
use serde::Serialize;
use std::path::PathBuf;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Browse {
    /// The file of a template that makes the pages. `None`: they are Regent's own.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_optional_text")]
    pub template: Option<PathBuf>,
    /// Entries of a directory that are looked at; those beyond are left out.
    pub file_limit: u32,
    /// Where the client does not say.
    pub sort: ListingSort,
    pub order: ListingOrder,
    /// Pages and JSON tell where links lead.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub reveal_links: bool,
    /// Go's layout of times in pages of plain text.
    pub plain_time_format: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum ListingSort {
    Name,
    /// By name, directories before files.
    NameDirFirst,
    Size,
    Time,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum ListingOrder {
    Ascending,
    Descending,
}

impl ListingSort {
    /// By its name in a Caddyfile and in a query.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "name" => Self::Name,
            "namedirfirst" => Self::NameDirFirst,
            "size" => Self::Size,
            "time" => Self::Time,
            _ => return None,
        })
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::NameDirFirst => "namedirfirst",
            Self::Size => "size",
            Self::Time => "time",
        }
    }
}

impl ListingOrder {
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "asc" => Some(Self::Ascending),
            "desc" => Some(Self::Descending),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Ascending => "asc",
            Self::Descending => "desc",
        }
    }
}

impl Default for Browse {
    /// As in Caddy (fileserver/browse.go).
    fn default() -> Self {
        Self {
            file_limit: 10_000,
            sort: ListingSort::NameDirFirst,
            order: ListingOrder::Ascending,
            reveal_links: false,
            template: None,
            plain_time_format: "January 2, 2006 at 15:04:05".into(),
        }
    }
}
