//! What to do instead of what Regent does not have.

/// What is written, and what to do.
const ADVICE: &[(&str, &str)] = &[
    ("acme_dns", DNS),
    ("acme_server", "Regent is no CA for other machines; run one beside it"),
    ("basic_auth argon2id", HASHES),
    ("basic_auth scrypt", HASHES),
    ("browse TEMPLATE", "leave the template out, and the page is Regent's own"),
    ("cert_lifetime", "leave it out; `cert_issuer internal` has a `lifetime`"),
    ("dns", DNS),
    ("ech", "leave it out; names of sites can be read from handshakes then"),
    ("events", "leave it out; metrics and the log tell of what happens"),
    ("file_server fs", FILES),
    ("filesystem", FILES),
    ("format formatted", FORMAT),
    ("format single_field", FORMAT),
    ("format transform", FORMAT),
    ("fs", FILES),
    (
        "output net unixgram/…",
        "write `unix/PATH`, a stream; or write to stderr, and have a collector send it on",
    ),
    ("preferred_chains", "leave it out; the chain that the CA prefers is used"),
    ("reverse_proxy verbose_logs", "leave it out; `debug` shows more"),
    ("tls_resolvers", "leave it out; the system's resolver is asked"),
];

const DNS: &str = "certificates by DNS are not ordered; leave it out where port 80 or 443 can be reached, or have another \
                   client order them and name the files in `tls CERT KEY`";
const FILES: &str = "leave it out, and mount what is to be served";
const FORMAT: &str = "write `format json`, `console`, `filter` or `append`";
const HASHES: &str = "make bcrypt hashes with `regent hash-password`";

/// What to do instead; `None`: nothing comes near it.
pub(crate) fn instead_of(what: &str) -> Option<&'static str> {
    ADVICE.iter().find(|(known, _)| *known == what).map(|(_, advice)| *advice)
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
        ] {
            assert!(found.iter().any(|message| message.contains(advice)), "{found:?}");
        }
    }

    #[test]
    fn nothing_is_there_twice() {
        assert!(ADVICE.is_sorted_by_key(|(what, _)| *what), "in order, each once");
        assert!(ADVICE.windows(2).all(|pair| pair[0].0 != pair[1].0));
    }
}
