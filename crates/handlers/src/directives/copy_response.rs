//! `copy_response_headers`, and what `forward_auth` takes over from a response.

use crate::context::exchange::Exchange;
use crate::context::filter::Filter;
use crate::context::own_fields;
use crate::error::BuildError;
use http::{HeaderMap, HeaderName, Response, header};
use regent_config as config;
use regent_exchange::ResponseBody;

/// Fields that are about the upstream's message, not about what it says.
const OF_THE_MESSAGE: [HeaderName; 7] = [
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
];

/// Which fields of the upstream's response the client gets.
pub(crate) struct CopiedFields {
    /// Empty: all but those that are excluded.
    include: Vec<HeaderName>,
    exclude: Vec<HeaderName>,
}

/// Fields of the upstream's response, and what the request is to have them as.
pub(crate) struct CopyToRequest(Vec<(HeaderName, HeaderName)>);

impl CopiedFields {
    pub(crate) fn compile(fields: &config::CopiedFields) -> Result<Self, BuildError> {
        let names = |names: &[String]| names.iter().map(|name| parse(name)).collect::<Result<Vec<_>, _>>();
        Ok(Self { include: names(&fields.include)?, exclude: names(&fields.exclude)? })
    }

    fn has(&self, name: &HeaderName) -> bool {
        let is_included = self.include.is_empty() || self.include.contains(name);
        is_included && !self.exclude.contains(name) && !OF_THE_MESSAGE.contains(name)
    }
}

impl Filter for CopiedFields {
    fn prepares(&self) -> bool {
        true
    }

    fn prepare(&self, exchange: &Exchange, fields: &mut HeaderMap) {
        let response = exchange.proxied.as_ref().and_then(|proxied| proxied.response.as_ref());
        let Some((_, copied)) = response else { return };
        for (name, value) in copied.iter().filter(|(name, _)| self.has(name)) {
            fields.append(name, value.clone());
        }
    }

    fn apply(&self, _: &Exchange, response: Response<ResponseBody>) -> Response<ResponseBody> {
        response
    }
}

impl CopyToRequest {
    pub(crate) fn compile(fields: &[(String, String)]) -> Result<Self, BuildError> {
        let pair = |(from, to): &(String, String)| Ok((parse(from)?, parse(to)?));
        fields.iter().map(pair).collect::<Result<_, _>>().map(Self)
    }

    /// What the client has sent of them is gone, also if the response has none: it would be taken for the upstream's.
    pub(crate) fn apply(&self, exchange: &mut Exchange) {
        exchange.is_personal = true;
        let response = exchange.proxied.as_ref().and_then(|proxied| proxied.response.as_ref());
        let fields = response.map(|(_, fields)| fields.clone()).unwrap_or_default();
        for (_, to) in &self.0 {
            exchange.headers.remove(to);
            own_fields::keep(&mut exchange.headers, to);
        }
        for (from, to) in &self.0 {
            for value in fields.get_all(from) {
                exchange.headers.append(to, value.clone());
            }
        }
        if self.0.iter().any(|(_, to)| *to == header::HOST) {
            exchange.refresh_host();
        }
    }
}

fn parse(name: &str) -> Result<HeaderName, BuildError> {
    name.parse().map_err(|_| BuildError::HeaderName(name.to_owned()))
}
