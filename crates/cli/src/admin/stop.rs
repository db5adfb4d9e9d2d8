//! `regent stop`.

use super::client::Client;
use super::client::Patience;
use super::threads::print;
use crate::arguments::{Config, Stop};
use crate::configuration;
use anyhow::{Result, bail};
use http::Method;
use regent_admin::Address;
use regent_config::AdminListen;
use std::time::Duration;

/// Between two looks whether it has ended.
const LOOK: Duration = Duration::from_millis(50);

/// Asks a running server to stop, and waits until it has: its admin listener is the last to go.
pub fn stop(options: &Stop) -> Result<()> {
    let client = Client::new(address(options)?)?;
    let _: serde_json::Value = client.call(Method::POST, "/stop", Patience::Short)?;
    while client.is_listening() {
        std::thread::sleep(LOOK);
    }
    print("the server has stopped")
}

fn address(options: &Stop) -> Result<Address> {
    let Some(file) = &options.config else { return Ok(options.address.clone()) };
    let named = Config::of_file(file.clone(), options.adapter.language());
    match configuration::load(&named)?.config.global.admin.map(|admin| admin.listen) {
        Some(AdminListen::Tcp { host, port }) => Ok(Address::Tcp { host, port }),
        Some(AdminListen::Unix { path, .. }) => Ok(Address::Unix(path)),
        None => {
            bail!("{} has `admin off`: stop its server with `kill PID` (SIGTERM)", file.display())
        }
    }
}
