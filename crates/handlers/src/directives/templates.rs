//! `templates`: responses that are executed as Go templates.

use crate::context::exchange::Exchange;
use crate::context::filter;
use crate::context::flow::Flow;
use crate::context::interceptor::{Interception, Interceptor};
use crate::context::rendering::Rules;
use crate::error::BuildError;
use crate::files::content_type::ContentTypes;
use crate::templates::placeholder::{Placeholder, proto};
use crate::templates::root_source::RootSource;
use crate::templates::text::lossy;
use http::{HeaderMap, StatusCode, header};
use regent_config as config;
use std::path::PathBuf;
use std::sync::Arc;

/// The compiled directive.
pub(crate) struct Templates {
    types: Vec<String>,
    between: (String, String),
    root: RootSource,
    files: ContentTypes,
}

impl Templates {
    pub(crate) fn compile(templates: &config::Templates) -> Result<Self, BuildError> {
        Ok(Self {
            types: templates.types.clone(),
            between: templates.between.clone(),
            root: RootSource::compile(templates.root.as_ref())?,
            files: ContentTypes::new(),
        })
    }

    /// Has the response looked at. A part of a template is none, so that it is to be whole.
    pub(crate) fn handle(self: &Arc<Self>, exchange: &mut Exchange) {
        if exchange.headers.contains_key(header::RANGE) && self.may_be_template(exchange.path()) {
            exchange.headers.remove(header::RANGE);
            exchange.headers.remove(header::IF_RANGE);
        }
        let interceptor: Arc<Self> = Arc::clone(self);
        exchange.add_interceptor(interceptor);
    }

    fn may_be_template(&self, path: &[u8]) -> bool {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        !name.contains(&b'.') || self.files.of(path).to_str().is_ok_and(|kind| self.is_of_type(kind))
    }

    fn is_of_type(&self, kind: &str) -> bool {
        let kind = kind.to_ascii_lowercase();
        self.types.iter().any(|part| kind.contains(part.as_str()))
    }
}

impl Interceptor for Templates {
    fn intercept(&self, exchange: &mut Exchange) -> Option<Interception> {
        let head = exchange.response_head()?;
        let kind = filter::content_type(exchange, &head.headers);
        if !kind.is_some_and(|kind| kind.to_str().is_ok_and(|kind| self.is_of_type(kind)))
            || is_coded(&head.headers)
            || matches!(head.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
        {
            return None;
        }
        let Some(root) = self.root.resolve(exchange) else {
            return Some(Interception::Flow(Flow::error(StatusCode::BAD_REQUEST)));
        };
        Some(Interception::Render(rules(exchange, self.between.clone(), root.path().to_owned())))
    }
}

/// For a template with these delimiters, and files below this root.
pub(super) fn rules(exchange: &Exchange, delimiters: (String, String), root: PathBuf) -> Rules {
    Rules { delimiters, root, protocol: proto(exchange.version), placeholder }
}

fn placeholder(exchange: &Exchange, name: &str) -> String {
    if let Some(constant) = Placeholder::constant(name) {
        return constant;
    }
    let mut out = Vec::new();
    if let Some(placeholder) = Placeholder::parse(name) {
        placeholder.write(exchange, &mut out);
    }
    lossy(out)
}

/// Whether what is in the body is not the text itself.
fn is_coded(fields: &HeaderMap) -> bool {
    fields.get(header::CONTENT_ENCODING).is_some_and(|coding| coding != "identity")
}
