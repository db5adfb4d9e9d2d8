//! `regent reload`.

use super::client::{Client, Patience};
use super::threads::print;
use super::units::printable;
use crate::arguments::{self, Reload};
use crate::{configuration, reply};
use anyhow::{Context, Result, bail};
use http::Method;
use regent_admin::{Before, Reloaded};

const PATH: &str = "/regent/reload";

/// What the server does not quote of a file, who may read that file is told here.
fn explained(error: anyhow::Error, options: &Reload) -> anyhow::Error {
    let file = options.config.clone().filter(|_| error.to_string().contains(reply::IN_LOG));
    let read =
        file.map(|file| configuration::load(&arguments::Config::of_file(file, options.adapter.language())));
    match read {
        Some(Err(own)) => own,
        _ => error,
    }
}

/// Has a running server load its Caddyfile again, or another one. The server reads it: what it refuses is an error here.
pub fn reload(options: &Reload) -> Result<()> {
    let mut query = form_urlencoded::Serializer::new(String::new());
    if let Some(file) = &options.config {
        let absolute = std::path::absolute(file).with_context(|| format!("finding {}", file.display()))?;
        let text = absolute.to_str().with_context(|| format!("the path {} is no Unicode", file.display()))?;
        query.append_pair("config", text);
        if let Some(language) = options.adapter.language() {
            query.append_pair("adapter", language.name());
        }
    }
    if options.force {
        query.append_pair("force", "true");
    }
    if let Some(seconds) = options.wait {
        query.append_pair("wait", &seconds.to_string());
    }
    let client = Client::new(options.address.clone())?;
    // The engines that start first may take as long as without a wait.
    let patience =
        options.wait.map_or(Patience::Long, |seconds| Patience::Seconds(seconds.get().saturating_add(60)));
    let reloaded = client.call(Method::POST, &format!("{PATH}?{}", query.finish()), patience);
    let reloaded: Reloaded = reloaded.map_err(|error| explained(error, options))?;
    for warning in &reloaded.warnings {
        eprintln!("warning: {}", printable(warning));
    }
    print(match reloaded.changed {
        true => "the configuration is in use",
        false => "the configuration is the current one: nothing has changed",
    })?;
    match reloaded.before {
        Some(Before::Running) => bail!("requests that began before it still run: what they use must stay"),
        Some(Before::Ended) | None => Ok(()),
    }
}
