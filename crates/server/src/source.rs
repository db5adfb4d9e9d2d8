//! Where configurations come from. The server itself knows no files of them.

use regent_admin::Language;
use regent_config::Config;
use std::path::PathBuf;
use std::sync::Arc;

/// Reads configurations. All of it may block; an error says all that is wrong, with file, line and column.
pub trait ConfigSource: Send + Sync + 'static {
    /// What is there now.
    fn read(&self, place: &Place) -> Result<Configuration, String>;

    /// What a Caddyfile means, as JSON, and warnings with their places.
    fn adapt(&self, text: &str) -> Result<(serde_json::Value, Vec<String>), String>;

    /// The server has loaded what is there, which is this configuration. It is called in the order of the changes.
    fn loaded(&self, from: Place, config: &Config);

    /// For another process that takes this one's place, where the current configuration is from; `None`: where the server was
    /// started with it.
    fn current(&self) -> Option<String>;
}

/// What a server is to do, and how it says so itself.
pub struct Configuration {
    pub config: Config,
    /// In JSON, as the admin API shows and changes it.
    pub document: Arc<serde_json::Value>,
}

/// Where a configuration is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Where the server was started with it.
    Own,
    /// `None`: the file's name says in what it is written.
    File(PathBuf, Option<Language>),
    Text(Language, String),
}
