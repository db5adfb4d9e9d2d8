//! An error of a request, on its way to its page.

use crate::Body;
use crate::answer;
use crate::response_headers::Origin;
use http::{HeaderMap, Response, StatusCode};

/// Why a request is not answered as it was meant to be.
#[derive(Debug, PartialEq)]
pub(crate) struct Failure {
    pub(crate) status: StatusCode,
    /// Of the `error` directive.
    pub(crate) message: Option<String>,
    /// What the answer has to tell besides its page: `Allow`, `Retry-After`.
    pub(crate) fields: HeaderMap,
}

impl Failure {
    pub(crate) fn new(status: StatusCode) -> Self {
        Self { status, message: None, fields: HeaderMap::new() }
    }

    pub(crate) fn status_text(&self) -> &'static str {
        self.status.canonical_reason().unwrap_or_default()
    }

    pub(crate) fn message(&self) -> &str {
        self.message.as_deref().unwrap_or(self.status_text())
    }

    /// The page of an error that nothing is configured for.
    pub(crate) fn plain_page(&self) -> Response<Body> {
        let mut response = answer::error(self.status);
        response.headers_mut().extend(self.fields.clone());
        response
    }

    /// Puts status and fields on an error page. A script that says nothing of a status has answered 200.
    pub(crate) fn mark(&self, origin: Origin, status: &mut StatusCode, headers: &mut HeaderMap) {
        if origin == Origin::Engine && *status == StatusCode::OK {
            *status = self.status;
        }
        for (name, value) in &self.fields {
            headers.entry(name).or_insert_with(|| value.clone());
        }
    }
}
