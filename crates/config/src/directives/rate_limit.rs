//! `rate_limit [MATCHER] { … }`: how often clients may ask; whoever asks more often gets 429, as by Caddy's module of this name
//! (mholt/caddy-ratelimit).
//!
//! | option | meaning |
//! |---|---|
//! | `zone NAME { … }` | a limit, with the options below; at least one |
//! | `log_key` | the log has the key of whoever is refused |
//! | `jitter PART` | up to this part of the wait is added to `Retry-After` by chance: `0.2` is a fifth |
//!
//! | option of a zone | default | meaning |
//! |---|---|---|
//! | `events N`, `window DURATION` | needed | so many requests in any stretch of so much time, 100,000 at most |
//! | `key TEXT` | | requests for which this is the same count together: `{client_ip}` is a limit for each client, a text without placeholders one for all |
//! | `match { CONDITION… }` | | which requests count; of several blocks one must fit |
//! | `ipv4_prefix BITS`, `ipv6_prefix BITS` | 32, 128 | so much of a key that is an address; a household or a rented server has a whole network of IPv6, mostly of 64 bits |
//!
//! What is refused does not count, so that a client that goes on asking is served again when the window has passed. The answer
//! has `Retry-After`; [handle_errors](#handle_errors) may make a page of it, and `{http.rate_limit.exceeded.name}` is the zone.
//! Of several zones the one that lets most through is asked first. Zones of the same name count together, in all sites, and
//! go on counting when the configuration is loaded anew.
//!
//! Each server counts for itself. What it remembers is [bounded](limits.md#limit-clients).
//!
//! ```caddyfile
//! rate_limit {
//!     zone login {
//!         match {
//!             method POST
//!             path /wp-login.php* /xmlrpc.php*
//!         }
//!         key {client_ip}
//!         events 5
//!         window 1m
//!         ipv6_prefix 64
//!     }
//!     log_key
//! }
//! ```

use super::Directive;
use crate::call::Call;
use crate::conditions;
use crate::context::Context;
use crate::matchers::Scope;
use crate::model::{Handler, RateLimit, RateZone, Template};
use crate::problems::{error, unknown_option};
use crate::values;
use regent_caddyfile::{Error, Token};

pub(super) const DIRECTIVE: Directive = super::handler("rate_limit", parse);

const SYNTAX: &str = "rate_limit [MATCHER] { zone NAME { key {client_ip} events 100 window 1m } }";
const OPTIONS: &[&str] = &["jitter", "log_key", "zone"];
const ZONE_OPTIONS: &[&str] = &["events", "ipv4_prefix", "ipv6_prefix", "key", "match", "window"];

fn parse(cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    call.no_arguments(SYNTAX)?;
    let mut limit = RateLimit { zones: Vec::new(), jitter: 0.0, log_key: false };
    let before = cx.errors.len();
    for option in call.options() {
        let result = apply(cx, &option, &mut limit);
        cx.check(result);
    }
    if limit.zones.is_empty() && cx.errors.len() == before {
        return Err(error(call.name, format!("`rate_limit` needs a zone; write: {SYNTAX}")));
    }
    limit
        .zones
        .sort_by(|one, other| rate(other).total_cmp(&rate(one)).then_with(|| one.name.cmp(&other.name)));
    Ok(Handler::RateLimit(limit))
}

/// Requests a second.
fn rate(zone: &RateZone) -> f64 {
    f64::from(zone.events) / zone.window.as_secs_f64()
}

fn apply(cx: &mut Context<'_>, option: &Call<'_>, limit: &mut RateLimit) -> Result<(), Error> {
    match option.name() {
        "zone" => {
            let zone = zone(cx, option, &limit.zones)?;
            limit.zones.extend(zone);
        }
        "log_key" => {
            option.exactly::<0>("log_key")?;
            limit.log_key = true;
        }
        "jitter" => limit.jitter = jitter(option.one("jitter PART")?)?,
        "sweep_interval" => {
            values::positive_duration(option.one("sweep_interval DURATION")?)?;
            cx.warn(
                option.name,
                "`sweep_interval` has no effect: what a zone remembers is bounded by itself",
            );
        }
        "disable_metrics" => {
            option.exactly::<0>("disable_metrics")?;
            cx.warn(
                option.name,
                "`disable_metrics` has no effect: a zone has three series, whatever its keys are",
            );
        }
        "distributed" | "storage" => {
            let message = "each Regent counts for itself; leave `distributed` and `storage` out, and let `events` be what one \
                           server may take";
            return Err(error(option.name, message));
        }
        _ => return Err(unknown_option(option.name, "rate_limit", OPTIONS, &[])),
    }
    Ok(())
}

fn jitter(token: &Token) -> Result<f64, Error> {
    let part = token.text.parse::<f64>().ok().filter(|part| (0.0..=10.0).contains(part));
    part.ok_or_else(|| {
        error(
            token,
            format!("`jitter` is a part of the wait from 0 to 10, such as 0.2, not `{}`", token.text),
        )
    })
}

/// `None`: there were mistakes, which are noted.
fn zone(cx: &mut Context<'_>, call: &Call<'_>, others: &[RateZone]) -> Result<Option<RateZone>, Error> {
    let syntax = "zone NAME { key {client_ip} events 100 window 1m }";
    let [name] = call.args else { return Err(call.wrong_arguments(1, syntax)) };
    if others.iter().any(|other| other.name == name.text) {
        return Err(error(name, format!("there is a zone `{}` already in this `rate_limit`", name.text)));
    }
    let before = cx.errors.len();
    let mut zone = RateZone {
        name: name.text.clone(),
        matchers: Vec::new(),
        key: Template::default(),
        window: std::time::Duration::ZERO,
        events: 0,
        ipv4_prefix: 32,
        ipv6_prefix: 128,
    };
    for option in call.options() {
        let result = apply_to_zone(cx, &option, &mut zone);
        cx.check(result);
    }
    if cx.errors.len() > before {
        return Ok(None);
    }
    if zone.events == 0 || zone.window.is_zero() {
        return Err(error(
            call.name,
            format!(
                "a zone needs `events` and `window`; write: zone {} {{ events 100 window 1m }}",
                name.text
            ),
        ));
    }
    cx.rate_zones.add(&zone, name)?;
    Ok(Some(zone))
}

fn apply_to_zone(cx: &mut Context<'_>, option: &Call<'_>, zone: &mut RateZone) -> Result<(), Error> {
    match option.name() {
        "match" => {
            option.no_arguments("match { CONDITION… }")?;
            let name = zone.name.clone();
            zone.matchers.push(conditions::of_lines(cx, option.block.unwrap_or_default(), &name));
        }
        "key" => zone.key = Template::parse(&option.one("key TEXT")?.text),
        "window" => zone.window = values::positive_duration(option.one("window DURATION")?)?,
        "events" => {
            zone.events = values::integer(option.one("events N")?, 1..=RateZone::MOST_EVENTS, "events")?;
        }
        // As in Caddy's module, 0 is the whole address.
        "ipv4_prefix" => zone.ipv4_prefix = bits(option, 32)?,
        "ipv6_prefix" => zone.ipv6_prefix = bits(option, 128)?,
        _ => return Err(unknown_option(option.name, "zone", ZONE_OPTIONS, &[])),
    }
    Ok(())
}

fn bits(option: &Call<'_>, all: u8) -> Result<u8, Error> {
    let bits = values::integer(option.one(&format!("{} BITS", option.name()))?, 0..=all, option.name())?;
    Ok(if bits == 0 { all } else { bits })
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{errors, file_errors, handler, load};
    use crate::model::{Handler, RateLimit, Template};
    use std::time::Duration;

    fn limit(options: &str) -> RateLimit {
        match handler(&format!("rate_limit {{\n{options}\n}}")) {
            Handler::RateLimit(limit) => limit,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn zones_begin_with_the_one_that_lets_most_through() {
        let limit = limit(
            "zone minute {\nkey {client_ip}\nevents 60\nwindow 1m\n}\n\
             zone burst {\nmatch {\nmethod POST\n}\nmatch {\npath /a\n}\nevents 10\nwindow 1s\nipv6_prefix 64\nipv4_prefix 0\n}\n\
             log_key\njitter 0.5",
        );
        let names: Vec<_> = limit.zones.iter().map(|zone| zone.name.as_str()).collect();
        assert_eq!(names, ["burst", "minute"]);
        let [burst, minute] = &limit.zones[..] else { panic!() };
        assert_eq!((burst.matchers.len(), burst.ipv4_prefix, burst.ipv6_prefix), (2, 32, 64));
        assert_eq!((minute.events, minute.window), (60, Duration::from_secs(60)));
        assert_eq!(minute.key, Template::parse("{client_ip}"));
        assert!(limit.log_key && limit.jitter == 0.5);
    }

    #[test]
    fn a_zone_is_the_same_wherever_it_is() {
        let site = |port, events| {
            format!(":{port} {{\nrate_limit {{\nzone z {{\nevents {events}\nwindow 1s\n}}\n}}\n}}\n")
        };
        assert!(load(&(site(80, 3) + &site(81, 3))).is_ok());
        let found = file_errors(&(site(80, 3) + &site(81, 4)));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("line 3"), "{found:?}");
    }

    #[test]
    fn options_that_have_no_effect_are_told() {
        let zone = "zone z {\nevents 1\nwindow 1s\n}";
        let text = format!(":80 {{\nrate_limit {{\n{zone}\nsweep_interval 1m\ndisable_metrics\n}}\n}}");
        assert_eq!(load(&text).unwrap().warnings.len(), 2);
    }

    #[test]
    fn mistakes() {
        let zone = "zone z {\nevents 1\nwindow 1s\n}";
        for (options, message) in [
            ("", "needs a zone"),
            ("zone z {\nevents 1\n}", "needs `events` and `window`"),
            ("zone z {\nevents 0\nwindow 1s\n}", "from 1 to 100000"),
            ("zone z {\nevents 1\nwindow 0\n}", "longer than 0"),
            ("zone z {\nevent 1\n}", "did you mean `events`"),
            ("zone z {\nipv6_prefix 129\n}", "from 0 to 128"),
            ("zone {\n}", "too few arguments"),
            (&format!("{zone}\n{zone}"), "already in this `rate_limit`"),
            (&format!("{zone}\ndistributed"), "counts for itself"),
            (&format!("{zone}\njitter -1"), "from 0 to 10"),
        ] {
            let found = errors(&format!("rate_limit {{\n{options}\n}}"));
            assert!(found.len() == 1 && found[0].contains(message), "{options}: {found:?}");
        }
    }
}
