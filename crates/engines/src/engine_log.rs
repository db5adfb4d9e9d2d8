//! Lines that engines have for the log.

mod pace;

use crate::kind::EngineKind;
use regent_wire::LogLine;

pub use pace::LogPace;

/// Logs at one of syslog's levels. (The target of an event has to be known to the compiler.)
macro_rules! log_at {
    ($level:expr, $target:literal, $($line:tt)*) => {
        match $level {
            0..=3 => tracing::error!(target: $target, $($line)*),
            4 => tracing::warn!(target: $target, $($line)*),
            5 | 6 => tracing::info!(target: $target, $($line)*),
            _ => tracing::debug!(target: $target, $($line)*),
        }
    };
}

/// What runs a request.
pub enum Subject {
    /// The script's path.
    Script(String),
    /// The native service's name.
    Service(String),
}

/// What a line says about the request that it came from.
pub struct Origin {
    subject: Subject,
    method: String,
    uri: String,
}

impl Origin {
    /// `method` and `uri`: as the client sent them.
    pub fn new(subject: Subject, method: &impl ToString, uri: &impl ToString) -> Self {
        Self { subject, method: method.to_string(), uri: uri.to_string() }
    }

    pub fn log(&self, line: &LogLine) {
        let message = String::from_utf8_lossy(&line.message);
        let context = String::from_utf8_lossy(&line.context);
        let Self { subject, method, uri } = self;
        match subject {
            Subject::Script(script) => {
                log_at!(line.level, "php", script, method, uri, %context, "{message}");
            }
            Subject::Service(service) => {
                log_at!(line.level, "native", service, method, uri, %context, "{message}");
            }
        }
    }
}

/// A line that belongs to no request. `context`: a JSON object, whose fields are those of the line; or empty.
pub fn log_line(kind: EngineKind, level: u8, message: &str, context: &str) {
    match kind {
        EngineKind::Php => log_at!(level, "php", %context, "{message}"),
        EngineKind::Native => log_at!(level, "native", %context, "{message}"),
    }
}
