//! `regent upgrade`.

use super::client::{Client, Patience};
use super::threads::print;
use crate::arguments::Upgrade;
use anyhow::Result;
use http::Method;
use regent_admin::Upgraded;

/// Has another process take a running server's place. Why it does not is an error here.
pub fn upgrade(options: &Upgrade) -> Result<()> {
    let client = Client::new(options.address.clone())?;
    let target = format!("/regent/upgrade?timeout={}", options.timeout);
    let patience = Patience::Seconds(options.timeout.get());
    let Upgraded { process } = client.call(Method::POST, &target, patience)?;
    print(&format!("process {process} serves; the one before answers what it has begun, and ends"))
}
