//! What to do instead of what Regent does not have.

/// What is written, and what to do.
const ADVICE: &[(&str, &str)] = &[
    ("a CA beside `local`", "leave it out; certificates of sites are those of the CA `local`"),
    ("acme_server", "Regent is no CA for other machines; run one beside it"),
    ("basic_auth scrypt", HASHES),
    ("bind udp/…", "write the address alone; where HTTP/3 is spoken, the same port of UDP is taken too"),
    ("ca intermediate", "leave it out; intermediates are made, and signed by `root { cert FILE; key FILE }`"),
    ("ca maintenance_interval", "leave it out; `renew_interval` says how often certificates are looked at"),
    ("ca renewal_window_ratio", RENEWAL),
    ("cert_lifetime", "leave it out; `cert_issuer internal` has a `lifetime`"),
    ("ech", "leave it out; names of sites can be read from handshakes then"),
    ("events", "leave it out; metrics and the log tell of what happens"),
    ("file_server fs", FILES),
    ("filesystem", FILES),
    ("format single_field", FORMAT),
    ("fs", FILES),
    ("issuer acme timeout", "leave it out; an order has time enough"),
    ("issuer zerossl validity_days", "leave it out; certificates are valid for 90 days"),
    ("log core", "leave it out; `output` says where lines go"),
    ("mercure", "write `mercure` in the site block, or as a directive"),
    ("network_proxy url https://…", FORWARD_PROXY),
    ("network_proxy url socks5://…", FORWARD_PROXY),
    ("network_proxy url socks5h://…", FORWARD_PROXY),
    ("output file backup_time_format", "leave it out; names of old files have the time to the millisecond"),
    (
        "output net unixgram/…",
        "write `unix/PATH`, a stream; or write to stderr, and have a collector send it on",
    ),
    ("preferred_chains", "leave it out; the chain that the CA prefers is used"),
    ("renewal_window_ratio", RENEWAL),
    ("reverse_proxy proxy_status_name", "leave it out; responses have no `Proxy-Status`"),
    ("servers packet_conn_wrappers", "leave it out; UDP is read as it comes"),
    (
        "tls get_certificate",
        "write `tls CERT KEY` with files that are kept fresh; they are loaded again when they change",
    ),
    ("tls insecure_secrets_log", "leave it out; secrets of connections are not written down"),
    ("tls renewal_window_ratio", RENEWAL),
    ("tls reuse_private_keys", "leave it out; a new certificate has a new key"),
    ("tls_automate_names", "write a site block for each name, which may be empty: `NAME { }`"),
    ("url_pattern", "write `path` or `path_regexp`"),
    ("versions 3", "write `versions 2`; HTTP/3 is for clients"),
];

const FILES: &str = "leave it out, and mount what is to be served";
const FORMAT: &str = "write `format json`, `console`, `journald`, `filter` or `append`";
const FORWARD_PROXY: &str =
    "write the `http://` URL of a proxy, or name a relay beside Regent that goes through this one";
const HASHES: &str = "make bcrypt hashes with `regent hash-password`";
const RENEWAL: &str =
    "leave it out; certificates are renewed when the CA says so, or a third of their time is left";

/// What to do instead; `None`: nothing comes near it.
pub(crate) fn instead_of(what: &str) -> Option<&'static str> {
    ADVICE.iter().find(|(known, _)| *known == what).map(|(_, advice)| *advice)
}

/// What Caddy as it is published cannot do either: it knows the words, and others have written what they ask for.
const OF_OTHERS: &[&str] =
    &["events", "file_server fs", "filesystem", "fs", "log core", "servers packet_conn_wrappers"];

/// Directives and options that modules of others have, which Caddyfiles of PHP projects use.
const DIRECTIVES_OF_OTHERS: &[&str] = &[
    "authenticate",
    "authorize",
    "coraza_waf",
    "crowdsec",
    "exec",
    "geoip",
    "maxmind_geolocation",
    "replace",
    "replace_response",
    "security",
    "supervisor",
    "teapot",
    "webdav",
    "websocket",
];

/// Options of the `cache` that others have made for Caddy (Souin); Regent's own has the same name.
const OPTIONS_OF_SOUIN: &[&str] = &[
    "allowed_additional_status_codes",
    "allowed_http_verbs",
    "api",
    "badger",
    "cache_keys",
    "cache_name",
    "cdn",
    "default_cache_control",
    "disable_coalescing",
    "etcd",
    "headers",
    "key",
    "log_level",
    "max_cacheable_body_bytes",
    "mode",
    "nats",
    "nuts",
    "olric",
    "otter",
    "redis",
    "regex",
    "simplefs",
    "stale",
    "storers",
    "surrogate_key_disabled",
    "timeout",
    "ttl",
];

/// Whether a directive or a global option is a module's of somebody else.
pub(crate) fn is_of_others(name: &str) -> bool {
    DIRECTIVES_OF_OTHERS.contains(&name)
}

pub(crate) fn is_of_souin(option: &str) -> bool {
    OPTIONS_OF_SOUIN.contains(&option)
}

/// Whether it needs a module in Caddy.
pub(crate) fn needs_module(what: &str) -> bool {
    OF_OTHERS.contains(&what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directives::testing::{errors, file_errors};

    #[test]
    fn what_is_not_there_is_said_with_what_to_do() {
        for (found, advice) in [
            (errors("acme_server"), "run one beside it"),
            (errors("log {\noutput net unixgram//x\n}"), "have a collector send it on"),
            (file_errors("{\nevents\n}\n:80 {\n}"), "metrics and the log tell"),
            (
                file_errors("{\nevents {\non started exec a\n}\n}\n:80 {\n}"),
                "needs a third party's module in Caddy too",
            ),
            (errors("fs a"), "needs a third party's module in Caddy too"),
            (errors("log {\ncore a\n}"), "needs a third party's module in Caddy too"),
        ] {
            assert!(found.iter().any(|message| message.contains(advice)), "{found:?}");
        }
    }

    #[test]
    fn nothing_is_there_twice() {
        assert!(ADVICE.is_sorted_by_key(|(what, _)| *what), "in order, each once");
        assert!(ADVICE.windows(2).all(|pair| pair[0].0 != pair[1].0));
        assert!(OF_OTHERS.iter().all(|what| instead_of(what).is_some()), "each with what to do");
    }
}
