//! What `intercept` means.

use super::{ResponseMatcher, Route, Template};
use serde::Serialize;

/// A rule for responses.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InterceptRule {
    /// `None`: every response.
    pub matcher: Option<ResponseMatcher>,
    pub action: InterceptAction,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum InterceptAction {
    /// The response is made anew.
    Routes(Vec<Route>),
    /// It has this status.
    Status(Template),
}
