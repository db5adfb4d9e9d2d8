//! A profile: taken, and written down as it was asked for.

use super::changes::choose;
use crate::answer::{Answer, page_of_its_own, text};
use crate::control::{Control, ProfileWish, Refusal};
use crate::failure::Failure;
use crate::pool::Engine;
use crate::query::ProfileQuery;
use regent_profile::Format;
use std::sync::Arc;
use std::time::Duration;

pub(crate) async fn take(control: &Arc<dyn Control>, query: Option<&str>) -> Result<Answer, Failure> {
    let ProfileQuery { worker, path, seconds, hertz, format } = ProfileQuery::parse(query)?;
    let pool = match worker {
        None => None,
        Some(worker) => {
            let pool = choose(control.pools().await?, Some(worker))?;
            if pool.engine != Engine::Php {
                return Err(Refusal::NoPhp(pool.name).into());
            }
            Some(pool.name)
        }
    };
    let title = title(pool.as_deref(), &path);
    let wish = ProfileWish { pool, path, duration: Duration::from_secs(seconds.into()), hertz };
    let profile = control.profile(wish).await?;
    // Of many stacks it takes a while.
    let written = tokio::task::spawn_blocking(move || profile.write(format, &title)).await;
    let written = written.expect("invariant: writing a profile does not panic");
    Ok(match format {
        Format::Html => page_of_its_own(written),
        Format::Svg => text("image/svg+xml", written),
        Format::Folded(_) => text("text/plain; charset=utf-8", written),
        Format::Speedscope | Format::Json => text("application/json", written),
    })
}

fn title(pool: Option<&str>, path: &str) -> String {
    let pool = pool.map(|pool| format!(", {pool}")).unwrap_or_default();
    let path = if path.is_empty() { String::new() } else { format!(", {path}") };
    format!("PHP functions{pool}{path}")
}
