//! Logs: the server's own, and access logs.

use super::{LogFilter, LogTemplate, as_text};
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Where a log goes and how it looks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LogConfig {
    pub output: LogOutput,
    pub format: LogFormat,
    /// What lines of JSON are turned into (`format transform`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<LogTemplate>,
    #[serde(skip_serializing_if = "LogPrefix::is_none")]
    pub prefix: LogPrefix,
    /// `None`: seconds as a number in JSON, `2026/05/04 03:02:01.678` otherwise.
    pub time_format: Option<LogTime>,
    pub level_format: LogLevelFormat,
    #[serde(skip_serializing_if = "LogKeys::is_default")]
    pub keys: LogKeys,
    /// Only of access logs.
    #[serde(skip_serializing_if = "LogDuration::is_default")]
    pub duration_format: LogDuration,
    pub level: LogLevel,
    /// What is written otherwise than it was, at most once for each field, in lines of access logs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<LogFilter>,
    /// Fields that every line has beside its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub append: Vec<(String, String)>,
    /// What `log_name` calls it. Only of access logs.
    pub name: Option<String>,
    /// Which requests of the site an access log has.
    pub scope: LogScope,
    pub sampling: Option<LogSampling>,
}

/// A log of the server, which several parts of it may write.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServerLog {
    /// `default` for the one that is there in any case.
    pub name: String,
    #[serde(flatten)]
    pub config: LogConfig,
    #[serde(flatten)]
    pub selection: LogSelection,
}

/// Whose lines a log has, by the names of their loggers: `http` stands for `http.log.access` too.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct LogSelection {
    /// Empty: all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<String>,
    /// Unless a longer name is in `include`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
}

/// Which requests of a site an access log has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum LogScope {
    All,
    /// Those for these hosts, in lower case; `*` stands for one label.
    Hosts(Vec<String>),
    /// Those that `log_name` names it for.
    Named,
}

/// Of the lines of each interval, the first are written, and of the others one in so many.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogSampling {
    pub interval: Duration,
    pub first: u64,
    /// 0: none of the others.
    pub thereafter: u64,
}

/// When the value of a field is looked at that `log_append` adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum LogAppendTime {
    /// As the route is gone through.
    Early,
    /// When the line is written.
    Late,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum LogOutput {
    Stderr,
    Stdout,
    File(LogFile),
    Net(LogNet),
    Discard,
}

/// A collector that lines are sent to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogNet {
    pub address: LogAddress,
    /// How long one try to connect may take. Default: 10 s.
    pub dial_timeout: Duration,
    pub start: LogNetStart,
}

/// Where a collector listens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum LogAddress {
    Tcp {
        host: String,
        port: u16,
    },
    /// One datagram for each line.
    Udp {
        host: String,
        port: u16,
    },
    /// A stream.
    Unix(#[serde(serialize_with = "as_text")] PathBuf),
}

/// What becomes of a start at which the collector cannot be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum LogNetStart {
    Fails,
    /// `soft_start`.
    GoesOn,
}

/// A file that lines are appended to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LogFile {
    #[serde(serialize_with = "as_text")]
    pub path: PathBuf,
    /// Permissions of a file that is made. `None`: as the process makes files.
    pub mode: Option<u32>,
    /// Permissions of directories that are made. `None`: as the process makes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory_mode: Option<LogDirectoryMode>,
    /// `None`: it grows for ever.
    pub rolling: Option<LogRolling>,
}

/// Of directories for a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum LogDirectoryMode {
    Fixed(u32),
    /// That of the directory above.
    Inherited,
}

/// When a file is followed by a new one, and what becomes of the old.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LogRolling {
    /// Bytes that a file may have. Default: 100 MiB.
    pub size: u64,
    /// How long a file is written to; more than 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Duration>,
    /// Minutes of the day at which a new one begins, by UTC; in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub at: Vec<u16>,
    /// Old files. Default: 10.
    pub keep: Option<u32>,
    /// Since a file was followed. Default: 90 days.
    pub keep_for: Option<Duration>,
    /// Default: true.
    pub compress: bool,
    /// How, if so.
    #[serde(skip_serializing_if = "LogCompression::is_default")]
    pub compression: LogCompression,
}

/// How old files of a log are compressed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub enum LogCompression {
    /// `.gz`
    #[default]
    Gzip,
    /// `.zst`
    Zstd,
}

impl LogCompression {
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum LogFormat {
    /// `console` on a terminal, `json` elsewhere.
    Auto,
    Json,
    Console,
}

/// What stands before a line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub enum LogPrefix {
    #[default]
    None,
    /// `<6>`: how bad it is, as systemd's journal takes it from what a service writes (sd-daemon(3)). Lines for people are
    /// without a time then, which the journal has.
    Journald,
}

impl LogPrefix {
    fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// How times are written; all of them in UTC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum LogTime {
    /// 1777863721.678
    UnixSeconds,
    /// 1777863721678.9
    UnixMilliseconds,
    /// 1777863721678900000
    UnixNanoseconds,
    /// 2026-05-04T03:02:01.678Z
    Iso8601,
    /// 2026-05-04T03:02:01Z
    Rfc3339,
    /// 2026-05-04T03:02:01.678900000Z
    Rfc3339Nanoseconds,
    /// 2026/05/04 03:02:01
    Wall,
    /// 2026/05/04 03:02:01.678
    WallMilliseconds,
    /// 2026/05/04 03:02:01.678900000
    WallNanoseconds,
    /// 04/May/2026:03:02:01 +0000
    CommonLog,
    /// A layout of Go's, in which `2006-01-02 15:04:05` stands for day and time; without characters that JSON escapes.
    Layout(String),
}

/// What is called how that every line has. Empty: lines do not have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogKeys {
    pub level: String,
    pub time: String,
    /// Whose line it is.
    pub name: String,
    pub message: String,
}

/// How the duration of a request is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub enum LogDuration {
    /// 0.0015
    #[default]
    Seconds,
    /// 1.5
    Milliseconds,
    /// 1500000
    Nanoseconds,
    /// `1.5ms`, as Go writes it.
    Text,
}

/// How levels are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum LogLevelFormat {
    /// `lower` in JSON, `upper` otherwise.
    Auto,
    Lower,
    Upper,
    /// As `Upper`, with the codes of terminals for colours.
    Color,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum LogLevel {
    Debug,
    Info,
    Warn,
    Error,
}

impl LogLevel {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }

    /// In upper case, in the colours of zap's `CapitalColorLevelEncoder`.
    pub fn coloured(self) -> &'static str {
        match self {
            Self::Debug => "\x1b[35mDEBUG\x1b[0m",
            Self::Info => "\x1b[34mINFO\x1b[0m",
            Self::Warn => "\x1b[33mWARN\x1b[0m",
            Self::Error => "\x1b[31mERROR\x1b[0m",
        }
    }
}

impl LogSelection {
    /// As Caddy has it (logging.go, `loggerAllowed`): of two names that fit, the longer one counts.
    pub fn allows(&self, logger: &str) -> bool {
        let fits = |name: &String| {
            logger.strip_prefix(name.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let longest = |names: &[String]| names.iter().filter(|name| fits(name)).map(String::len).max();
        match (longest(&self.include), longest(&self.exclude)) {
            (None, _) if !self.include.is_empty() => false,
            (included, Some(excluded)) => included.is_some_and(|included| included > excluded),
            (_, None) => true,
        }
    }

    pub fn is_all(&self) -> bool {
        self.include.is_empty() && self.exclude.is_empty()
    }
}

impl fmt::Display for LogAddress {
    /// As it is written in a Caddyfile.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (network, host, port) = match self {
            Self::Tcp { host, port } => ("tcp", host, port),
            Self::Udp { host, port } => ("udp", host, port),
            Self::Unix(path) => return write!(f, "unix/{}", path.display()),
        };
        match host.contains(':') {
            true => write!(f, "{network}/[{host}]:{port}"),
            false => write!(f, "{network}/{host}:{port}"),
        }
    }
}

impl LogDuration {
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl LogKeys {
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for LogKeys {
    /// As in Caddy.
    fn default() -> Self {
        Self { level: "level".into(), time: "ts".into(), name: "logger".into(), message: "msg".into() }
    }
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            output: LogOutput::Stderr,
            format: LogFormat::Auto,
            template: None,
            prefix: LogPrefix::None,
            time_format: None,
            level_format: LogLevelFormat::Auto,
            keys: LogKeys::default(),
            duration_format: LogDuration::Seconds,
            level: LogLevel::Info,
            filters: Vec::new(),
            append: Vec::new(),
            name: None,
            scope: LogScope::All,
            sampling: None,
        }
    }
}

impl Default for LogRolling {
    /// As in Caddy (modules/logging/filewriter.go).
    fn default() -> Self {
        Self {
            size: 100 << 20,
            interval: None,
            at: Vec::new(),
            keep: Some(10),
            keep_for: Some(Duration::from_secs(90 * 24 * 3600)),
            compress: true,
            compression: LogCompression::Gzip,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longer_name_counts() {
        let selection = |include: &[&str], exclude: &[&str]| LogSelection {
            include: include.iter().map(ToString::to_string).collect(),
            exclude: exclude.iter().map(ToString::to_string).collect(),
        };
        assert!(LogSelection::default().allows("php"));
        let access = selection(&["http.log.access"], &["http.log.access.b"]);
        assert!(access.allows("http.log.access") && access.allows("http.log.access.a"));
        assert!(!access.allows("http.log.access.b") && !access.allows("http") && !access.allows("php"));
        assert!(!access.allows("http.log.accessory"));
        let others = selection(&[], &["http.log", "php"]);
        assert!(others.allows("http") && others.allows("tls"));
        assert!(!others.allows("php") && !others.allows("http.log.access.a"));
    }
}
