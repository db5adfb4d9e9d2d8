//! Names of files that are served for their directories.

use crate::context::exchange::Exchange;
use crate::paths::url_path;
use crate::templates::text::Text;
use regent_config::Template;
use std::borrow::Cow;

/// The name of a file that is served for its directory.
pub(crate) enum IndexName {
    Fixed(Vec<u8>),
    Computed(Text),
}

impl IndexName {
    pub(crate) fn compile(name: &Template) -> Self {
        let text = Text::compile(name);
        match text.literal() {
            Some(name) => Self::Fixed(url_path::clean(name.as_bytes())),
            None => Self::Computed(text),
        }
    }

    /// Cleaned, so that it cannot lead elsewhere.
    pub(crate) fn of(&self, exchange: &Exchange) -> Cow<'_, [u8]> {
        match self {
            Self::Fixed(name) => Cow::Borrowed(name),
            Self::Computed(text) => Cow::Owned(url_path::clean(&text.render(exchange))),
        }
    }
}
