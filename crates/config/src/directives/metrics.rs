//! `metrics [MATCHER] { … }`: responds with the [metrics](monitoring.md) of the whole server, as the admin API does at `/metrics`.
//!
//! | option | meaning |
//! |---|---|
//! | `disable_openmetrics` | in any case: they come in the text format of Prometheus, version 0.0.4 |
//!
//! They name scripts, routes and hosts, so that the path is better behind `remote_ip` or a password. More than 64 requests for
//! them at once are answered with 503.
//!
//! ```caddyfile
//! @prometheus {
//!     path /metrics
//!     remote_ip 10.0.0.0/8
//! }
//! metrics @prometheus
//! ```

use super::Directive;
use crate::call::Call;
use crate::context::Context;
use crate::matchers::Scope;
use crate::model::Handler;
use crate::problems::unknown_option;
use regent_caddyfile::Error;

pub(super) const DIRECTIVE: Directive = super::handler("metrics", parse);

fn parse(cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    call.no_arguments("metrics [MATCHER] { disable_openmetrics }")?;
    for option in call.options() {
        let result = match option.name() {
            "disable_openmetrics" => option.exactly::<0>("disable_openmetrics").map(|_| ()),
            _ => Err(unknown_option(option.name, "metrics", &["disable_openmetrics"], &[])),
        };
        cx.check(result);
    }
    Ok(Handler::Metrics)
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{errors, handler};
    use crate::model::Handler;

    #[test]
    fn it_takes_a_matcher_and_one_option() {
        assert_eq!(handler("metrics /metrics"), Handler::Metrics);
        assert_eq!(handler("metrics {\ndisable_openmetrics\n}"), Handler::Metrics);
        assert!(errors("metrics /x y")[0].starts_with("too many arguments for `metrics`"));
        assert_eq!(errors("metrics {\nper_host\ndisable_openmetrics x\n}").len(), 2);
    }
}
