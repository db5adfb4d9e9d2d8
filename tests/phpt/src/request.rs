//! The request that a test's sections describe, as run-tests.php builds it for php-cgi.

use std::path::Path;

use regent_tests::percent_encode;

use crate::phpt::Phpt;
use crate::settings::{Places, request_variables};

/// A request for a test's script, to be sent over HTTP or passed on by CGI.
pub struct Request {
    pub method: String,
    pub query: Vec<u8>,
    pub content_type: Option<String>,
    pub body: Option<Vec<u8>>,
    /// Header fields by their CGI variables: `HTTP_COOKIE`.
    pub headers: Vec<(String, Vec<u8>)>,
}

/// What came back: the header fields, and the body as run-tests.php compares it.
#[derive(Default)]
pub struct Answer {
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    pub fn get() -> Self {
        Self { method: "GET".into(), query: Vec::new(), content_type: None, body: None, headers: Vec::new() }
    }

    pub fn of(test: &Phpt, places: &Places<'_>) -> Self {
        let mut request = Self::get();
        let mut variables = request_variables(test, places);
        request.query = match variables.remove("QUERY_STRING").filter(|query| !query.is_empty()) {
            Some(query) => query.into_bytes(),
            None => trim(test.get("GET").unwrap_or_default()).to_vec(),
        };
        request.content_type = variables.remove("CONTENT_TYPE");
        request.take_body(test);
        if test.get("PUT").is_some() {
            request.method = "PUT".into();
        } else if let (Some(method), true) = (variables.remove("REQUEST_METHOD"), request.body.is_some()) {
            request.method = method;
        }
        let headers = variables.into_iter().filter(|(name, _)| name.starts_with("HTTP_"));
        request.headers.extend(headers.map(|(name, value)| (name, value.into_bytes())));
        if let Some(cookie) = test.get("COOKIE") {
            request.headers.push(("HTTP_COOKIE".into(), trim(cookie).to_vec()));
        }
        request
    }

    fn take_body(&mut self, test: &Phpt) {
        if let Some(raw) = test.get("POST_RAW").or(test.get("PUT")) {
            self.method = "POST".into();
            self.take_raw_body(trim(raw));
        } else if let Some(form) = test.get("POST") {
            self.method = "POST".into();
            self.content_type.get_or_insert("application/x-www-form-urlencoded".into());
            self.body = Some(trim(form).to_vec());
        }
    }

    /// The first line of a raw body that names its type is none of the body.
    fn take_raw_body(&mut self, raw: &[u8]) {
        let mut lines: Vec<&[u8]> = raw.split(|byte| *byte == b'\n').collect();
        if self.content_type.is_none() {
            let is_type = |line: &&[u8]| line.to_ascii_lowercase().starts_with(b"content-type:");
            if let Some(at) = lines.iter().position(is_type) {
                let line = String::from_utf8_lossy(lines.remove(at)).into_owned();
                self.content_type = line.split_once(':').map(|(_, value)| value.trim().to_owned());
            }
        }
        self.body = Some(lines.join(&b'\n'));
    }

    /// The bytes of it in HTTP/1.1, for a script below the site's root.
    pub fn to_http(&self, host: &str, script: &Path) -> Vec<u8> {
        let path: Vec<_> = script.iter().map(|part| percent_encode(&part.to_string_lossy())).collect();
        let mut head = format!("{} /{}", self.method, path.join("/")).into_bytes();
        if !self.query.is_empty() {
            head.push(b'?');
            head.extend(self.query.iter().flat_map(|byte| encode_in_query(*byte)));
        }
        head.extend_from_slice(format!(" HTTP/1.1\r\nHost: {host}\r\n").as_bytes());
        for (name, value) in &self.headers {
            let name = name.trim_start_matches("HTTP_").replace('_', "-");
            head.extend_from_slice(&[name.as_bytes(), b": ", &in_one_line(value), b"\r\n"].concat());
        }
        if let Some(content_type) = &self.content_type {
            head.extend_from_slice(format!("Content-Type: {content_type}\r\n").as_bytes());
        }
        if let Some(body) = &self.body {
            head.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
        }
        head.extend_from_slice(b"\r\n");
        head.extend_from_slice(self.body.as_deref().unwrap_or_default());
        head
    }
}

impl Answer {
    /// Takes header and body apart at the first empty line, as run-tests.php does with what php-cgi prints.
    pub fn from_cgi(output: &[u8]) -> Self {
        let mut end = 0;
        for line in output.split_inclusive(|byte| *byte == b'\n') {
            let start = end;
            end += line.len();
            if start > 0 && matches!(line, b"\n" | b"\r\n") {
                return Self { headers: header_fields(&output[..start]), body: comparable(&output[end..]) };
            }
        }
        Self { headers: Vec::new(), body: comparable(output) }
    }

    /// The value of the last field of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().rev().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// A text as it is compared: without white space at its ends, lines ending with a line feed.
pub fn comparable(text: &[u8]) -> Vec<u8> {
    let text = trim(text);
    let is_kept = |at: &usize| text[*at] != b'\r' || text.get(at + 1) != Some(&b'\n');
    (0..text.len()).filter(is_kept).map(|at| text[at]).collect()
}

/// PHP's trim().
pub fn trim(text: &[u8]) -> &[u8] {
    let is_white = |byte: &u8| b" \t\n\r\0\x0b".contains(byte);
    let Some(start) = text.iter().position(|byte| !is_white(byte)) else { return &[] };
    let end = text.iter().rposition(|byte| !is_white(byte)).unwrap_or(start);
    &text[start..=end]
}

fn header_fields(head: &[u8]) -> Vec<(String, String)> {
    let text = String::from_utf8_lossy(head);
    let fields = text.lines().filter_map(|line| line.split_once(':'));
    fields.map(|(name, value)| (name.trim().into(), value.trim().into())).collect()
}

/// A field's value cannot hold line ends, which a CGI variable can.
fn in_one_line(value: &[u8]) -> Vec<u8> {
    value.iter().map(|byte| if b"\r\n".contains(byte) { b' ' } else { *byte }).collect()
}

/// A byte of a query as clients send it: what no target may hold is percent-encoded.
fn encode_in_query(byte: u8) -> Vec<u8> {
    if byte.is_ascii_graphic() && !b"\"<>#".contains(&byte) {
        return vec![byte];
    }
    format!("%{byte:02X}").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_php_cgi_prints_is_taken_apart() {
        let answer = Answer::from_cgi(b"Status: 404 Not Found\r\nX-A: 1\r\nX-A: 2\r\n\r\n\r\na\r\nb \n");
        assert_eq!(answer.header("status"), Some("404 Not Found"));
        assert_eq!(answer.header("X-A"), Some("2"));
        assert_eq!(answer.body, b"a\nb");
        assert_eq!(Answer::from_cgi(b"no head").body, b"no head");
    }

    #[test]
    fn the_type_stands_above_a_raw_body() {
        let mut request = Request::get();
        request.take_raw_body(b"Content-Type: text/plain; charset=x\r\na\nContent-Type: b\n");
        assert_eq!(request.content_type.as_deref(), Some("text/plain; charset=x"));
        assert_eq!(request.body.as_deref(), Some(&b"a\nContent-Type: b\n"[..]));
    }

    #[test]
    fn a_request_goes_over_http() {
        let mut request = Request::get();
        request.query = b"a=\xe4 b&c[]=%20".to_vec();
        request.headers.push(("HTTP_X_A".into(), b"1;\n2".to_vec()));
        let sent = request.to_http("localhost", Path::new("tests/a b.php"));
        let wanted =
            "GET /tests/a%20b.php?a=%E4%20b&c[]=%20 HTTP/1.1\r\nHost: localhost\r\nX-A: 1; 2\r\n\r\n";
        assert_eq!(String::from_utf8_lossy(&sent), wanted);
    }

    #[test]
    fn trim_is_that_of_php() {
        assert_eq!(trim(b"\0 a \x0b\r\n"), b"a");
        assert_eq!(trim(b" \n"), b"");
    }
}
