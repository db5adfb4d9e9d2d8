//! `map [MATCHER] SOURCE DESTINATION… { INPUT OUTPUT… }`: makes placeholders whose values depend on another's, as in Caddy.
//!
//! A destination is a placeholder of one's own, such as `{backend}`. The first line whose input is the source's value
//! counts; `~PATTERN` is a regular expression, whose groups are `$1` or `${name}` in the outputs. `default OUTPUT…` is for all
//! other values, and for outputs that are `-` or missing.
//!
//! The values are found when the directive is reached, before nearly all others; in Caddy they are when they are used.
//!
//! ```caddyfile
//! map {path} {section} {cached} {
//!     ~^/(\w+)/ $1 yes
//!     / home -
//!     default other no
//! }
//! header X-Section {section}
//! ```

use super::Directive;
use crate::call::Call;
use crate::conditions::regexp;
use crate::context::Context;
use crate::mapped;
use crate::matchers::Scope;
use crate::model::{Handler, Map, MapInput, Mapping, Template};
use crate::problems::error;
use regent_caddyfile::{Error, Token};

pub(super) const DIRECTIVE: Directive = super::handler("map", parse);

const SYNTAX: &str = "map [MATCHER] SOURCE {DESTINATION}… { INPUT OUTPUT… }";

fn parse(cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    let [source, destinations @ ..] = call.args else { return Err(call.wrong_arguments(2, SYNTAX)) };
    if destinations.is_empty() {
        return Err(call.wrong_arguments(2, SYNTAX));
    }
    let destinations: Vec<_> = destinations.iter().map(destination).collect::<Result<_, _>>()?;
    let count = destinations.len();
    let mut map = Map {
        source: Template::parse(&source.text),
        destinations,
        mappings: Vec::new(),
        defaults: Vec::new(),
    };
    for line in call.options() {
        let added = add(&line, count, &mut map);
        cx.check(added);
    }
    Ok(Handler::Map(map))
}

fn destination(token: &Token) -> Result<String, Error> {
    mapped::variable(token).map(str::to_owned).ok_or_else(|| {
        let message = format!(
            "`{}` can be no destination of `map`: write a name of your own between braces, such as {{backend}}",
            token.text
        );
        error(token, message)
    })
}

fn add(line: &Call<'_>, count: usize, map: &mut Map) -> Result<(), Error> {
    line.without_block(SYNTAX)?;
    if let Some(surplus) = line.args.get(count) {
        return Err(error(
            surplus,
            format!("there are more outputs than destinations, of which `map` has {count}"),
        ));
    }
    let output = |token: &Token| (token.text != "-").then(|| Template::parse(&token.text));
    let outputs: Vec<_> = line.args.iter().map(output).collect();
    if line.name() == "default" && !line.name.quoted {
        if !map.defaults.is_empty() {
            return Err(error(line.name, "there is a `default` already"));
        }
        if outputs.len() != count {
            return Err(error(line.name, format!("`default` needs an output for each destination: {count}")));
        }
        map.defaults = outputs.into_iter().map(Option::unwrap_or_default).collect();
        return Ok(());
    }
    let input = match line.name().strip_prefix('~') {
        Some(pattern) => MapInput::Regexp(regexp(&Token { text: pattern.to_owned(), ..line.name.clone() })?),
        None => MapInput::Text(line.name().to_owned()),
    };
    if map.mappings.iter().any(|known| known.input == input) {
        return Err(error(line.name, format!("`{}` is mapped already", line.name())));
    }
    map.mappings.push(Mapping { input, outputs });
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{errors, handler, routes};
    use crate::model::{Handler, Map, MapInput, Mapping, Template};

    #[test]
    fn inputs_and_outputs() {
        let text = "map {host} {a} {b} {\nx.example 1 -\n~^(.*)\\.example$ $1-{path}\ndefault 0 {uuid}\n}";
        let mapping = |input, outputs: &[Option<&str>]| Mapping {
            input,
            outputs: outputs.iter().map(|output| output.map(Template::parse)).collect(),
        };
        let expected = Map {
            source: Template::parse("{host}"),
            destinations: vec!["map.a".into(), "map.b".into()],
            mappings: vec![
                mapping(MapInput::Text("x.example".into()), &[Some("1"), None]),
                mapping(MapInput::Regexp("^(.*)\\.example$".into()), &[Some("$1-{path}")]),
            ],
            defaults: vec![Template::text("0"), Template::parse("{uuid}")],
        };
        assert_eq!(handler(text), Handler::Map(expected));
    }

    #[test]
    fn destinations_are_placeholders_in_the_whole_site() {
        let routes = routes("respond {a}{b}\nmap {path} {a} {\nx 1\n}");
        let Handler::Respond { body, .. } = &routes[1].handler else { panic!("{routes:?}") };
        assert_eq!(*body, Template::parse("{vars.map.a}\\{b\\}"));
    }

    #[test]
    fn mistakes() {
        let found = errors(
            "map {host}\nmap {host} {path} {\n}\nmap {host} a {\n}\nmap {host} {a} {\nx 1 2\nx 1\nx 2\n~( 1\ndefault\ndefault 1\ndefault 2\n}",
        );
        assert_eq!(found.len(), 8, "{found:#?}");
        assert!(found[1].contains("can be no destination"), "{found:?}");
    }
}
