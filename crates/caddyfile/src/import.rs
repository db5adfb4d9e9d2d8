//! `import NAME [ARGS…] [{ … }]`: the tokens of a snippet or of files, put in place of the line.
//!
//! In a snippet or file, `{args[0]}` is the first argument, `{args[0:2]}` the first two, `{args[:]}` all (a range
//! makes one token per argument, so it has to stand alone); `{block}` is what the import had between its braces, and
//! `{blocks.NAME}` what that block had in its `NAME { … }`.

use crate::imports::Imports;
use crate::parser::{Item, Lookup, tokenize};
use crate::source::{Import, Source, Span};
use crate::tree::Token;
use crate::{Error, Errors, glob};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// Imports within imports, beyond which a file is refused.
const MAX_DEPTH: usize = 100;

/// Tokens that all imports of a file may bring in together: snippets that import each other twice double at each step.
const MAX_TOKENS: usize = 200_000;

/// One `import` line.
pub(crate) struct Call {
    pub keyword: Token,
    /// What to import, then its arguments.
    pub args: Vec<Token>,
    pub block: Vec<Item>,
}

pub(crate) struct Importer<'a> {
    /// Every file that was read.
    pub sources: Vec<Arc<Source>>,
    /// A file could not be cut into tokens.
    pub unreadable: bool,
    /// Which files there may be. Those that are imported may import no others.
    imports: Imports,
    lookup: Lookup<'a>,
    tokens: usize,
}

impl<'a> Importer<'a> {
    pub fn new(main: Arc<Source>, lookup: Lookup<'a>) -> Self {
        let imports = main.imports.clone();
        Self { sources: vec![main], unreadable: false, imports, lookup, tokens: 0 }
    }

    /// The tokens that take the place of the `import`.
    pub fn import(
        &mut self,
        call: &Call,
        snippets: &HashMap<String, Vec<Item>>,
    ) -> Result<Vec<Item>, Errors> {
        let Some((target, args)) = call.args.split_first().filter(|(target, _)| !target.text.is_empty())
        else {
            let message = "`import` needs the name of a snippet or a file: import NAME [ARGUMENTS…]";
            return Err(Error::new(&call.keyword.span, message).into());
        };
        if call.keyword.span.import_chain().count() >= MAX_DEPTH {
            let message = format!("imports are nested more than {MAX_DEPTH} deep");
            return Err(Error::new(&call.keyword.span, message).into());
        }
        let snippet = snippets.get(&target.text);
        let import = Import { at: target.span.clone(), snippet: snippet.map(|_| target.text.clone()) };
        let items = match snippet {
            Some(items) => snippet_items(target, items)?,
            None => self.file_items(target)?,
        };
        let replacement = Replacement { args, block: &call.block, import: Arc::new(import) };
        let items = replacement.apply(items)?;
        self.tokens += items.len();
        if self.tokens > MAX_TOKENS {
            self.unreadable = true;
            let message = format!("the imports of this file amount to more than {MAX_TOKENS} words");
            return Err(Error::new(&target.span, message).into());
        }
        Ok(items)
    }

    fn file_items(&mut self, target: &Token) -> Result<Vec<Item>, Errors> {
        let pattern = target.span.source.directory().join(&target.text);
        self.imports.check_name(&pattern).map_err(|message| Error::new(&target.span, message))?;
        let paths = if glob::is_pattern(&target.text) { glob::files(&pattern) } else { vec![pattern] };
        let mut items = Vec::new();
        let mut errors = Vec::new();
        for path in paths {
            match self.read(target, &path) {
                Ok(found) => items.extend(found),
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() { Ok(items) } else { Err(Errors(errors)) }
    }

    fn read(&mut self, target: &Token, path: &Path) -> Result<Vec<Item>, Error> {
        self.imports.check_file(path).map_err(|message| Error::new(&target.span, message))?;
        let source = Source::read(path).map_err(|error| {
            let message = format!(
                "no snippet has this name, and the file `{}` cannot be read: {error}",
                path.display()
            );
            Error::new(&target.span, message)
        })?;
        if source.file().is_some_and(|file| is_open(&target.span, file)) {
            let message = format!("import cycle: `{}` is being read already", path.display());
            return Err(Error::new(&target.span, message));
        }
        let source = Arc::new(source);
        self.sources.push(Arc::clone(&source));
        let items = tokenize(&source, self.lookup);
        self.unreadable |= items.is_err();
        items
    }
}

/// Whether `file` is the one that the place stands in, or one that imports it.
fn is_open(span: &Span, file: &Path) -> bool {
    let importers = span.imports().map(|at| at.source.file());
    std::iter::once(span.source.file()).chain(importers).any(|open| open == Some(file))
}

fn snippet_items(target: &Token, items: &[Item]) -> Result<Vec<Item>, Error> {
    if target.span.import_chain().any(|import| import.snippet.as_ref() == Some(&target.text)) {
        return Err(Error::new(
            &target.span,
            format!("import cycle: the snippet `({})` imports itself", target.text),
        ));
    }
    Ok(items.to_vec())
}

/// What an `import` puts into the tokens that it brings.
struct Replacement<'a> {
    args: &'a [Token],
    block: &'a [Item],
    import: Arc<Import>,
}

impl Replacement<'_> {
    fn apply(&self, items: Vec<Item>) -> Result<Vec<Item>, Errors> {
        let mut result: Vec<Item> = Vec::with_capacity(items.len());
        let mut errors = Vec::new();
        // What replaces the first token of a line takes over its place, even if that is nothing.
        let mut starts_line = true;
        for item in items {
            starts_line |= item.starts_line;
            match self.replace(item) {
                Ok(replaced) => {
                    for mut item in replaced {
                        item.starts_line |= std::mem::take(&mut starts_line);
                        result.push(item);
                    }
                }
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() { Ok(result) } else { Err(Errors(errors)) }
    }

    fn replace(&self, mut item: Item) -> Result<Vec<Item>, Error> {
        if !item.token.quoted {
            if item.token.text == "{block}" {
                return Ok(self.block.to_vec());
            }
            if let Some(name) =
                item.token.text.strip_prefix("{blocks.").and_then(|name| name.strip_suffix('}'))
            {
                return Ok(named_block(self.block, name));
            }
        }
        item.token.span = item.token.span.imported_by(&self.import);
        if let Some(range) = all_of_range(&item.token.text) {
            return self.range(&item.token, range);
        }
        item.token.text = self.fill_in(&item.token)?;
        Ok(vec![item])
    }

    /// One token per argument in a range such as `1:` or `0:2`.
    fn range(&self, token: &Token, range: (&str, &str)) -> Result<Vec<Item>, Error> {
        let bound = |text: &str, default| match text {
            "" => Some(default),
            _ => text.parse().ok(),
        };
        let chosen =
            bound(range.0, 0).zip(bound(range.1, self.args.len())).and_then(|(a, b)| self.args.get(a..b));
        let Some(chosen) = chosen else {
            return Err(self.no_such_argument(token, &token.text));
        };
        Ok(chosen.iter().map(|token| Item { token: token.clone(), starts_line: false }).collect())
    }

    /// The token's text with its `{args[N]}` (or, as Caddy once had it, `{args.N}`) filled in.
    fn fill_in(&self, token: &Token) -> Result<String, Error> {
        let mut result = String::new();
        let mut rest = token.text.as_str();
        while let Some(start) = rest.find("{args") {
            let Some((index, length)) = argument_index(&rest[start..]) else {
                let after = start + "{args".len();
                result.push_str(&rest[..after]);
                rest = &rest[after..];
                continue;
            };
            let placeholder = &rest[start..start + length];
            let arg = index.parse().ok().and_then(|index: usize| self.args.get(index));
            let arg = arg.ok_or_else(|| self.no_such_argument(token, placeholder))?;
            result.push_str(&rest[..start]);
            result.push_str(&arg.text);
            rest = &rest[start + length..];
        }
        Ok(result + rest)
    }

    fn no_such_argument(&self, token: &Token, placeholder: &str) -> Error {
        let message = match self.args.len() {
            1 => format!("there is no `{placeholder}`: the import gives 1 argument"),
            count => format!("there is no `{placeholder}`: the import gives {count} arguments"),
        };
        Error::new(&token.span, message)
    }
}

/// The bounds if the text is a range of arguments, `{args[A:B]}`, and nothing else.
fn all_of_range(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix("{args[")?.strip_suffix("]}")?.split_once(':')
}

/// The index in the `{args[N]}` that `text` begins with, and the length of the whole placeholder.
fn argument_index(text: &str) -> Option<(&str, usize)> {
    let (open, close) = if text.starts_with("{args[") { ("{args[", "]}") } else { ("{args.", "}") };
    let index = text.strip_prefix(open)?;
    let end = index.find(close)?;
    Some((&index[..end], open.len() + end + close.len()))
}

/// What stands between the braces of `NAME { … }` in an import's block; nothing if it is not there.
fn named_block(block: &[Item], name: &str) -> Vec<Item> {
    let mut depth = 0_usize;
    let mut start = None;
    for (index, item) in block.iter().enumerate() {
        if item.is_word("{") {
            let named = index > 0 && block[index - 1].starts_line && block[index - 1].token.text == name;
            if depth == 0 && named {
                start = Some(index + 1);
            }
            depth += 1;
        } else if item.is_word("}") {
            depth = depth.saturating_sub(1);
            if let (0, Some(start)) = (depth, start) {
                return block[start..index].to_vec();
            }
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use crate::{Parsed, Source, parse};
    use std::path::Path;

    fn parse_text(text: &str) -> Parsed {
        parse(Source::from_text("Caddyfile", text, Path::new("")), &|_| None).unwrap()
    }

    /// Name and arguments of the lines of the first site, one line each.
    fn lines(parsed: &Parsed) -> Vec<String> {
        let lines = &parsed.file.sites[0].lines;
        let words = |line: &crate::Line| {
            std::iter::once(&line.name)
                .chain(&line.args)
                .map(|t| t.text.clone())
                .collect::<Vec<_>>()
                .join(" ")
        };
        lines.iter().map(words).collect()
    }

    fn imported(text: &str) -> Vec<String> {
        let parsed = parse_text(text);
        assert!(parsed.errors.is_empty(), "{:?}", parsed.errors);
        lines(&parsed)
    }

    #[test]
    fn snippets_take_arguments() {
        let snippet = "(s) {\n\ta x{args[0]}y{args.1} {args[1:]}\n\t{args[:]}\n\tb {args}\n}\n";
        let site = ":80 {\n\timport s 1 \"2 2\" 3\n\tc\n}";
        assert_eq!(imported(&format!("{snippet}{site}")), ["a x1y2 2 2 2 3", "1 2 2 3", "b {args}", "c"]);
    }

    #[test]
    fn an_empty_range_leaves_the_lines_apart() {
        assert_eq!(imported("(s) {\n\ta\n\t{args[:]}\n\tb {args[:]}\n}\n:80 {\n\timport s\n}"), ["a", "b"]);
    }

    #[test]
    fn blocks_are_handed_on() {
        let text = "(s) {\n\ta\n\t{block}\n\t{blocks.x}\n\tb\n}\n:80 {\n\timport s {\n\t\tc 1\n\t\tx {\n\t\t\td\n\t\t}\n\t}\n}";
        assert_eq!(imported(text), ["a", "c 1", "x", "d", "b"]);
        assert_eq!(imported("(s) {\n\ta\n\t{block}\n\tb\n}\n:80 {\n\timport s\n}"), ["a", "b"]);
    }

    #[test]
    fn errors_show_where_the_import_is() {
        let parsed = parse_text("(s) {\n\ta {args[0]}\n}\n:80 {\n\timport s\n\tb\n}");
        assert_eq!(lines(&parsed), ["b"]);
        let expected = "Caddyfile:2:4: there is no `{args[0]}`: the import gives 0 arguments\n\ta {args[0]}\n\t  ^\n(imported at Caddyfile:5:9)";
        assert_eq!(parsed.errors[0].to_string(), expected);
    }

    #[test]
    fn snippets_cannot_import_themselves() {
        let parsed = parse_text("(a) {\n\timport b\n}\n(b) {\n\timport a\n}\n:80 {\n\timport a\n}");
        assert!(parsed.errors[0].message.starts_with("import cycle"), "{:?}", parsed.errors);
    }

    #[test]
    fn snippets_that_double_at_each_step_are_bounded() {
        let mut text = "(s0) {\n\ta\n}\n".to_owned();
        for n in 1..60 {
            text += &format!("(s{n}) {{\n\timport s{0}\n\timport s{0}\n}}\n", n - 1);
        }
        let source = Source::from_text("Caddyfile", &(text + ":80 {\n\timport s59\n}"), Path::new(""));
        let errors = parse(source, &|_| None).unwrap_err();
        assert!(errors.0[0].message.contains("more than"), "{errors}");
    }

    #[test]
    fn files_and_patterns_start_from_the_importing_file() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
        std::fs::create_dir(directory.path().join("d")).unwrap();
        write("Caddyfile", ":80 {\n\timport d/one.conf\n\timport none/*.conf\n\timport missing.conf\n}");
        write("d/one.conf", "a\nimport two*");
        write("d/two.conf", "b {args[0]}");
        write("d/two2.conf", "import ../Caddyfile");
        let source = Source::read(&directory.path().join("Caddyfile")).unwrap();
        let parsed = parse(source, &|_| None).unwrap();
        let messages: Vec<_> = parsed.errors.iter().map(|error| error.message.as_str()).collect();
        assert_eq!(lines(&parsed), ["a"]);
        assert!(messages[0].starts_with("there is no `{args[0]}`"), "{messages:?}");
        assert!(messages[1].contains("cannot be read"), "{messages:?}");
    }

    #[test]
    fn files_cannot_import_themselves() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("Caddyfile");
        std::fs::write(&path, ":80 {\n\timport Caddyfile\n}").unwrap();
        let parsed = parse(Source::read(&path).unwrap(), &|_| None).unwrap();
        assert!(parsed.errors[0].message.starts_with("import cycle"), "{:?}", parsed.errors);
    }
}
