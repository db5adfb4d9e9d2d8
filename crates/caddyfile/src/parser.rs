//! Tokens to the tree of lines and blocks.

use crate::import::{Call, Importer};
use crate::source::Source;
use crate::tree::{File, Line, NamedRoute, SiteBlock, Token};
use crate::{Error, Errors, Span, lexer, substitute};
use std::collections::HashMap;
use std::sync::Arc;

/// Blocks within blocks, beyond which a file is refused; keeps recursion off the end of the stack.
const MAX_NESTING: usize = 64;

/// Looks up an environment variable.
pub(crate) type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What [`parse`] found.
#[derive(Debug)]
pub struct Parsed {
    pub file: File,
    /// Mistakes around which the tree could still be built, so that a caller can look for further ones in it.
    pub errors: Vec<Error>,
    /// Every file that was read, the main one first.
    pub sources: Vec<Arc<Source>>,
}

/// Parses a Caddyfile and all that it imports.
///
/// `lookup` gives the values of `{$NAME}`. Fails when the text cannot be cut into tokens (an open quote or heredoc);
/// other mistakes are in [`Parsed::errors`].
pub fn parse(source: Source, lookup: Lookup<'_>) -> Result<Parsed, Errors> {
    let source = Arc::new(source);
    let items = tokenize(&source, lookup)?;
    let mut parser = Parser::new(Importer::new(Arc::clone(&source), lookup), items);
    parser.file();
    if parser.importer.unreadable {
        return Err(Errors(parser.errors));
    }
    Ok(Parsed { file: parser.tree, errors: parser.errors, sources: parser.importer.sources })
}

/// A token, and whether it is the first on its line.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub token: Token,
    pub starts_line: bool,
}

impl Item {
    pub fn is_word(&self, text: &str) -> bool {
        !self.token.quoted && self.token.text == text
    }

    fn is_open(&self) -> bool {
        self.is_word("{")
    }

    fn is_close(&self) -> bool {
        self.is_word("}")
    }
}

/// The tokens of one file, without comments.
pub(crate) fn tokenize(source: &Arc<Source>, lookup: Lookup<'_>) -> Result<Vec<Item>, Error> {
    let substituted = substitute::substitute(source.text(), lookup);
    let span = |offset| Span::new(source, substituted.origin(offset));
    let lexemes = lexer::lex(&substituted.text).map_err(|e| Error::new(&span(e.offset), e.message))?;
    let mut items: Vec<Item> = Vec::with_capacity(lexemes.len());
    let mut after_break = true;
    for lexeme in lexemes {
        after_break |= lexeme.newlines > 0;
        if lexeme.kind == lexer::Kind::Comment {
            continue;
        }
        let quoted = lexeme.kind == lexer::Kind::Quoted;
        let token = Token { text: lexeme.text, quoted, span: span(lexeme.range.start) };
        items.push(Item { token, starts_line: after_break });
        after_break = false;
    }
    Ok(items)
}

struct Parser<'a> {
    /// What is left, last first, so that an import can put its tokens in front.
    rest: Vec<Item>,
    importer: Importer<'a>,
    snippets: HashMap<String, Vec<Item>>,
    tree: File,
    seen_global: bool,
    errors: Vec<Error>,
}

/// Where a list of lines ends.
#[derive(Clone, Copy, PartialEq)]
enum Until {
    CloseBrace,
    EndOfFile,
}

impl<'a> Parser<'a> {
    fn new(importer: Importer<'a>, items: Vec<Item>) -> Self {
        let rest = items.into_iter().rev().collect();
        let (snippets, tree) = (HashMap::new(), File::default());
        Self { rest, importer, snippets, tree, seen_global: false, errors: Vec::new() }
    }

    fn file(&mut self) {
        while let Some(item) = self.rest.last() {
            let token = item.token.clone();
            if item.is_open() {
                self.global_options(&token);
            } else if item.is_close() {
                self.rest.pop();
                self.error(&token, "this `}` closes nothing");
            } else if item.is_word("import") {
                self.import();
            } else {
                self.block_with_head(&token);
            }
        }
    }

    fn global_options(&mut self, brace: &Token) {
        if self.seen_global || !self.tree.sites.is_empty() {
            let message =
                "a block without addresses is the global options block: there can be one, before all sites";
            self.error(brace, message);
        }
        self.rest.pop();
        self.seen_global = true;
        let lines = self.block(brace, 1);
        self.tree.global.extend(lines);
    }

    /// A site, a snippet or a named route.
    fn block_with_head(&mut self, first: &Token) {
        let addresses = self.addresses();
        let name = match addresses.as_slice() {
            [only] if !only.quoted => only.text.as_str(),
            _ => "",
        };
        if let Some(name) = name.strip_prefix('(').and_then(|name| name.strip_suffix(')')) {
            self.snippet(first, name);
        } else if let Some(name) = name.strip_prefix("&(").and_then(|name| name.strip_suffix(')')) {
            self.named_route(first, name);
        } else {
            self.site(first, addresses);
        }
    }

    fn site(&mut self, first: &Token, addresses: Vec<Token>) {
        let lines = match self.rest.last() {
            Some(item) if item.is_open() => {
                self.rest.pop();
                self.block(first, 1)
            }
            _ => self.lines(Until::EndOfFile, first, 1),
        };
        self.tree.sites.push(SiteBlock { addresses, lines });
    }

    /// The addresses before a block; a comma at the end of a line goes on with the next one.
    fn addresses(&mut self) -> Vec<Token> {
        let mut addresses: Vec<Token> = Vec::new();
        let mut expects_more = true;
        while let Some(item) = self.rest.last() {
            if item.is_open() || item.is_close() || (item.starts_line && !expects_more) {
                break;
            }
            let Some(Item { mut token, .. }) = self.rest.pop() else { break };
            expects_more = token.text.ends_with(',');
            if expects_more {
                token.text.pop();
            }
            if token.text.contains(',') {
                self.error(&token, "put a space after the comma between two addresses");
            }
            if !token.text.is_empty() {
                addresses.push(token);
            }
        }
        if let (true, Some(last)) = (expects_more, addresses.last().cloned()) {
            self.error(&last, "another address has to follow the comma");
        }
        addresses
    }

    fn named_route(&mut self, first: &Token, name: &str) {
        if !self.rest.last().is_some_and(Item::is_open) {
            return self.error(first, format!("a block has to follow the named route `&({name})`"));
        }
        self.rest.pop();
        let lines = self.block(first, 1);
        if self.tree.named_routes.iter().any(|route| route.name.text == name) {
            self.error(first, format!("the named route `&({name})` is defined twice"));
        }
        let name = Token { text: name.to_owned(), ..first.clone() };
        self.tree.named_routes.push(NamedRoute { name, lines });
    }

    fn snippet(&mut self, first: &Token, name: &str) {
        let Some(items) = self.braced_items(first) else { return };
        if self.snippets.contains_key(name) {
            self.error(first, format!("the snippet `({name})` is defined twice"));
        }
        self.snippets.insert(name.to_owned(), items);
    }

    /// The lines of a block whose `{` is already taken; `owner` is blamed if it is never closed.
    fn block(&mut self, owner: &Token, depth: usize) -> Vec<Line> {
        if let Some(next) = self.rest.last().filter(|item| !item.starts_line && !item.is_close()) {
            let token = next.token.clone();
            self.error(&token, "what stands in a block has to start on a new line after the `{`");
        }
        if depth > MAX_NESTING {
            self.error(owner, format!("blocks are nested more than {MAX_NESTING} deep"));
            self.rest_of_block();
            return Vec::new();
        }
        self.lines(Until::CloseBrace, owner, depth)
    }

    fn lines(&mut self, until: Until, owner: &Token, depth: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        while let Some(item) = self.rest.last() {
            let token = item.token.clone();
            if item.is_close() {
                self.rest.pop();
                if until == Until::CloseBrace {
                    self.check_after_close();
                    return lines;
                }
                self.error(&token, "this `}` closes nothing");
            } else if item.is_open() {
                self.rest.pop();
                self.error(&token, "the `{` has to stand at the end of the line that it belongs to");
                self.block(&token, depth + 1);
            } else if item.is_word("import") {
                self.import();
            } else {
                lines.push(self.line(depth));
            }
        }
        if until == Until::CloseBrace {
            self.error(owner, "the block that starts here is never closed; add a `}`");
        }
        lines
    }

    fn line(&mut self, depth: usize) -> Line {
        let mut tokens = self.words();
        let name = tokens.remove(0);
        let opens = self.rest.last().is_some_and(|item| item.is_open() && !item.starts_line);
        let block = opens.then(|| {
            self.rest.pop();
            self.block(&name, depth + 1)
        });
        Line { name, args: tokens, block }
    }

    /// The first word, and what follows it on its line up to a brace.
    fn words(&mut self) -> Vec<Token> {
        let mut words = Vec::new();
        while let Some(item) = self.rest.last() {
            if !words.is_empty() && (item.starts_line || item.is_open() || item.is_close()) {
                break;
            }
            words.extend(self.rest.pop().map(|item| item.token));
        }
        words
    }

    fn check_after_close(&mut self) {
        if let Some(next) = self.rest.last().filter(|item| !item.starts_line && !item.is_close()) {
            let token = next.token.clone();
            self.error(&token, "what follows a `}` has to start on a new line");
        }
    }

    /// Carries out an `import` that is next.
    fn import(&mut self) {
        let mut words = self.words();
        let keyword = words.remove(0);
        let opens = self.rest.last().is_some_and(|item| item.is_open() && !item.starts_line);
        let block = if opens { self.braced_items(&keyword) } else { None };
        let call = Call { keyword, args: words, block: block.unwrap_or_default() };
        match self.importer.import(&call, &self.snippets) {
            Ok(items) => self.rest.extend(items.into_iter().rev()),
            Err(errors) => self.errors.extend(errors.0),
        }
    }

    /// The tokens between the `{` that has to come next and its `}`.
    fn braced_items(&mut self, owner: &Token) -> Option<Vec<Item>> {
        if !self.rest.last().is_some_and(Item::is_open) {
            self.error(owner, format!("`{}` needs a block: put a `{{` at the end of the line", owner.text));
            return None;
        }
        self.rest.pop();
        let items = self.rest_of_block();
        if items.is_none() {
            self.error(owner, "the block that starts here is never closed; add a `}`");
        }
        items
    }

    /// Takes everything up to the `}` of a block whose `{` is already taken; `None` if there is none.
    fn rest_of_block(&mut self) -> Option<Vec<Item>> {
        let mut items = Vec::new();
        let mut depth = 1;
        while let Some(item) = self.rest.pop() {
            if item.is_open() {
                depth += 1;
            } else if item.is_close() {
                depth -= 1;
            }
            if depth == 0 {
                return Some(items);
            }
            items.push(item);
        }
        None
    }

    fn error(&mut self, token: &Token, message: impl Into<String>) {
        self.errors.push(Error::new(&token.span, message));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn parse_text(text: &str) -> Parsed {
        parse(Source::from_text("Caddyfile", text, Path::new("")), &|name| {
            (name == "LINES").then(|| "a 1\nb 2".to_owned())
        })
        .unwrap()
    }

    /// The tree as one line of text.
    fn shape(text: &str) -> String {
        let parsed = parse_text(text);
        assert!(parsed.errors.is_empty(), "{:?}", parsed.errors);
        let mut out = show_lines(&parsed.file.global);
        for site in &parsed.file.sites {
            let addresses: Vec<_> = site.addresses.iter().map(|token| token.text.as_str()).collect();
            out += &format!("[{}] {}", addresses.join(","), show_lines(&site.lines));
        }
        out
    }

    fn show_lines(lines: &[Line]) -> String {
        lines.iter().map(show_line).collect()
    }

    fn show_line(line: &Line) -> String {
        let args: String = line.args.iter().map(|token| format!(" {}", token.text)).collect();
        let block = line.block.as_ref().map_or(String::new(), |lines| format!(" {{{}}}", show_lines(lines)));
        format!("{}{args}{block};", line.name.text)
    }

    fn messages(text: &str) -> Vec<String> {
        let errors = parse_text(text).errors;
        errors.iter().map(|e| format!("{}: {}", e.span.as_ref().unwrap(), e.message)).collect()
    }

    #[test]
    fn blocks_sites_and_lines() {
        assert_eq!(shape("{\n\tdebug\n}\na {\n\tx 1 {\n\t\ty\n\t}\n\tz\n}\n"), "debug;[a] x 1 {y;};z;");
        assert_eq!(shape("a,\nb, c\nx 1\ny"), "[a,b,c] x 1;y;");
        assert_eq!(shape("a\n{\n}\nb {\n}"), "[a] [b] ");
        assert_eq!(shape(":80\nx {\n}"), "[:80] x {};");
        assert_eq!(shape("a {\n\tx \"{\" `}`\n}"), "[a] x { };");
        assert_eq!(shape("a {\n\tx {\n\t\ty }\n}"), "[a] x {y;};");
        assert_eq!(shape(""), "");
    }

    #[test]
    fn variables_may_hold_whole_lines() {
        assert_eq!(shape(":80 {\n\t{$LINES}\n\t{$NONE}\n\tc\n}"), "[:80] a 1;b 2;c;");
    }

    #[test]
    fn all_mistakes_at_once() {
        let found =
            messages("a,b {\n\tx { y\n\t}\n}\n}\n{\n}\nc {\n\tx\n\t{\n\t}\n\tz {\n\t} d\n}\ne, {\n\tf");
        let expected = [
            "Caddyfile:1:1: put a space after the comma between two addresses",
            "Caddyfile:2:6: what stands in a block has to start on a new line after the `{`",
            "Caddyfile:5:1: this `}` closes nothing",
            "Caddyfile:6:1: a block without addresses is the global options block: there can be one, before all sites",
            "Caddyfile:10:2: the `{` has to stand at the end of the line that it belongs to",
            "Caddyfile:13:4: what follows a `}` has to start on a new line",
            "Caddyfile:15:1: another address has to follow the comma",
            "Caddyfile:15:1: the block that starts here is never closed; add a `}`",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn named_routes_are_no_sites() {
        let source = Source::from_text("Caddyfile", "&(r) {\n\tx y\n}\n:80 {\n}", Path::new(""));
        let file = parse(source, &|_| None).unwrap().file;
        assert_eq!((file.sites.len(), file.named_routes[0].name.text.as_str()), (1, "r"));
        assert_eq!(file.named_routes[0].lines[0].name.text, "x");
        let found = messages("&(r) {\n}\n&(r) {\n}\n&(s)\n:80 {\n}");
        assert_eq!(found[0], "Caddyfile:3:1: the named route `&(r)` is defined twice");
        assert_eq!(found[1], "Caddyfile:5:1: a block has to follow the named route `&(s)`");
    }

    #[test]
    fn deep_nesting_is_an_error_and_no_crash() {
        let text = format!(":80 {{\n{}", "a {\n".repeat(100_000));
        assert!(messages(&text)[0].contains("nested more than"));
    }

    #[test]
    fn an_open_quote_stops_everything() {
        let error = parse(Source::from_text("C", "a {\n\tb \"c", Path::new("")), &|_| None).unwrap_err();
        assert!(error.to_string().starts_with("C:2:4: this quote is never closed"), "{error}");
    }
}
