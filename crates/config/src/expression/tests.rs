use super::*;
use crate::directives::testing::{errors, load, routes};
use crate::model::{Expression, Operand, Part, Relation, Sign, Template, TextTest};
use proptest::prelude::*;

fn expression(text: &str) -> Expression {
    let routes = routes(&format!("@m expression `{text}`\nrespond @m x"));
    match &routes[0].matchers[0][..] {
        [Matcher::Expression(expression)] => (**expression).clone(),
        other => panic!("{other:?}"),
    }
}

fn mistake(text: &str) -> String {
    errors(&format!("@m expression `{text}`\nrespond @m x")).join("; ")
}

fn placeholder(name: &str) -> Operand {
    Operand::Text(Template(vec![Part::Placeholder(name.into())]))
}

#[test]
fn precedence_is_that_of_cel() {
    for (text, shown) in [
        ("path('/a') || path('/b') && !path('/c')", "(1 || (1 && !1))"),
        ("(path('/a') || path('/b')) && true", "((1 || 1) && true)"),
        ("!!path('/a')", "!!1"),
        ("{path} == '/a' && {port} != 80", "(Equal && Unequal)"),
        ("{method} in ['GET', 'HEAD',]", "in2"),
        ("!({path}.startsWith('/a'))", "!StartsWith"),
        (
            "path('/a') ? true : path('/b') || false ? false : true",
            "(1 ? true : ((1 || false) ? false : true))",
        ),
        ("{port} + 1 * 2 == 3 && true", "(Equal && true)"),
    ] {
        assert_eq!(expression(text).shown(), shown, "{text}");
    }
}

#[test]
fn functions_are_the_conditions_of_caddyfiles() {
    let Expression::Matchers(set) = expression("path('/a', '/b*')") else { panic!() };
    assert_eq!(set, [Matcher::Path(vec![Template::text("/a"), Template::text("/b*")])]);
    let Expression::Matchers(set) = expression("path_regexp('^/a')") else { panic!() };
    assert_eq!(set, [Matcher::PathRegexp { name: Some("m".into()), pattern: "^/a".into() }]);
    let Expression::Matchers(set) = expression("path_regexp('n', r'\\.php$')") else { panic!() };
    assert_eq!(set, [Matcher::PathRegexp { name: Some("n".into()), pattern: "\\.php$".into() }]);
    let Expression::Matchers(set) = expression("header({'Accept': ['*text/html*', 'b'], 'X': '*'})") else {
        panic!()
    };
    assert_eq!(set.len(), 2);
    let Expression::Matchers(set) = expression("query({'a': '1'})") else { panic!() };
    assert_eq!(set, [Matcher::Query(vec![("a".into(), Template::text("1"))])]);
    let Expression::Matchers(set) = expression("file({'root': '/srv', 'try_files': ['{path}', 'x']})") else {
        panic!()
    };
    assert!(matches!(&set[..], [Matcher::File(file)] if file.try_files.len() == 2 && file.root.is_some()));
    for text in ["method('GET')", "host('a.com')", "protocol('https')", "remote_ip('10.0.0.0/8')", "file()"] {
        assert_eq!(expression(text).shown(), "1", "{text}");
    }
    for text in ["client_ip('private_ranges')", "vars({'a': 'b'})", "header_regexp('X', 'a+')"] {
        assert_eq!(expression(text).shown(), "1", "{text}");
    }
}

#[test]
fn values() {
    let Expression::Compare { left, relation, right } = expression("{err.status_code} >= 500") else {
        panic!()
    };
    assert_eq!(
        (left, relation, right),
        (placeholder("http.error.status_code"), Relation::GreaterOrEqual, Operand::Number(500))
    );
    let Expression::Compare { left, .. } = expression("size({path}) < 10") else { panic!() };
    assert_eq!(left, Operand::Size(Box::new(placeholder("http.request.uri.path"))));
    let Expression::Text { value, test, argument } = expression("{header.X-A}.lowerAscii().matches('^a+$')")
    else {
        panic!()
    };
    assert_eq!(value, Operand::Lower(Box::new(placeholder("http.request.header.X-A"))));
    assert_eq!((test, argument), (TextTest::Matches, Operand::Text(Template::text("^a+$"))));
}

#[test]
fn sums() {
    let of = |text: &str| match expression(text) {
        Expression::Compare { left, .. } => left,
        other => panic!("{other:?}"),
    };
    let sum = |left, sign, right| Operand::Arithmetic { left: Box::new(left), sign, right: Box::new(right) };
    let number = Operand::Number;
    let product = sum(number(2), Sign::Times, number(3));
    assert_eq!(of("1 + 2 * 3 - 4 == 3"), sum(sum(number(1), Sign::Plus, product), Sign::Minus, number(4)));
    assert_eq!(of("-1 == 3"), sum(number(0), Sign::Minus, number(1)));
    let joined = sum(Operand::Text(Template::text("a")), Sign::Plus, placeholder("http.request.host"));
    assert_eq!(of("'a' + {host} == 'ab'"), joined);
    let integer = Operand::Integer(Box::new(placeholder("http.request.host")));
    assert_eq!(of("int({host}) % 2 == 0"), sum(integer, Sign::Remainder, number(2)));
}

#[test]
fn several_arguments_are_one_expression() {
    let routes = routes("@m expression {path}.startsWith(\"/a\") && method('GET')\nrespond @m x");
    let [Matcher::Expression(found)] = &routes[0].matchers[0][..] else { panic!() };
    assert_eq!(found.shown(), "(StartsWith && 1)");
    let quoted = routes_of("@m `path('/a')`\nrespond @m x");
    assert!(matches!(&quoted[..], [Matcher::Expression(_)]));
    let block = routes_of("@m {\nexpression `path('/a')`\nmethod GET\n}\nrespond @m x");
    assert_eq!(block.len(), 2);
}

fn routes_of(text: &str) -> Vec<Matcher> {
    routes(text).remove(0).matchers.remove(0)
}

#[test]
fn mistakes_name_their_character() {
    for (text, part) in [
        ("path('/a'", "expected `)`, not the end (character 10"),
        ("path('/a') path('/b')", "expected the end, `&&` or `||`, not `path` (character 12"),
        ("pth('/a')", "`pth` is no function"),
        ("{path}", "expected a condition, not a value"),
        ("{path} == foo", "`foo` is no value; write `'foo'` for a text"),
        ("{path}.charAt(1) == 'a'", "`charAt` is no"),
        ("{port} + == 2", "expected a condition or a value, not `==` (character 10"),
        ("{path} == (path('/a') ? 'x' : 'y')", "write: CONDITION ? "),
        ("path('/a') ? true", "expected `:`, not the end"),
        ("['a'][0] == 'a'", "`[` behind a value is not built yet"),
        ("path('/a') + 1 == 2", "`path` is no value that can be compared"),
        ("path('\\.php')", "`\\.` is no escape; write `\\\\.`"),
        ("path('/a", "no closing quote (character 6"),
        ("{path}.matches('(')", "is no regular expression"),
        ("header('X', 'y')", "write: header({'NAME': 'VALUE'})"),
        ("remote_ip('x')", "`x` is no IP address or range"),
        ("{path} in '/a'", "expected a list"),
        ("1.5 == 2", "is no whole number"),
        ("€", "`€` means nothing here (character 1"),
    ] {
        let found = mistake(text);
        assert!(found.contains(part), "{text}: {found}");
    }
    let found = load(":80 {\n@m expression {path} == 1 && &&\nrespond @m x\n}").unwrap_err().to_string();
    assert!(found.contains("Caddyfile:2:30"), "{found}");
}

#[test]
fn deep_ones_are_refused() {
    for (open, close) in [("!", ""), ("(", ")"), ("[", "]"), ("path(", ")"), ("{'a':", "}")] {
        let text = format!("{}true{}", open.repeat(10_000 / open.len()), close.repeat(100));
        let found = tree(&text).unwrap_err();
        assert!(found.message.contains("nested"), "{open}: {found:?}");
    }
    assert!(
        tree(&format!("1{} == 1", " + 1".repeat(100))).unwrap_err().message.contains("signs of arithmetic")
    );
    assert!(tree(&"-".repeat(1_000)).unwrap_err().message.contains("nested"));
    assert!(tree(&"!".repeat(20_000)).unwrap_err().message.contains("bytes at most"));
}

fn fragment() -> impl Strategy<Value = String> {
    let words = [
        "path",
        "header",
        "(",
        ")",
        "{",
        "}",
        "[",
        "]",
        "'",
        "\"",
        "{path}",
        "'a'",
        "12",
        "&&",
        "||",
        "!",
        "==",
        "in",
        ".",
        ",",
        ":",
        "size",
        "?",
        "+",
        "-",
        "%",
        "true",
        "matches",
        " ",
        "\\",
        "é",
        "r'x'",
        "{'a':'b'}",
    ];
    proptest::collection::vec(proptest::sample::select(words.to_vec()), 0..40)
        .prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn no_text_is_a_panic(text in prop_oneof![any::<String>(), fragment()]) {
        if let Err(mistake) = tree(&text) {
            prop_assert!(mistake.at <= text.len());
            prop_assert!(text.is_char_boundary(mistake.at));
        }
        // With its meaning, where a Caddyfile can hold the text.
        if !text.contains(['`', '\n', '\r', '\0']) {
            let _ = load(&format!(":80 {{\n@m expression `{text}`\nrespond @m x\n}}"));
        }
    }
}
