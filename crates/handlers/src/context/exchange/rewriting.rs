//! Changes of the URI.

use super::Exchange;
use crate::paths::url_path::{self, BadRequest};
use http::uri::PathAndQuery;
use http::{Method, Uri};

impl Exchange {
    /// For [`Self::start_over`].
    pub(crate) fn keep_headers(&mut self) {
        self.first_headers = Some(Box::new(self.headers.clone()));
    }

    /// Replaces path and query, both encoded.
    pub(crate) fn rewrite(&mut self, path: &[u8], query: Option<&[u8]>) -> Result<(), BadRequest> {
        let mut target = Vec::with_capacity(path.len() + query.map_or(0, <[u8]>::len) + 2);
        if path.first() != Some(&b'/') {
            target.push(b'/');
        }
        target.extend_from_slice(path);
        if let Some(query) = query {
            target.push(b'?');
            target.extend_from_slice(query);
        }
        let target =
            PathAndQuery::from_maybe_shared(bytes::Bytes::from(target)).map_err(|_| BadRequest::NoPath)?;
        self.is_rewritten = true;
        self.path = url_path::normalize(target.path())?;
        let mut parts = std::mem::take(&mut self.uri).into_parts();
        parts.path_and_query = Some(target);
        self.uri = Uri::from_parts(parts).map_err(|_| BadRequest::NoPath)?;
        Ok(())
    }

    /// Replaces the path by a decoded one, and keeps the query.
    pub(crate) fn rewrite_path(&mut self, path: &[u8]) -> Result<(), BadRequest> {
        let mut encoded = Vec::with_capacity(path.len() + 16);
        url_path::encode_path(path, &mut encoded);
        let query = self.uri.query().map(str::to_owned);
        self.rewrite(&encoded, query.as_deref().map(str::as_bytes))
    }

    /// What `rewrite` makes of method and URI, which stay as they are.
    pub(crate) fn rewritten<E>(
        &mut self,
        rewrite: impl FnOnce(&mut Self) -> Result<(), E>,
    ) -> Result<(Method, Uri), E> {
        let (path, is_rewritten) = (self.path.clone(), self.is_rewritten);
        let before = (self.method.clone(), self.uri.clone());
        let result = rewrite(self);
        let method = std::mem::replace(&mut self.method, before.0);
        let uri = std::mem::replace(&mut self.uri, before.1);
        (self.path, self.is_rewritten) = (path, is_rewritten);
        result.map(|()| (method, uri))
    }
}
