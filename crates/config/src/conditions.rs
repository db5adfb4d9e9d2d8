//! The conditions that a named matcher is made of:
//!
//! | condition | matches |
//! |---|---|
//! | `path PATTERN…` | `*` at the ends or within a segment; not sensitive to case |
//! | `path_regexp [NAME] PATTERN` | its groups are `{re.NAME.1}`; without a name, that of the matcher |
//! | `host NAME…` | |
//! | `method VERB…` | |
//! | `header FIELD [VALUE]`, `header !FIELD` | `*` at the ends of the value; no value: the field is there; `!`: it is not |
//! | `header_regexp [NAME] FIELD PATTERN` | as `path_regexp` |
//! | `query KEY=VALUE…` | `*`: any value |
//! | `remote_ip RANGE…` | the connection's address; `private_ranges` stands for all private and loopback ranges |
//! | `client_ip RANGE…` | the client's address, as a trusted proxy may tell it |
//! | `protocol NAME` | `http`, `https`, `http/1.1`, `http/2+` |
//! | `file [FILE…]`, or a block of `root`, `try_files`, `split_path`, `try_policy` | one of the files exists; the policy is first_exist, first_exist_fallback, smallest_size, largest_size or most_recently_modified |
//! | `not CONDITION`, or a block | |
//! | `vars VARIABLE VALUE…` | the variable, or the text with placeholders, is one of the values |
//! | `vars_regexp [NAME] VARIABLE PATTERN` | as `path_regexp` |
//! | `expression CONDITION`, or the condition alone in backticks | see [expressions](#expressions) |
//!
//! Several values of a condition are alternatives, as are several lines of `path`, `host`, `method` and `remote_ip`, of
//! one `header` field and of one `query` key.

mod regexps;

pub(crate) use regexps::{check_pattern, regexp};

use crate::call::Call;
use crate::context::{Context, Notation};
use crate::expression;
use crate::host_names;
use crate::ip_ranges;
use crate::model::{FileMatcher, IpRange, Matcher, MatcherSet, Template, TryPolicy};
use crate::problems::{error, not_built, unknown, unknown_option};
use crate::values;
use regent_caddyfile::{Error, Line, Token};
use std::collections::BTreeMap;

/// What is built.
pub(crate) const KINDS: &[&str] = &[
    "client_ip",
    "expression",
    "file",
    "header",
    "header_regexp",
    "host",
    "method",
    "not",
    "path",
    "path_regexp",
    "protocol",
    "query",
    "remote_ip",
    "vars",
    "vars_regexp",
];

const UNBUILT: &[&str] = &["tls", "url_pattern"];

/// The condition that follows in the arguments, or all those of the block.
///
/// `owner` is the `@name` that they belong to. Mistakes within a block are noted in `cx`.
pub(crate) fn parse(cx: &mut Context<'_>, call: &Call<'_>, owner: &str) -> Result<MatcherSet, Error> {
    let mut set = Set::default();
    match (call.args, call.block) {
        ([name, args @ ..], block) => set.add(cx, &Call { name, args, block }, owner)?,
        ([], None) => {
            return Err(call.wrong_arguments(
                1,
                &format!("{} CONDITION…, for example: {owner} path /api/*", call.name()),
            ));
        }
        ([], Some(_)) => {
            return Ok(of_lines(cx, call.block.unwrap_or_default(), owner));
        }
    }
    Ok(set.finish())
}

/// The conditions of these lines, which all must hold. Mistakes are noted in `cx`.
pub(crate) fn of_lines(cx: &mut Context<'_>, lines: &[Line], owner: &str) -> MatcherSet {
    let mut set = Set::default();
    for line in lines {
        let result = set.add(cx, &Call::new(line), owner);
        cx.check(result);
    }
    set.finish()
}

/// Conditions on the way to a [`MatcherSet`]: those whose lines add up are gathered.
#[derive(Default)]
struct Set {
    paths: Vec<Template>,
    hosts: Vec<Template>,
    methods: Vec<String>,
    remote: Vec<IpRange>,
    client: Vec<IpRange>,
    headers: BTreeMap<String, Vec<Matcher>>,
    queries: BTreeMap<String, Vec<(String, Template)>>,
    vars: Vec<(Template, Vec<Template>)>,
    others: MatcherSet,
}

impl Set {
    /// Adds one condition; `owner` is the `@name` that it belongs to, which regular expressions are called by.
    fn add(&mut self, cx: &mut Context<'_>, call: &Call<'_>, owner: &str) -> Result<(), Error> {
        let name = owner.trim_start_matches('@');
        match call.name() {
            "path" => self.paths.extend(templates(call.some("path PATTERN…")?)),
            "host" => {
                for token in call.some("host NAME…")? {
                    self.hosts.push(host_names::pattern(token)?);
                }
            }
            "method" => {
                self.methods
                    .extend(call.some("method VERB…")?.iter().map(|token| token.text.to_ascii_uppercase()));
            }
            "remote_ip" => self.remote.extend(ip_ranges::parse(cx, call.some("remote_ip RANGE…")?)?),
            "client_ip" => self.client.extend(ip_ranges::parse(cx, call.some("client_ip RANGE…")?)?),
            "header" => self.header(call)?,
            "query" => self.query(call)?,
            "path_regexp" => self.others.push(regexps::path_regexp(call, name)?),
            "header_regexp" => self.others.push(regexps::header_regexp(call, name)?),
            "vars" => self.vars(call)?,
            "vars_regexp" => self.others.push(regexps::vars_regexp(call, name)?),
            "expression" => self.others.push(expression::parse(cx, call, owner)?),
            "protocol" => self.others.push(protocol(call)?),
            "file" => self.others.push(file(cx, call)?),
            // Of a `handle_errors` in Caddy's JSON; no Caddyfile has it.
            "error status" if cx.notation == Notation::Json => {
                let statuses = call.args.iter().map(values::statuses).collect::<Result<_, _>>()?;
                self.others.push(Matcher::ErrorStatus(statuses));
            }
            "not" => self.others.push(Matcher::Not(vec![parse(cx, call, owner)?])),
            other if UNBUILT.contains(&other) => return Err(not_built(call.name)),
            _ => return Err(unknown(call.name, "condition", KINDS)),
        }
        Ok(())
    }

    fn header(&mut self, call: &Call<'_>) -> Result<(), Error> {
        let syntax = "header FIELD [VALUE] or header !FIELD";
        call.without_block(syntax)?;
        let (field, value) = match call.args {
            [field] => (field, None),
            [field, value] => (field, Some(Template::parse(&value.text))),
            args => return Err(call.wrong_arguments(if args.is_empty() { 1 } else { 2 }, syntax)),
        };
        let (name, absent) = match field.text.strip_prefix('!') {
            Some(name) => (name, true),
            None => (field.text.as_str(), false),
        };
        if name.is_empty() || (absent && value.is_some()) {
            return Err(error(field, format!("write: {syntax}")));
        }
        let matcher = Matcher::Header { name: name.to_owned(), value, absent };
        self.headers.entry(name.to_ascii_lowercase()).or_default().push(matcher);
        Ok(())
    }

    fn query(&mut self, call: &Call<'_>) -> Result<(), Error> {
        for token in call.some("query KEY=VALUE…")? {
            let Some((key, value)) = token.text.split_once('=') else {
                return Err(error(token, format!("write `{0}=VALUE`, or `{0}=*` for any value", token.text)));
            };
            check_name(token, key)?;
            self.queries.entry(key.to_owned()).or_default().push((key.to_owned(), Template::parse(value)));
        }
        Ok(())
    }

    fn vars(&mut self, call: &Call<'_>) -> Result<(), Error> {
        let syntax = "vars VARIABLE VALUE…";
        call.without_block(syntax)?;
        let [variable, values @ ..] = call.args else { return Err(call.wrong_arguments(2, syntax)) };
        if values.is_empty() {
            return Err(call.wrong_arguments(2, syntax));
        }
        self.vars.push((Template::variable(&variable.text), templates(values).collect()));
        Ok(())
    }

    fn finish(self) -> MatcherSet {
        let mut set = Vec::new();
        if !self.methods.is_empty() {
            set.push(Matcher::Method(self.methods));
        }
        if !self.hosts.is_empty() {
            set.push(Matcher::Host(self.hosts));
        }
        if !self.paths.is_empty() {
            set.push(Matcher::Path(self.paths));
        }
        if !self.remote.is_empty() {
            set.push(Matcher::RemoteIp(self.remote));
        }
        if !self.client.is_empty() {
            set.push(Matcher::ClientIp(self.client));
        }
        set.extend(self.headers.into_values().map(any_of));
        set.extend(self.queries.into_values().map(Matcher::Query));
        if !self.vars.is_empty() {
            set.push(Matcher::Vars(self.vars));
        }
        set.extend(self.others);
        set
    }
}

/// One of the conditions must hold. A set has no «or», so several become: not (not A and not B).
fn any_of(mut matchers: Vec<Matcher>) -> Matcher {
    if matchers.len() == 1 {
        return matchers.remove(0);
    }
    let none = matchers.into_iter().map(|matcher| Matcher::Not(vec![vec![matcher]])).collect();
    Matcher::Not(vec![none])
}

/// A name that no placeholder can stand in.
pub(crate) fn check_name(token: &Token, name: &str) -> Result<(), Error> {
    match Template::parse(name).as_text() {
        Some(_) => Ok(()),
        None => Err(error(
            token,
            format!(
                "`{name}` cannot depend on the request: a name has to be written here, only values can have placeholders"
            ),
        )),
    }
}

fn templates(tokens: &[Token]) -> impl Iterator<Item = Template> + '_ {
    tokens.iter().map(|token| Template::parse(&token.text))
}

fn protocol(call: &Call<'_>) -> Result<Matcher, Error> {
    let known = [
        "http",
        "https",
        "http/1.0",
        "http/1.1",
        "http/2",
        "http/3",
        "http/1.0+",
        "http/1.1+",
        "http/2+",
        "http/3+",
        "grpc",
    ];
    let token = call.one("protocol http | https | http/1.1 | http/2+ …")?;
    let name = token.text.to_ascii_lowercase();
    match name.as_str() {
        // As Caddy does (matchers.go, `MatchProtocol`).
        "grpc" => Ok(Matcher::Header {
            name: "Content-Type".to_owned(),
            value: Some(Template::text("application/grpc*")),
            absent: false,
        }),
        name if known.contains(&name) => Ok(Matcher::Protocol(name.to_owned())),
        _ => Err(unknown(token, "protocol", &known)),
    }
}

fn file(cx: &mut Context<'_>, call: &Call<'_>) -> Result<Matcher, Error> {
    let mut matcher = FileMatcher { try_files: templates(call.args).collect(), ..FileMatcher::default() };
    for option in call.options() {
        let result = file_option(&option, &mut matcher);
        cx.check(result);
    }
    if matcher.try_files.is_empty() {
        matcher.try_files.push(Template::parse("{path}"));
    }
    Ok(Matcher::File(matcher))
}

fn file_option(option: &Call<'_>, matcher: &mut FileMatcher) -> Result<(), Error> {
    match option.name() {
        "root" => matcher.root = Some(Template::parse(&option.one("root PATH")?.text)),
        "try_files" => matcher.try_files.extend(templates(option.some("try_files FILE…")?)),
        "split_path" => {
            matcher
                .split_path
                .extend(option.some("split_path DELIMITER…")?.iter().map(|token| token.text.clone()));
        }
        "try_policy" => matcher.policy = try_policy(option.one("try_policy POLICY")?)?,
        _ => {
            return Err(unknown_option(
                option.name,
                "file",
                &["root", "split_path", "try_files", "try_policy"],
                &["fs"],
            ));
        }
    }
    Ok(())
}

const POLICIES: &[(&str, TryPolicy)] = &[
    ("first_exist", TryPolicy::FirstExist),
    ("first_exist_fallback", TryPolicy::FirstExistFallback),
    ("largest_size", TryPolicy::LargestSize),
    ("most_recently_modified", TryPolicy::MostRecentlyModified),
    ("smallest_size", TryPolicy::SmallestSize),
];

/// How one of several files is chosen.
pub(crate) fn try_policy(token: &Token) -> Result<TryPolicy, Error> {
    let found = POLICIES.iter().find(|(name, _)| *name == token.text);
    found.map(|(_, policy)| *policy).ok_or_else(|| {
        let names: Vec<_> = POLICIES.iter().map(|(name, _)| *name).collect();
        unknown(token, "policy", &names)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directives::testing::{errors, routes};

    /// The set that a matcher with these lines is.
    fn set(lines: &str) -> MatcherSet {
        routes(&format!("@m {{\n{lines}\n}}\nrespond @m x")).remove(0).matchers.remove(0)
    }

    fn one(line: &str) -> Matcher {
        let mut set = set(line);
        assert_eq!(set.len(), 1, "{set:?}");
        set.remove(0)
    }

    fn header(name: &str, value: Option<&str>, absent: bool) -> Matcher {
        Matcher::Header { name: name.into(), value: value.map(Template::text), absent }
    }

    #[test]
    fn lines_of_one_kind_are_alternatives() {
        let paths = ["/a", "/b*", "{vars.x}"].map(Template::parse).to_vec();
        assert_eq!(one("path /a /b*\npath {vars.x}"), Matcher::Path(paths));
        assert_eq!(one("method get\nmethod POST"), Matcher::Method(vec!["GET".into(), "POST".into()]));
        assert_eq!(
            one("host a.com b.com"),
            Matcher::Host(vec![Template::text("a.com"), Template::text("b.com")])
        );
    }

    #[test]
    fn headers() {
        assert_eq!(one("header X"), header("X", None, false));
        assert_eq!(one("header !X"), header("X", None, true));
        assert_eq!(
            set("header X a*\nheader Y b"),
            [header("X", Some("a*"), false), header("Y", Some("b"), false)]
        );
        let not = |matcher| Matcher::Not(vec![vec![matcher]]);
        let either =
            Matcher::Not(vec![vec![not(header("X", Some("a"), false)), not(header("x", Some("b"), false))]]);
        assert_eq!(one("header X a\nheader x b"), either);
    }

    #[test]
    fn queries_are_gathered_by_key() {
        let pair = |key: &str, value: &str| (key.to_owned(), Template::text(value));
        let expected =
            [Matcher::Query(vec![pair("a", "1"), pair("a", "2")]), Matcher::Query(vec![pair("b", "*")])];
        assert_eq!(set("query a=1 b=*\nquery a=2"), expected);
    }

    #[test]
    fn regular_expressions_have_the_matchers_name() {
        let expected = Matcher::PathRegexp { name: Some("m".into()), pattern: "^/a".into() };
        assert_eq!(one("path_regexp ^/a"), expected);
        let expected =
            Matcher::HeaderRegexp { name: Some("n".into()), field: "X".into(), pattern: "a+".into() };
        assert_eq!(one("header_regexp n X a+"), expected);
        assert!(errors("@m path_regexp (")[0].starts_with("`(` is no regular expression: "));
    }

    #[test]
    fn addresses() {
        let range = |address: &str, length| (address.parse().unwrap(), length);
        assert_eq!(
            one("remote_ip 10.0.0.1 ::/8"),
            Matcher::RemoteIp(vec![range("10.0.0.1", 32), range("::", 8)])
        );
        assert!(matches!(one("client_ip private_ranges"), Matcher::ClientIp(ranges) if ranges.len() == 6));
        assert_eq!(
            errors("@m remote_ip 10.0.0.1/33\n@n remote_ip x\n@o remote_ip forwarded 10.0.0.1").len(),
            3
        );
    }

    #[test]
    fn files() {
        let expected = FileMatcher {
            root: Some(Template::text("/srv")),
            try_files: vec![Template::parse("{path}"), Template::text("index.php")],
            split_path: vec![".php".into()],
            policy: TryPolicy::LargestSize,
        };
        let block =
            "file {\nroot /srv\ntry_files {path} index.php\nsplit_path .php\ntry_policy largest_size\n}";
        assert_eq!(one(block), Matcher::File(expected));
        let Matcher::File(matcher) = one("file") else { panic!() };
        assert_eq!(matcher.try_files, [Template::parse("{path}")]);
        assert_eq!(errors("@m file {\ntry_policy largest\ntry_file x\n}").len(), 2);
    }

    #[test]
    fn not_is_about_all_conditions_of_its_block() {
        let Matcher::Not(sets) = one("not {\npath /a\nmethod GET\n}") else { panic!() };
        assert_eq!((sets.len(), sets[0].len()), (1, 2));
        assert_eq!(one("not path /a"), Matcher::Not(vec![vec![Matcher::Path(vec![Template::text("/a")])]]));
        assert_eq!(errors("@m not\n@n not pth /x").len(), 2);
    }

    #[test]
    fn variables() {
        let expected = Matcher::Vars(vec![
            (Template::parse("{vars.a}"), vec![Template::text("1"), Template::text("2")]),
            (Template::parse("{header.X}"), vec![Template::text("y")]),
        ]);
        assert_eq!(one("vars a 1 2\nvars {header.X} y"), expected);
        let expected = Matcher::VarsRegexp {
            name: Some("m".into()),
            value: Template::parse("{vars.a}"),
            pattern: "^x".into(),
        };
        assert_eq!(one("vars_regexp a ^x"), expected);
    }

    #[test]
    fn protocols() {
        assert_eq!(one("protocol HTTP/1.1"), Matcher::Protocol("http/1.1".into()));
        let grpc = Matcher::Header {
            name: "Content-Type".into(),
            value: Some(Template::text("application/grpc*")),
            absent: false,
        };
        assert_eq!(one("protocol grpc"), grpc);
        assert_eq!(errors("@n protocol htp\n@o vars x").len(), 2);
    }
}
