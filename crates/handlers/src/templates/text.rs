//! Compiled templates: texts with placeholders, ready to be filled in for a request.

use crate::context::exchange::Exchange;
use crate::context::log_value::LogValue;
use crate::paths::url_path;
use crate::templates::placeholder::Placeholder;
use http::{HeaderMap, HeaderValue};
use regent_config::{Part, Template};
use std::borrow::Cow;

/// A text whose placeholders have been looked up; neighbouring constants are one piece.
#[derive(Debug, Clone, Default)]
pub(crate) struct Text(Vec<Piece>);

#[derive(Debug, Clone)]
enum Piece {
    Literal(String),
    Value(Placeholder),
}

impl Piece {
    /// Empty if it is no constant.
    fn literal(&self) -> &str {
        match self {
            Self::Literal(text) => text,
            Self::Value(_) => "",
        }
    }

    fn host(&self) -> Option<&Placeholder> {
        match self {
            Self::Value(value @ (Placeholder::Host | Placeholder::HostPort | Placeholder::HostLabel(_))) => {
                Some(value)
            }
            _ => None,
        }
    }
}

/// How values are written into the text around them.
#[derive(Clone, Copy)]
pub(crate) enum Escape {
    None,
    /// Into the path of a URI.
    Path,
    /// Into the query of a URI.
    Query,
}

impl LogValue for Text {
    fn value(&self, exchange: &Exchange, response: &HeaderMap) -> Vec<u8> {
        self.render_beside(exchange, response).into_owned()
    }
}

impl Text {
    /// Looks up the placeholders. What cannot change between requests (environment, host name) becomes constant;
    /// unknown names become empty, as in Caddy.
    pub(crate) fn compile(template: &Template) -> Self {
        let mut text = Self::default();
        for part in &template.0 {
            match part {
                Part::Text(literal) => text.push_literal(literal),
                Part::Placeholder(name) => text.push_placeholder(name),
            }
        }
        text
    }

    /// A text without placeholders.
    pub(crate) fn of_literal(text: String) -> Self {
        Self(vec![Piece::Literal(text)])
    }

    pub(crate) fn compile_all(templates: &[Template]) -> Vec<Self> {
        templates.iter().map(Self::compile).collect()
    }

    /// The whole text, if it is the same for every request.
    pub(crate) fn literal(&self) -> Option<&str> {
        match self.0.as_slice() {
            [] => Some(""),
            [Piece::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// The constant text before the first placeholder.
    pub(crate) fn literal_start(&self) -> &str {
        match self.0.first() {
            Some(Piece::Literal(text)) => text,
            _ => "",
        }
    }

    /// The constant text after the last placeholder.
    pub(crate) fn literal_end(&self) -> &str {
        match self.0.last() {
            Some(Piece::Literal(text)) => text,
            _ => "",
        }
    }

    /// Whether this is `{http.vars.root}` and nothing else.
    pub(crate) fn is_site_root(&self) -> bool {
        matches!(self.0.as_slice(), [Piece::Value(Placeholder::Var(name))] if name == "root")
    }

    /// Whether the host or a label of it, which this request does not have, is a whole name between slashes.
    pub(crate) fn lacks_host(&self, exchange: &Exchange) -> bool {
        let names = self.0.iter().enumerate().filter(|(index, _)| self.is_whole_name(*index));
        names.filter_map(|(_, piece)| piece.host()).any(|value| {
            let mut written = Vec::new();
            value.write(exchange, &mut written);
            written.is_empty()
        })
    }

    /// As [`Self::render`]; `None` if a value makes a name between slashes that is `.`, and leads nowhere.
    pub(crate) fn render_path(&self, exchange: &Exchange) -> Option<Vec<u8>> {
        let (mut path, mut values) = (Vec::new(), Vec::new());
        for piece in &self.0 {
            let begin = path.len();
            match piece {
                Piece::Literal(text) => path.extend_from_slice(text.as_bytes()),
                Piece::Value(value) => {
                    value.write(exchange, &mut path);
                    values.push(begin..path.len());
                }
            }
        }
        let is_slash = |byte: &u8| *byte == b'/';
        let leads_nowhere = values.into_iter().any(|value| {
            let begin = path[..value.start].iter().rposition(is_slash).map_or(0, |slash| slash + 1);
            let end =
                path[value.end..].iter().position(is_slash).map_or(path.len(), |slash| value.end + slash);
            path[begin..end].split(is_slash).any(|name| name == b".")
        });
        (!leads_nowhere).then_some(path)
    }

    fn is_whole_name(&self, index: usize) -> bool {
        let before = index.checked_sub(1).and_then(|index| self.0.get(index));
        let begins = before.is_none_or(|piece| piece.literal().ends_with('/'));
        begins && self.0.get(index + 1).is_none_or(|piece| piece.literal().starts_with('/'))
    }

    /// The constant text behind `{http.request.uri.path}`, if the text is that placeholder with or without one.
    pub(crate) fn after_path(&self) -> Option<&str> {
        match self.0.as_slice() {
            [Piece::Value(Placeholder::Path)] => Some(""),
            [Piece::Value(Placeholder::Path), Piece::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// Cuts at the first `?` of the constant text: the part before it, and the part behind it if there is one.
    pub(crate) fn split_query(&self) -> (Self, Option<Self>) {
        for (index, piece) in self.0.iter().enumerate() {
            let Piece::Literal(literal) = piece else { continue };
            if let Some((before, after)) = literal.split_once('?') {
                let mut path = Self(self.0[..index].to_vec());
                path.push_literal(before);
                let mut query = Self::default();
                query.push_literal(after);
                query.0.extend_from_slice(&self.0[index + 1..]);
                return (path, Some(query));
            }
        }
        (self.clone(), None)
    }

    /// The text for this request. Values may be any bytes: a decoded path need not be UTF-8.
    pub(crate) fn render(&self, exchange: &Exchange) -> Cow<'_, [u8]> {
        match self.literal() {
            Some(text) => Cow::Borrowed(text.as_bytes()),
            None => Cow::Owned(self.render_escaped(exchange, Escape::None)),
        }
    }

    /// As [`Self::render`], as text; bytes that are not UTF-8 become U+FFFD.
    pub(crate) fn render_str(&self, exchange: &Exchange) -> Cow<'_, str> {
        match self.render(exchange) {
            Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
            Cow::Owned(bytes) => Cow::Owned(lossy(bytes)),
        }
    }

    /// The text with its values written as `escape` says.
    pub(crate) fn render_escaped(&self, exchange: &Exchange, escape: Escape) -> Vec<u8> {
        let mut out = Vec::with_capacity(64);
        for piece in &self.0 {
            match (piece, escape) {
                (Piece::Literal(text), Escape::None) => out.extend_from_slice(text.as_bytes()),
                (Piece::Literal(text), _) => url_path::encode_unsafe(text.as_bytes(), &mut out),
                (Piece::Value(value), Escape::None) => value.write(exchange, &mut out),
                (Piece::Value(value), _) => write_escaped(value, exchange, escape, &mut out),
            }
        }
        out
    }

    /// Whether it has a field of the response that is on its way out.
    pub(crate) fn is_of_response(&self) -> bool {
        self.0.iter().any(|piece| matches!(piece, Piece::Value(Placeholder::OutgoingHeader(_))))
    }

    /// As [`Self::render`], for a response with these fields.
    pub(crate) fn render_beside(&self, exchange: &Exchange, fields: &HeaderMap) -> Cow<'_, [u8]> {
        if !self.is_of_response() {
            return self.render(exchange);
        }
        let mut out = Vec::new();
        for piece in &self.0 {
            match piece {
                Piece::Literal(text) => out.extend_from_slice(text.as_bytes()),
                Piece::Value(Placeholder::OutgoingHeader(name)) => {
                    let values: Vec<_> = fields.get_all(name).iter().map(HeaderValue::as_bytes).collect();
                    out.extend_from_slice(&values.join(&b','));
                }
                Piece::Value(value) => value.write(exchange, &mut out),
            }
        }
        Cow::Owned(out)
    }

    /// A regular expression, which finds the values as they are.
    pub(crate) fn render_pattern(&self, exchange: &Exchange) -> String {
        let mut pattern = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Literal(text) => pattern.push_str(text),
                Piece::Value(value) => {
                    let mut raw = Vec::new();
                    value.write(exchange, &mut raw);
                    pattern.push_str(&regex::escape(&lossy(raw)));
                }
            }
        }
        pattern
    }

    fn push_literal(&mut self, text: &str) {
        match self.0.last_mut() {
            _ if text.is_empty() => {}
            Some(Piece::Literal(last)) => last.push_str(text),
            _ => self.0.push(Piece::Literal(text.to_owned())),
        }
    }

    fn push_placeholder(&mut self, name: &str) {
        if let Some(constant) = Placeholder::constant(name) {
            self.push_literal(&constant);
        } else if let Some(content) = regent_config::file_content(name) {
            match content {
                Ok(content) => self.push_literal(&content),
                Err(error) => {
                    tracing::error!(%error, placeholder = name, "the file of a placeholder cannot be read")
                }
            }
        } else if let Some(placeholder) = Placeholder::parse(name) {
            self.0.push(Piece::Value(placeholder));
        }
    }
}

/// Bytes as text, without a copy if they are UTF-8.
pub(crate) fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

fn write_escaped(value: &Placeholder, exchange: &Exchange, escape: Escape, out: &mut Vec<u8>) {
    let mut raw = Vec::new();
    value.write(exchange, &mut raw);
    match escape {
        Escape::Query if !value.is_query() => url_path::encode_query_value(&raw, out),
        Escape::Path if value.is_decoded_path() => url_path::encode_path(&raw, out),
        _ => url_path::encode_unsafe(&raw, out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::exchange::tests::get;

    fn text(parts: &[&str]) -> Text {
        let part = |part: &&str| match part.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            Some(name) => Part::Placeholder(name.to_owned()),
            None => Part::Text((*part).to_owned()),
        };
        Text::compile(&Template(parts.iter().map(part).collect()))
    }

    #[test]
    fn constants_are_folded() {
        assert_eq!(text(&["a", "{no.such.thing}", "b"]).literal(), Some("ab"));
        assert_eq!(text(&["{env.REGENT_NO_SUCH_VARIABLE}"]).literal(), Some(""));
        assert_eq!(text(&["os=", "{system.os}"]).literal(), Some("os=linux"));
        assert_eq!(text(&["{http.request.host}"]).literal(), None);
    }

    #[test]
    fn values_are_filled_in() {
        let exchange = get("/a%20b?x=1");
        assert_eq!(text(&["<", "{http.request.uri.path}", ">"]).render_str(&exchange), "</a b>");
        assert_eq!(text(&["{http.request.uri}"]).render_str(&exchange), "/a%20b?x=1");
    }

    #[test]
    fn values_are_escaped_for_where_they_go() {
        let exchange = get("/a%3Fb%20c?x=1&y=2");
        let path = text(&["/x", "{http.request.uri.path}"]);
        assert_eq!(path.render_escaped(&exchange, Escape::Path), b"/x/a%3Fb%20c");
        let query = text(&["q=", "{http.request.uri.path}", "&", "{http.request.uri.query}"]);
        assert_eq!(query.render_escaped(&exchange, Escape::Query), b"q=%2Fa%3Fb%20c&x=1&y=2");
    }

    #[test]
    fn queries_are_cut_at_constant_text_only() {
        let (path, query) = text(&["/index.php?p=", "{http.request.uri.path}"]).split_query();
        assert_eq!(path.literal(), Some("/index.php"));
        assert_eq!(query.unwrap().literal_start(), "p=");
        assert!(text(&["{http.request.uri}"]).split_query().1.is_none());
    }
}
