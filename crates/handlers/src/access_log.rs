//! Access logs, with the field names of Caddy, so that what reads its logs reads ours.

use crate::error::BuildError;
use crate::exchange::Exchange;
use crate::log_writer::LogWriter;
use crate::placeholder::proto;
use crate::visible;
use http::{HeaderMap, HeaderName, StatusCode, header};
use regent_config::{LogConfig, LogFormat, LogLevel, LogOutput};
use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use time::OffsetDateTime;
use time::macros::format_description;

/// One access log of a site. Writing a line never blocks.
#[derive(Clone)]
pub struct AccessLog {
    level: LogLevel,
    format: Format,
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

/// Logs of one build: those with the same output share a writer.
#[derive(Default)]
pub(crate) struct LogOutputs(Vec<(LogOutput, Option<Arc<LogWriter>>)>);

impl AccessLog {
    /// Writes a line, if the log's level lets it through: answers from 500 on are errors, the others are information.
    pub fn write(&self, record: &AccessRecord<'_>) {
        let level = if record.status.is_server_error() { LogLevel::Error } else { LogLevel::Info };
        if let Some(writer) = self.writer.as_ref().filter(|_| level >= self.level) {
            writer.write(line(self.format, level, record, SystemTime::now()));
        }
    }

    /// Opens the file again, after it has been renamed by a log rotation.
    pub fn reopen(&self) {
        if let Some(writer) = &self.writer {
            writer.reopen();
        }
    }
}

impl LogOutputs {
    pub(crate) fn open(&mut self, config: &LogConfig) -> Result<AccessLog, BuildError> {
        let format = match config.format {
            LogFormat::Json => Format::Json,
            LogFormat::Console => Format::Console,
            LogFormat::Auto if is_terminal(&config.output) => Format::Console,
            LogFormat::Auto => Format::Json,
        };
        Ok(AccessLog { level: config.level, format, writer: self.writer(&config.output)? })
    }

    fn writer(&mut self, output: &LogOutput) -> Result<Option<Arc<LogWriter>>, BuildError> {
        if let Some((_, writer)) = self.0.iter().find(|(known, _)| known == output) {
            return Ok(writer.clone());
        }
        let writer = LogWriter::start(output).map_err(|source| match output {
            LogOutput::File(path) => BuildError::AccessLog { path: path.clone(), source },
            _ => BuildError::LogThread(source),
        })?;
        let writer = writer.map(Arc::new);
        self.0.push((output.clone(), writer.clone()));
        Ok(writer)
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
    line(Format::Json, level, record, now)
}

fn line(format: Format, level: LogLevel, record: &AccessRecord<'_>, now: SystemTime) -> Vec<u8> {
    let level = if level == LogLevel::Error { "error" } else { "info" };
    let mut out = Vec::with_capacity(1024);
    match format {
        Format::Json => {
            let ts = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
            let head = format!(
                "{{\"level\":\"{level}\",\"ts\":{ts:.6},\"logger\":\"http.log.access\",\"msg\":\"handled request\","
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
    push_fields(record, &mut out);
    out.extend_from_slice(b"}\n");
    out
}

fn push_fields(record: &AccessRecord<'_>, out: &mut Vec<u8>) {
    let exchange = record.exchange;
    let ip = exchange.connection.remote.map(|remote| remote.ip().to_string()).unwrap_or_default();
    let port = exchange.connection.remote.map(|remote| remote.port().to_string()).unwrap_or_default();
    out.extend_from_slice(b"\"request\":{\"remote_ip\":");
    push_string(ip.as_bytes(), out);
    out.extend_from_slice(b",\"remote_port\":");
    push_string(port.as_bytes(), out);
    out.extend_from_slice(b",\"client_ip\":");
    push_string(ip.as_bytes(), out);
    out.extend_from_slice(b",\"proto\":");
    push_string(proto(exchange.version).as_bytes(), out);
    out.extend_from_slice(b",\"method\":");
    push_string(exchange.original_method().as_str().as_bytes(), out);
    out.extend_from_slice(b",\"host\":");
    push_string(exchange.host_port(), out);
    out.extend_from_slice(b",\"uri\":");
    let uri = exchange.original_uri.path_and_query().map_or("", |target| target.as_str());
    push_string(uri.as_bytes(), out);
    out.extend_from_slice(b",\"headers\":");
    push_headers(&exchange.headers, Side::Request, out);
    // Writing to a vector cannot fail.
    let _ = write!(
        out,
        "}},\"bytes_read\":{},\"user_id\":\"\",\"duration\":{:.9},\"size\":{},\"status\":{},\"resp_headers\":",
        record.bytes_read,
        record.duration.as_secs_f64(),
        record.size,
        record.status.as_u16(),
    );
    push_headers(record.response_headers, Side::Response, out);
}

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Request,
    Response,
}

fn push_headers(headers: &HeaderMap, side: Side, out: &mut Vec<u8>) {
    out.push(b'{');
    // `host` has a field of its own.
    let names = headers.keys().filter(|name| side == Side::Response || **name != header::HOST);
    for (index, name) in names.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        push_string(canonical(name).as_bytes(), out);
        out.extend_from_slice(b":[");
        if is_secret(name) {
            out.extend_from_slice(b"\"REDACTED\"");
        } else {
            for (index, value) in headers.get_all(name).iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                push_string(value.as_bytes(), out);
            }
        }
        out.push(b']');
    }
    out.push(b'}');
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
    use crate::exchange::tests::request;
    use serde_json::{Value, json};

    fn logged(format: Format, status: StatusCode) -> String {
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
        let line = line(format, level, &record, UNIX_EPOCH + Duration::from_millis(1_500_000_000_250));
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
            |level| LogConfig { output: LogOutput::File(path.clone()), format: LogFormat::Auto, level };
        let mut outputs = LogOutputs::default();
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
