//! `hot_reload` of `php_server` and `php`: pages of browsers are told of changed files, over the site's Mercure hub.

use crate::call::Call;
use crate::context::Context;
use crate::model::{HotReload, Site};
use crate::problems::{error, unknown_option};
use regent_caddyfile::{Error, Token};

/// What is watched if nothing else is said, as in FrankenPHP (caddy/hotreload.go).
const USUALLY_WATCHED: &str =
    "./**/*.{css,env,gif,htm,html,jpg,jpeg,js,mjs,php,png,svg,twig,webp,xml,yaml,yml}";
/// Where hubs are.
const HUB: &str = "/.well-known/mercure?topic=";

/// The variable of scripts that says where pages subscribe.
pub(crate) const VARIABLE: &str = "FRANKENPHP_HOT_RELOAD";

/// One whose hub is not known yet, and where it was written.
pub(crate) struct Pending {
    token: Token,
    topic: String,
    watch: Vec<String>,
}

/// Returns the URL that pages subscribe at.
pub(crate) fn parse(cx: &mut Context<'_>, call: &Call<'_>) -> Result<String, Error> {
    let (mut topic, mut watch) = (None, Vec::new());
    add_patterns(cx, call.args, &mut watch);
    for option in call.options() {
        let result = match option.name() {
            "topic" => option.one("topic TOPIC").and_then(|token| {
                let text = cx.fixed_text(token)?;
                if text.is_empty() {
                    return Err(error(token, "a topic must not be empty"));
                }
                topic = Some(text);
                Ok(())
            }),
            "watch" => option.some("watch PATTERN…").map(|tokens| add_patterns(cx, tokens, &mut watch)),
            _ => Err(unknown_option(option.name, "hot_reload", &["topic", "watch"], &[])),
        };
        cx.check(result);
    }
    if watch.is_empty() {
        watch.push(USUALLY_WATCHED.to_owned());
    }
    let topic = topic.unwrap_or_else(|| usual_topic(&watch));
    let url = format!("{HUB}{}", query_escaped(&topic));
    cx.hot_reloads_of_site.push(Pending { token: call.name.clone(), topic, watch });
    Ok(url)
}

/// Relative to the working directory, as those of workers are.
fn add_patterns(cx: &mut Context<'_>, tokens: &[Token], watch: &mut Vec<String>) {
    for token in tokens {
        let text = cx.fixed_text(token);
        let Some(text) = cx.check(text) else { continue };
        let pattern = regent_watch::Pattern::new(&text, &cx.environment.current_dir);
        cx.check(pattern.map(|_| watch.push(text)).map_err(|cause| error(token, cause.to_string())));
    }
}

/// Gives those of a site its hub.
pub(crate) fn settle(cx: &mut Context<'_>, site: &Site) {
    let hub = site.hub(&cx.proxies);
    for Pending { token, topic, watch } in std::mem::take(&mut cx.hot_reloads_of_site) {
        let Some(hub) = hub else {
            let message =
                "`hot_reload` needs a hub of this site: add `mercure { anonymous }` beside `php_server`";
            cx.errors.push(error(&token, message));
            continue;
        };
        match cx.hot_reloads.iter_mut().find(|known| known.hub == hub && known.topic == topic) {
            Some(known) => known.watch.extend(watch),
            None => cx.hot_reloads.push(HotReload { hub, topic, watch }),
        }
    }
}

/// The same after a restart, so that pages that are open go on.
fn usual_topic(watch: &[String]) -> String {
    // FNV-1a, as FrankenPHP's, but of the patterns alone.
    let bytes = watch.iter().flat_map(|pattern| pattern.bytes().chain([0]));
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("https://frankenphp.dev/hot-reload/{hash:016x}")
}

/// As a value within a query.
fn query_escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                escaped.push(char::from(byte));
            }
            b' ' => escaped.push('+'),
            _ => escaped += &format!("%{byte:02X}"),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{config, errors, file_errors};
    use crate::model::{Config, Handler, HotReload, HubId, Template};

    const HUB: &str = "mercure {\nanonymous\n}\n";

    fn url(config: &Config) -> Option<String> {
        let php = config.servers[0].sites[0].routes.iter().find_map(|route| match &route.handler {
            Handler::PhpServer(server) => Some(&server.php),
            Handler::Php(php) => Some(php),
            _ => None,
        });
        let env = php.unwrap().delivery.env.iter().filter(|(name, _)| name == super::VARIABLE);
        let values: Vec<&Template> = env.map(|(_, value)| value).collect();
        assert!(values.len() <= 1, "{values:?}");
        values.first().and_then(|value| value.as_text()).map(str::to_owned)
    }

    #[test]
    fn topic_and_patterns_are_as_written() {
        let text = format!(
            ":80 {{\n{HUB}php_server {{\nenv FRANKENPHP_HOT_RELOAD x\nhot_reload a/**/*{{.php,.js}} {{\ntopic \"a b/é\"\n\
             watch templates/ css\n}}\nenv FRANKENPHP_HOT_RELOAD y\n}}\n}}"
        );
        let config = config(&text);
        let watch = ["a/**/*{.php,.js}", "templates/", "css"].map(str::to_owned).to_vec();
        let expected = HotReload { hub: HubId(0), topic: "a b/é".into(), watch };
        assert_eq!(config.global.hot_reloads, [expected]);
        assert_eq!(url(&config).as_deref(), Some("/.well-known/mercure?topic=a+b%2F%C3%A9"));
    }

    #[test]
    fn without_any_the_topic_is_the_same_each_time() {
        let text = format!(
            ":80 {{\nphp_server {{\nhot_reload\n}}\n{HUB}}}\n:81 {{\nhandle /x {{\n{HUB}php {{\nhot_reload\n}}\n}}\n}}"
        );
        let found = config(&text);
        let [one] = &found.global.hot_reloads[..] else { panic!("{:?}", found.global.hot_reloads) };
        assert!(one.topic.starts_with("https://frankenphp.dev/hot-reload/") && one.topic.len() == 50);
        assert_eq!(one.watch[0], super::USUALLY_WATCHED);
        assert_eq!(config(&text).global.hot_reloads, found.global.hot_reloads);
        assert!(
            url(&found).unwrap().starts_with("/.well-known/mercure?topic=https%3A%2F%2Ffrankenphp.dev%2F")
        );
    }

    #[test]
    fn a_site_without_a_hub_is_told_what_to_add() {
        let found = file_errors(&format!(":80 {{\n{HUB}}}\n:81 {{\nphp_server {{\nhot_reload\n}}\n}}"));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("add `mercure { anonymous }`"), "{found:?}");
    }

    #[test]
    fn mistakes() {
        let of = |option: &str| errors(&format!("{HUB}php_server {{\n{option}\n}}"));
        for option in [
            "hot_reload a[",
            "hot_reload {\ntopic\n}",
            "hot_reload {\ntopic \"\"\n}",
            "hot_reload {\nwatch\n}",
            "hot_reload {\npoll 1s\n}",
            "hot_reload {path}",
        ] {
            assert_eq!(of(option).len(), 1, "{option}: {:?}", of(option));
        }
    }
}
