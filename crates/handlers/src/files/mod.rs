//! What files are and how they are asked for: stat, caches, ranges, validators, what is hidden.

pub(crate) mod conditional;
pub(crate) mod content_coding;
pub(crate) mod content_type;
pub(crate) mod etag_file;
pub(crate) mod file_cache;
pub(crate) mod file_stat;
pub(crate) mod hide;
pub(crate) mod index_name;
pub(crate) mod known_scripts;
pub(crate) mod listing;
pub(crate) mod range;
