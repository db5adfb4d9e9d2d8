//! Where configurations come from. The server itself knows no files of them.

use regent_config::Config;
use std::path::{Path, PathBuf};

/// Reads configurations. All of it may block; an error says all that is wrong, with file, line and column.
pub trait ConfigSource: Send + Sync + 'static {
    /// What the server was started with, as it is now.
    fn read(&self) -> Result<Config, String>;

    /// Another file.
    fn read_file(&self, path: &Path) -> Result<Config, String>;

    /// The text of a Caddyfile.
    fn parse(&self, text: &str) -> Result<Config, String>;

    /// What a Caddyfile means, as JSON, and warnings with their places.
    fn adapt(&self, text: &str) -> Result<(serde_json::Value, Vec<String>), String>;

    /// The server has loaded what is there, which is this configuration. It is called in the order of the changes.
    fn loaded(&self, from: Place, config: &Config);

    /// For another process that takes this one's place, where the current configuration is from; `None`: where the server was
    /// started with it.
    fn current(&self) -> Option<String>;
}

/// Where a configuration is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Where the server was started with it.
    Own,
    File(PathBuf),
    /// The text of a Caddyfile.
    Text(String),
}

impl Place {
    pub(crate) fn read(&self, source: &dyn ConfigSource) -> Result<Config, String> {
        match self {
            Self::Own => source.read(),
            Self::File(path) => source.read_file(path),
            Self::Text(text) => source.parse(text),
        }
    }
}
