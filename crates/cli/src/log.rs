//! The server's own log: JSON with the field names that Caddy's users' tools know, or text on a terminal.

mod samples;

use anyhow::{Context, Result};
use regent_config::{
    LogFormat, LogKeys, LogLevel, LogLevelFormat, LogOutput, LogPrefix, LogTemplate, LogTime, ServerLog,
};
use regent_server::{LogKind, LogWriter, RollingFile, log_template, log_time, visible};
use samples::Samples;
use serde_json::{Map, Value};
use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::{FilterExt, LevelFilter, dynamic_filter_fn, filter_fn};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry};

/// The server's logs, where they are written.
#[derive(Clone)]
pub struct ServerLogs(Arc<[(LogOutput, Sink)]>);

/// Where logs write that have the same output.
#[derive(Clone)]
struct Sink(Arc<Mutex<Output>>);

/// Sends all logs of the server where the configuration says. Once.
pub fn start(logs: &[ServerLog]) -> Result<ServerLogs> {
    let mut sinks: Vec<(LogOutput, Sink)> = Vec::new();
    let mut layers = Vec::new();
    for log in logs {
        let output = &log.config.output;
        let known = sinks.iter().find(|(known, _)| known == output).map(|(_, sink)| sink.clone());
        let sink = match known {
            Some(sink) => sink,
            None => {
                let sink = Sink(Arc::new(Mutex::new(Output::open(output)?)));
                sinks.push((output.clone(), sink.clone()));
                sink
            }
        };
        layers.push(layer(log, sink));
    }
    tracing_subscriber::registry().with(layers).init();
    Ok(ServerLogs(sinks.into()))
}

fn layer(log: &ServerLog, sink: Sink) -> Box<dyn Layer<Registry> + Send + Sync> {
    let ServerLog { config, selection, .. } = log;
    let terminal = sink.output().is_terminal();
    let shape = match config.format {
        LogFormat::Json => Shape::Json,
        LogFormat::Console => Shape::Console,
        LogFormat::Auto if terminal => Shape::Console,
        LogFormat::Auto => Shape::Json,
    };
    let lines = Lines {
        shape,
        template: config.template.clone(),
        time: config.time_format.clone(),
        level: config.level_format,
        keys: config.keys.clone(),
        append: config.append.clone(),
        prefix: config.prefix,
        colour: if terminal { Colour::On } else { Colour::Off },
    };
    let (selection, level) = (selection.clone(), level(config.level));
    let is_meant =
        filter_fn(move |metadata| selection.is_all() || selection.allows(logger(metadata.target())));
    let layer = tracing_subscriber::fmt::layer().with_writer(move || sink.clone()).event_format(lines);
    match &config.sampling {
        None => layer.with_filter(level.and(is_meant)).boxed(),
        Some(rules) => {
            let samples = Samples::new(rules.clone());
            let is_taken = dynamic_filter_fn(move |metadata, _| samples.take(metadata));
            layer.with_filter(level.and(is_meant).and(is_taken)).boxed()
        }
    }
}

impl ServerLogs {
    /// Opens their files again, after a rotation has renamed them; until that succeeds, lines go to the old ones.
    pub fn reopen(&self) {
        for (_, sink) in &*self.0 {
            let result = sink.output().reopen();
            if let Err(error) = result {
                tracing::error!("cannot open the server's log again; the old file is kept: {error:#}");
            }
        }
    }

    /// Sends what waits for a collector when it is dropped. What is said after that goes to the standard error.
    pub fn closed_at_end(&self) -> ClosedAtEnd {
        ClosedAtEnd(self.clone())
    }
}

impl Sink {
    fn output(&self) -> MutexGuard<'_, Output> {
        // Nobody panics while it writes; and if so, a line is torn.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See [`ServerLogs::closed_at_end`].
pub struct ClosedAtEnd(ServerLogs);

impl Drop for ClosedAtEnd {
    fn drop(&mut self) {
        for (_, sink) in &*self.0.0 {
            let mut output = sink.output();
            if matches!(*output, Output::Net(_)) {
                let net = std::mem::replace(&mut *output, Output::Stderr(io::stderr()));
                // Not while others wait for the log.
                drop(output);
                drop(net);
            }
        }
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.output().write(bytes)
    }

    /// Not to be torn by the lines of other threads.
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.output().write_all(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output().flush()
    }
}

/// Where lines go.
enum Output {
    Stderr(io::Stderr),
    Stdout(io::Stdout),
    File(RollingFile),
    Net(LogWriter),
    Discard,
}

/// The form of a line.
#[derive(Debug, Clone, Copy)]
enum Shape {
    Json,
    Console,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Colour {
    On,
    Off,
}

struct Lines {
    shape: Shape,
    /// What a line of JSON is turned into.
    template: Option<LogTemplate>,
    /// `None`: as the shape has it.
    time: Option<LogTime>,
    level: LogLevelFormat,
    keys: LogKeys,
    /// Fields that every line has.
    append: Vec<(String, String)>,
    prefix: LogPrefix,
    colour: Colour,
}

impl Output {
    fn open(output: &LogOutput) -> Result<Self> {
        Ok(match output {
            LogOutput::Stderr => Self::Stderr(io::stderr()),
            LogOutput::Stdout => Self::Stdout(io::stdout()),
            LogOutput::Discard => Self::Discard,
            LogOutput::Net(net) => LogWriter::start(output, LogKind::Server)
                .with_context(|| {
                    let address = &net.address;
                    format!("cannot send the server's log to {address}; start what listens there, or say `soft_start` to begin without it")
                })?
                .map_or(Self::Discard, Self::Net),
            LogOutput::File(file) => Self::File(
                RollingFile::open(file)
                    .with_context(|| format!("opening the log file {}", file.path.display()))?,
            ),
        })
    }

    fn reopen(&mut self) -> Result<()> {
        if let Self::File(file) = self {
            file.reopen().with_context(|| format!("opening the log file {}", file.path().display()))?;
        }
        Ok(())
    }

    fn is_terminal(&self) -> bool {
        match self {
            Self::Stderr(stream) => stream.is_terminal(),
            Self::Stdout(stream) => stream.is_terminal(),
            Self::File(_) | Self::Net(_) | Self::Discard => false,
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stderr(stream) => stream.write(bytes),
            Self::Stdout(stream) => stream.write(bytes),
            Self::File(file) => {
                // A line is one write. What goes wrong cannot be said in this log, which is locked.
                if let Err(error) = file.make_room(bytes.len() as u64) {
                    eprintln!("no new file can be begun for the server's log: {error}");
                }
                file.write(bytes)
            }
            // It is written by a thread of its own: a collector that hangs holds up nobody.
            Self::Net(writer) => {
                writer.write(bytes.to_vec());
                Ok(bytes.len())
            }
            Self::Discard => Ok(bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stderr(stream) => stream.flush(),
            Self::Stdout(stream) => stream.flush(),
            Self::File(file) => file.flush(),
            Self::Net(_) | Self::Discard => Ok(()),
        }
    }
}

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let metadata = event.metadata();
        if self.prefix == LogPrefix::Journald {
            out.write_str(priority(metadata.level()))?;
        }
        match self.shape {
            Shape::Json => self.json(&mut out, metadata.level(), metadata.target(), fields),
            Shape::Console => self.console(&mut out, metadata.level(), fields),
        }
    }
}

/// The field in which a line of an engine brings fields of its own, as a JSON object.
const CONTEXT: &str = "context";

/// An event's message and fields; empty ones are left out.
#[derive(Default)]
struct Fields {
    message: String,
    others: Map<String, Value>,
    context: Map<String, Value>,
}

impl Fields {
    fn add(&mut self, field: &Field, value: Value) {
        if field.name() == "message" {
            self.message = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        } else if field.name() == CONTEXT
            && let Some(Ok(context)) = value.as_str().map(serde_json::from_str)
        {
            self.context = context;
        } else if value.as_str() != Some("") {
            self.others.insert(field.name().to_owned(), value);
        }
    }
}

/// Adds what a script gives its line. A name that the line has already keeps its value, and the script's is `context.NAME`.
fn add_context(line: &mut Map<String, Value>, context: Map<String, Value>) {
    for (name, value) in context {
        let name = if line.contains_key(&name) { format!("{CONTEXT}.{name}") } else { name };
        line.insert(name, value);
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, Value::String(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, Value::String(value.to_owned()));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value.into());
    }
}

impl Lines {
    fn json(&self, out: &mut Writer<'_>, level: &Level, target: &str, fields: Fields) -> fmt::Result {
        let mut line = Map::new();
        let mut insert = |key: &str, value| {
            if !key.is_empty() {
                line.insert(key.to_owned(), value);
            }
        };
        insert(&self.keys.level, self.level(level, LogLevelFormat::Lower).into());
        let now = SystemTime::now();
        let time = match self.time.as_ref().map(|format| log_time::written(format, now)) {
            Some((text, false)) => text.into(),
            Some((number, true)) => serde_json::from_str(&number).unwrap_or_default(),
            None => now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64().into(),
        };
        insert(&self.keys.time, time);
        insert(&self.keys.name, logger(target).into());
        insert(&self.keys.message, fields.message.into());
        line.extend(fields.others);
        line.extend(self.append.iter().map(|(name, value)| (name.clone(), value.as_str().into())));
        add_context(&mut line, fields.context);
        let mut text = Vec::new();
        visible::write_json(&line, &mut text);
        let text = String::from_utf8_lossy(&text);
        let Some(template) = &self.template else { return writeln!(out, "{text}") };
        let mut line = String::new();
        log_template::write(template, &text, &mut line);
        out.write_str(&line)
    }

    fn console(&self, out: &mut Writer<'_>, level: &Level, fields: Fields) -> fmt::Result {
        let second =
            || OffsetDateTime::now_utc().replace_nanosecond(0).ok().and_then(|now| now.format(&Rfc3339).ok());
        let time = match &self.time {
            Some(format) => log_time::written(format, SystemTime::now()).0,
            None => second().unwrap_or_default(),
        };
        let (start, end) = match (self.colour, *level) {
            (Colour::Off, _) => ("", ""),
            (Colour::On, Level::ERROR) => ("\x1b[31m", "\x1b[0m"),
            (Colour::On, Level::WARN) => ("\x1b[33m", "\x1b[0m"),
            (Colour::On, _) => ("\x1b[32m", "\x1b[0m"),
        };
        let level = self.level(level, LogLevelFormat::Upper);
        // The journal has the time.
        if self.prefix == LogPrefix::None {
            write!(out, "{time} ")?;
        }
        write!(out, "{start}{level:<5}{end} {}", printable(&fields.message))?;
        let mut others = fields.others;
        add_context(&mut others, fields.context);
        for (name, value) in others {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            write!(out, "  {name}={}", printable(&text))?;
        }
        for (name, value) in &self.append {
            write!(out, "  {name}={}", printable(value))?;
        }
        out.write_char('\n')
    }

    fn level(&self, level: &Level, usual: LogLevelFormat) -> String {
        if self.level == LogLevelFormat::Color && self.colour == Colour::Off {
            return log_level(level).coloured().to_owned();
        }
        let format = if self.level == LogLevelFormat::Auto { usual } else { self.level };
        let written = level.as_str();
        if format == LogLevelFormat::Lower { written.to_ascii_lowercase() } else { written.to_owned() }
    }
}

/// sd-daemon(3).
fn priority(level: &Level) -> &'static str {
    match *level {
        Level::ERROR => "<3>",
        Level::WARN => "<4>",
        Level::INFO => "<6>",
        _ => "<7>",
    }
}

/// `php` for lines of PHP, the part of Regent otherwise: `server`, `http`.
fn logger(target: &str) -> &str {
    target.split("::").next().unwrap_or(target).trim_start_matches("regent_")
}

/// What a script logs must not move a terminal's cursor, nor look like what it is not.
fn printable(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => printable.push(c),
            c if c.is_control() => printable.push('\u{fffd}'),
            c if visible::misleads(c) => printable.extend(c.escape_unicode()),
            c => printable.push(c),
        }
    }
    printable
}

fn log_level(level: &Level) -> LogLevel {
    match *level {
        Level::ERROR => LogLevel::Error,
        Level::WARN => LogLevel::Warn,
        Level::INFO => LogLevel::Info,
        _ => LogLevel::Debug,
    }
}

fn level(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Error => LevelFilter::ERROR,
    }
}

#[cfg(test)]
mod tests;
