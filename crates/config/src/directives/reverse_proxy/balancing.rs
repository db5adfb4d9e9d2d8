//! `lb_…`: which upstream a request goes to, and how often that is tried.

use super::upstream::Others;
use crate::call::Call;
use crate::conditions;
use crate::context::Context;
use crate::directives::header::is_name;
use crate::model::{Balancing, CookiePolicy, HashKey, LbPolicy, MatcherSet, OptionalKey, Upstream};
use crate::problems::{error, unknown, unknown_option};
use crate::values::{duration, integer, positive_duration};
use regent_caddyfile::{Error, Token};
use std::time::Duration;

pub(super) const OPTIONS: &[&str] =
    &["lb_policy", "lb_retries", "lb_retry_match", "lb_try_duration", "lb_try_interval"];

const POLICIES: &[&str] = &[
    "client_ip_hash",
    "cookie",
    "first",
    "header",
    "ip_hash",
    "least_conn",
    "query",
    "random",
    "random_choose",
    "round_robin",
    "uri_hash",
    "weighted_round_robin",
];

/// As in Caddy, with `lb_try_duration`.
const TRY_INTERVAL: Duration = Duration::from_millis(250);

/// What the directive says of that.
#[derive(Default)]
pub(super) struct Written {
    policy: Option<(LbPolicy, Token)>,
    retries: Option<u32>,
    try_duration: Option<Duration>,
    try_interval: Option<Duration>,
    retry_match: Vec<MatcherSet>,
}

impl Written {
    pub fn read(&mut self, cx: &mut Context<'_>, option: &Call<'_>) -> Result<(), Error> {
        match option.name() {
            "lb_policy" => {
                if self.policy.is_some() {
                    return Err(error(option.name, "there is an `lb_policy` already"));
                }
                self.policy = Some((policy(cx, option)?, option.name.clone()));
            }
            "lb_retries" => {
                self.retries = Some(integer(option.one("lb_retries COUNT")?, 0..=u32::MAX, option.name())?);
            }
            "lb_retry_match" => self.retry_match.push(conditions::parse(cx, option, option.name())?),
            "lb_try_duration" => self.try_duration = Some(duration(option.one("lb_try_duration DURATION")?)?),
            _ => self.try_interval = Some(duration(option.one("lb_try_interval DURATION")?)?),
        }
        Ok(())
    }

    pub fn finish(self, cx: &mut Context<'_>, upstreams: &[Upstream], others: Others) -> Balancing {
        if let Some((LbPolicy::WeightedRoundRobin(weights), place)) = &self.policy {
            let (weights, upstreams) = (weights.len(), upstreams.len());
            if others == Others::Dynamic {
                let message =
                    "nobody knows how many upstreams `dynamic` finds, and in which order: write no weights";
                cx.errors.push(error(place, message));
            } else if weights != upstreams {
                let message =
                    format!("there are {weights} weights for {upstreams} upstreams: write one for each");
                cx.errors.push(error(place, message));
            }
        }
        let try_duration = self.try_duration.unwrap_or_default();
        let interval = if try_duration.is_zero() { Duration::ZERO } else { TRY_INTERVAL };
        Balancing {
            policy: self.policy.map_or(LbPolicy::Random, |(policy, _)| policy),
            retries: self.retries.filter(|retries| *retries > 0 || try_duration.is_zero()).or({
                // Without either there is one try.
                if try_duration.is_zero() { Some(0) } else { None }
            }),
            try_duration,
            retry_match: self.retry_match,
            try_interval: self.try_interval.filter(|own| !own.is_zero()).unwrap_or(interval),
        }
    }
}

/// `lb_policy NAME …`, or `fallback NAME …` in the block of one.
fn policy(cx: &Context<'_>, option: &Call<'_>) -> Result<LbPolicy, Error> {
    let Some((name, args)) = option.args.split_first() else {
        return Err(option.wrong_arguments(1, "lb_policy POLICY"));
    };
    let call = Call { name, args, block: option.block };
    let plain = |policy: LbPolicy| call.exactly::<0>(&name.text).map(|_| policy);
    match name.text.as_str() {
        "random" => plain(LbPolicy::Random),
        "round_robin" => plain(LbPolicy::RoundRobin),
        "least_conn" => plain(LbPolicy::LeastConn),
        "first" => plain(LbPolicy::First),
        "ip_hash" => plain(LbPolicy::Hash(HashKey::RemoteIp)),
        "client_ip_hash" => plain(LbPolicy::Hash(HashKey::ClientIp)),
        "uri_hash" => plain(LbPolicy::Hash(HashKey::Uri)),
        "random_choose" => {
            let token = call.one("random_choose COUNT")?;
            Ok(LbPolicy::RandomChoose(integer(token, 2..=u16::MAX, "random_choose")?))
        }
        "weighted_round_robin" => weights(&call).map(LbPolicy::WeightedRoundRobin),
        "header" => {
            let field = single(&call, "header FIELD")?;
            if !is_name(&field.text) {
                return Err(error(field, format!("`{}` is no name of a header field", field.text)));
            }
            Ok(LbPolicy::HashOr(OptionalKey::Header(field.text.clone()), fallback(cx, &call)?))
        }
        "query" => {
            let key = OptionalKey::Query(single(&call, "query KEY")?.text.clone());
            Ok(LbPolicy::HashOr(key, fallback(cx, &call)?))
        }
        "cookie" => cookie(cx, &call),
        _ => Err(unknown(name, "policy", POLICIES)),
    }
}

fn single<'a>(call: &Call<'a>, syntax: &str) -> Result<&'a Token, Error> {
    match call.args {
        [token] => Ok(token),
        _ => Err(call.wrong_arguments(1, syntax)),
    }
}

fn weights(call: &Call<'_>) -> Result<Vec<u32>, Error> {
    let tokens = call.some("weighted_round_robin WEIGHT…")?;
    let weight = |token: &Token| integer(token, 0..=1_000_000_u32, "weight");
    let weights: Vec<u32> = tokens.iter().map(weight).collect::<Result<_, _>>()?;
    match weights.iter().all(|weight| *weight == 0) {
        true => Err(error(call.name, "one of the weights has to be more than 0")),
        false => Ok(weights),
    }
}

/// The block of `header` and `query`.
fn fallback(cx: &Context<'_>, call: &Call<'_>) -> Result<Box<LbPolicy>, Error> {
    let mut fallback = LbPolicy::Random;
    for line in call.options() {
        match line.name() {
            "fallback" => fallback = policy(cx, &line)?,
            _ => return Err(unknown_option(line.name, call.name(), &["fallback"], &[])),
        }
    }
    Ok(Box::new(fallback))
}

fn cookie(cx: &Context<'_>, call: &Call<'_>) -> Result<LbPolicy, Error> {
    let (name, secret) = match call.args {
        [] => (None, None),
        [name] => (Some(name), None),
        [name, secret] => (Some(name), Some(secret)),
        _ => return Err(call.wrong_arguments(2, "cookie [NAME [SECRET]]")),
    };
    if let Some(name) = name.filter(|name| !is_name(&name.text)) {
        return Err(error(name, format!("`{}` is no name of a cookie", name.text)));
    }
    let mut cookie = CookiePolicy {
        name: name.map_or("lb".to_owned(), |name| name.text.clone()),
        secret: secret.map(|secret| cx.fixed_text(secret)).transpose()?.unwrap_or_default(),
        max_age: None,
        fallback: Box::new(LbPolicy::Random),
    };
    for line in call.options() {
        match line.name() {
            "fallback" => cookie.fallback = Box::new(policy(cx, &line)?),
            "max_age" => cookie.max_age = Some(positive_duration(line.one("max_age DURATION")?)?),
            _ => return Err(unknown_option(line.name, "cookie", &["fallback", "max_age"], &[])),
        }
    }
    Ok(LbPolicy::Cookie(cookie))
}
