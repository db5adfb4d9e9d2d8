//! A request's way from one handler to the next.

use crate::context::failure::Failure;
use crate::context::target::Action;
use http::{Response, StatusCode};
use regent_exchange::ResponseBody;

/// What a handler has done with a request.
pub(crate) enum Flow {
    /// The next route is to look at it.
    Next,
    Answer(Action),
    /// The response of the upstream that has been asked, with this status if there is one.
    Relay(Option<StatusCode>),
    /// The request ends with an error, which may have a page.
    Fail(Failure),
}

impl Flow {
    pub(crate) fn respond(response: Response<ResponseBody>) -> Self {
        Self::Answer(Action::Respond(response))
    }

    pub(crate) fn error(status: StatusCode) -> Self {
        Self::Fail(Failure::new(status))
    }
}
