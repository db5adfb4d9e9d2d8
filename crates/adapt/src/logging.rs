//! `logging`, and `logs` of servers.

mod access;
mod encoder;
mod writer;

pub(crate) use access::AccessLogs;

use crate::Writer;
use crate::object::{Object, nanoseconds};
use regent_config::{LogConfig, LogLevel, LogSampling, LogSelection, ServerLog};

/// What access logs with a name are called.
const ACCESS: &str = "http.log.access.";

impl Writer<'_> {
    /// The logs of the server, and those of sites that servers have named before.
    pub(crate) fn logging(&self) -> Object {
        let accesses = self.access_logs.borrow();
        let mut logs = Object::new();
        for (index, log) in self.config.global.server_logs().iter().enumerate() {
            let ServerLog { name, config, selection } = log;
            let LogSelection { include, exclude } = selection;
            let own = accesses.names().map(|name| format!("{ACCESS}{name}"));
            // What goes its own way is not in the default log too.
            let mut left_out: Vec<String> =
                own.filter(|name| index == 0 && !exclude.contains(name)).collect();
            left_out.splice(0..0, exclude.iter().cloned());
            let mut object = self::log(config);
            object.set_list("include", include.iter().cloned());
            object.set_list("exclude", left_out);
            if index > 0 || !object.is_empty() {
                logs.set(name, object);
            }
        }
        for (name, config) in accesses.all() {
            let mut object = self::log(config);
            object.set("include", vec![format!("{ACCESS}{name}")]);
            logs.set(logs.free_name(name), object);
        }
        let mut logging = Object::new();
        logging.non_empty("logs", logs);
        logging
    }
}

/// Without whose lines it has.
fn log(config: &LogConfig) -> Object {
    let LogConfig {
        output,
        format: _,
        template: _,
        prefix: _,
        time_format: _,
        level_format: _,
        keys: _,
        duration_format: _,
        level,
        filters: _,
        append: _,
        // Of an access log: servers say it.
        name: _,
        scope: _,
        sampling,
    } = config;
    let mut object = Object::new();
    object.set_some("writer", writer::writer(output));
    object.set_some("encoder", encoder::encoder(config));
    object.set_some("level", level_name(*level));
    object.set_some("sampling", sampling.as_ref().map(self::sampling));
    object
}

fn level_name(level: LogLevel) -> Option<&'static str> {
    match level {
        LogLevel::Debug => Some("DEBUG"),
        LogLevel::Info => None,
        LogLevel::Warn => Some("WARN"),
        LogLevel::Error => Some("ERROR"),
    }
}

fn sampling(sampling: &LogSampling) -> Object {
    let LogSampling { interval, first, thereafter } = sampling;
    let mut object = Object::new();
    object.set("interval", nanoseconds(*interval));
    object.set("first", *first);
    object.set("thereafter", *thereafter);
    object
}
