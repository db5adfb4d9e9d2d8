//! `vars`: variables of a request, for the placeholders behind it.

use crate::context::exchange::Exchange;
use crate::context::flow::Flow;
use crate::templates::root_source::RootSource;
use crate::templates::text::Text;
use http::StatusCode;
use regent_config::Template;

/// The compiled directive.
pub(crate) struct Vars(Vec<(String, Text)>);

impl Vars {
    pub(crate) fn compile(vars: &[(String, Template)]) -> Self {
        Self(vars.iter().map(|(name, value)| (name.clone(), Text::compile(value))).collect())
    }

    /// The variable `root` is the site's root, as in Caddy.
    pub(crate) fn handle(&self, exchange: &mut Exchange) -> Flow {
        for (name, value) in &self.0 {
            if name == "root" {
                match RootSource::compute(value, exchange) {
                    Some(root) => exchange.set_root(root),
                    None => return Flow::error(StatusCode::BAD_REQUEST),
                }
            } else {
                let value = value.render_str(exchange).into_owned();
                exchange.set_var(name, value);
            }
        }
        Flow::Next
    }
}
