//! `file_server browse`: pages that list directories.

use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Browse {
    /// Entries of a directory that are looked at; those beyond are left out.
    pub file_limit: u32,
    /// Where the client does not say.
    pub sort: ListingSort,
    pub order: ListingOrder,
    /// Pages and JSON tell where links lead.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub reveal_links: bool,
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
}

impl ListingOrder {
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "asc" => Some(Self::Ascending),
            "desc" => Some(Self::Descending),
            _ => None,
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
        }
    }
}
