//! Statuses of responses, as directives give them.

use crate::context::exchange::Exchange;
use crate::error::BuildError;
use crate::templates::text::Text;
use http::StatusCode;
use regent_config::Template;

/// A status that is written in the configuration.
pub(crate) enum Status {
    Fixed(StatusCode),
    Computed(Text),
}

impl Status {
    /// `default`: what an empty text stands for.
    pub(crate) fn compile(template: &Template, default: StatusCode) -> Result<Self, BuildError> {
        let text = Text::compile(template);
        match text.literal() {
            Some("") => Ok(Self::Fixed(default)),
            Some(literal) => {
                parse_status(literal).map(Self::Fixed).ok_or_else(|| BuildError::Status(literal.to_owned()))
            }
            None => Ok(Self::Computed(text)),
        }
    }

    /// 500 if placeholders made something else of it than a status.
    pub(crate) fn of(&self, exchange: &Exchange) -> StatusCode {
        match self {
            Self::Fixed(status) => *status,
            Self::Computed(text) => {
                parse_status(&text.render_str(exchange)).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
            }
        }
    }
}

/// A status that can end a request: not an informational one.
pub(crate) fn parse_status(text: &str) -> Option<StatusCode> {
    StatusCode::from_bytes(text.as_bytes()).ok().filter(|status| !status.is_informational())
}
