//! `metrics { … }`: figures of all requests under Caddy's names, `caddy_http_…`, beside those of Regent, which are there in any case.
//!
//! | option | meaning |
//! |---|---|
//! | `per_host` | counted by host: those that sites name, and all others as `_other` |
//! | `observe_catchall_hosts` | with `per_host`: other hosts too, up to 1000 of them |
//! | `otlp` | all metrics are also [sent to a collector](monitoring.md#send-metrics-to-a-collector), as the environment says (`OTEL_…`) |

use crate::call::Call;
use crate::context::Context;
use crate::model::HttpMetrics;
use crate::problems::unknown_option;
use regent_caddyfile::Error;

/// The global option.
pub(super) fn parse(cx: &mut Context<'_>, call: &Call<'_>) -> Result<HttpMetrics, Error> {
    call.no_arguments("metrics")?;
    let (mut is_per_host, mut all) = (false, None);
    for option in call.options() {
        let result = match option.name() {
            "per_host" => option.exactly::<0>("per_host").map(|_| is_per_host = true),
            "observe_catchall_hosts" => {
                option.exactly::<0>("observe_catchall_hosts").map(|_| all = Some(option.name))
            }
            "otlp" => option.exactly::<0>("otlp").map(|_| cx.metrics_otlp = Some(option.name.clone())),
            _ => Err(unknown_option(
                option.name,
                "metrics",
                &["observe_catchall_hosts", "otlp", "per_host"],
                &[],
            )),
        };
        cx.check(result);
    }
    Ok(match (is_per_host, all) {
        (true, Some(_)) => HttpMetrics::PerAnyHost,
        (true, None) => HttpMetrics::PerHost,
        (false, None) => HttpMetrics::Together,
        (false, Some(token)) => {
            cx.warn(token, "`observe_catchall_hosts` has no effect without `per_host`");
            HttpMetrics::Together
        }
    })
}

/// The option of `servers`, which Caddy has for all servers at once.
pub(super) fn of_server(cx: &mut Context<'_>, call: &Call<'_>) -> Result<HttpMetrics, Error> {
    call.no_arguments("metrics")?;
    cx.warn(call.name, "`metrics` counts for all servers; write it among the global options");
    let mut metrics = HttpMetrics::Together;
    for option in call.options() {
        let result = match option.name() {
            "per_host" => option.exactly::<0>("per_host").map(|_| metrics = HttpMetrics::PerHost),
            _ => Err(unknown_option(option.name, "metrics", &["per_host"], &[])),
        };
        cx.check(result);
    }
    Ok(metrics)
}

/// What both say together: whoever wants more hosts gets them.
pub(super) fn merge(one: Option<HttpMetrics>, other: Option<HttpMetrics>) -> Option<HttpMetrics> {
    let rank = |metrics: &HttpMetrics| match metrics {
        HttpMetrics::Together => 0,
        HttpMetrics::PerHost => 1,
        HttpMetrics::PerAnyHost => 2,
    };
    one.into_iter().chain(other).max_by_key(rank)
}

#[cfg(test)]
mod tests {
    use crate::HttpMetrics;
    use crate::directives::testing::{config, file_errors, load};

    fn metrics(options: &str) -> Option<HttpMetrics> {
        config(&format!("{{\n{options}\n}}\n:80 {{\n}}")).global.metrics
    }

    #[test]
    fn requests_are_counted_only_if_asked_for() {
        assert_eq!(metrics("debug"), None);
        assert_eq!(metrics("metrics"), Some(HttpMetrics::Together));
        assert_eq!(metrics("metrics {\nper_host\n}"), Some(HttpMetrics::PerHost));
        let both = metrics("metrics {\nobserve_catchall_hosts\nper_host\n}");
        assert_eq!(both, Some(HttpMetrics::PerAnyHost));
    }

    #[test]
    fn what_servers_say_counts_for_all() {
        assert_eq!(metrics("servers {\nmetrics\n}"), Some(HttpMetrics::Together));
        assert_eq!(metrics("servers {\nmetrics {\nper_host\n}\n}\nmetrics"), Some(HttpMetrics::PerHost));
        let loaded = load("{\nservers {\nmetrics\n}\n}\n:80 {\n}").unwrap();
        let expected = "Caddyfile:3:1: `metrics` counts for all servers; write it among the global options";
        assert_eq!(loaded.warnings[0].to_string(), expected);
    }

    #[test]
    fn mistakes() {
        let errors = |options: &str| file_errors(&format!("{{\n{options}\n}}\n:80 {{\n}}"));
        assert_eq!(errors("metrics {\notlp grpc\n}").len(), 1);
        assert_eq!(errors("metrics on").len(), 1);
        assert_eq!(errors("metrics {\nper_host on\n}").len(), 1);
        assert_eq!(errors("servers {\nmetrics {\nobserve_catchall_hosts\n}\n}").len(), 1);
        let loaded = load("{\nmetrics {\nobserve_catchall_hosts\n}\n}\n:80 {\n}").unwrap();
        assert!(loaded.warnings[0].to_string().contains("no effect without `per_host`"));
    }
}
