//! Which upstreams are given requests at all: `fail_duration`, `max_fails`, `unhealthy_…`, `health_…`.

use super::upstream::Others;
use crate::call::Call;
use crate::conditions::regexp;
use crate::context::Context;
use crate::directives::header::is_name;
use crate::model::{ActiveHealth, PassiveHealth, Redirects, Upstream, UpstreamAddress};
use crate::problems::error;
use crate::values::{duration, integer, positive_duration, statuses};
use regent_caddyfile::{Error, Token};

pub(super) const OPTIONS: &[&str] = &[
    "fail_duration",
    "health_body",
    "health_fails",
    "health_follow_redirects",
    "health_headers",
    "health_interval",
    "health_method",
    "health_passes",
    "health_path",
    "health_port",
    "health_request_body",
    "health_status",
    "health_timeout",
    "health_upstream",
    "health_uri",
    "max_fails",
    "unhealthy_latency",
    "unhealthy_request_count",
    "unhealthy_status",
];

/// Failures that are remembered of an upstream, each in a word of memory.
const MOST_FAILS: u32 = 10_000;

/// What the directive says of that.
#[derive(Default)]
pub(super) struct Written {
    passive: PassiveHealth,
    active: ActiveHealth,
    /// What asks for questions: `health_uri`, `health_path` or `health_port`.
    asked: Option<Token>,
    /// What is about questions.
    about: Option<Token>,
}

impl Written {
    pub fn read(&mut self, cx: &mut Context<'_>, option: &Call<'_>) -> Result<(), Error> {
        match option.name() {
            "health_uri" | "health_path" | "health_port" => self.asked = Some(option.name.clone()),
            name if name.starts_with("health_") => self.about = Some(option.name.clone()),
            _ => return self.read_passive(option),
        }
        self.read_active(cx, option)
    }

    pub fn finish(
        self,
        cx: &mut Context<'_>,
        upstreams: &[Upstream],
        others: Others,
    ) -> (PassiveHealth, Option<ActiveHealth>) {
        let has_computed = upstreams.iter().any(|upstream| matches!(upstream, Upstream::Computed(_)));
        match (&self.asked, &self.about) {
            (None, Some(about)) => cx.errors.push(error(about, "upstreams are asked with `health_uri URI`")),
            (Some(asked), _) if has_computed => {
                let message =
                    "an upstream with a placeholder is known only with a request, and cannot be asked";
                cx.errors.push(error(asked, message));
            }
            (Some(asked), _) if upstreams.is_empty() && others == Others::Dynamic => {
                let message = "upstreams of `dynamic` come and go with DNS, and are not asked how they are: use \
                               `fail_duration`, which needs no questions";
                cx.errors.push(error(asked, message));
            }
            _ => {}
        }
        (self.passive, self.asked.map(|_| self.active))
    }

    fn read_passive(&mut self, option: &Call<'_>) -> Result<(), Error> {
        let passive = &mut self.passive;
        match option.name() {
            "fail_duration" => passive.fail_duration = duration(option.one("fail_duration DURATION")?)?,
            "max_fails" => {
                passive.max_fails = integer(option.one("max_fails COUNT")?, 1..=MOST_FAILS, "max_fails")?;
            }
            "unhealthy_latency" => {
                passive.unhealthy_latency = duration(option.one("unhealthy_latency DURATION")?)?;
            }
            "unhealthy_request_count" => {
                let token = option.one("unhealthy_request_count COUNT")?;
                passive.unhealthy_request_count = Some(integer(token, 1..=u32::MAX, option.name())?);
            }
            _ => {
                let tokens = option.some("unhealthy_status STATUS…")?;
                for token in tokens {
                    passive.unhealthy_status.push(statuses(token)?);
                }
            }
        }
        Ok(())
    }

    fn read_active(&mut self, cx: &mut Context<'_>, option: &Call<'_>) -> Result<(), Error> {
        let active = &mut self.active;
        match option.name() {
            "health_headers" => {
                active.headers.extend(headers(cx, option)?);
                return Ok(());
            }
            "health_follow_redirects" => {
                option.exactly::<0>("health_follow_redirects")?;
                active.redirects = Redirects::Followed;
                return Ok(());
            }
            _ => {}
        }
        let token = option.one(&format!("{} VALUE", option.name()))?;
        match option.name() {
            // Caddy's older word for the same.
            "health_uri" | "health_path" => active.uri = uri(token)?,
            "health_upstream" => active.upstream = Some(address(token)?),
            "health_request_body" => active.request_body = cx.fixed_text(token)?,
            "health_port" => active.port = Some(integer(token, 1..=u16::MAX, option.name())?),
            "health_interval" => active.interval = positive_duration(token)?,
            "health_timeout" => active.timeout = positive_duration(token)?,
            "health_status" => active.status = statuses(token)?,
            "health_body" => active.body = Some(regexp(token)?),
            "health_passes" => active.passes = integer(token, 1..=u32::MAX, option.name())?,
            "health_fails" => active.fails = integer(token, 1..=u32::MAX, option.name())?,
            _ if is_name(&token.text) => active.method = token.text.to_ascii_uppercase(),
            _ => return Err(error(token, format!("`{}` is no method", token.text))),
        }
        Ok(())
    }
}

fn uri(token: &Token) -> Result<String, Error> {
    let text = token.text.as_str();
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
    match (is_plain, text.starts_with('/')) {
        (true, true) => Ok(text.to_owned()),
        (true, false) if !text.contains("://") => Ok(format!("/{text}")),
        _ => Err(error(token, format!("`{text}` is no path; write: health_uri /health"))),
    }
}

fn address(token: &Token) -> Result<UpstreamAddress, Error> {
    let has_port = token.text.starts_with("unix/") || token.text.rsplit_once(':').is_some();
    UpstreamAddress::parse(&token.text).filter(|_| has_port).ok_or_else(|| {
        error(token, format!("`{}` is no address; write: health_upstream HOST:PORT", token.text))
    })
}

/// What stands for the upstream that is asked about, once it is.
const TARGET: &str = "{http.reverse_proxy.active.target_upstream}";

/// A value of a field, which may name the upstream.
fn field_value(cx: &Context<'_>, token: &Token) -> Result<String, Error> {
    let part = |text: &str| cx.fixed_text(&Token { text: text.to_owned(), ..token.clone() });
    let parts = token.text.split(TARGET).map(part).collect::<Result<Vec<_>, _>>()?;
    Ok(parts.join(TARGET))
}

/// One entry for each value.
fn headers(cx: &mut Context<'_>, option: &Call<'_>) -> Result<Vec<(String, String)>, Error> {
    option.no_arguments("health_headers { FIELD VALUE… }")?;
    let mut fields = Vec::new();
    for line in option.options() {
        if !is_name(line.name()) {
            return Err(error(line.name, format!("`{}` is no name of a header field", line.name())));
        }
        for value in line.args {
            let text = field_value(cx, value)?;
            if text.contains(['\r', '\n', '\0']) {
                return Err(error(value, "a field is one line"));
            }
            fields.push((line.name().to_owned(), text));
        }
    }
    Ok(fields)
}
