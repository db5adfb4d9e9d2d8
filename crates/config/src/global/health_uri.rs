//! `health_uri PATH [TIMEOUT]` or `health_uri HOST/PATH [TIMEOUT]`, in the `regent` block: what `/regent/ready` of the admin API
//! asks PHP for. It is ready when the response is one of 2xx or 3xx, and has come within the time limit (5 s by default).
//!
//! The request is as if a client on this machine had asked; the first address whose sites hand it to PHP is asked. Without a host
//! it is `localhost`: name one that your sites have, unless they take every host. Where a password is asked for, it is not known.
//! An upgrade of the server waits for it too. `/regent/live` never asks PHP.
//!
//! ```caddyfile
//! {
//!     regent {
//!         health_uri /up 2s
//!     }
//! }
//! ```

use crate::call::Call;
use crate::host_names::ascii_authority;
use crate::model::HealthCheck;
use crate::problems::error;
use crate::values;
use crate::workers::is_request_path;
use regent_caddyfile::Error;
use std::time::Duration;

const SYNTAX: &str = "health_uri [HOST]PATH [TIMEOUT]";
const TIMEOUT: Duration = Duration::from_secs(5);

pub(super) fn parse(call: &Call<'_>) -> Result<HealthCheck, Error> {
    call.without_block(SYNTAX)?;
    let (uri, timeout) = match call.args {
        [uri] => (uri, TIMEOUT),
        [uri, timeout] => (uri, values::positive_duration(timeout)?),
        _ => return Err(call.wrong_arguments(2, SYNTAX)),
    };
    let ascii = ascii_authority(&uri.text).unwrap_or_default();
    let (host, path) = ascii.split_at(ascii.find('/').unwrap_or(ascii.len()));
    let is_host = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.:[]".contains(&byte));
    // Behind a scheme there would be two slashes.
    if !is_host || path.starts_with("//") || !is_request_path(path) {
        let message =
            format!("`{}` is neither a path, such as `/up`, nor a host with one: `example.com/up`", uri.text);
        return Err(error(uri, message));
    }
    let host = if host.is_empty() { "localhost" } else { host };
    Ok(HealthCheck { host: host.to_owned(), path: path.to_owned(), timeout })
}

#[cfg(test)]
mod tests {
    use crate::{Environment, HealthCheck};
    use std::path::Path;
    use std::time::Duration;

    fn parse(text: &str) -> Result<HealthCheck, String> {
        let text = format!("{{\nregent {{\nhealth_uri {text}\n}}\n}}");
        let environment = Environment::of_process().unwrap();
        let parsed = crate::parse("Caddyfile", &text, Path::new("/"), &environment);
        parsed.map(|loaded| loaded.config.global.health.unwrap()).map_err(|errors| errors.to_string())
    }

    #[test]
    fn a_host_and_a_time_limit_can_be_left_out() {
        let check = |host: &str, path: &str, seconds| HealthCheck {
            host: host.into(),
            path: path.into(),
            timeout: Duration::from_secs(seconds),
        };
        assert_eq!(parse("/up?deep=1"), Ok(check("localhost", "/up?deep=1", 5)));
        assert_eq!(parse("example.com:8080/up 2s"), Ok(check("example.com:8080", "/up", 2)));
    }

    #[test]
    fn what_is_no_request_is_an_error() {
        for text in ["up", "https://example.com/up", "\"/a b\"", "a_b/up", "example.com"] {
            assert!(parse(text).unwrap_err().contains("neither a path"), "{text}");
        }
        assert!(parse("/up 0s").is_err());
        assert!(parse("").unwrap_err().contains("health_uri [HOST]PATH"));
    }
}
