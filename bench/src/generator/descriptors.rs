//! The limit of open files.

use anyhow::{Context, Result, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Standard streams, epoll, the timer, the raw log, and what the parent left open.
const BESIDES_CONNECTIONS: u64 = 64;

/// Raises this process's limit to the hard one; an error when that does not suffice for so many connections.
pub fn provide(connections: u32) -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })
        .context("the limit of open files could not be raised to the hard limit")?;
    check(limit.maximum, connections)
}

fn check(maximum: Option<u64>, connections: u32) -> Result<()> {
    let needed = u64::from(connections) + BESIDES_CONNECTIONS;
    let maximum = maximum.unwrap_or(u64::MAX);
    ensure!(
        needed <= maximum,
        "{connections} connections need {needed} open files, but the hard limit is {maximum}; raise it \
         (ulimit -Hn {needed}), or divide the load among more processes"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_connections_for_the_hard_limit_is_an_error() {
        let error = check(Some(1024), 1000).expect_err("1064 are needed").to_string();
        assert!(error.contains("ulimit -Hn 1064"), "{error}");
        assert!(check(Some(1024), 960).is_ok() && check(None, 1_000_000).is_ok());
    }
}
