//! An error of a request, on its way to its page.

use crate::context::origin::Origin;
use crate::context::page;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use regent_exchange::ResponseBody;

/// Marks the page of an error that no other page is configured for.
#[derive(Clone)]
struct PlainPage;

/// Why a request is not answered as it was meant to be.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    pub(crate) status: StatusCode,
    /// Of the `error` directive.
    pub(crate) message: Option<String>,
    /// What the answer has to tell besides its page: `Allow`, `Retry-After`.
    pub(crate) fields: HeaderMap,
    /// A line for the page that there is if no other is configured.
    pub(crate) reason: Option<&'static str>,
}

impl Failure {
    pub fn new(status: StatusCode) -> Self {
        Self { status, message: None, fields: HeaderMap::new(), reason: None }
    }

    /// With a field that the response must have in any case.
    #[must_use]
    pub fn with_field(mut self, name: HeaderName, value: impl Into<HeaderValue>) -> Self {
        self.fields.insert(name, value.into());
        self
    }

    /// With a line that says why, for the page that there is if no other is configured.
    #[must_use]
    pub fn with_reason(mut self, reason: &'static str) -> Self {
        self.reason = Some(reason);
        self
    }

    pub fn status(&self) -> StatusCode {
        self.status
    }

    pub(crate) fn status_text(&self) -> &'static str {
        self.status.canonical_reason().unwrap_or_default()
    }

    pub(crate) fn message(&self) -> &str {
        self.message.as_deref().unwrap_or(self.status_text())
    }

    /// The page of an error that nothing is configured for.
    pub fn plain_page(&self) -> Response<ResponseBody> {
        let mut response = page::error_because(self.status, self.reason);
        response.headers_mut().extend(self.fields.clone());
        response.extensions_mut().insert(PlainPage);
        response
    }

    /// Whether a response is a [`Self::plain_page`].
    pub(crate) fn is_page<B>(response: &Response<B>) -> bool {
        response.extensions().get::<PlainPage>().is_some()
    }

    /// Puts status and fields on an error page. A script that says nothing of a status has answered 200.
    pub(crate) fn mark<B>(&self, origin: Origin, response: &mut Response<B>) {
        if origin == Origin::Engine && response.status() == StatusCode::OK {
            *response.status_mut() = self.status;
        }
        for (name, value) in &self.fields {
            response.headers_mut().entry(name).or_insert_with(|| value.clone());
        }
    }
}
