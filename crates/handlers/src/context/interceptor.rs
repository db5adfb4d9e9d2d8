//! What routes do with responses that are made anew (`intercept`).

use crate::context::exchange::Exchange;
use crate::context::flow::Flow;
use crate::context::rendering::Rules;
use http::{HeaderMap, StatusCode, header};

/// Looks at a response, and may have it made anew. Routes put interceptors on a request
/// ([`Exchange::add_interceptor`]); the last is asked first, and each once.
pub(crate) trait Interceptor: Send + Sync {
    /// `None`: the response is not concerned. [`Exchange::response_head`] is that of the response.
    fn intercept(&self, exchange: &mut Exchange) -> Option<Interception>;
}

pub(crate) enum Interception {
    /// The response has this status instead.
    Status(StatusCode),
    /// It is made anew.
    Flow(Flow),
    /// It is a template.
    Render(Rules),
}

/// The head of a response that another may replace.
#[derive(Debug, Clone, Default)]
pub(crate) struct ResponseHead {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
}

impl ResponseHead {
    /// Its fields under those of the response that replaces it. What tells of a body is the body's own, but for the type: that
    /// is what whoever answered first has said, as in Caddy.
    pub(crate) fn put_under(self, headers: &mut HeaderMap) {
        const OF_THE_BODY: [header::HeaderName; 5] = [
            header::CONTENT_LENGTH,
            header::CONTENT_ENCODING,
            header::CONTENT_RANGE,
            header::TRANSFER_ENCODING,
            header::CONNECTION,
        ];
        for name in self.headers.keys().filter(|name| !OF_THE_BODY.contains(name)) {
            if headers.contains_key(name) && *name != header::CONTENT_TYPE {
                continue;
            }
            headers.remove(name);
            for value in self.headers.get_all(name) {
                headers.append(name, value.clone());
            }
        }
    }
}
