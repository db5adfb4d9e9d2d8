//! What matchers found, for the placeholders behind them.

/// Groups of a regular expression that matched.
#[derive(Debug, Clone)]
pub(crate) struct Captures {
    pub(crate) name: Option<String>,
    /// By number and, where they have one, by name.
    pub(crate) groups: Vec<(Option<String>, Vec<u8>)>,
}

/// A file that a `file` matcher found.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FileMatch {
    /// URL path, decoded.
    pub(crate) relative: Vec<u8>,
    pub(crate) absolute: Vec<u8>,
    pub(crate) kind: FileKind,
    /// What follows the split in the path.
    pub(crate) remainder: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileKind {
    File,
    Directory,
}

impl FileKind {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Directory => "directory",
        }
    }
}
