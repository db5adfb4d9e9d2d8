//! Where the file of a path is, below a root that may be a link.

use super::FileServer;
use crate::context::exchange::Exchange;
use crate::context::flow::Flow;
use crate::paths::root::{self, Links, Root};
use crate::paths::url_path;
use http::StatusCode;
use std::sync::Arc;

impl FileServer {
    /// The file of a path, unless it is hidden.
    #[expect(clippy::result_large_err, reason = "the response is returned at once")]
    pub(super) fn locate(&self, exchange: &Exchange, path: &[u8]) -> Result<(Arc<Root>, Vec<u8>), Flow> {
        let Some(root) = self.root.resolve(exchange) else {
            return Err(Flow::error(StatusCode::BAD_REQUEST));
        };
        let prefix = self.links.prefix(&root, exchange.code);
        let file = root::join(&prefix, url_path::trim_end_slashes(path));
        if self.is_hidden(exchange, path, &file, root.prefix()) {
            Err(self.missing())
        } else {
            Ok((root, file))
        }
    }

    /// By either name of the root: a file may be hidden by the one that is written in the configuration.
    pub(super) fn is_hidden(&self, exchange: &Exchange, path: &[u8], file: &[u8], written: &[u8]) -> bool {
        self.hide.hides(exchange, path, file)
            || (self.links == Links::OfCode
                && self.hide.hides(exchange, path, &root::join(written, url_path::trim_end_slashes(path))))
    }
}
