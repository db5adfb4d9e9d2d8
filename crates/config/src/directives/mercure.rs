//! `mercure [MATCHER] { … }`: a [Mercure](mercure.md) hub at `/.well-known/mercure`. Other paths go on to the next directive.
//!
//! | option | default | meaning |
//! |---|---|---|
//! | `publisher_jwt KEY [ALGORITHM]` | | checks the tokens of publishers; without it nobody publishes over HTTP |
//! | `subscriber_jwt KEY [ALGORITHM]` | | checks the tokens of subscribers |
//! | `anonymous` | | subscribers need no token; private updates do in any case |
//! | `subscriptions` | | subscriptions are published, and listed at `/.well-known/mercure/subscriptions` |
//! | `cors_origins ORIGIN…` | | origins whose pages may use the hub; `*`: all, without cookies |
//! | `publish_origins ORIGIN…` | | origins whose pages may publish with a cookie; `*`: all |
//! | `cookie_name NAME` | `mercureAuthorization` | the cookie that a token may be in |
//! | `transport local` | the latest updates are kept in memory | no history |
//! | `transport bolt`, or a block of `path FILE` and `size N` | | the latest updates are kept in a file too, `N` of them; `path` is `mercure.db`, and 0, the default of `size`, as many as there is room for |
//! | `transport redis`, with or without a block of `address HOST:PORT`, `stream NAME`, `max_length N` and so on | | the latest updates are in a stream of Redis, and all instances that have it are one hub; see [several instances](mercure.md#several-instances) |
//! | `heartbeat DURATION` | 40s | silence after which subscribers get a comment; 0: never |
//! | `write_timeout DURATION` | 600s | how long a subscriber's connection lasts; 0: as long as it wants |
//! | `dispatch_timeout DURATION` | 5s | how long an update waits for a subscriber that takes nothing before its connection is cut; 0: for ever |
//!
//! `KEY` is a secret for the algorithms `HS256`, which is the default, `HS384` and `HS512`, and a public key in PEM for
//! `RS256` and so on, `PS256` and so on, `ES256`, `ES384` and `EdDSA`. It is read when the configuration is, so that
//! `{env.NAME}` or `{file./PATH}` can stand for it, and it is never shown. `transport_url local://local` and
//! `transport_url bolt://FILE?size=N` and `transport_url redis://USER:PASSWORD@HOST:PORT/STREAM?tls=1&max_len_approx=N` are the old forms of `transport`; the environment variable `MERCURE_TRANSPORT_URL` is
//! another one. The file is one of Regent's own, beside the one that is named: `.mercure.db.jsonl`.
//! `ui`, `demo`, `topic_selector_cache`, `bucket_name` and `cleanup_frequency` of `bolt`, `subscriber_list_cache_size` and `protocol_version_compatibility` are accepted
//! with a warning, as they change nothing.
//!
//! ```caddyfile
//! mercure {
//!     publisher_jwt {env.MERCURE_PUBLISHER_JWT_KEY} {env.MERCURE_PUBLISHER_JWT_ALG}
//!     subscriber_jwt {env.MERCURE_SUBSCRIBER_JWT_KEY} {env.MERCURE_SUBSCRIBER_JWT_ALG}
//!     anonymous
//!     subscriptions
//! }
//! ```

mod transport;

use super::Directive;
use crate::call::Call;
use crate::context::Context;
use crate::host_names::ascii_authority;
use crate::matchers::Scope;
use crate::model::{Handler, HubId, JwtKey, MercureHub, Secret};
use crate::problems::{error, unknown_option};
use crate::values;
use regent_caddyfile::Error;

pub(super) const DIRECTIVE: Directive = super::handler("mercure", parse);

const SYNTAX: &str = "mercure [MATCHER] { OPTION… }";
const ALGORITHMS: &[&str] = &[
    "HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384",
    "EdDSA",
];
const OPTIONS: &[&str] = &[
    "anonymous",
    "cookie_name",
    "cors_origins",
    "dispatch_timeout",
    "heartbeat",
    "publish_origins",
    "publisher_jwt",
    "subscriber_jwt",
    "subscriptions",
    "transport",
    "transport_url",
    "write_timeout",
];
const UNBUILT: &[&str] = &["publisher_jwks_url", "subscriber_jwks_url"];

fn parse(cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    call.no_arguments(SYNTAX)?;
    let mut hub = MercureHub::default();
    for option in call.options() {
        let result = apply(cx, &option, &mut hub);
        cx.check(result);
    }
    if !call.options().any(|option| matches!(option.name(), "transport" | "transport_url")) {
        let url = cx.environment.variable("MERCURE_TRANSPORT_URL").filter(|url| !url.is_empty());
        let history = url.map(|url| transport::of_url(cx, call.name, &url)).transpose();
        hub.history = cx.check(history).flatten().unwrap_or(hub.history);
    }
    let has_subscriber_key = call.options().any(|option| option.name() == "subscriber_jwt");
    if !hub.anonymous && !has_subscriber_key {
        let message = "nobody could subscribe to this hub: write `subscriber_jwt KEY`, or `anonymous` to let everybody \
                       have what is not private";
        return Err(error(call.name, message));
    }
    if let Some(path) = transport::taken(&cx.hubs, &hub) {
        let message = format!(
            "another hub, with other options, keeps its history in {}; choose another `path` in `transport bolt`",
            path.display()
        );
        return Err(error(call.name, message));
    }
    add(cx, hub).map(Handler::Mercure).ok_or_else(|| error(call.name, "there are too many hubs"))
}

/// Equal hubs are one, so that a site with several addresses has one.
fn add(cx: &mut Context<'_>, hub: MercureHub) -> Option<HubId> {
    let place = cx.hubs.iter().position(|known| *known == hub).unwrap_or(cx.hubs.len());
    let id = u16::try_from(place).ok()?;
    if place == cx.hubs.len() {
        cx.hubs.push(hub);
    }
    Some(HubId(id))
}

fn apply(cx: &mut Context<'_>, option: &Call<'_>, hub: &mut MercureHub) -> Result<(), Error> {
    match option.name() {
        "publisher_jwt" => hub.publisher = Some(key(cx, option)?),
        "subscriber_jwt" => hub.subscriber = Some(key(cx, option)?),
        "anonymous" => {
            option.exactly::<0>("anonymous")?;
            hub.anonymous = true;
        }
        "subscriptions" => {
            option.exactly::<0>("subscriptions")?;
            hub.subscriptions = true;
        }
        "cors_origins" => hub.cors_origins.extend(origins(cx, option, "cors_origins ORIGIN…")?),
        "publish_origins" => hub.publish_origins.extend(origins(cx, option, "publish_origins ORIGIN…")?),
        "cookie_name" => hub.cookie_name = cookie_name(cx, option)?,
        "transport" => hub.history = transport::of_option(cx, option)?,
        "transport_url" => {
            let token = option.one("transport_url bolt://FILE?size=N")?;
            let url = cx.fixed_text(token)?;
            hub.history = transport::of_url(cx, token, &url)?;
        }
        "heartbeat" => hub.heartbeat = values::duration(option.one("heartbeat DURATION")?)?,
        "write_timeout" => hub.write_timeout = values::duration(option.one("write_timeout DURATION")?)?,
        "dispatch_timeout" => {
            hub.dispatch_timeout = values::duration(option.one("dispatch_timeout DURATION")?)?
        }
        name => match without_effect(name) {
            Some(why) => cx.warn(option.name, format!("`mercure {name}` has no effect: {why}")),
            None => return Err(unknown_option(option.name, "mercure", OPTIONS, UNBUILT)),
        },
    }
    Ok(())
}

/// Why an option of the reference implementation changes nothing here.
fn without_effect(name: &str) -> Option<&'static str> {
    match name {
        "ui" | "demo" => Some("Regent has no debugging page for hubs"),
        "topic_selector_cache" | "subscriber_list_cache_size" => {
            Some("a selector is kept as long as a subscriber uses it, and needs no cache")
        }
        "protocol_version_compatibility" => Some(
            "the hub speaks version 8, and takes the query parameter `Last-Event-ID` of version 7 as well",
        ),
        _ => None,
    }
}

fn key(cx: &Context<'_>, option: &Call<'_>) -> Result<JwtKey, Error> {
    let (key, algorithm) = match option.args {
        [key] => (key, None),
        [key, algorithm] => (key, Some(algorithm)),
        args => {
            let syntax = format!("{} KEY [ALGORITHM]", option.name());
            return Err(option.wrong_arguments(args.len().clamp(1, 2), &syntax));
        }
    };
    option.without_block(&format!("{} KEY [ALGORITHM]", option.name()))?;
    let text = cx.fixed_text(key)?;
    if text.trim().is_empty() {
        let message =
            format!("the key is empty, so that everybody could sign tokens: is `{}` set?", key.text);
        return Err(error(key, message));
    }
    // Of an environment variable that is not set.
    let algorithm = algorithm.map(|token| Ok((token, cx.fixed_text(token)?))).transpose()?;
    let algorithm = algorithm.filter(|(_, name)| !name.is_empty());
    let name = algorithm.as_ref().map_or("HS256", |(_, name)| name);
    if !ALGORITHMS.contains(&name) {
        let token = algorithm.as_ref().map_or(key, |(token, _)| token);
        let message = format!("`{name}` is no algorithm for tokens (there are: {})", ALGORITHMS.join(", "));
        return Err(error(token, message));
    }
    if !name.starts_with("HS") && !text.contains("-----BEGIN") {
        let message =
            format!("tokens of {name} are checked with a public key in PEM, which begins with `-----BEGIN`");
        return Err(error(key, message));
    }
    Ok(JwtKey { key: Secret(text), algorithm: name.to_owned() })
}

/// A placeholder may stand for several.
fn origins(cx: &Context<'_>, option: &Call<'_>, syntax: &str) -> Result<Vec<String>, Error> {
    let mut origins = Vec::new();
    for token in option.some(syntax)? {
        for origin in cx.fixed_text(token)?.split_whitespace() {
            let origin = ascii_authority(origin).unwrap_or_default();
            let origin = origin.as_str();
            if !is_origin(origin) {
                let message = format!(
                    "`{origin}` is no origin; write `https://example.com`, with the port if it has one, or `*`"
                );
                return Err(error(token, message));
            }
            origins.push(origin.to_owned());
        }
    }
    Ok(origins)
}

/// As browsers send it: scheme and host, without a slash at the end.
fn is_origin(text: &str) -> bool {
    let is_scheme = |scheme: &str| {
        !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    };
    let is_host = |host: &str| !host.is_empty() && !host.contains(['/', '?', '#', '@']);
    text == "*" || text.split_once("://").is_some_and(|(scheme, host)| is_scheme(scheme) && is_host(host))
}

fn cookie_name(cx: &Context<'_>, option: &Call<'_>) -> Result<String, Error> {
    let token = option.one("cookie_name NAME")?;
    let name = cx.fixed_text(token)?;
    // RFC 6265 §4.1.1: a token.
    let is_part = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if name.is_empty() || !name.chars().all(is_part) {
        return Err(error(token, format!("`{name}` is no name of a cookie")));
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directives::testing::{config, errors, load, routes};
    use crate::model::HubHistory;
    use std::time::Duration;

    fn hub(options: &str) -> MercureHub {
        config(&format!(":80 {{\nmercure {{\n{options}\n}}\n}}")).global.hubs.remove(0)
    }

    fn wrong(options: &str) -> String {
        errors(&format!("mercure {{\n{options}\n}}")).join("\n")
    }

    #[test]
    fn all_options() {
        let hub = hub(
            "publisher_jwt secret\nsubscriber_jwt other HS512\nanonymous\nsubscriptions\ncors_origins https://a.test *\n\
             publish_origins http://localhost:3000\ncookie_name auth\ntransport local\nheartbeat 1s\nwrite_timeout 0\n\
             dispatch_timeout 2m",
        );
        let key =
            |key: &str, algorithm: &str| JwtKey { key: Secret(key.into()), algorithm: algorithm.into() };
        let expected = MercureHub {
            publisher: Some(key("secret", "HS256")),
            subscriber: Some(key("other", "HS512")),
            anonymous: true,
            subscriptions: true,
            cors_origins: vec!["https://a.test".into(), "*".into()],
            publish_origins: vec!["http://localhost:3000".into()],
            cookie_name: "auth".into(),
            history: HubHistory::None,
            heartbeat: Duration::from_secs(1),
            write_timeout: Duration::ZERO,
            dispatch_timeout: Duration::from_secs(120),
        };
        assert_eq!(hub, expected);
    }

    #[test]
    fn an_algorithm_that_is_not_set_is_the_default() {
        assert_eq!(hub("anonymous\npublisher_jwt secret {env.UNSET}").publisher.unwrap().algorithm, "HS256");
    }

    #[test]
    fn equal_hubs_are_one() {
        let config = config(
            ":80 {\nmercure {\nanonymous\n}\n}\n:81 {\nmercure {\nanonymous\n}\n}\n:82 {\nmercure {\nanonymous\nsubscriptions\n}\n}",
        );
        assert_eq!(config.global.hubs.len(), 2);
        let ids: Vec<_> =
            config.servers.iter().map(|server| server.sites[0].routes[0].handler.clone()).collect();
        assert_eq!(ids, [0, 0, 1].map(|id| Handler::Mercure(HubId(id))));
    }

    #[test]
    fn a_history_is_kept_in_a_file() {
        let file = |path: &str, size| HubHistory::File {
            path: path.into(),
            is_default: path == "/srv/mercure.db",
            size,
        };
        let history = |options: &str| hub(&format!("anonymous\n{options}")).history;
        assert_eq!(history("transport bolt"), file("/srv/mercure.db", 0));
        let block =
            "transport bolt {\npath {env.DIR}/data/m.db\nsize 1000\nbucket_name x\ncleanup_frequency 0.3\n}";
        assert_eq!(history(block), file("/data/m.db", 1000));
        assert_eq!(
            history("transport_url bolt:///data/m.db?size=5&cleanup_frequency=0.5"),
            file("/data/m.db", 5)
        );
        assert_eq!(history("transport_url bolt://m.db"), file("/srv/m.db", 0));
        let hub = |options: &str| format!(":80 {{\nmercure {{\nanonymous\n{options}\n}}\n}}\n");
        let text = hub("transport bolt") + &hub("transport bolt\nsubscriptions").replace(":80", ":81");
        assert!(
            crate::directives::testing::file_errors(&text)[0].starts_with("another hub, with other options")
        );
    }

    #[test]
    fn a_key_is_shown_to_nobody() {
        let loaded = load(":80 {\nmercure {\nanonymous\npublisher_jwt letmein\n}\n}").unwrap();
        let shown = [serde_json::to_string(&loaded.config).unwrap(), format!("{:?}", loaded.config)];
        assert!(shown.iter().all(|text| !text.contains("letmein") && text.contains("(hidden)")));
    }

    #[test]
    fn a_hub_comes_after_encode_and_before_php() {
        let routes = routes("php_server\nmercure {\nanonymous\n}\nencode gzip");
        let is = |index: usize| std::mem::discriminant(&routes[index].handler);
        assert_eq!(is(1), std::mem::discriminant(&Handler::Mercure(HubId(0))));
    }

    #[test]
    fn what_has_no_effect_is_accepted_with_a_warning() {
        let options = "anonymous\ndemo\nui\ntopic_selector_cache 100 2\nprotocol_version_compatibility 7";
        let loaded = load(&format!(":80 {{\nmercure {{\n{options}\n}}\n}}")).unwrap();
        assert_eq!(loaded.warnings.len(), 4);
        assert_eq!(
            loaded.warnings[0].to_string(),
            "Caddyfile:4:1: `mercure demo` has no effect: Regent has no debugging page for hubs"
        );
    }

    #[test]
    fn mistakes() {
        for (options, message) in [
            ("", "nobody could subscribe to this hub"),
            ("publisher_jwt x", "nobody could subscribe to this hub"),
            (
                "subscriber_jwt",
                "too few arguments for `subscriber_jwt`; write: subscriber_jwt KEY [ALGORITHM]",
            ),
            ("anonymous\npublisher_jwt a b c", "too many arguments for `publisher_jwt`"),
            (
                "anonymous\npublisher_jwt {env.UNSET}",
                "the key is empty, so that everybody could sign tokens: is `{env.UNSET}` set?",
            ),
            ("anonymous\npublisher_jwt {path}", "cannot depend on the request"),
            ("anonymous\npublisher_jwt x none", "`none` is no algorithm for tokens (there are: HS256, HS384"),
            ("anonymous\npublisher_jwt x RS256", "a public key in PEM"),
            (
                "anonymous\npublisher_jwks_url https://a.test",
                "`mercure publisher_jwks_url` is not built yet in Regent",
            ),
            ("anonymous\ncors_origins a.test", "`a.test` is no origin; write `https://example.com`"),
            ("anonymous\npublish_origins https://a.test/", "`https://a.test/` is no origin"),
            ("anonymous\ncookie_name a;b", "`a;b` is no name of a cookie"),
            ("anonymous\ntransport kafka", "there is no transport `kafka` in Regent"),
            ("anonymous\ntransport bolt {\nsize x\n}", "`size` must be a whole number"),
            ("anonymous\ntransport bolt {\npath\n}", "too few arguments for `path`"),
            ("anonymous\ntransport bolt {\ncleanup_frequency 2\n}", "`2` is no frequency"),
            ("anonymous\ntransport bolt {\nfile x\n}", "unknown option `file` of `transport bolt`"),
            ("anonymous\ntransport_url bolt://a?size=x", "`x` is no size of a history"),
            ("anonymous\ntransport_url bolt://a?b=c", "unknown parameter `b`"),
            ("anonymous\ntransport_url bolt://", "the URL names no file"),
            ("anonymous\ntransport_url mercure.db", "this is no URL of a transport"),
            ("anonymous\nheartbeat x", "`x` is not a duration"),
            (
                "anonymous\nsubscription",
                "unknown option `subscription` of `mercure`; did you mean `subscriptions`?",
            ),
        ] {
            let error = wrong(options);
            assert!(error.contains(message), "{options}: {error}");
        }
        assert!(errors("mercure x {\nanonymous\n}")[0].starts_with("too many arguments for `mercure`"));
    }
}
