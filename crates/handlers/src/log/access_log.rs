//! Access logs, with the field names of Caddy, so that what reads its logs reads ours.

use crate::context::exchange::Exchange;
use crate::error::BuildError;
use crate::log::log_filter::{Filtered, LogFilters, edit_query};
use crate::log::log_writer::LogWriter;
use crate::log::visible;
use crate::templates::placeholder::proto;
use http::{HeaderMap, HeaderName, StatusCode, header};
use regent_config::{LogConfig, LogField, LogFormat, LogLevel, LogOutput};
use std::borrow::Cow;
use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use time::OffsetDateTime;
use time::macros::format_description;

/// One access log of a site. Writing a line never blocks.
#[derive(Clone)]
pub struct AccessLog {
    level: LogLevel,
    format: Format,
    filters: LogFilters,
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
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Format {
    Json,
    Console,
}

/// Where access logs of all sites and configurations go: those with the same output share a writer, so that no line is lost or
/// torn when one configuration follows another.
#[derive(Default)]
pub struct LogOutputs(Mutex<Vec<(LogOutput, Option<Arc<LogWriter>>)>>);

impl AccessLog {
    /// Writes a line, if the log's level lets it through: answers from 500 on are errors, the others are information.
    pub fn write(&self, record: &AccessRecord<'_>) {
        let level = if record.status.is_server_error() { LogLevel::Error } else { LogLevel::Info };
        if let Some(writer) = self.writer.as_ref().filter(|_| level >= self.level) {
            writer.write(line(self.format, &self.filters, level, record, SystemTime::now()));
        }
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

    pub(crate) fn open(&self, config: &LogConfig) -> Result<AccessLog, BuildError> {
        let format = match config.format {
            LogFormat::Json => Format::Json,
            LogFormat::Console => Format::Console,
            LogFormat::Auto if is_terminal(&config.output) => Format::Console,
            LogFormat::Auto => Format::Json,
        };
        let filters = LogFilters::new(&config.filters);
        Ok(AccessLog { level: config.level, format, filters, writer: self.writer(&config.output)? })
    }

    fn writer(&self, output: &LogOutput) -> Result<Option<Arc<LogWriter>>, BuildError> {
        let mut outputs = self.lock();
        if let Some((_, writer)) = outputs.iter().find(|(known, _)| known == output) {
            return Ok(writer.clone());
        }
        let writer = LogWriter::start(output).map_err(|source| match output {
            LogOutput::File(path) => BuildError::AccessLog { path: path.clone(), source },
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
        LogOutput::File(_) | LogOutput::Discard => false,
    }
}

/// As a log of the format JSON has it.
pub(crate) fn json_line(level: LogLevel, record: &AccessRecord<'_>, now: SystemTime) -> Vec<u8> {
    line(Format::Json, &LogFilters::default(), level, record, now)
}

fn line(
    format: Format,
    filters: &LogFilters,
    level: LogLevel,
    record: &AccessRecord<'_>,
    now: SystemTime,
) -> Vec<u8> {
    let level = if level == LogLevel::Error { "error" } else { "info" };
    let mut out = Vec::with_capacity(1024);
    match format {
        Format::Json => {
            let ts = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
            let head = format!(
                "{{\"level\":\"{level}\",\"ts\":{ts:.6},\"logger\":\"http.log.access\",\"msg\":\"handled request\""
            );
            out.extend_from_slice(head.as_bytes());
        }
        Format::Console => {
            let format =
                format_description!("[year]/[month]/[day] [hour]:[minute]:[second].[subsecond digits:3]");
            let time = OffsetDateTime::from(now).format(format).unwrap_or_default();
            let head = format!("{time}\t{}\thttp.log.access\thandled request\t{{", level.to_uppercase());
            out.extend_from_slice(head.as_bytes());
        }
    }
    Fields { filters, out: &mut out }.push_all(record);
    out.extend_from_slice(b"}\n");
    out
}

/// The fields of a line, one behind the other.
struct Fields<'a> {
    filters: &'a LogFilters,
    out: &'a mut Vec<u8>,
}

impl Fields<'_> {
    fn push_all(&mut self, record: &AccessRecord<'_>) {
        self.name("request");
        self.out.push(b'{');
        self.push_request(record.exchange);
        self.out.push(b'}');
        self.number("bytes_read", &LogField::BytesRead, record.bytes_read);
        self.text("user_id", &LogField::UserId, b"");
        let duration = format_args!("{:.9}", record.duration.as_secs_f64());
        self.number("duration", &LogField::Duration, duration);
        self.number("size", &LogField::Size, record.size);
        self.number("status", &LogField::Status, record.status.as_u16());
        self.headers("resp_headers", Side::Response, record.response_headers);
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
        match self.filters.of(field) {
            Filtered::Unchanged => self.pair(name, value),
            Filtered::Deleted => {}
            Filtered::Replaced(text) => self.pair(name, text.as_bytes()),
            Filtered::Edited(edits) => self.pair(name, &edit_query(value, edits)),
        }
    }

    fn number(&mut self, name: &str, field: &LogField, value: impl Display) {
        match self.filters.of(field) {
            Filtered::Unchanged | Filtered::Edited(_) => {
                self.name(name);
                // Writing to a vector cannot fail.
                let _ = write!(self.out, "{value}");
            }
            Filtered::Deleted => {}
            Filtered::Replaced(text) => self.pair(name, text.as_bytes()),
        }
    }

    fn headers(&mut self, name: &str, side: Side, headers: &HeaderMap) {
        let field = if side == Side::Request { LogField::RequestHeaders } else { LogField::ResponseHeaders };
        match self.filters.of(&field) {
            Filtered::Unchanged | Filtered::Edited(_) => {}
            Filtered::Deleted => return,
            Filtered::Replaced(text) => return self.pair(name, text.as_bytes()),
        }
        self.name(name);
        self.out.push(b'{');
        // `host` has a field of its own.
        for name in headers.keys().filter(|name| side == Side::Response || **name != header::HOST) {
            self.header(side, name, headers);
        }
        self.out.push(b'}');
    }

    fn header(&mut self, side: Side, name: &HeaderName, headers: &HeaderMap) {
        let filtered = match side {
            Side::Request => self.filters.of_request_header(name.as_str()),
            Side::Response => self.filters.of_response_header(name.as_str()),
        };
        let edits = match filtered {
            Filtered::Unchanged => &[][..],
            Filtered::Deleted => return,
            Filtered::Replaced(text) => return self.pair(&canonical(name), text.as_bytes()),
            Filtered::Edited(edits) => edits,
        };
        self.name(&canonical(name));
        self.out.push(b'[');
        if is_secret(name) {
            self.out.extend_from_slice(b"\"REDACTED\"");
        } else {
            for (index, value) in headers.get_all(name).iter().enumerate() {
                if index > 0 {
                    self.out.push(b',');
                }
                let value = value.as_bytes();
                let value = if edits.is_empty() { Cow::Borrowed(value) } else { edit_query(value, edits) };
                push_string(&value, self.out);
            }
        }
        self.out.push(b']');
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
mod tests {
    use super::*;
    use crate::context::exchange::tests::request;
    use regent_config::{LogAction, LogFilter, QueryEdit};
    use serde_json::{Value, json};

    fn logged(format: Format, status: StatusCode) -> String {
        filtered(format, status, &[])
    }

    fn filtered(format: Format, status: StatusCode, filters: &[LogFilter]) -> String {
        let headers = [
            ("host", "Example.com:8080"),
            ("user-agent", "a\"b"),
            ("cookie", "sid=1"),
            ("authorization", "Basic x"),
        ];
        let exchange = request("POST", "/a%20b?q=1", &headers);
        let mut response_headers = HeaderMap::new();
        response_headers.append("x-y", "1".parse().unwrap());
        response_headers.append("x-y", "2".parse().unwrap());
        response_headers.append("set-cookie", "secret".parse().unwrap());
        let record = AccessRecord {
            exchange: &exchange,
            status,
            response_headers: &response_headers,
            bytes_read: 3,
            size: 10,
            duration: Duration::from_millis(5),
        };
        let level = if status.is_server_error() { LogLevel::Error } else { LogLevel::Info };
        let filters = LogFilters::new(filters);
        let line =
            line(format, &filters, level, &record, UNIX_EPOCH + Duration::from_millis(1_500_000_000_250));
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn json_lines_are_those_of_caddy() {
        let line = logged(Format::Json, StatusCode::OK);
        assert!(line.ends_with("}\n"));
        let value: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(
            value,
            json!({
                "level": "info", "ts": 1_500_000_000.25, "logger": "http.log.access", "msg": "handled request",
                "request": {
                    "remote_ip": "192.0.2.7", "remote_port": "5000", "client_ip": "192.0.2.7", "proto": "HTTP/1.1",
                    "method": "POST", "host": "Example.com:8080", "uri": "/a%20b?q=1",
                    "headers": { "User-Agent": ["a\"b"], "Cookie": ["REDACTED"], "Authorization": ["REDACTED"] },
                },
                "bytes_read": 3, "user_id": "", "duration": 0.005, "size": 10, "status": 200,
                "resp_headers": { "X-Y": ["1", "2"], "Set-Cookie": ["REDACTED"] },
            })
        );
    }

    #[test]
    fn filters_change_what_is_written() {
        let filter = |field, action| LogFilter { field, action };
        let edit = QueryEdit { parameter: "q".into(), value: Some("X".into()) };
        let filters = [
            filter(LogField::Uri, LogAction::Query(vec![edit])),
            filter(LogField::RemoteIp, LogAction::Delete),
            filter(LogField::Status, LogAction::Replace("fine".into())),
            filter(LogField::RequestHeader("user-agent".into()), LogAction::Delete),
            filter(LogField::RequestHeader("cookie".into()), LogAction::Replace("none".into())),
            filter(LogField::ResponseHeaders, LogAction::Delete),
        ];
        for format in [Format::Json, Format::Console] {
            let line = filtered(format, StatusCode::OK, &filters);
            let fields = line.rsplit('\t').next().unwrap();
            let value: Value = serde_json::from_str(fields).unwrap();
            let request = &value["request"];
            assert_eq!(request["uri"], "/a%20b?q=X");
            assert_eq!(request["headers"], json!({ "Cookie": "none", "Authorization": ["REDACTED"] }));
            assert!(request.get("remote_ip").is_none() && value.get("resp_headers").is_none(), "{line}");
            assert_eq!(value["status"], "fine");
        }
    }

    #[test]
    fn a_line_without_any_field_is_still_json() {
        let of_request = [
            LogField::RemoteIp,
            LogField::RemotePort,
            LogField::ClientIp,
            LogField::Proto,
            LogField::Method,
            LogField::Host,
            LogField::Uri,
            LogField::RequestHeaders,
        ];
        let filters: Vec<_> =
            of_request.map(|field| LogFilter { field, action: LogAction::Delete }).into_iter().collect();
        let value: Value = serde_json::from_str(&filtered(Format::Json, StatusCode::OK, &filters)).unwrap();
        assert_eq!((&value["request"], &value["size"]), (&json!({}), &json!(10)));
    }

    #[test]
    fn console_lines_have_the_time_first() {
        let line = logged(Format::Console, StatusCode::BAD_GATEWAY);
        let (head, fields) = line.split_once("\thandled request\t").unwrap();
        assert_eq!(head, "2017/07/14 02:40:00.250\tERROR\thttp.log.access");
        assert_eq!(serde_json::from_str::<Value>(fields).unwrap()["status"], 502);
    }

    #[test]
    fn the_level_filters_and_equal_outputs_share_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("access.log");
        let config =
            |level| LogConfig { output: LogOutput::File(path.clone()), level, ..LogConfig::default() };
        let outputs = LogOutputs::default();
        let errors = outputs.open(&config(LogLevel::Error)).unwrap();
        let all = outputs.open(&config(LogLevel::Info)).unwrap();
        let exchange = request("GET", "/", &[]);
        for (log, status) in [(&errors, 200), (&errors, 500), (&all, 200)] {
            log.write(&AccessRecord {
                exchange: &exchange,
                status: StatusCode::from_u16(status).unwrap(),
                response_headers: &HeaderMap::new(),
                bytes_read: 0,
                size: 0,
                duration: Duration::ZERO,
            });
        }
        drop((errors, all, outputs));
        let statuses: Vec<_> = std::fs::read_to_string(path)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["status"].clone())
            .collect();
        assert_eq!(statuses, [500, 200]);
    }

    #[test]
    fn a_log_that_cannot_be_opened_is_a_build_error() {
        let output = LogOutput::File("/nonexistent-directory/access.log".into());
        let config = LogConfig { output, ..LogConfig::default() };
        let error = LogOutputs::default().open(&config).err().unwrap();
        assert!(error.to_string().contains("/nonexistent-directory/access.log"), "{error}");
    }
}
