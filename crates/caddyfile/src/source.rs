//! Where a piece of a Caddyfile was written.

use crate::imports::Imports;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The text of one file, and how to name it in messages.
pub struct Source {
    name: String,
    /// What relative imports start from.
    directory: PathBuf,
    /// The canonical path, to notice import cycles; `None` for a text that is not a file.
    file: Option<PathBuf>,
    /// Which files it may import.
    pub(crate) imports: Imports,
    text: String,
    /// Offset of the first byte of each line.
    line_starts: Vec<usize>,
}

impl Source {
    /// A text that is not (or no longer) a file; `directory` is what its relative imports start from.
    pub fn from_text(name: &str, text: &str, directory: &Path) -> Self {
        Self::new(name.to_owned(), directory.to_owned(), None, text.to_owned())
    }

    /// Reads a file. Fails as [`std::fs::read`] does, and on text that is not UTF-8.
    pub fn read(path: &Path) -> io::Result<Self> {
        let text = String::from_utf8(std::fs::read(path)?)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, format!("not UTF-8: {error}")))?;
        let directory = path.parent().unwrap_or(Path::new("")).to_owned();
        Ok(Self::new(path.display().to_string(), directory, path.canonicalize().ok(), text))
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The canonical path of the file; `None` for a text that is not one.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// The place of the byte at `offset`, which begins a character or ends the text.
    pub fn span(self: &Arc<Self>, offset: usize) -> Span {
        Span::new(self, offset)
    }

    fn new(name: String, directory: PathBuf, file: Option<PathBuf>, text: String) -> Self {
        let starts = text.match_indices('\n').map(|(at, _)| at + 1);
        let line_starts = std::iter::once(0).chain(starts).collect();
        Self { name, directory, file, imports: Imports::Anywhere, text, line_starts }
    }

    /// The same text, with less that it may import.
    #[must_use]
    pub fn with_imports(self, imports: Imports) -> Self {
        Self { imports, ..self }
    }

    /// Index of the line that holds the byte at `offset`, from 0.
    fn line_index(&self, offset: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= offset).saturating_sub(1)
    }

    fn line_text(&self, index: usize) -> &str {
        let start = self.line_starts[index];
        let end = self.line_starts.get(index + 1).map_or(self.text.len(), |next| next - 1);
        self.text[start..end].trim_end_matches('\r')
    }
}

/// A place in a [`Source`], and the imports through which it came to stand where it stands.
#[derive(Clone)]
pub struct Span {
    pub(crate) source: Arc<Source>,
    offset: usize,
    pub(crate) imported: Option<Arc<Import>>,
}

/// One `import` that was carried out.
pub(crate) struct Import {
    /// The `import` itself.
    pub at: Span,
    /// The snippet's name; `None` for a file.
    pub snippet: Option<String>,
}

impl Span {
    pub(crate) fn new(source: &Arc<Source>, offset: usize) -> Self {
        Self { source: Arc::clone(source), offset, imported: None }
    }

    pub(crate) fn imported_by(&self, import: &Arc<Import>) -> Self {
        Self { imported: Some(Arc::clone(import)), ..self.clone() }
    }

    pub fn source_name(&self) -> &str {
        &self.source.name
    }

    /// The directory of the file; of a text that is none, what its relative imports start from.
    pub fn directory(&self) -> &Path {
        &self.source.directory
    }

    /// Whether it stands in a file, and not in a text that came by another way.
    pub fn is_in_file(&self) -> bool {
        self.source.file.is_some()
    }

    /// Of the first byte, in the text of the file.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// From 1.
    pub fn line(&self) -> usize {
        self.source.line_index(self.offset) + 1
    }

    /// In characters, from 1.
    pub fn column(&self) -> usize {
        self.before().chars().count() + 1
    }

    /// The `import` lines that brought this place here, innermost first.
    pub fn imports(&self) -> impl Iterator<Item = &Span> {
        self.import_chain().map(|import| &import.at)
    }

    pub(crate) fn import_chain(&self) -> impl Iterator<Item = &Import> {
        std::iter::successors(self.imported.as_deref(), |import| import.at.imported.as_deref())
    }

    /// The whole line.
    pub fn line_text(&self) -> &str {
        self.source.line_text(self.source.line_index(self.offset))
    }

    /// The whole line, and below it a caret under the column.
    pub fn excerpt(&self) -> String {
        let line = self.line_text();
        let padding: String = self.before().chars().map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        format!("{line}\n{padding}^")
    }

    /// What stands on the line before this place.
    fn before(&self) -> &str {
        let start = self.source.line_starts[self.source.line_index(self.offset)];
        &self.source.text[start..self.offset]
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.source_name(), self.line(), self.column())
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Source({})", self.name)
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_the_caret_follows_tabs() {
        let source = Arc::new(Source::from_text("Caddyfile", "a\r\n\té b\n", Path::new("")));
        let span = Span::new(&source, "a\r\n\té ".len());
        assert_eq!(span.to_string(), "Caddyfile:2:4");
        assert_eq!(span.excerpt(), "\té b\n\t  ^");
    }

    #[test]
    fn the_end_of_the_text_is_a_place() {
        let source = Arc::new(Source::from_text("Caddyfile", "a\n", Path::new("")));
        assert_eq!(Span::new(&source, 2).to_string(), "Caddyfile:2:1");
    }
}
