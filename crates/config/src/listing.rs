//! What there is for a Caddyfile to ask for (`regent list-modules`).

use crate::directives::tls::dns;
use crate::{conditions, directives};

/// The names of all directives that do something, of all conditions, and of who sets records of DNS, as Caddy names modules,
/// in the order of the alphabet.
pub fn modules() -> Vec<String> {
    let directives = directives::working().map(|name| format!("http.handlers.{name}"));
    let conditions = conditions::KINDS.iter().map(|name| format!("http.matchers.{name}"));
    let providers = dns::names().map(|name| format!("dns.providers.{name}"));
    let mut modules: Vec<_> = directives.chain(conditions).chain(providers).collect();
    modules.sort_unstable();
    modules
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directives::testing::{file_errors, load};
    use std::collections::BTreeMap;

    /// The least that can be said with each.
    const DIRECTIVES: &[(&str, &str)] = &[
        ("abort", "abort"),
        ("basic_auth", "basic_auth {\nadmin $2a$14$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG\n}"),
        ("basicauth", "basicauth {\nadmin $2a$14$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG\n}"),
        ("bind", "bind 127.0.0.1"),
        ("cache", "cache"),
        ("copy_response", "reverse_proxy a {\nhandle_response {\ncopy_response\n}\n}"),
        (
            "copy_response_headers",
            "reverse_proxy a {\nhandle_response {\ncopy_response_headers {\ninclude X\n}\n}\n}",
        ),
        ("deadline", "deadline 1s"),
        ("encode", "encode"),
        ("error", "error 404"),
        ("file_server", "file_server"),
        ("forward_auth", "forward_auth a {\nuri /\n}"),
        ("handle", "handle {\n}"),
        ("handle_errors", "handle_errors {\n}"),
        ("handle_path", "handle_path /a/* {\n}"),
        ("header", "header X y"),
        ("intercept", "intercept {\nhandle_response {\nrespond a\n}\n}"),
        ("invoke", "invoke named"),
        ("lane", "lane off"),
        ("log", "log"),
        ("log_append", "log_append a b"),
        ("log_level", "log_level WARN"),
        ("log_name", "log_name a"),
        ("log_skip", "log_skip"),
        ("map", "map {path} {a} {\ndefault b\n}"),
        ("mercure", "mercure {\nsubscriber_jwt a\n}"),
        ("method", "method GET"),
        ("metrics", "metrics"),
        ("native", "native /proc/self/exe"),
        ("php", "php"),
        ("php_fastcgi", "php_fastcgi a:9000"),
        ("php_server", "php_server"),
        ("rate_limit", "rate_limit {\nzone a {\nevents 1\nwindow 1s\n}\n}"),
        ("redir", "redir * /a"),
        ("request_body", "request_body {\nmax_size 1MB\n}"),
        ("request_header", "request_header X y"),
        ("respond", "respond a"),
        ("retry", "retry"),
        ("reverse_proxy", "reverse_proxy a"),
        ("rewrite", "rewrite /a"),
        ("root", "root a"),
        ("route", "route {\n}"),
        ("run_departed", "run_departed"),
        ("server_timing", "server_timing"),
        ("skip_log", "skip_log"),
        ("templates", "templates"),
        ("timeouts", "timeouts {\nread_timeout 1s\n}"),
        ("tls", "tls internal"),
        ("tracing", "tracing"),
        ("try_files", "try_files a"),
        ("uri", "uri strip_prefix /a"),
        ("vars", "vars a b"),
    ];

    const CONDITIONS: &[(&str, &str)] = &[
        ("client_ip", "client_ip ::1"),
        ("expression", "expression true"),
        ("file", "file a"),
        ("header", "header X y"),
        ("header_regexp", "header_regexp X y"),
        ("host", "host a"),
        ("method", "method GET"),
        ("not", "not path /a"),
        ("path", "path /a"),
        ("path_regexp", "path_regexp a"),
        ("protocol", "protocol https"),
        ("query", "query a=b"),
        ("remote_ip", "remote_ip ::1"),
        ("vars", "vars a b"),
        ("vars_regexp", "vars_regexp a b"),
    ];

    fn site(directives: &str) -> String {
        format!("&(named) {{\nrespond a\n}}\nhttps://localhost {{\n{directives}\n}}")
    }

    /// Names and what is to be written for them.
    fn samples() -> BTreeMap<String, String> {
        let directives = DIRECTIVES.iter().map(|(name, text)| (format!("http.handlers.{name}"), site(text)));
        let conditions = CONDITIONS
            .iter()
            .map(|(name, text)| (format!("http.matchers.{name}"), site(&format!("@a {text}\nrespond @a b"))));
        directives.chain(conditions).collect()
    }

    #[test]
    fn what_is_listed_is_accepted() {
        let samples = samples();
        // Those have their samples where it is seen, too, that they can be used: in crates/connections.
        let listed = modules().into_iter().filter(|name| !name.starts_with("dns.providers."));
        assert!(listed.eq(samples.keys().cloned()));
        for (name, text) in samples {
            load(&text).unwrap_or_else(|errors| panic!("{name}: {errors}"));
        }
    }

    #[test]
    fn what_is_not_built_is_not_listed() {
        for name in ["acme_server", "fs", "vulcain"] {
            assert!(directives::find(name).is_some());
            assert!(!modules().contains(&format!("http.handlers.{name}")), "{name}");
        }
        assert!(file_errors(":80 {\n@a url_pattern /a\n}")[0].contains("not built yet"));
    }
}
