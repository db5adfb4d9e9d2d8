//! `error`: ends a request with an error, which may have a page.

use crate::context::exchange::Exchange;
use crate::context::failure::Failure;
use crate::context::flow::Flow;
use crate::error::BuildError;
use crate::templates::status::Status;
use crate::templates::text::Text;
use http::StatusCode;
use regent_config::Template;

/// The compiled directive.
pub(crate) struct RaiseError {
    status: Status,
    message: Text,
}

impl RaiseError {
    pub(crate) fn compile(status: &Template, message: &Template) -> Result<Self, BuildError> {
        Ok(Self {
            status: Status::compile(status, StatusCode::INTERNAL_SERVER_ERROR)?,
            message: Text::compile(message),
        })
    }

    pub(crate) fn handle(&self, exchange: &Exchange) -> Flow {
        let (status, message) = (self.status.of(exchange), self.message.render_str(exchange).into_owned());
        tracing::debug!(uri = %exchange.original_uri, message, "error handler");
        let message = Some(message).filter(|message| !message.is_empty());
        Flow::Fail(Failure { message, ..Failure::new(status) })
    }
}
