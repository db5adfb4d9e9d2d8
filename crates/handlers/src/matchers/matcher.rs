//! Conditions on a request.

use crate::context::exchange::Exchange;
use crate::context::found::Captures;
use crate::error::BuildError;
use crate::matchers::expression::Expression;
use crate::matchers::path_pattern::PathPattern;
use crate::matchers::try_files::TryFiles;
use crate::paths::host;
use crate::templates::placeholder::query_pairs;
use crate::templates::text::Text;
use http::{HeaderName, Method, StatusCode, Version, header};
use regent_config::{self as config, Networks};
use regex::bytes::Regex;

/// A compiled condition.
pub(crate) enum Matcher {
    Path(Vec<PathPattern>),
    PathRegexp(NamedRegex),
    Host(Vec<Text>),
    Method(Vec<Method>),
    Header {
        name: HeaderName,
        test: HeaderTest,
    },
    HeaderRegexp {
        field: HeaderName,
        regex: NamedRegex,
    },
    /// By key; each key must have one of its values.
    Query(Vec<(String, Vec<Text>)>),
    RemoteIp(Networks),
    ClientIp(Networks),
    Protocol(Protocol),
    File(TryFiles),
    Not(Vec<Vec<Matcher>>),
    Vars(Vec<(Text, Vec<Text>)>),
    VarsRegexp {
        value: Text,
        regex: NamedRegex,
    },
    Expression(Expression),
    /// Ranges with both ends in them.
    ErrorStatus(Vec<(u16, u16)>),
}

pub(crate) enum HeaderTest {
    Present,
    Absent,
    Like(Text),
}

pub(crate) struct NamedRegex {
    name: Option<String>,
    regex: Regex,
}

pub(crate) enum Protocol {
    Http,
    Https,
    Version(Version),
    /// `http/2+`
    AtLeast(Version),
    Unknown,
}

/// Whether one of the sets fits; no set at all fits always. An error status ends the request (`try_files … =404`).
pub(crate) fn any_set(sets: &[Vec<Matcher>], exchange: &mut Exchange) -> Result<bool, StatusCode> {
    if sets.is_empty() {
        return Ok(true);
    }
    for set in sets {
        if all(set, exchange)? {
            return Ok(true);
        }
    }
    Ok(false)
}

pub(crate) fn compile_sets(sets: &[config::MatcherSet]) -> Result<Vec<Vec<Matcher>>, BuildError> {
    sets.iter().map(compile_set).collect()
}

pub(crate) fn compile_set(set: &config::MatcherSet) -> Result<Vec<Matcher>, BuildError> {
    set.iter().map(Matcher::compile).collect()
}

/// Whether all of them fit.
pub(crate) fn all(set: &[Matcher], exchange: &mut Exchange) -> Result<bool, StatusCode> {
    for matcher in set {
        if !matcher.matches(exchange)? {
            return Ok(false);
        }
    }
    Ok(true)
}

impl Matcher {
    fn compile(matcher: &config::Matcher) -> Result<Self, BuildError> {
        Ok(match matcher {
            config::Matcher::Path(patterns) => Self::Path(PathPattern::compile_all(patterns)?),
            config::Matcher::PathRegexp { name, pattern } => {
                Self::PathRegexp(NamedRegex::compile(name, pattern)?)
            }
            config::Matcher::Host(hosts) => Self::Host(Text::compile_all(hosts)),
            config::Matcher::Method(methods) => {
                // A name that is no token never comes in a request, so leaving it out changes nothing.
                Self::Method(methods.iter().filter_map(|name| name.parse().ok()).collect())
            }
            config::Matcher::Header { name, value, absent } => Self::Header {
                name: header_name(name)?,
                test: match value {
                    _ if *absent => HeaderTest::Absent,
                    None => HeaderTest::Present,
                    Some(value) => HeaderTest::Like(Text::compile(value)),
                },
            },
            config::Matcher::HeaderRegexp { name, field, pattern } => {
                Self::HeaderRegexp { field: header_name(field)?, regex: NamedRegex::compile(name, pattern)? }
            }
            config::Matcher::Query(pairs) => Self::Query(group_by_key(pairs)),
            config::Matcher::RemoteIp(ranges) => Self::RemoteIp(Networks::new(ranges)),
            config::Matcher::ClientIp(ranges) => Self::ClientIp(Networks::new(ranges)),
            config::Matcher::Protocol(name) => Self::Protocol(Protocol::parse(name)),
            config::Matcher::File(matcher) => Self::File(TryFiles::compile(matcher)?),
            config::Matcher::Not(sets) => Self::Not(compile_sets(sets)?),
            config::Matcher::Vars(vars) => {
                let compile =
                    |(value, wanted): &(_, Vec<_>)| (Text::compile(value), Text::compile_all(wanted));
                Self::Vars(vars.iter().map(compile).collect())
            }
            config::Matcher::VarsRegexp { name, value, pattern } => {
                Self::VarsRegexp { value: Text::compile(value), regex: NamedRegex::compile(name, pattern)? }
            }
            config::Matcher::Expression(expression) => Self::Expression(Expression::compile(expression)?),
            config::Matcher::ErrorStatus(ranges) => Self::ErrorStatus(ranges.clone()),
        })
    }

    fn matches(&self, exchange: &mut Exchange) -> Result<bool, StatusCode> {
        Ok(match self {
            Self::Path(patterns) => patterns.iter().any(|pattern| pattern.matches(exchange)),
            Self::PathRegexp(regex) => {
                let captures = regex.captures(exchange.path());
                keep_captures(captures, exchange)
            }
            Self::Host(hosts) => {
                hosts.iter().any(|text| host::matches(&text.render_str(exchange), &exchange.host))
            }
            Self::Method(methods) => methods.contains(&exchange.method),
            Self::Header { name, test } => header_fits(exchange, name, test),
            Self::HeaderRegexp { field, regex } => {
                let captures =
                    header_values(exchange, field).into_iter().find_map(|value| regex.captures(value));
                keep_captures(captures, exchange)
            }
            Self::Query(wanted) => query_fits(exchange, wanted),
            Self::RemoteIp(networks) => {
                exchange.connection.remote.is_some_and(|remote| networks.contain(remote.ip()))
            }
            Self::ClientIp(networks) => exchange.client_ip().is_some_and(|client| networks.contain(client)),
            Self::Protocol(protocol) => protocol.fits(exchange),
            Self::File(list) => match list.select(exchange)? {
                Some(found) => {
                    exchange.set_file_match(found.file);
                    true
                }
                None => false,
            },
            Self::Not(sets) => {
                for set in sets {
                    if all(set, exchange)? {
                        return Ok(false);
                    }
                }
                true
            }
            Self::Vars(vars) => vars.iter().any(|(value, wanted)| {
                let value = value.render(exchange);
                wanted.iter().any(|wanted| wanted.render(exchange) == value)
            }),
            Self::VarsRegexp { value, regex } => {
                let captures = regex.captures(&value.render(exchange));
                keep_captures(captures, exchange)
            }
            Self::Expression(expression) => expression.holds(exchange)?,
            Self::ErrorStatus(ranges) => exchange.failure().is_some_and(|failure| {
                let status = failure.status.as_u16();
                ranges.iter().any(|(least, most)| (*least..=*most).contains(&status))
            }),
        })
    }
}

impl NamedRegex {
    fn compile(name: &Option<String>, pattern: &str) -> Result<Self, BuildError> {
        let regex = Regex::new(pattern)
            .map_err(|source| BuildError::Regex { pattern: pattern.to_owned(), source })?;
        Ok(Self { name: name.clone().filter(|name| !name.is_empty()), regex })
    }

    fn captures(&self, text: &[u8]) -> Option<Captures> {
        let captures = self.regex.captures(text)?;
        let groups = self.regex.capture_names().zip(captures.iter()).map(|(name, group)| {
            (name.map(str::to_owned), group.map_or_else(Vec::new, |group| group.as_bytes().to_vec()))
        });
        Some(Captures { name: self.name.clone(), groups: groups.collect() })
    }
}

impl Protocol {
    fn parse(name: &str) -> Self {
        match name.to_ascii_lowercase().as_str() {
            "http" => Self::Http,
            "https" => Self::Https,
            "http/1.0" => Self::Version(Version::HTTP_10),
            "http/1.1" => Self::Version(Version::HTTP_11),
            "http/2" | "http/2.0" => Self::Version(Version::HTTP_2),
            "http/3" | "http/3.0" => Self::Version(Version::HTTP_3),
            "http/1.1+" => Self::AtLeast(Version::HTTP_11),
            "http/2+" => Self::AtLeast(Version::HTTP_2),
            "http/3+" => Self::AtLeast(Version::HTTP_3),
            _ => Self::Unknown,
        }
    }

    fn fits(&self, exchange: &Exchange) -> bool {
        match self {
            Self::Http => exchange.connection.tls.is_none(),
            Self::Https => exchange.connection.tls.is_some(),
            Self::Unknown => false,
            Self::Version(wanted) => *wanted == exchange.version,
            Self::AtLeast(wanted) => exchange.version >= *wanted,
        }
    }
}

fn header_name(name: &str) -> Result<HeaderName, BuildError> {
    HeaderName::try_from(name).map_err(|_| BuildError::HeaderName(name.to_owned()))
}

/// The first key, and with it the values of all pairs that have the same key.
fn group_by_key(pairs: &[(String, config::Template)]) -> Vec<(String, Vec<Text>)> {
    let mut groups: Vec<(String, Vec<Text>)> = Vec::new();
    for (key, value) in pairs {
        let value = Text::compile(value);
        match groups.iter_mut().find(|(known, _)| known == key) {
            Some((_, values)) => values.push(value),
            None => groups.push((key.clone(), vec![value])),
        }
    }
    groups
}

fn query_fits(exchange: &Exchange, wanted: &[(String, Vec<Text>)]) -> bool {
    let pairs: Vec<_> = query_pairs(&exchange.uri).collect();
    if wanted.iter().all(|(key, _)| key.is_empty()) {
        // `query ""`: there is none.
        return pairs.is_empty();
    }
    wanted.iter().all(|(key, values)| {
        values.iter().any(|value| {
            let value = value.render(exchange);
            pairs.iter().any(|(name, got)| name == key.as_bytes() && (*value == *b"*" || *got == *value))
        })
    })
}

fn keep_captures(captures: Option<Captures>, exchange: &mut Exchange) -> bool {
    let matched = captures.is_some();
    if let Some(captures) = captures {
        exchange.add_captures(captures);
    }
    matched
}

fn header_values<'a>(exchange: &'a Exchange, name: &HeaderName) -> Vec<&'a [u8]> {
    if name == header::HOST {
        let host = exchange.host_port();
        return if host.is_empty() { Vec::new() } else { vec![host] };
    }
    exchange.headers.get_all(name).iter().map(|value| value.as_bytes()).collect()
}

fn header_fits(exchange: &Exchange, name: &HeaderName, test: &HeaderTest) -> bool {
    let values = header_values(exchange, name);
    match test {
        HeaderTest::Present => !values.is_empty(),
        HeaderTest::Absent => values.is_empty(),
        HeaderTest::Like(text) => {
            let pattern = text.render(exchange);
            values.iter().any(|value| value_fits(value, &pattern))
        }
    }
}

/// `*` at the start or the end of the pattern stands for anything.
pub(crate) fn value_fits(value: &[u8], pattern: &[u8]) -> bool {
    match (pattern.strip_prefix(b"*"), pattern.strip_suffix(b"*")) {
        (Some([]), _) => true,
        (Some(rest), Some(_)) => {
            let part = &rest[..rest.len() - 1];
            part.is_empty() || value.windows(part.len()).any(|window| window == part)
        }
        (Some(end), None) => value.ends_with(end),
        (None, Some(start)) => value.starts_with(start),
        (None, None) => value == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::exchange::tests::{get, request};
    use config::{Matcher as M, Part, Template};

    fn fits(matcher: M, exchange: &mut Exchange) -> bool {
        any_set(&compile_sets(&[vec![matcher]]).unwrap(), exchange).unwrap()
    }

    #[test]
    fn path_groups_become_placeholders() {
        let mut exchange = get("/user/42/edit");
        let matcher = M::PathRegexp { name: Some("u".into()), pattern: r"^/user/(?P<id>\d+)/(\w+)".into() };
        assert!(fits(matcher, &mut exchange));
        let text = Text::compile(&Template(
            ["re.u.id", "re.u.2", "re.1", "re.u.0", "re.u.9", "re.x.1"]
                .iter()
                .flat_map(|name| [Part::Placeholder((*name).into()), Part::Text(",".into())])
                .collect(),
        ));
        assert_eq!(text.render_str(&exchange), "42,edit,42,/user/42/edit,,,");
    }

    #[test]
    fn headers() {
        let mut exchange = request("GET", "/", &[("x-a", "abc"), ("x-a", "def"), ("host", "h.example")]);
        let header = |name: &str, value: Option<&str>, absent| M::Header {
            name: name.into(),
            value: value.map(Template::text),
            absent,
        };
        for (matcher, want) in [
            (header("X-A", Some("def"), false), true),
            (header("X-A", Some("d*"), false), true),
            (header("X-A", Some("*c"), false), true),
            (header("X-A", Some("*b*"), false), true),
            (header("X-A", Some("x*"), false), false),
            (header("X-A", None, false), true),
            (header("X-B", None, false), false),
            (header("X-B", None, true), true),
            (header("Host", Some("*.example"), false), true),
            (M::HeaderRegexp { name: None, field: "X-A".into(), pattern: "^d.f$".into() }, true),
        ] {
            assert_eq!(fits(matcher.clone(), &mut exchange), want, "{matcher:?}");
        }
    }

    #[test]
    fn queries() {
        let query = |pairs: &[(&str, &str)]| {
            M::Query(pairs.iter().map(|(k, v)| ((*k).into(), Template::text(*v))).collect())
        };
        let mut exchange = get("/?a=1&b=x+y");
        for (pairs, want) in [
            (&[("a", "1")][..], true),
            (&[("a", "2")], false),
            (&[("a", "2"), ("a", "1")], true),
            (&[("a", "1"), ("b", "x y")], true),
            (&[("a", "1"), ("c", "*")], false),
            (&[("b", "*")], true),
            (&[("", "")], false),
        ] {
            assert_eq!(fits(query(pairs), &mut exchange), want, "{pairs:?}");
        }
        assert!(fits(query(&[("", "")]), &mut get("/")));
    }

    #[test]
    fn addresses() {
        let range = |text: &str, bits| M::RemoteIp(vec![(text.parse().unwrap(), bits)]);
        let mut exchange = get("/");
        assert!(fits(range("192.0.2.0", 24), &mut exchange));
        assert!(!fits(range("192.0.3.0", 24), &mut exchange));
        assert!(fits(range("0.0.0.0", 0), &mut exchange));
        assert!(fits(range("::ffff:192.0.2.0", 120), &mut exchange));
        assert!(!fits(range("2001:db8::", 32), &mut exchange));
        exchange.connection.remote = Some("[::ffff:192.0.2.9]:1".parse().unwrap());
        assert!(fits(range("192.0.2.9", 32), &mut exchange));
        exchange.connection.remote = Some("[2001:db8:1::1]:1".parse().unwrap());
        assert!(fits(range("2001:db8::", 32), &mut exchange));
        exchange.connection.remote = None;
        assert!(!fits(range("0.0.0.0", 0), &mut exchange));
    }

    #[test]
    fn methods_protocols_hosts_and_not() {
        let mut exchange = request("POST", "/x", &[("host", "a.example.com")]);
        assert!(fits(M::Method(vec!["GET".into(), "POST".into()]), &mut exchange));
        for (name, want) in
            [("http", true), ("https", false), ("http/1.1", true), ("http/2", false), ("http/2+", false)]
        {
            assert_eq!(fits(M::Protocol(name.into()), &mut exchange), want, "{name}");
        }
        exchange.connection.tls = Some(std::sync::Arc::default());
        for (name, want) in [("http", false), ("https", true), ("http/1.1", true)] {
            assert_eq!(fits(M::Protocol(name.into()), &mut exchange), want, "{name} over TLS");
        }
        assert!(fits(M::Host(vec![Template::text("*.example.com")]), &mut exchange));
        let path = |text: &str| vec![M::Path(vec![Template::text(text)])];
        assert!(fits(M::Not(vec![path("/y")]), &mut exchange));
        assert!(!fits(M::Not(vec![path("/y"), path("/x")]), &mut exchange));
    }

    #[test]
    fn bad_patterns_are_build_errors() {
        let bad = M::PathRegexp { name: None, pattern: "(".into() };
        let error = compile_sets(&[vec![bad]]).err().unwrap();
        assert!(error.to_string().contains("regular expression"), "{error}");
    }
}
