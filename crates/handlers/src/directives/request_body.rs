//! `request_body`: bounds of a body, and another in its place; `timeouts`: its pace.

use crate::context::exchange::Exchange;
use crate::templates::text::Text;
use http::{HeaderValue, header};
use regent_config as config;
use std::time::Duration;

pub(crate) struct RequestBody {
    max_size: Option<u64>,
    read_timeout: Option<Duration>,
    silence: Option<Duration>,
    min_rate: Option<u64>,
    set: Option<Text>,
}

impl RequestBody {
    pub(crate) fn compile(body: &config::RequestBody) -> Self {
        Self {
            max_size: body.max_size,
            read_timeout: body.read_timeout,
            silence: body.silence,
            min_rate: body.min_rate,
            set: body.set.as_ref().map(Text::compile),
        }
    }

    /// What this directive does not say stays as an earlier one has said it.
    pub(crate) fn handle(&self, exchange: &mut Exchange) {
        let text = self.set.as_ref().map(|text| text.render_str(exchange).into_owned());
        let rules = &mut exchange.body;
        rules.max_size = self.max_size.or(rules.max_size);
        rules.read_timeout = self.read_timeout.or(rules.read_timeout);
        rules.silence = self.silence.or(rules.silence);
        rules.min_rate = self.min_rate.or(rules.min_rate);
        if let Some(text) = text {
            exchange.headers.remove(header::TRANSFER_ENCODING);
            exchange.headers.remove(header::CONTENT_ENCODING);
            exchange.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(text.len()));
            rules.replaced_by = Some(text.into());
        }
    }
}
