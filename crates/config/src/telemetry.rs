//! Where traces and metrics go, as OpenTelemetry's environment variables say it, which are the same for all that is instrumented
//! (<https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/>, …`/protocol/exporter/`).
//!
//! As the specification wants, a value that cannot be understood is warned of and left out; what would keep them from getting
//! anywhere is an error. Messages name the variable, and the place of what made it count.

mod collector;

pub(crate) use collector::percent_decoded;

use crate::context::Context;
use crate::model::{MetricsExport, TraceBatches, TraceExport, TracePropagation, TraceSampler, Traces};
use crate::problems::error;
use collector::{Signal, collector, of_export};
use regent_caddyfile::Token;
use std::time::Duration;

/// Between two times that metrics are sent.
const INTERVAL: Duration = Duration::from_secs(60);
/// Spans that may wait, whatever the environment says: some 64 MiB.
const MOST_QUEUED: usize = 65_536;
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// `None`: nothing is to be done about traces. `token`: the directive.
pub(crate) fn traces(cx: &mut Context<'_>, token: &Token) -> Option<Traces> {
    if is_disabled(cx) {
        cx.warn(token, "`tracing` has no effect: the environment has OTEL_SDK_DISABLED=true");
        return None;
    }
    let sampler = sampler(cx, token);
    let propagation = propagation(cx, token);
    let exporter = variable(cx, "OTEL_TRACES_EXPORTER").unwrap_or_else(|| "otlp".to_owned());
    let export = match exporter.as_str() {
        "none" => None,
        "otlp" => {
            let collector = collector(cx, token, Signal::Traces)?;
            Some(TraceExport { collector, batches: batches(cx, token) })
        }
        other => {
            let message = format!(
                "OTEL_TRACES_EXPORTER={other} is not possible: Regent sends traces by OTLP (`otlp`), or records none (`none`)"
            );
            cx.errors.push(error(token, message));
            return None;
        }
    };
    Some(Traces { sampler, propagation, export })
}

/// `None`: metrics are sent nowhere. `token`: the option that wants them to be.
pub(crate) fn metrics(cx: &mut Context<'_>, token: &Token) -> Option<MetricsExport> {
    if is_disabled(cx) {
        cx.warn(token, "`metrics otlp` has no effect: the environment has OTEL_SDK_DISABLED=true");
        return None;
    }
    match variable(cx, "OTEL_METRICS_EXPORTER").as_deref() {
        None | Some("otlp") => {}
        Some("none") => {
            cx.warn(token, "`metrics otlp` has no effect: the environment has OTEL_METRICS_EXPORTER=none");
            return None;
        }
        Some(other) => {
            let message = format!(
                "OTEL_METRICS_EXPORTER={other} is not possible: Regent sends metrics by OTLP (`otlp`) or not at all (`none`), and \
                 has them at `/metrics` for Prometheus in any case"
            );
            cx.errors.push(error(token, message));
            return None;
        }
    }
    if let Some((name, preference)) = of_export(cx, Signal::Metrics, "TEMPORALITY_PREFERENCE")
        .filter(|(_, preference)| !preference.eq_ignore_ascii_case("cumulative"))
    {
        cx.warn(token, format!("{name}={preference} has no effect: metrics count from the start of the server on (`cumulative`)"));
    }
    let collector = collector(cx, token, Signal::Metrics)?;
    Some(MetricsExport {
        collector,
        interval: time(cx, token, "OTEL_METRIC_EXPORT_INTERVAL").unwrap_or(INTERVAL),
    })
}

fn is_disabled(cx: &Context<'_>) -> bool {
    variable(cx, "OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"))
}

/// An empty variable is none.
fn variable(cx: &Context<'_>, name: &str) -> Option<String> {
    cx.environment.variable(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}

fn sampler(cx: &mut Context<'_>, token: &Token) -> TraceSampler {
    let usual = TraceSampler { ratio: 1.0, follows_parent: true };
    let Some(name) = variable(cx, "OTEL_TRACES_SAMPLER") else { return usual };
    let (root, follows_parent) = match name.strip_prefix("parentbased_") {
        Some(root) => (root, true),
        None => (name.as_str(), false),
    };
    let ratio = match root {
        "always_on" => 1.0,
        "always_off" => 0.0,
        "traceidratio" => ratio(cx, token),
        _ => {
            let message = format!(
                "OTEL_TRACES_SAMPLER={name} is unknown, so `parentbased_always_on` is taken (there are always_on, always_off, \
                 traceidratio, and each with parentbased_ before it)"
            );
            cx.warn(token, message);
            return usual;
        }
    };
    TraceSampler { ratio, follows_parent }
}

fn ratio(cx: &mut Context<'_>, token: &Token) -> f64 {
    let Some(text) = variable(cx, "OTEL_TRACES_SAMPLER_ARG") else { return 1.0 };
    let ratio = text.parse::<f64>().ok().filter(|ratio| (0.0..=1.0).contains(ratio));
    ratio.unwrap_or_else(|| {
        cx.warn(token, format!("OTEL_TRACES_SAMPLER_ARG={text} is no number from 0 to 1, so 1 is taken"));
        1.0
    })
}

fn propagation(cx: &mut Context<'_>, token: &Token) -> TracePropagation {
    let Some(list) = variable(cx, "OTEL_PROPAGATORS") else { return TracePropagation::TraceContext };
    let mut propagation = TracePropagation::Nothing;
    for name in list.split(',').map(str::trim) {
        match name {
            "tracecontext" => propagation = TracePropagation::TraceContext,
            // A field as any other.
            "baggage" | "none" | "" => {}
            _ => cx.warn(
                token,
                format!("OTEL_PROPAGATORS: `{name}` is not there; traces go by `tracecontext`, and `baggage` passes as it is"),
            ),
        }
    }
    propagation
}

fn batches(cx: &mut Context<'_>, token: &Token) -> TraceBatches {
    let usual = TraceBatches::default();
    let queue = count(cx, token, "OTEL_BSP_MAX_QUEUE_SIZE").unwrap_or(usual.queue).min(MOST_QUEUED);
    let size = count(cx, token, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE").unwrap_or(usual.size);
    TraceBatches {
        queue,
        size: size.min(queue),
        delay: time(cx, token, "OTEL_BSP_SCHEDULE_DELAY").unwrap_or(usual.delay),
        patience: time(cx, token, "OTEL_BSP_EXPORT_TIMEOUT").unwrap_or(usual.patience),
    }
}

fn count(cx: &mut Context<'_>, token: &Token, name: &str) -> Option<usize> {
    let text = variable(cx, name)?;
    let count = text.parse::<usize>().ok().filter(|count| *count > 0);
    if count.is_none() {
        cx.warn(token, format!("{name}={text} is no number from 1 on, and is left out"));
    }
    count
}

fn time(cx: &mut Context<'_>, token: &Token, name: &str) -> Option<Duration> {
    let text = variable(cx, name)?;
    milliseconds(cx, token, name, &text)
}

fn milliseconds(cx: &mut Context<'_>, token: &Token, name: &str, text: &str) -> Option<Duration> {
    let time = text.parse().ok().filter(|count| *count > 0).map(Duration::from_millis);
    if time.is_none() {
        cx.warn(token, format!("{name}={text} is no number of milliseconds, and is left out"));
    }
    time.map(|time| time.min(LONGEST))
}

#[cfg(test)]
mod tests;
