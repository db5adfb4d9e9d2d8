//! Directives with their blocks, and what they include.

use super::lexer::{Lexer, Token};
use crate::Error;
use globset::Glob;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The deepest that files may include each other.
const DEEPEST: usize = 16;

/// Files of nginx, of Debian and of certbot, which say of types, variables and TLS what Regent knows.
const KNOWN: &[&str] = &[
    "fastcgi-php.conf",
    "fastcgi.conf",
    "fastcgi_params",
    "mime.types",
    "options-ssl-nginx.conf",
    "proxy_params",
    "scgi_params",
    "uwsgi_params",
];

#[derive(Debug, Clone)]
pub(super) struct Directive {
    pub name: String,
    pub args: Vec<String>,
    pub block: Option<Vec<Directive>>,
    file: Rc<str>,
    line: usize,
}

impl Directive {
    pub fn place(&self) -> String {
        format!("{}:{}", self.file, self.line)
    }

    /// The line as it may have stood in the file.
    pub fn text(&self) -> String {
        let words: Vec<_> =
            std::iter::once(self.name.as_str()).chain(self.args.iter().map(String::as_str)).collect();
        let line = words.join(" ").replace(['\n', '\r'], " ");
        if self.block.is_some() { format!("{line} {{ … }}") } else { line }
    }

    pub fn arg(&self, index: usize) -> &str {
        self.args.get(index).map_or("", String::as_str)
    }

    pub fn body(&self) -> &[Self] {
        self.block.as_deref().unwrap_or_default()
    }
}

/// Reads a file, and what it includes.
pub(super) fn read(path: &Path) -> Result<Vec<Directive>, Error> {
    Reader { base: base_of(path) }.file(path, 0)
}

/// Relative paths are relative to the directory of nginx.conf, which a site's file is below. Without one, to the file's own.
fn base_of(path: &Path) -> PathBuf {
    let own = path.parent().filter(|own| !own.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let above = own.ancestors().take(3).find(|directory| directory.join("nginx.conf").is_file());
    above.unwrap_or(own).to_owned()
}

struct Reader {
    /// The directory that relative paths are relative to.
    base: PathBuf,
}

impl Reader {
    fn file(&self, path: &Path, depth: usize) -> Result<Vec<Directive>, Error> {
        let place = path.display().to_string();
        let text =
            fs::read(path).map_err(|error| Error { place: place.clone(), message: error.to_string() })?;
        let text = String::from_utf8_lossy(&text);
        let mut file = File { lexer: Lexer::new(&text), name: place.as_str().into(), reader: self, depth };
        file.block(false)
    }

    /// The files that a pattern names, in order of their names. Only the last part of a path may have `*`.
    fn named(&self, pattern: &str) -> Vec<PathBuf> {
        let path = self.base.join(pattern);
        let (Some(directory), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str()))
        else {
            return Vec::new();
        };
        let Ok(glob) = Glob::new(name) else { return Vec::new() };
        let matcher = glob.compile_matcher();
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let mut found: Vec<PathBuf> = entries
            .filter(|entry| matcher.is_match(entry.file_name()) && entry.path().is_file())
            .map(|entry| entry.path())
            .collect();
        found.sort();
        found
    }
}

struct File<'a> {
    lexer: Lexer<'a>,
    name: Rc<str>,
    reader: &'a Reader,
    depth: usize,
}

impl File<'_> {
    /// To the end of the file, or of the block.
    fn block(&mut self, is_inner: bool) -> Result<Vec<Directive>, Error> {
        let mut directives = Vec::new();
        let mut words: Vec<String> = Vec::new();
        let mut begun = self.lexer.line();
        loop {
            let next = self.lexer.next().map_err(|message| self.error(begun, message))?;
            let Some((token, line)) = next else {
                return match (is_inner, words.is_empty()) {
                    (false, true) => Ok(directives),
                    (true, true) => Err(self.error(self.lexer.line(), "a block has no `}`")),
                    (_, false) => Err(self.error(begun, "a directive has no `;`")),
                };
            };
            match token {
                Token::Word(word) => {
                    if words.is_empty() {
                        begun = line;
                    }
                    words.push(word);
                }
                Token::End => self.end(&mut directives, &mut words, begun)?,
                Token::Open => {
                    if words.is_empty() {
                        return Err(self.error(line, "a block has no name"));
                    }
                    let name = words.remove(0);
                    let block = if name.ends_with("_by_lua_block") {
                        self.lexer.skip_foreign_block();
                        Vec::new()
                    } else {
                        self.block(true)?
                    };
                    directives.push(self.directive(name, std::mem::take(&mut words), Some(block), begun));
                }
                Token::Close if is_inner && words.is_empty() => return Ok(directives),
                Token::Close => return Err(self.error(line, "this `}` closes nothing")),
            }
        }
    }

    fn end(
        &self,
        directives: &mut Vec<Directive>,
        words: &mut Vec<String>,
        line: usize,
    ) -> Result<(), Error> {
        if words.is_empty() {
            return Ok(());
        }
        let directive = self.directive(words.remove(0), std::mem::take(words), None, line);
        if directive.name != "include" {
            directives.push(directive);
            return Ok(());
        }
        let pattern = directive.arg(0);
        if KNOWN.iter().any(|known| Path::new(pattern).ends_with(known)) {
            return Ok(());
        }
        if self.depth == DEEPEST {
            return Err(self.error(line, "files include each other without an end"));
        }
        let files = self.reader.named(pattern);
        if files.is_empty() && !pattern.contains('*') {
            directives.push(directive);
        }
        for path in files {
            directives.extend(self.reader.file(&path, self.depth + 1)?);
        }
        Ok(())
    }

    fn directive(
        &self,
        name: String,
        args: Vec<String>,
        block: Option<Vec<Directive>>,
        line: usize,
    ) -> Directive {
        Directive { name, args, block, file: self.name.clone(), line }
    }

    fn error(&self, line: usize, message: &str) -> Error {
        Error { place: format!("{}:{line}", self.name), message: message.to_owned() }
    }
}
