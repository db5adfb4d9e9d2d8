use super::*;
use crate::context::exchange::tests::request;
use regent_config::{LogAction, LogFile, LogFilter, LogKeys, ValueAction, ValueEdit};
use serde_json::{Value, json};
use std::path::Path;
use std::time::UNIX_EPOCH;

fn file(path: &Path) -> LogOutput {
    LogOutput::File(LogFile { path: path.to_owned(), mode: None, directory_mode: None, rolling: None })
}

fn logged(format: Format, status: StatusCode) -> String {
    filtered(format, status, &[])
}

fn filtered(format: Format, status: StatusCode, filters: &[LogFilter]) -> String {
    let format = if format == Format::Json { LogFormat::Json } else { LogFormat::Console };
    let config = LogConfig { format, filters: filters.to_vec(), ..LogConfig::default() };
    written(&config, LogCredentials::Redacted, status)
}

fn written(config: &LogConfig, credentials: LogCredentials, status: StatusCode) -> String {
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
        is_retried: false,
    };
    let level = if status.is_server_error() { LogLevel::Error } else { LogLevel::Info };
    let now = UNIX_EPOCH + Duration::from_millis(1_500_000_000_250);
    let line = Form::compile(config, credentials).unwrap().line(level, &record, now);
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
    let edit = ValueEdit { name: "q".into(), action: ValueAction::Replace("X".into()) };
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
    let config = |level| LogConfig { output: file(&path), level, ..LogConfig::default() };
    let outputs = LogOutputs::default();
    let errors = outputs.open(&config(LogLevel::Error), LogCredentials::Redacted).unwrap();
    let all = outputs.open(&config(LogLevel::Info), LogCredentials::Redacted).unwrap();
    let exchange = request("GET", "/", &[]);
    for (log, status) in [(&errors, 200), (&errors, 500), (&all, 200)] {
        log.write(&AccessRecord {
            exchange: &exchange,
            status: StatusCode::from_u16(status).unwrap(),
            response_headers: &HeaderMap::new(),
            bytes_read: 0,
            size: 0,
            duration: Duration::ZERO,
            is_retried: false,
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
    let output = file(Path::new("/proc/access.log"));
    let config = LogConfig { output, ..LogConfig::default() };
    let error = LogOutputs::default().open(&config, LogCredentials::Redacted).err().unwrap();
    assert!(error.to_string().contains("/proc/access.log"), "{error}");
}

#[test]
fn names_times_and_levels_are_as_configured() {
    let config = LogConfig {
        format: LogFormat::Json,
        time_format: Some(LogTime::Iso8601),
        level_format: LogLevelFormat::Upper,
        name: Some("app".into()),
        append: vec![("region \"1\"".into(), "eu".into())],
        ..LogConfig::default()
    };
    let value: Value =
        serde_json::from_str(&written(&config, LogCredentials::Shown, StatusCode::OK)).unwrap();
    assert_eq!([&value["level"], &value["ts"]], ["INFO", "2017-07-14T02:40:00.250Z"]);
    assert_eq!([&value["logger"], &value["region \"1\""]], ["http.log.access.app", "eu"]);
    assert_eq!(value["request"]["headers"]["Cookie"], json!(["sid=1"]));
    assert_eq!(value["resp_headers"]["Set-Cookie"], json!(["secret"]));
}

#[test]
fn the_journal_is_told_how_bad_it_is() {
    let line = |format, status| {
        let config = LogConfig { format, prefix: LogPrefix::Journald, ..LogConfig::default() };
        written(&config, LogCredentials::Redacted, status)
    };
    assert!(line(LogFormat::Json, StatusCode::OK).starts_with("<6>{\"level\":\"info\",\"ts\":15"));
    let console = line(LogFormat::Console, StatusCode::BAD_GATEWAY);
    assert!(console.starts_with("<3>ERROR\thttp.log.access\thandled request\t{"), "{console}");
}

#[test]
fn keys_and_durations_are_as_configured() {
    let keys = LogKeys {
        level: String::new(),
        time: "time".into(),
        message: "message".into(),
        ..LogKeys::default()
    };
    let config = LogConfig {
        format: LogFormat::Json,
        keys,
        duration_format: LogDuration::Milliseconds,
        ..LogConfig::default()
    };
    let line = |config: &LogConfig| -> Value {
        serde_json::from_str(&written(config, LogCredentials::Redacted, StatusCode::OK)).unwrap()
    };
    let value = line(&config);
    assert_eq!([&value["time"], &value["message"]], [&json!(1_500_000_000.25), &json!("handled request")]);
    assert_eq!(["level", "ts", "msg"].map(|name| value.get(name)), [None; 3]);
    assert_eq!(value["duration"], json!(5.0));
    let text = line(&LogConfig { duration_format: LogDuration::Text, ..config.clone() });
    assert_eq!(text["duration"], json!("5ms"));
    let nanoseconds = line(&LogConfig { duration_format: LogDuration::Nanoseconds, ..config });
    assert_eq!(nanoseconds["duration"], json!(5_000_000));
}

#[test]
fn addresses_are_masked_and_fields_renamed() {
    let filter = |field, action| LogFilter { field, action };
    let filters = [
        filter(LogField::RemoteIp, LogAction::IpMask { v4: 16, v6: 32 }),
        filter(LogField::Uri, LogAction::Regexp { pattern: "a(%20)b".into(), replacement: "x${1}y".into() }),
        filter(LogField::Status, LogAction::Rename("code".into())),
        filter(LogField::RequestHeader("user-agent".into()), LogAction::Rename("agent".into())),
    ];
    let value: Value = serde_json::from_str(&filtered(Format::Json, StatusCode::OK, &filters)).unwrap();
    assert_eq!([&value["request"]["remote_ip"], &value["request"]["uri"]], ["192.0.0.0", "/x%20y?q=1"]);
    assert_eq!((&value["code"], value.get("status")), (&json!(200), None));
    assert_eq!(value["request"]["headers"]["agent"], json!(["a\"b"]));
}
