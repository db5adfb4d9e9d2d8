//! Changes of headers: of requests at once, of responses when they are on their way out.
//!
//! In Caddy, operations that are not deferred work on a header that the handlers behind them add to; the deferred ones
//! work on what came of it. Here both are kept until [`crate::context::filter::finish`], which plays them in that order.

mod names;

use crate::context::exchange::Exchange;
use crate::context::filter::Filter;
use crate::context::own_fields;
use crate::error::BuildError;
use crate::filters::encode::ResponseMatcher;
use crate::templates::text::Text;
use http::{HeaderMap, HeaderName, HeaderValue, Response, header};
use names::Names;
use regent_config as config;
use regent_exchange::ResponseBody;
use regex::bytes::{Regex, RegexBuilder};
use std::borrow::Cow;
use std::sync::Arc;

/// Fields that say where a response ends, which a name of a request's must not change.
const FRAMING: [HeaderName; 2] = [header::CONTENT_LENGTH, header::TRANSFER_ENCODING];
/// Bytes that a search may take which a client has a part in.
const LARGEST_SEARCH: usize = 256 << 10;

/// The compiled operations of one `header` or `request_header` directive.
pub(crate) struct HeaderOps {
    immediate: Vec<Op>,
    deferred: Vec<Op>,
    /// `None`: every response.
    matcher: Option<ResponseMatcher>,
}

struct Op {
    kind: Kind,
    naming: Naming,
    value: Text,
}

enum Kind {
    Default,
    Add,
    Set,
    Delete,
    Replace(Search),
}

enum Naming {
    Fixed(Names),
    Computed(Text),
}

enum Search {
    Fixed(Regex),
    Computed(Text),
}

/// An operation with its values.
struct Ready<'a> {
    action: Action<'a>,
    names: Cow<'a, Names>,
    value: Cow<'a, [u8]>,
}

enum Action<'a> {
    Default,
    Add,
    Set,
    Delete,
    Replace(Cow<'a, Regex>),
}

impl HeaderOps {
    pub(crate) fn compile(ops: &[config::HeaderOp]) -> Result<Self, BuildError> {
        let compile = |deferred: bool| {
            let mut compiled = ops
                .iter()
                .filter(|op| op.deferred == deferred)
                .map(Op::compile)
                .collect::<Result<Vec<_>, _>>()?;
            compiled.sort_by_key(Op::rank);
            Ok::<_, BuildError>(compiled)
        };
        Ok(Self { immediate: compile(false)?, deferred: compile(true)?, matcher: None })
    }

    /// The same, for responses that fit; all of them are deferred then.
    pub(crate) fn only_of(self, matcher: &config::ResponseMatcher) -> Result<Self, BuildError> {
        Ok(Self { matcher: Some(ResponseMatcher::compile(Some(matcher))?), ..self })
    }

    /// Carries out all of them on a header.
    pub(crate) fn apply_to(&self, exchange: &Exchange, fields: &mut HeaderMap) {
        self.all().for_each(|op| op.apply(exchange, fields));
    }

    /// Carries out all of them on the request's own header.
    pub(crate) fn apply_to_request(&self, exchange: &mut Exchange) {
        let none = HeaderMap::new();
        let ready: Vec<_> = self.all().filter_map(|op| op.ready(exchange, &none)).collect();
        for op in &ready {
            op.apply(&mut exchange.headers);
            if let (Names::One(name), Action::Set | Action::Add | Action::Default | Action::Replace(_)) =
                (&*op.names, &op.action)
            {
                own_fields::keep(&mut exchange.headers, name);
            }
        }
        if ready.iter().any(|op| op.names.include(&header::HOST)) {
            exchange.refresh_host();
        }
    }

    /// Has the response to this request changed.
    pub(crate) fn attach(self: &Arc<Self>, exchange: &mut Exchange) {
        let ops = Arc::clone(self);
        if self.immediate.iter().all(Op::is_fixed) {
            return exchange.add_filter(ops);
        }
        let none = HeaderMap::new();
        let ready = |op: &Op| match op.value.is_of_response() {
            true => None,
            false => op.ready(exchange, &none).map(Ready::into_owned),
        };
        let ready = self.immediate.iter().map(ready).collect();
        exchange.add_filter(Arc::new(Evaluated { ops, ready }));
    }

    fn all(&self) -> impl Iterator<Item = &Op> {
        self.immediate.iter().chain(&self.deferred)
    }
}

/// With the values that operations which are not deferred have as the request comes by: handlers that follow may rewrite it.
struct Evaluated {
    ops: Arc<HeaderOps>,
    /// `None`: the value is one of the fields that are set before the response is made.
    ready: Vec<Option<Ready<'static>>>,
}

impl Filter for Evaluated {
    fn prepares(&self) -> bool {
        true
    }

    fn prepare(&self, exchange: &Exchange, fields: &mut HeaderMap) {
        for (op, ready) in self.ops.immediate.iter().zip(&self.ready) {
            match ready {
                Some(ready) => ready.apply(fields),
                None => op.apply(exchange, fields),
            }
        }
    }

    fn apply(&self, exchange: &Exchange, response: Response<ResponseBody>) -> Response<ResponseBody> {
        self.ops.apply(exchange, response)
    }
}

impl Filter for HeaderOps {
    fn prepares(&self) -> bool {
        !self.immediate.is_empty()
    }

    fn prepare(&self, exchange: &Exchange, fields: &mut HeaderMap) {
        self.immediate.iter().for_each(|op| op.apply(exchange, fields));
    }

    fn apply(&self, exchange: &Exchange, mut response: Response<ResponseBody>) -> Response<ResponseBody> {
        let fits = |matcher: &ResponseMatcher| matcher.fits(response.status(), response.headers());
        if self.matcher.as_ref().is_none_or(fits) {
            self.deferred.iter().for_each(|op| op.apply(exchange, response.headers_mut()));
        }
        response
    }
}

impl Op {
    fn compile(op: &config::HeaderOp) -> Result<Self, BuildError> {
        let kind = match &op.kind {
            config::HeaderOpKind::Set => Kind::Set,
            config::HeaderOpKind::Add => Kind::Add,
            config::HeaderOpKind::Default => Kind::Default,
            config::HeaderOpKind::Delete => Kind::Delete,
            config::HeaderOpKind::Replace { search } => Kind::Replace(Search::compile(search)?),
        };
        let name = Text::compile(&op.name);
        let naming = match name.literal() {
            Some(name) => Naming::Fixed(
                kind.names(name.as_bytes()).ok_or_else(|| BuildError::HeaderName(name.to_owned()))?,
            ),
            None => Naming::Computed(name),
        };
        Ok(Self { kind, naming, value: Text::compile(&op.value) })
    }

    /// The order within one directive, whatever the order in which it is written (Caddy, `HeaderOps.ApplyTo`).
    fn rank(&self) -> u8 {
        match (&self.kind, &self.naming) {
            (Kind::Delete, Naming::Fixed(Names::Like { start, end, contains }))
                if [start, end, contains].iter().all(|part| part.is_empty()) =>
            {
                0
            }
            (Kind::Default, _) => 1,
            (Kind::Add, _) => 2,
            (Kind::Set, _) => 3,
            (Kind::Delete, _) => 4,
            (Kind::Replace(_), _) => 5,
        }
    }

    /// Whether it does the same for every request.
    fn is_fixed(&self) -> bool {
        let is_searched_for = match &self.kind {
            Kind::Replace(search) => matches!(search, Search::Fixed(_)),
            _ => true,
        };
        is_searched_for && matches!(self.naming, Naming::Fixed(_)) && self.value.literal().is_some()
    }

    fn apply(&self, exchange: &Exchange, headers: &mut HeaderMap) {
        if let Some(ready) = self.ready(exchange, headers) {
            ready.apply(headers);
        }
    }

    /// `fields`: those of the response, as far as they are known. `None`: the placeholders made no name of a field of it, or
    /// a text that is too long to be searched for.
    fn ready<'a>(&'a self, exchange: &Exchange, fields: &HeaderMap) -> Option<Ready<'a>> {
        let names = match &self.naming {
            Naming::Fixed(names) => Cow::Borrowed(names),
            Naming::Computed(name) => {
                let names = self.kind.names(&name.render(exchange))?;
                let sets_framing =
                    !matches!(self.kind, Kind::Delete) && FRAMING.iter().any(|name| names.include(name));
                Cow::Owned(Some(names).filter(|_| !sets_framing)?)
            }
        };
        let action = match &self.kind {
            Kind::Default => Action::Default,
            Kind::Add => Action::Add,
            Kind::Set => Action::Set,
            Kind::Delete => Action::Delete,
            Kind::Replace(Search::Fixed(search)) => Action::Replace(Cow::Borrowed(search)),
            Kind::Replace(Search::Computed(search)) => {
                let search =
                    RegexBuilder::new(&search.render_pattern(exchange)).size_limit(LARGEST_SEARCH).build();
                Action::Replace(Cow::Owned(search.ok()?))
            }
        };
        Some(Ready { action, names, value: self.value.render_beside(exchange, fields) })
    }
}

impl Kind {
    /// The fields that such an operation is about. `None`: it is no name of one.
    fn names(&self, name: &[u8]) -> Option<Names> {
        match self {
            Self::Delete | Self::Replace(_) if name.contains(&b'*') => {
                std::str::from_utf8(name).ok().map(Names::like)
            }
            _ => HeaderName::from_bytes(name).ok().map(Names::One),
        }
    }
}

impl Search {
    fn compile(search: &config::Template) -> Result<Self, BuildError> {
        let text = Text::compile(search);
        match text.literal() {
            Some(pattern) => Regex::new(pattern)
                .map(Self::Fixed)
                .map_err(|source| BuildError::Regex { pattern: pattern.to_owned(), source }),
            None => Ok(Self::Computed(text)),
        }
    }
}

impl Ready<'_> {
    fn into_owned(self) -> Ready<'static> {
        let action = match self.action {
            Action::Default => Action::Default,
            Action::Add => Action::Add,
            Action::Set => Action::Set,
            Action::Delete => Action::Delete,
            Action::Replace(search) => Action::Replace(Cow::Owned(search.into_owned())),
        };
        let (names, value) = (Cow::Owned(self.names.into_owned()), Cow::Owned(self.value.into_owned()));
        Ready { action, names, value }
    }

    fn apply(&self, headers: &mut HeaderMap) {
        let value = || header_value(&self.value);
        match (&self.action, &*self.names) {
            (Action::Delete, Names::One(name)) => drop(headers.remove(name)),
            (Action::Delete, names) => {
                let doomed: Vec<_> = headers.keys().filter(|name| names.include(name)).cloned().collect();
                doomed.iter().for_each(|name| drop(headers.remove(name)));
            }
            (Action::Replace(search), names) => {
                for (_, field) in headers.iter_mut().filter(|(name, _)| names.include(name)) {
                    let replaced = search.replace_all(field.as_bytes(), &*self.value);
                    *field = header_value(&replaced);
                }
            }
            (Action::Set, Names::One(name)) => drop(headers.insert(name, value())),
            (Action::Add, Names::One(name)) => drop(headers.append(name, value())),
            (Action::Default, Names::One(name)) if !headers.contains_key(name) => {
                headers.insert(name, value());
            }
            _ => {}
        }
    }
}

/// A field's value; bytes that may not stand in one (line ends above all) become spaces.
fn header_value(value: &[u8]) -> HeaderValue {
    HeaderValue::from_bytes(value).unwrap_or_else(|_| {
        let allowed = |byte: u8| byte == b'\t' || (byte >= b' ' && byte != 127);
        let clean: Vec<u8> = value.iter().map(|byte| if allowed(*byte) { *byte } else { b' ' }).collect();
        HeaderValue::from_bytes(&clean).unwrap_or(HeaderValue::from_static(""))
    })
}

#[cfg(test)]
mod tests;
