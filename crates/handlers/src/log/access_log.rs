//! Access logs, with the field names of Caddy, so that what reads its logs reads ours.

use crate::context::exchange::Exchange;
use crate::error::BuildError;
use crate::log::head::{self, Head};
use crate::log::log_filter::{Change, LogFilters};
use crate::log::log_writer::{LogKind, LogWriter};
use crate::log::sampler::Sampler;
use crate::log::visible;
use crate::log::{log_template, log_time};
use crate::paths::host;
use crate::templates::placeholder::proto;
use http::{HeaderMap, HeaderName, StatusCode, header};
use regent_config::{
    LogConfig, LogCredentials, LogDuration, LogField, LogFormat, LogLevel, LogLevelFormat, LogOutput,
    LogPrefix, LogScope, LogTemplate, LogTime,
};
use regent_traces::TraceContext;
use std::borrow::Cow;
use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// One access log of a site. Writing a line never blocks.
#[derive(Clone)]
pub struct AccessLog {
    level: LogLevel,
    form: Arc<Form>,
    scope: LogScope,
    sampler: Option<Arc<Sampler>>,
    /// `None`: the output discards everything.
    writer: Option<Arc<LogWriter>>,
}

/// A request that has been answered.
pub struct AccessRecord<'a> {
    pub exchange: &'a Exchange,
    pub status: StatusCode,
    /// As it was sent.
    pub response_headers: &'a HeaderMap,
    /// Bytes of the request's body that were read.
    pub bytes_read: u64,
    /// Bytes of the answer's body that were sent.
    pub size: u64,
    /// From the end of the request's head to the end of the answer.
    pub duration: Duration,
    /// Whether it was run twice, because an engine died with it.
    pub is_retried: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Format {
    Json,
    Console,
}

/// What a line looks like.
#[derive(Debug)]
struct Form {
    format: Format,
    /// What a line of JSON is turned into.
    template: Option<LogTemplate>,
    prefix: LogPrefix,
    time: LogTime,
    level: LogLevelFormat,
    head: Head,
    duration: LogDuration,
    name: Option<String>,
    filters: LogFilters,
    append: Vec<(String, String)>,
    credentials: LogCredentials,
}

/// Where access logs of all sites and configurations go: those with the same output share a writer, so that no line is lost or
/// torn when one configuration follows another.
#[derive(Default)]
pub struct LogOutputs(Mutex<Vec<(LogOutput, Option<Arc<LogWriter>>)>>);

impl AccessLog {
    /// Writes a line, if the log's level lets it through: answers from 500 on are errors, the others are information, unless
    /// `log_level` says otherwise.
    pub fn write(&self, record: &AccessRecord<'_>) {
        let usual = if record.status.is_server_error() { LogLevel::Error } else { LogLevel::Info };
        let level = record.exchange.log_level().unwrap_or(usual);
        let Some(writer) = self.writer.as_ref().filter(|_| level >= self.level) else { return };
        if self.sampler.as_ref().is_none_or(|sampler| sampler.takes(Instant::now())) {
            writer.write(self.form.line(level, record, SystemTime::now()));
        }
    }

    /// Whether it is to have the request, if that is one of its site.
    pub(crate) fn has(&self, exchange: &Exchange) -> bool {
        match &self.scope {
            LogScope::All => true,
            LogScope::Hosts(hosts) => hosts.iter().any(|pattern| host::matches(pattern, &exchange.host)),
            LogScope::Named => false,
        }
    }

    pub(crate) fn name(&self) -> Option<&str> {
        self.form.name.as_deref()
    }
}

impl LogOutputs {
    /// Opens the files again, after they have been renamed by a log rotation. Returns before that is done; no line is lost.
    pub fn reopen(&self) {
        self.lock().iter().filter_map(|(_, writer)| writer.as_ref()).for_each(|writer| writer.reopen());
    }

    /// Closes the outputs that no log has any more. Blocks until their last lines are written.
    pub fn close_unused(&self) {
        let is_used = |writer: &Option<Arc<LogWriter>>| {
            writer.as_ref().is_some_and(|writer| Arc::strong_count(writer) > 1)
        };
        let unused: Vec<_> = self.lock().extract_if(.., |(_, writer)| !is_used(writer)).collect();
        drop(unused);
    }

    pub(crate) fn open(
        &self,
        config: &LogConfig,
        credentials: LogCredentials,
    ) -> Result<AccessLog, BuildError> {
        Ok(AccessLog {
            level: config.level,
            form: Arc::new(Form::compile(config, credentials)?),
            scope: config.scope.clone(),
            sampler: config.sampling.clone().map(|sampling| Arc::new(Sampler::new(sampling))),
            writer: self.writer(&config.output)?,
        })
    }

    /// Of several for the same file, the last says how it rolls.
    fn writer(&self, output: &LogOutput) -> Result<Option<Arc<LogWriter>>, BuildError> {
        let mut outputs = self.lock();
        if let Some((known, writer)) = outputs.iter_mut().find(|(known, _)| is_same(known, output)) {
            if let (LogOutput::File(file), Some(writer), true) = (output, &writer, known != output) {
                writer.configure(file);
                *known = output.clone();
            }
            return Ok(writer.clone());
        }
        let writer = LogWriter::start(output, LogKind::Access).map_err(|source| match output {
            LogOutput::File(file) => BuildError::AccessLog { path: file.path.clone(), source },
            LogOutput::Net(net) => BuildError::LogCollector { address: net.address.to_string(), source },
            _ => BuildError::LogThread(source),
        })?;
        let writer = writer.map(Arc::new);
        outputs.push((output.clone(), writer.clone()));
        Ok(writer)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(LogOutput, Option<Arc<LogWriter>>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_terminal(output: &LogOutput) -> bool {
    match output {
        LogOutput::Stderr => std::io::stderr().is_terminal(),
        LogOutput::Stdout => std::io::stdout().is_terminal(),
        LogOutput::File(_) | LogOutput::Net(_) | LogOutput::Discard => false,
    }
}

/// Whether lines for both go to the same place.
fn is_same(one: &LogOutput, other: &LogOutput) -> bool {
    match (one, other) {
        (LogOutput::File(one), LogOutput::File(other)) => one.path == other.path,
        _ => one == other,
    }
}

/// As a log of the format JSON has it.
pub(crate) fn json_line(level: LogLevel, record: &AccessRecord<'_>, now: SystemTime) -> Vec<u8> {
    let config = LogConfig { format: LogFormat::Json, ..LogConfig::default() };
    let form = Form::compile(&config, LogCredentials::Redacted);
    form.map(|form| form.line(level, record, now)).unwrap_or_default()
}

impl Form {
    fn compile(config: &LogConfig, credentials: LogCredentials) -> Result<Self, BuildError> {
        let format = match config.format {
            LogFormat::Json => Format::Json,
            LogFormat::Console => Format::Console,
            LogFormat::Auto if is_terminal(&config.output) => Format::Console,
            LogFormat::Auto => Format::Json,
        };
        let time = if format == Format::Json { LogTime::UnixSeconds } else { LogTime::WallMilliseconds };
        let mut keys = config.keys.clone();
        if config.prefix == LogPrefix::Journald && format == Format::Console {
            // The journal has it.
            keys.time.clear();
        }
        let name = config.name.as_ref().map(|name| format!(".{name}")).unwrap_or_default();
        Ok(Self {
            format,
            template: config.template.clone(),
            prefix: config.prefix,
            time: config.time_format.clone().unwrap_or(time),
            level: config.level_format,
            // The log's name stands behind that of all access logs.
            head: match format {
                Format::Json => Head::json(&keys, &format!("http.log.access{name}")),
                Format::Console => Head::console(&keys, &format!("http.log.access{name}")),
            },
            duration: config.duration_format,
            name: config.name.clone(),
            filters: LogFilters::compile(&config.filters)?,
            append: config.append.clone(),
            credentials,
        })
    }

    fn line(&self, level: LogLevel, record: &AccessRecord<'_>, now: SystemTime) -> Vec<u8> {
        let mut out = Vec::with_capacity(1024);
        if self.prefix == LogPrefix::Journald {
            out.extend_from_slice(match level {
                LogLevel::Error => b"<3>",
                LogLevel::Warn => b"<4>",
                LogLevel::Info => b"<6>",
                LogLevel::Debug => b"<7>",
            });
        }
        let Some(template) = &self.template else {
            self.push_fields(level, record, now, &mut out);
            return out;
        };
        let mut json = Vec::with_capacity(1024);
        self.push_fields(level, record, now, &mut json);
        let mut line = String::with_capacity(256);
        log_template::write(template, &String::from_utf8_lossy(&json), &mut line);
        out.extend_from_slice(line.as_bytes());
        out
    }

    fn push_fields(&self, level: LogLevel, record: &AccessRecord<'_>, now: SystemTime, out: &mut Vec<u8>) {
        let (time, is_number) = log_time::written(&self.time, now);
        let level = match self.level {
            LogLevelFormat::Color if self.format == Format::Json => {
                Cow::Owned(level.coloured().replace('\x1b', "\\u001b"))
            }
            LogLevelFormat::Color => Cow::Borrowed(level.coloured()),
            LogLevelFormat::Auto if self.format == Format::Json => Cow::Borrowed(level.as_str()),
            LogLevelFormat::Lower => Cow::Borrowed(level.as_str()),
            LogLevelFormat::Auto | LogLevelFormat::Upper => Cow::Owned(level.as_str().to_ascii_uppercase()),
        };
        let quote = if is_number || self.format == Format::Console { "" } else { "\"" };
        self.head.write(&level, &[quote, &time, quote], out);
        Fields { form: self, out }.push_all(record);
        out.extend_from_slice(b"}\n");
    }
}

/// The fields of a line, one behind the other.
struct Fields<'a> {
    form: &'a Form,
    out: &'a mut Vec<u8>,
}

impl Fields<'_> {
    fn push_all(&mut self, record: &AccessRecord<'_>) {
        self.name("request");
        self.out.push(b'{');
        self.push_request(record.exchange);
        self.out.push(b'}');
        self.number("bytes_read", &LogField::BytesRead, record.bytes_read);
        self.text("user_id", &LogField::UserId, record.exchange.user().unwrap_or_default().as_bytes());
        self.duration(record.duration);
        self.number("size", &LogField::Size, record.size);
        self.number("status", &LogField::Status, record.status.as_u16());
        self.headers("resp_headers", Side::Response, record.response_headers);
        if record.is_retried {
            self.name("retried");
            self.out.extend_from_slice(b"true");
        }
        if let Some(trace) = record.exchange.trace() {
            let TraceContext { trace, span, .. } = trace.context();
            self.pair("traceID", trace.to_string().as_bytes());
            self.pair("spanID", span.to_string().as_bytes());
        }
        for (name, value) in &self.form.append {
            self.pair_by_any_name(name, value.as_bytes());
        }
        for (name, value) in record.exchange.log_fields(record.response_headers) {
            self.pair_by_any_name(name, &value);
        }
    }

    fn duration(&mut self, duration: Duration) {
        let (name, field) = ("duration", &LogField::Duration);
        match self.form.duration {
            LogDuration::Seconds => self.number(name, field, format_args!("{:.9}", duration.as_secs_f64())),
            LogDuration::Milliseconds => {
                self.number(name, field, format_args!("{:.6}", duration.as_secs_f64() * 1e3));
            }
            LogDuration::Nanoseconds => self.number(name, field, duration.as_nanos()),
            LogDuration::Text => self.text(name, field, head::go_duration(duration).as_bytes()),
        }
    }

    fn push_request(&mut self, exchange: &Exchange) {
        let ip = exchange.connection.remote.map(|remote| remote.ip().to_string()).unwrap_or_default();
        let port = exchange.connection.remote.map(|remote| remote.port().to_string()).unwrap_or_default();
        let client = exchange.client_ip().map(|client| client.to_string()).unwrap_or_default();
        let uri = exchange.original_uri.path_and_query().map_or("", |target| target.as_str());
        self.text("remote_ip", &LogField::RemoteIp, ip.as_bytes());
        self.text("remote_port", &LogField::RemotePort, port.as_bytes());
        self.text("client_ip", &LogField::ClientIp, client.as_bytes());
        self.text("proto", &LogField::Proto, proto(exchange.version).as_bytes());
        self.text("method", &LogField::Method, exchange.original_method().as_str().as_bytes());
        self.text("host", &LogField::Host, exchange.host_port());
        self.text("uri", &LogField::Uri, uri.as_bytes());
        self.headers("headers", Side::Request, &exchange.headers);
    }

    fn text(&mut self, name: &str, field: &LogField, value: &[u8]) {
        match self.form.filters.of(field) {
            None => self.pair(name, value),
            Some(Change::Deleted) => {}
            Some(Change::Replaced(text)) => self.pair(name, text.as_bytes()),
            Some(Change::Renamed(name)) => self.pair_by_any_name(name, value),
            Some(Change::Edited(edit)) => self.pair(name, &edit.apply(value)),
        }
    }

    fn number(&mut self, name: &str, field: &LogField, value: impl Display) {
        match self.form.filters.of(field) {
            Some(Change::Deleted) => return,
            Some(Change::Replaced(text)) => return self.pair(name, text.as_bytes()),
            Some(Change::Renamed(name)) => self.any_name(name),
            _ => self.name(name),
        }
        // Writing to a vector cannot fail.
        let _ = write!(self.out, "{value}");
    }

    fn headers(&mut self, name: &str, side: Side, headers: &HeaderMap) {
        let field = if side == Side::Request { LogField::RequestHeaders } else { LogField::ResponseHeaders };
        match self.form.filters.of(&field) {
            Some(Change::Deleted) => return,
            Some(Change::Replaced(text)) => return self.pair(name, text.as_bytes()),
            Some(Change::Renamed(name)) => self.any_name(name),
            _ => self.name(name),
        }
        self.out.push(b'{');
        // `host` has a field of its own.
        for name in headers.keys().filter(|name| side == Side::Response || **name != header::HOST) {
            self.header(side, name, headers);
        }
        self.out.push(b'}');
    }

    fn header(&mut self, side: Side, name: &HeaderName, headers: &HeaderMap) {
        let filters = &self.form.filters;
        let change = match side {
            Side::Request => filters.of_request_header(name.as_str()),
            Side::Response => filters.of_response_header(name.as_str()),
        };
        match change {
            Some(Change::Deleted) => return,
            Some(Change::Replaced(text)) => return self.pair(&canonical(name), text.as_bytes()),
            Some(Change::Renamed(name)) => self.any_name(name),
            _ => self.name(&canonical(name)),
        }
        self.out.push(b'[');
        if is_secret(name) && self.form.credentials == LogCredentials::Redacted {
            self.out.extend_from_slice(b"\"REDACTED\"");
        } else {
            for (index, value) in headers.get_all(name).iter().enumerate() {
                if index > 0 {
                    self.out.push(b',');
                }
                let value = value.as_bytes();
                let value = match change {
                    Some(Change::Edited(edit)) => edit.apply(value),
                    _ => Cow::Borrowed(value),
                };
                push_string(&value, self.out);
            }
        }
        self.out.push(b']');
    }

    /// For names that somebody wrote.
    fn pair_by_any_name(&mut self, name: &str, value: &[u8]) {
        self.any_name(name);
        push_string(value, self.out);
    }

    fn any_name(&mut self, name: &str) {
        if self.out.last() != Some(&b'{') {
            self.out.push(b',');
        }
        push_string(name.as_bytes(), self.out);
        self.out.push(b':');
    }

    fn pair(&mut self, name: &str, value: &[u8]) {
        self.name(name);
        push_string(value, self.out);
    }

    /// With the comma before it, unless it is the first of its object. Names, those of headers too (RFC 9110 section 5.6.2),
    /// have nothing that JSON would have to escape.
    fn name(&mut self, name: &str) {
        if self.out.last() != Some(&b'{') {
            self.out.push(b',');
        }
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Request,
    Response,
}

fn is_secret(name: &HeaderName) -> bool {
    [header::COOKIE, header::SET_COOKIE, header::AUTHORIZATION, header::PROXY_AUTHORIZATION].contains(name)
}

/// `User-Agent`, as Go writes header names.
fn canonical(name: &HeaderName) -> String {
    let mut start = true;
    name.as_str()
        .chars()
        .map(|letter| {
            let upper = std::mem::replace(&mut start, letter == '-');
            if upper { letter.to_ascii_uppercase() } else { letter }
        })
        .collect()
}

/// A JSON string; bytes that are not UTF-8 become U+FFFD.
fn push_string(text: &[u8], out: &mut Vec<u8>) {
    visible::write_json(&String::from_utf8_lossy(text), out);
}

#[cfg(test)]
mod tests;
