//! `encode`: compresses responses for clients that accept it.
//!
//! [`Encode`] is the directive. For each request it chooses a coding and becomes an [`Encoding`], which the response
//! goes through, whoever makes it.

mod body;
mod budget;
mod encoder;
mod entity_tag;
pub(crate) mod matching;
mod negotiate;
mod response;

use crate::context::exchange::Exchange;
use crate::context::filter::Filter;
use crate::error::BuildError;
pub(crate) use budget::EncoderBudget;
use entity_tag::Named;
use http::{HeaderMap, Method, Response};
pub(crate) use matching::ResponseMatcher;
use regent_config::{self as config, EncodeFormat};
use regent_exchange::ResponseBody;
use response::{Encoding, MaybeEncoded};
use std::sync::Arc;

/// A compiled `encode` directive.
pub(crate) struct Encode {
    formats: Vec<EncodeFormat>,
    minimum_length: u64,
    matcher: ResponseMatcher,
    budget: Arc<EncoderBudget>,
}

impl Encode {
    pub(crate) fn compile(encode: &config::Encode, budget: &Arc<EncoderBudget>) -> Result<Self, BuildError> {
        Ok(Self {
            formats: encode.formats.clone(),
            minimum_length: encode.minimum_length,
            matcher: ResponseMatcher::compile(encode.matcher.as_ref())?,
            budget: Arc::clone(budget),
        })
    }

    /// Chooses the coding for a request, and lets its preconditions name the entity tags that handlers know.
    pub(crate) fn prepare(self: &Arc<Self>, exchange: &mut Exchange) -> impl Filter + use<> {
        let method = exchange.original_method().clone();
        self.encoding(method, &mut exchange.headers)
    }

    fn encoding(self: &Arc<Self>, method: Method, headers: &mut HeaderMap) -> Encoding {
        let format = negotiate::choose(&method, headers, &self.formats);
        let named = format.map_or(Named::Plain, |format| entity_tag::restore(headers, format.name()));
        Encoding { encode: Arc::clone(self), method, format, named }
    }
}

impl Filter for Encoding {
    fn apply(&self, _: &Exchange, response: Response<ResponseBody>) -> Response<ResponseBody> {
        Encoding::apply(self, response).map(|body| match body {
            MaybeEncoded::Plain(body) => body,
            MaybeEncoded::Whole(bytes) => ResponseBody::full(bytes),
            MaybeEncoded::Streamed(body) => ResponseBody::stream(body),
        })
    }
}
