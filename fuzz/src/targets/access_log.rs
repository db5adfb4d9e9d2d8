//! Access logs: whatever a client sends, a request is one line of JSON that says what was sent.
//!
//! Lines: method, target, host, then fields `name: value`; those behind an empty line are of the answer.

use crate::input::Input;
use http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode};
use regent_exchange::Connection;
use regent_handlers::fuzzing::access_log_line;
use regent_handlers::{AccessRecord, Exchange};
use serde_json::Value;
use std::time::Duration;

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let request = Request::builder().method(input.line()).uri(input.line());
    let Ok(mut request) = request.body(()) else { return };
    let host = input.line();
    *request.headers_mut() = fields(&mut input);
    if let Ok(host) = HeaderValue::from_bytes(host) {
        request.headers_mut().insert(http::header::HOST, host);
    }
    let response_headers = fields(&mut input);
    let exchange = Exchange::new(
        request.into_parts().0,
        Connection { remote: Some(([192, 0, 2, 7], 5000).into()), ..Connection::default() },
    );
    let record = AccessRecord {
        is_retried: false,
        exchange: &exchange,
        status: StatusCode::OK,
        response_headers: &response_headers,
        bytes_read: 1,
        size: 2,
        duration: Duration::from_millis(3),
    };
    assert_one_line(&access_log_line(&record), exchange.original_method().as_str(), &response_headers);
}

fn assert_one_line(line: &[u8], method: &str, response_headers: &HeaderMap) {
    let (end, rest) = line.split_last().expect("not empty");
    assert_eq!(*end, b'\n');
    assert!(rest.iter().all(|byte| !byte.is_ascii_control()), "a terminal would obey it");
    let value: Value = serde_json::from_slice(rest).expect("JSON");
    assert_eq!(value["request"]["method"], method);
    let logged = value["resp_headers"].as_object().expect("an object");
    assert_eq!(logged.len(), response_headers.keys_len());
    for (name, values) in logged {
        let sent = response_headers.get_all(name.as_str()).iter();
        for (logged, sent) in values.as_array().expect("a list").iter().zip(sent) {
            let sent = String::from_utf8_lossy(sent.as_bytes());
            assert!(logged == "REDACTED" || *logged == *sent, "{name}: {logged} instead of {sent}");
        }
    }
}

fn fields(input: &mut Input<'_>) -> HeaderMap {
    let mut fields = HeaderMap::new();
    while !input.is_empty() {
        let line = input.line();
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { break };
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(&line[..colon]), value) {
            fields.append(name, value);
        }
    }
    fields
}
