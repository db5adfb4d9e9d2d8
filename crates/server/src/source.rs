//! Where configurations come from. The server itself knows no files of them.

use regent_config::Config;
use std::path::Path;

/// Reads configurations. All of it may block; an error says all that is wrong, with file, line and column.
pub trait ConfigSource: Send + Sync + 'static {
    /// What the server was started with, as it is now.
    fn read(&self) -> Result<Config, String>;

    /// Another file.
    fn read_file(&self, path: &Path) -> Result<Config, String>;

    /// The text of a Caddyfile.
    fn parse(&self, text: &str) -> Result<Config, String>;
}
