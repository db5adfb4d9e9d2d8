//! `regent reload`.

use super::client::{Client, Patience};
use super::threads::print;
use super::units::printable;
use crate::arguments::Reload;
use anyhow::{Context, Result};
use http::Method;
use regent_admin::Reloaded;

const PATH: &str = "/regent/reload";

/// Has a running server load its Caddyfile again, or another one. The server reads it: what it refuses is an error here.
pub fn reload(options: &Reload) -> Result<()> {
    let mut query = form_urlencoded::Serializer::new(String::new());
    if let Some(file) = &options.config {
        let absolute = std::path::absolute(file).with_context(|| format!("finding {}", file.display()))?;
        let text = absolute.to_str().with_context(|| format!("the path {} is no Unicode", file.display()))?;
        query.append_pair("config", text);
    }
    if options.force {
        query.append_pair("force", "true");
    }
    let client = Client::new(options.address.clone())?;
    let reloaded: Reloaded =
        client.call(Method::POST, &format!("{PATH}?{}", query.finish()), Patience::Long)?;
    for warning in &reloaded.warnings {
        eprintln!("warning: {}", printable(warning));
    }
    print(match reloaded.changed {
        true => "the configuration is in use",
        false => "the configuration is the current one: nothing has changed",
    })
}
