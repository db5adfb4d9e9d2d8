//! Paths of requests and of files, and the names of hosts: as bytes, without a request.

pub(crate) mod glob;
pub(crate) mod host;
pub(crate) mod root;
pub(crate) mod script;
pub(crate) mod url_path;
