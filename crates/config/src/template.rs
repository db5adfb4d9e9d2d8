//! Texts with placeholders.
//!
//! `{name}` is a placeholder if it is one of Caddy's shorthands or begins with one of its name spaces; anything else
//! between braces is just text, so that JSON bodies need no escapes. `\{` and `\}` are braces in any case.
//!
//! Shorthands are those of Caddy's httpcaddyfile/shorthands.go.

use crate::file_texts::content_within;
use crate::model::{Part, Template};
use regent_caddyfile::Imports;

/// What a placeholder begins with that stands for what a file has, as secrets of containers are.
pub(crate) const FILE: &str = "file./";
/// The network that a client is in, with so many bits of IPv4 and, behind a comma, of IPv6.
const NETWORK: &str = "http.request.remote.host/";

/// Shorthands that are one word.
const WORDS: &[(&str, &str)] = &[
    ("client_ip", "vars.client_ip"),
    ("dir", "http.request.uri.path.dir"),
    ("file", "http.request.uri.path.file"),
    ("host", "http.request.host"),
    ("hostport", "http.request.hostport"),
    ("method", "http.request.method"),
    ("orig_dir", "http.request.orig_uri.path.dir"),
    ("orig_file", "http.request.orig_uri.path.file"),
    ("orig_method", "http.request.orig_method"),
    ("orig_path", "http.request.orig_uri.path"),
    ("orig_query", "http.request.orig_uri.query"),
    ("orig_?query", "http.request.orig_uri.prefixed_query"),
    ("orig_uri", "http.request.orig_uri"),
    ("path", "http.request.uri.path"),
    ("%path", "http.request.uri.path_escaped"),
    ("port", "http.request.port"),
    ("query", "http.request.uri.query"),
    ("?query", "http.request.uri.prefixed_query"),
    ("%query", "http.request.uri.query_escaped"),
    ("remote", "http.request.remote"),
    ("remote_host", "http.request.remote.host"),
    ("remote_port", "http.request.remote.port"),
    ("scheme", "http.request.scheme"),
    ("tls_cipher", "http.request.tls.cipher_suite"),
    ("tls_client_certificate_der_base64", "http.request.tls.client.certificate_der_base64"),
    ("tls_client_certificate_pem", "http.request.tls.client.certificate_pem"),
    ("tls_client_fingerprint", "http.request.tls.client.fingerprint"),
    ("tls_client_issuer", "http.request.tls.client.issuer"),
    ("tls_client_serial", "http.request.tls.client.serial"),
    ("tls_client_subject", "http.request.tls.client.subject"),
    ("tls_version", "http.request.tls.version"),
    ("upstream_hostport", "http.reverse_proxy.upstream.hostport"),
    ("uri", "http.request.uri"),
    ("%uri", "http.request.uri_escaped"),
    ("uuid", "http.request.uuid"),
];

/// Shorthands that a name of one's own follows. The long forms of Caddy that have a shorter one here come after it.
const PREFIXES: &[(&str, &str)] = &[
    ("cookie.", "http.request.cookie."),
    ("err.", "http.error."),
    ("file.", "http.request.uri.path.file."),
    ("file_match.", "http.matchers.file."),
    ("header.", "http.request.header."),
    ("http.regexp.", "re."),
    ("http.request.client_ip", "vars.client_ip"),
    ("http.vars.", "vars."),
    ("labels.", "http.request.host.labels."),
    ("path.", "http.request.uri.path."),
    ("query.", "http.request.uri.query."),
    ("re.", "re."),
    ("resp.", "http.intercept."),
    ("rp.", "http.reverse_proxy."),
    ("vars.", "vars."),
    ("env.", "env."),
    ("http.", "http."),
    ("system.", "system."),
    ("time.", "time."),
];

/// Placeholders of Caddy (modules/caddyhttp/replacer.go, log_append, handle_errors) that Regent does not fill in. In
/// braces they would be empty or text, and nobody would notice.
const UNBUILT: &[&str] = &[
    "http.error.trace",
    "http.request.body",
    "http.request.body_base64",
    "http.request.orig_uri.path.dir_escaped",
    "http.request.orig_uri.path.file_escaped",
    "http.request.uri.path.dir_escaped",
    "http.request.uri.path.file_escaped",
];

/// The same for what begins like this.
const UNBUILT_SPACES: &[&str] = &["http.auth.", "http.intercept.", "http.response.", "http.reverse_proxy."];

/// Of those, what is filled in.
const BUILT: &[&str] = &[
    "http.auth.user.id",
    // In `health_headers` alone; empty elsewhere, as in Caddy.
    "http.reverse_proxy.active.target_upstream",
    "http.reverse_proxy.retries",
    "http.reverse_proxy.status_code",
    "http.reverse_proxy.status_text",
    "http.reverse_proxy.upstream.address",
    "http.reverse_proxy.upstream.host",
    "http.reverse_proxy.upstream.hostport",
    "http.reverse_proxy.upstream.latency",
    "http.reverse_proxy.upstream.latency_ms",
    "http.reverse_proxy.upstream.port",
];
const BUILT_SPACE: &str = "http.reverse_proxy.header.";

impl Template {
    /// A variable by its name alone, or a text with placeholders.
    pub(crate) fn variable(text: &str) -> Self {
        match text.contains('{') {
            true => Self::parse(text),
            false => Self(vec![Part::Placeholder(format!("vars.{text}"))]),
        }
    }

    /// Cuts a text into its parts.
    pub(crate) fn parse(text: &str) -> Self {
        Self::parse_by(text, placeholder)
    }

    /// The same with placeholders of another kind. `placeholder`: the name of one that the text begins with, and how long it is
    /// with its braces.
    pub(crate) fn parse_by(text: &str, placeholder: impl Fn(&str) -> Option<(String, usize)>) -> Self {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['\\', '{']) {
            literal.push_str(&rest[..at]);
            rest = &rest[at..];
            if let Some(brace) = escaped_brace(rest) {
                literal.push(brace);
                rest = &rest[2..];
            } else if let Some((name, length)) = placeholder(rest) {
                if !literal.is_empty() {
                    parts.push(Part::Text(std::mem::take(&mut literal)));
                }
                parts.push(Part::Placeholder(name));
                rest = &rest[length..];
            } else {
                literal.push_str(&rest[..1]);
                rest = &rest[1..];
            }
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(Part::Text(literal));
        }
        Self(parts)
    }
}

/// The text with the environment's values put in; `None` if it has other placeholders.
pub(crate) fn fixed(
    template: &Template,
    variable: &dyn Fn(&str) -> String,
    files: &Imports,
) -> Option<String> {
    let parts = template.0.iter().map(|part| match part {
        Part::Text(text) => Some(text.clone()),
        Part::Placeholder(name) => match name.strip_prefix("env.") {
            Some(name) => Some(variable(name)),
            None => of_system(name).or_else(|| content_within(name, files)?.ok()),
        },
    });
    parts.collect()
}

/// What a placeholder `system.…` says of the machine.
pub fn of_system(name: &str) -> Option<String> {
    match name {
        "system.hostname" => {
            Some(std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?.trim().to_owned())
        }
        "system.slash" => Some("/".into()),
        "system.os" => Some(std::env::consts::OS.into()),
        "system.arch" => Some(std::env::consts::ARCH.into()),
        "system.wd" => Some(std::env::current_dir().ok()?.to_string_lossy().into_owned()),
        _ => None,
    }
}

/// A text as it is written where placeholders could be: braces that would begin one have a backslash.
pub fn escaped(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        let is_brace = matches!(c, '{' | '}');
        if is_brace && (text[..at].ends_with('\\') || placeholder(&text[at..]).is_some()) {
            written.push('\\');
        }
        written.push(c);
    }
    written
}

/// The placeholders of a text that Caddy fills in and Regent does not, as written.
pub(crate) fn unbuilt(text: &str) -> impl Iterator<Item = &str> {
    let starts = text.match_indices('{').map(|(at, _)| at).filter(|at| !text[..*at].ends_with('\\'));
    let written = starts.filter_map(|at| Some(&text[at..=at + text[at..].find('}')?]));
    written.filter(|written| {
        let name = &written[1..written.len() - 1];
        let long = long_name(name);
        let name = long.as_deref().unwrap_or(name);
        let is_built = BUILT.contains(&name) || name.starts_with(BUILT_SPACE);
        !is_built && (UNBUILT.contains(&name) || UNBUILT_SPACES.iter().any(|space| name.starts_with(space)))
    })
}

/// What placeholders of the response that is on its way out begin with, as written.
pub(crate) const OF_THE_RESPONSE: &str = "{http.response.header.";

/// Whether a placeholder, as written, tells of the response that `intercept` has before it.
pub(crate) fn is_of_response(written: &str) -> bool {
    let name = written.trim_matches(['{', '}']);
    ["resp.", "http.intercept."].iter().any(|space| name.starts_with(space))
}

/// The first placeholder of a text that only Caddyfiles have, and its long name in Caddy.
pub(crate) fn shorthand(text: &str) -> Option<(&str, String)> {
    let starts = text.match_indices('{').map(|(at, _)| at).filter(|at| !text[..*at].ends_with('\\'));
    let mut names = starts.filter_map(|at| Some(&text[at + 1..at + text[at..].find('}')?]));
    names.find_map(|name| {
        let is_short =
            !["http.", "env.", "system.", "time.", FILE].iter().any(|space| name.starts_with(space));
        let long = long_name(name).filter(|_| is_short)?;
        // What is shorter here than in Caddy.
        let long = match long.strip_prefix("re.") {
            Some(group) => format!("http.regexp.{group}"),
            None if long.starts_with("vars.") => format!("http.{long}"),
            None => long,
        };
        Some((name, long))
    })
}

/// Whether this, between braces, is a placeholder.
pub(crate) fn is_placeholder(name: &str) -> bool {
    long_name(name).is_some()
}

fn escaped_brace(text: &str) -> Option<char> {
    text.strip_prefix('\\')?.chars().next().filter(|c| matches!(c, '{' | '}'))
}

/// The long name of the placeholder that `text` begins with, and the length that it has there.
fn placeholder(text: &str) -> Option<(String, usize)> {
    let name = &text.strip_prefix('{')?[..text.find('}')?.checked_sub(1)?];
    Some((long_name(name)?, name.len() + 2))
}

fn long_name(name: &str) -> Option<String> {
    if let Some((_, long)) = WORDS.iter().find(|(word, _)| *word == name) {
        return Some((*long).to_owned());
    }
    let valid = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    if let Some(path) = name.strip_prefix(FILE) {
        return path.chars().all(|c| valid(c) || c == '/').then(|| name.to_owned());
    }
    if let Some(bits) = name.strip_prefix(NETWORK) {
        return bits.chars().all(|c| c.is_ascii_digit() || c == ',').then(|| name.to_owned());
    }
    let (short, long) = PREFIXES.iter().find(|(short, _)| name.starts_with(short))?;
    let rest = &name[short.len()..];
    name.chars().all(valid).then(|| format!("{long}{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Placeholders in angle brackets.
    fn show(text: &str) -> String {
        let show = |part: Part| match part {
            Part::Text(text) => text,
            Part::Placeholder(name) => format!("<{name}>"),
        };
        Template::parse(text).0.into_iter().map(show).collect()
    }

    #[test]
    fn shorthands_have_a_long_name() {
        for (text, expected) in [
            ("a {path}", Some(("path", "http.request.uri.path"))),
            ("{client_ip}", Some(("client_ip", "http.vars.client_ip"))),
            ("{re.x.1}", Some(("re.x.1", "http.regexp.x.1"))),
            ("{header.X-Y}", Some(("header.X-Y", "http.request.header.X-Y"))),
            ("{http.vars.root} {env.A} {time.now} {file./etc/x} \\{path} {x} {", None),
        ] {
            let expected = expected.map(|(name, long)| (name, long.to_owned()));
            assert_eq!(shorthand(text), expected, "{text}");
        }
    }

    #[test]
    fn shorthands_become_long() {
        let cases = [
            ("{path}/{file.base}x", "<http.request.uri.path>/<http.request.uri.path.file.base>x"),
            (
                "{header.X-A}{query.q}{path.0}",
                "<http.request.header.X-A><http.request.uri.query.q><http.request.uri.path.0>",
            ),
            (
                "{re.name.1}{http.regexp.name.1}{vars.x}{http.vars.x}",
                "<re.name.1><re.name.1><vars.x><vars.x>",
            ),
            (
                "{file_match.relative}{err.status_code}",
                "<http.matchers.file.relative><http.error.status_code>",
            ),
            (
                "{env.HOME}{http.request.uri.query}{?query}",
                "<env.HOME><http.request.uri.query><http.request.uri.prefixed_query>",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(show(text), expected, "{text}");
        }
    }

    #[test]
    fn other_braces_are_text() {
        for text in
            ["{", "}", "{}", "{\"path\": {\"a\": 1}}", "{path", "{nonsense}", "{env.a b}", "\\", "a\\b{"]
        {
            assert_eq!(show(text), text);
        }
        assert_eq!(show("\\{path\\} {{path}}"), "{path} {<http.request.uri.path>}");
        assert_eq!(Template::parse(""), Template::text(""));
        assert_eq!(Template::parse("é{é}"), Template::text("é{é}"));
    }

    #[test]
    fn shorthands_of_caddy_were_text() {
        let cases = [
            ("{orig_dir}{orig_file}", "<http.request.orig_uri.path.dir><http.request.orig_uri.path.file>"),
            (
                "{orig_query}{orig_?query}",
                "<http.request.orig_uri.query><http.request.orig_uri.prefixed_query>",
            ),
            ("{%uri}{%path}", "<http.request.uri_escaped><http.request.uri.path_escaped>"),
            (
                "{%query}{tls_client_subject}",
                "<http.request.uri.query_escaped><http.request.tls.client.subject>",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(show(text), expected, "{text}");
        }
    }

    #[test]
    fn what_only_caddy_fills_in_is_found() {
        let found = |text| unbuilt(text).collect::<Vec<_>>();
        for text in [
            "{resp.status_code}",
            "{rp.upstream.fails}",
            "{http.reverse_proxy.duration}",
            "{http.auth.user.name}",
            "{err.trace}",
            "{http.request.body_base64}",
            "{http.request.body}",
            "{http.response.header.X-A}",
        ] {
            assert_eq!(found(text), [text]);
        }
        assert_eq!(found("a {resp.header.A} {path} {err.trace}"), ["{resp.header.A}", "{err.trace}"]);
        for text in [
            "{\"resp.a\": {\"rp.b\": \"{path}\"}}",
            "\\{resp.status_code\\}",
            "{nonsense}",
            "{resp",
            "{tls_version}{tls_client_subject}{err.id}{http.error}{http.request.duration_ms}",
            "{rp.header.X}{upstream_hostport}{http.reverse_proxy.upstream.address}",
            "{vars.a}{err.status_code}{file.base}{http.error.message}",
        ] {
            assert_eq!(found(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn files_may_have_texts() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secret_1.txt");
        let text = format!("a {{file.{}}} b", path.display());
        assert_eq!(show(&text), format!("a <file.{}> b", path.display()));
        assert_eq!(show("{file./a b}{file.base}"), "{file./a b}<http.request.uri.path.file.base>");
        let content = || fixed(&Template::parse(&text), &|_| String::new(), &Imports::Anywhere);
        assert_eq!(content(), None);
        std::fs::write(&path, "x y\r\n").unwrap();
        assert_eq!(content().as_deref(), Some("a x y b"));
        std::fs::write(&path, "x".repeat(1 << 20)).unwrap();
        assert_eq!(content().unwrap().len(), (1 << 20) + 4);
        std::fs::write(&path, "x".repeat((1 << 20) + 1)).unwrap();
        assert_eq!(content(), None);
    }

    #[test]
    fn an_escaped_text_has_no_placeholders() {
        for text in
            ["{path}", "\\{path}", "\\{a\\}", "{\"path\": {\"a\": 1}}", "{{path}}", "\\", "{", "x{re.a.1}y"]
        {
            assert_eq!(Template::parse(&escaped(text)), Template::text(text), "{text}");
        }
        assert_eq!(escaped("{\"path\": {\"a\": 1}}"), "{\"path\": {\"a\": 1}}", "no more than is needed");
    }

    #[test]
    fn fixed_texts_know_the_environment_only() {
        let lookup = |name: &str| format!("<{name}>");
        assert_eq!(
            fixed(&Template::parse("a{env.X}b"), &lookup, &Imports::Anywhere).as_deref(),
            Some("a<X>b")
        );
        assert_eq!(fixed(&Template::parse("{path}"), &lookup, &Imports::Anywhere), None);
        let hostname = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        assert_eq!(
            fixed(&Template::parse("{system.hostname}"), &lookup, &Imports::Anywhere).as_deref(),
            Some(hostname.trim())
        );
    }
}
