//! Requests that start over when something is known of who has sent them.

use super::Exchange;
use crate::context::verification::Verified;
use http::request;
use regent_exchange::WebSocketStream;
use std::sync::Arc;

impl Exchange {
    /// Goes back to what the client sent, with one thing known more.
    pub fn start_over(&mut self, verified: Verified) {
        let first = self.first_headers.take();
        let headers = first.map_or_else(|| self.headers.clone(), |headers| *headers);
        let fresh = request::Request::builder()
            .method(self.original_method.clone())
            .uri(self.original_uri.clone())
            .version(self.version)
            .body(())
            .map(|request| request.into_parts().0);
        if let Ok(mut head) = fresh {
            head.headers = headers;
            let mut verified_before = std::mem::take(&mut self.verified);
            let counted_in = std::mem::take(&mut self.counted_in);
            let observed = std::mem::take(&mut self.observed);
            if self.is_websocket_stream {
                head.extensions.insert(WebSocketStream);
            }
            *self = Self::new(head, self.connection.clone());
            self.observed = observed;
            self.counted_in = counted_in;
            self.verified.append(&mut verified_before);
        }
        self.verified.push(verified);
    }

    pub(crate) fn verified(&self) -> &[Verified] {
        &self.verified
    }

    /// Whether it counts in this zone of `rate_limit`: once, even if it starts over.
    pub(crate) fn count_in(&mut self, zone: &Arc<str>) -> bool {
        let counts = !self.counted_in.contains(zone);
        if counts {
            self.counted_in.push(Arc::clone(zone));
        }
        counts
    }

    pub(crate) fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    pub(crate) fn set_user(&mut self, user: &str) {
        self.user = Some(user.to_owned());
    }
}
