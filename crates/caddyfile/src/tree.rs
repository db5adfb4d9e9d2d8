//! What the parser makes of a file: blocks of lines. Imports are already put in.

use crate::Span;

/// A whole Caddyfile with all that it imports.
#[derive(Debug, Clone, Default)]
pub struct File {
    /// The lines of the global options block; empty without one.
    pub global: Vec<Line>,
    pub sites: Vec<SiteBlock>,
    pub named_routes: Vec<NamedRoute>,
}

/// `&(name) { … }`: directives that sites can use by the name.
#[derive(Debug, Clone)]
pub struct NamedRoute {
    /// Without the brackets around it.
    pub name: Token,
    pub lines: Vec<Line>,
}

/// A site block: its addresses and its directives.
#[derive(Debug, Clone)]
pub struct SiteBlock {
    pub addresses: Vec<Token>,
    pub lines: Vec<Line>,
}

/// A directive, an option or a matcher: a name, arguments, and perhaps a block of further lines.
#[derive(Debug, Clone)]
pub struct Line {
    pub name: Token,
    pub args: Vec<Token>,
    /// `Some` even if nothing stands between the braces.
    pub block: Option<Vec<Line>>,
}

/// A word, without its quotes and with escapes undone.
#[derive(Debug, Clone)]
pub struct Token {
    pub text: String,
    /// Written in quotes, in backticks or as a heredoc.
    pub quoted: bool,
    pub span: Span,
}
