//! Conditions in the language of Caddy's `expression` (CEL).

use crate::server::ranges;
use crate::text::{placeholder, text, texts};
use regent_config::{
    Expression, FileMatcher, Matcher, Operand, Part, Relation, Sign, Template, TextTest, TryPolicy,
};

/// The text of the expression.
pub(super) fn written(expression: &Expression) -> String {
    match expression {
        Expression::Constant(value) => value.to_string(),
        Expression::Matchers(set) => set.iter().map(function).collect::<Vec<_>>().join(" && "),
        Expression::Not(of) => format!("!{}", within(of, Binding::Not)),
        Expression::All(of) => joined(of, " && ", Binding::All),
        Expression::Any(of) => joined(of, " || ", Binding::Any),
        Expression::Choice { condition, then, otherwise } => {
            let part = |of| within(of, Binding::Choice);
            format!("{} ? {} : {}", part(condition), part(then), part(otherwise))
        }
        Expression::Compare { left, relation, right } => {
            format!("{} {} {}", operand(left), relation_sign(*relation), operand(right))
        }
        Expression::In { value, list } => {
            format!("{} in [{}]", operand(value), list.iter().map(operand).collect::<Vec<_>>().join(", "))
        }
        Expression::Text { value, test, argument } => {
            format!("{}.{}({})", operand(value), test_name(*test), operand(argument))
        }
    }
}

/// How firmly the parts of an expression hold together, from the loosest on.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Binding {
    Choice,
    Any,
    All,
    Relation,
    Not,
    Whole,
}

fn binding(expression: &Expression) -> Binding {
    match expression {
        Expression::Choice { .. } => Binding::Choice,
        Expression::Any(_) => Binding::Any,
        Expression::All(_) => Binding::All,
        Expression::Matchers(set) if set.len() > 1 => Binding::All,
        Expression::Compare { .. } | Expression::In { .. } => Binding::Relation,
        Expression::Not(_) => Binding::Not,
        Expression::Constant(_) | Expression::Matchers(_) | Expression::Text { .. } => Binding::Whole,
    }
}

/// As a part of one that binds like this: in parentheses, unless it holds together better.
fn within(expression: &Expression, outer: Binding) -> String {
    if binding(expression) > outer { written(expression) } else { format!("({})", written(expression)) }
}

fn joined(parts: &[Expression], sign: &str, outer: Binding) -> String {
    parts.iter().map(|part| within(part, outer)).collect::<Vec<_>>().join(sign)
}

/// A condition of Caddyfiles as a function.
fn function(matcher: &Matcher) -> String {
    let call = |name: &str, arguments: Vec<String>| {
        format!("{name}({})", arguments.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(", "))
    };
    let regexp = |name: &str, rest: Vec<&String>, of: &Option<String>| {
        call(name, of.iter().chain(rest).cloned().collect())
    };
    match matcher {
        Matcher::Path(paths) => call("path", texts(paths)),
        Matcher::Host(hosts) => call("host", texts(hosts)),
        Matcher::Method(methods) => call("method", methods.clone()),
        Matcher::RemoteIp(found) => call("remote_ip", ranges(found)),
        Matcher::ClientIp(found) => call("client_ip", ranges(found)),
        Matcher::Protocol(name) => call("protocol", vec![name.clone()]),
        Matcher::PathRegexp { name, pattern } => regexp("path_regexp", vec![pattern], name),
        Matcher::HeaderRegexp { name, field, pattern } => regexp("header_regexp", vec![field, pattern], name),
        Matcher::VarsRegexp { name, value, pattern } => {
            regexp("vars_regexp", vec![&text(value), pattern], name)
        }
        Matcher::Header { name, value, absent: _ } => {
            map("header", &[(name.clone(), value.iter().map(text).collect())])
        }
        Matcher::Query(pairs) => {
            let key = pairs.first().map(|(key, _)| key.clone()).unwrap_or_default();
            map("query", &[(key, pairs.iter().map(|(_, value)| text(value)).collect())])
        }
        Matcher::Vars(pairs) => {
            map("vars", &pairs.iter().map(|(name, values)| (text(name), texts(values))).collect::<Vec<_>>())
        }
        Matcher::File(files) => map("file", &file(files)),
        Matcher::Not(sets) => {
            super::any_header(sets).map_or_else(|| any(sets), |pair| map("header", &[pair]))
        }
        Matcher::Expression(expression) => within(expression, Binding::Relation),
        Matcher::ErrorStatus(statuses) => super::error_statuses(statuses),
    }
}

fn any(sets: &[Vec<Matcher>]) -> String {
    let set = |set: &Vec<Matcher>| set.iter().map(function).collect::<Vec<_>>().join(" && ");
    let sets: Vec<_> = sets.iter().map(|one| format!("!({})", set(one))).collect();
    sets.join(" && ")
}

fn map(name: &str, pairs: &[(String, Vec<String>)]) -> String {
    let value = |values: &[String]| match values {
        [only] => quoted(only),
        all => format!("[{}]", all.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(", ")),
    };
    let pairs = pairs.iter().map(|(key, values)| format!("{}: {}", quoted(key), value(values)));
    format!("{name}({{{}}})", pairs.collect::<Vec<_>>().join(", "))
}

fn file(files: &FileMatcher) -> Vec<(String, Vec<String>)> {
    let FileMatcher { root, try_files, split_path, policy } = files;
    let mut pairs = Vec::new();
    pairs.extend(root.iter().map(|root| ("root".to_owned(), vec![text(root)])));
    pairs.push(("try_files".to_owned(), texts(try_files)));
    if !split_path.is_empty() {
        pairs.push(("split_path".to_owned(), split_path.clone()));
    }
    if *policy != TryPolicy::default() {
        let policy = super::try_policy(*policy).unwrap_or_default();
        pairs.push(("try_policy".to_owned(), vec![policy.to_owned()]));
    }
    pairs
}

fn operand(operand: &Operand) -> String {
    match operand {
        Operand::Text(template) => value(template),
        Operand::Number(number) => number.to_string(),
        Operand::Size(of) => format!("size({})", self::operand(of)),
        Operand::Lower(of) => format!("{}.lowerAscii()", target(of)),
        Operand::Upper(of) => format!("{}.upperAscii()", target(of)),
        Operand::Trimmed(of) => format!("{}.trim()", target(of)),
        Operand::Integer(of) => format!("int({})", self::operand(of)),
        Operand::Arithmetic { left, sign, right } => {
            format!("({} {} {})", self::operand(left), arithmetic_sign(*sign), self::operand(right))
        }
    }
}

fn target(operand: &Operand) -> String {
    self::operand(operand)
}

/// A text in quotes, or a placeholder.
fn value(template: &Template) -> String {
    match &template.0[..] {
        [Part::Placeholder(name)] => placeholder(name),
        [] => quoted(""),
        parts => {
            let part = |part: &Part| match part {
                Part::Text(text) => text.clone(),
                Part::Placeholder(name) => placeholder(name),
            };
            quoted(&parts.iter().map(part).collect::<String>())
        }
    }
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("'");
    for c in text.chars() {
        match c {
            '\\' | '\'' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c => quoted.push(c),
        }
    }
    quoted.push('\'');
    quoted
}

fn relation_sign(relation: Relation) -> &'static str {
    match relation {
        Relation::Equal => "==",
        Relation::Unequal => "!=",
        Relation::Less => "<",
        Relation::LessOrEqual => "<=",
        Relation::Greater => ">",
        Relation::GreaterOrEqual => ">=",
    }
}

fn arithmetic_sign(sign: Sign) -> &'static str {
    match sign {
        Sign::Plus => "+",
        Sign::Minus => "-",
        Sign::Times => "*",
        Sign::Divided => "/",
        Sign::Remainder => "%",
    }
}

fn test_name(test: TextTest) -> &'static str {
    match test {
        TextTest::StartsWith => "startsWith",
        TextTest::EndsWith => "endsWith",
        TextTest::Contains => "contains",
        TextTest::Matches => "matches",
    }
}
