//! Roots of handlers, which may be written with placeholders.

use crate::context::exchange::Exchange;
use crate::error::BuildError;
use crate::paths::root::{self, Root};
use crate::templates::text::Text;
use regent_config::Template;
use std::path::Path;
use std::sync::Arc;

/// Where a handler's root comes from.
pub(crate) enum RootSource {
    /// The site's root, as the `root` directive has set it for this request.
    Site,
    Fixed(Arc<Root>),
    /// Has placeholders.
    Computed(Text),
}

impl RootSource {
    pub(crate) fn compile(root: Option<&Template>) -> Result<Self, BuildError> {
        let Some(root) = root else { return Ok(Self::Site) };
        let text = Text::compile(root);
        match text.literal() {
            Some(path) => Ok(Self::Fixed(Arc::new(Root::new(Path::new(path))?))),
            // What `php_server` and `file_server` have in Caddy when no root is given.
            None if text.is_site_root() => Ok(Self::Site),
            None => Ok(Self::Computed(text)),
        }
    }

    /// The root that the text makes for this request. For one whose host is nothing or `.`, it would be the directory of all
    /// hosts.
    pub(crate) fn compute(text: &Text, exchange: &Exchange) -> Option<Arc<Root>> {
        if text.lacks_host(exchange) { None } else { root::computed(&text.render_path(exchange)?) }
    }

    /// The root for this request; `None` if what the client sent would lead out of where the operator meant it to be.
    pub(crate) fn resolve(&self, exchange: &Exchange) -> Option<Arc<Root>> {
        match self {
            Self::Site => exchange.root(),
            Self::Fixed(root) => Some(root.clone()),
            Self::Computed(text) => Self::compute(text, exchange),
        }
    }
}
