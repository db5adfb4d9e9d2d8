//! Requests to an API server.

use crate::{Response, TlsClient};
use serde_json::Value;
use std::net::SocketAddr;
use std::path::Path;

/// As somebody who may do everything.
#[derive(Clone)]
pub struct Api {
    address: SocketAddr,
    client: TlsClient,
    token: String,
}

impl Api {
    pub(super) fn new(address: SocketAddr, certificate: &Path, token: &str) -> Self {
        Self { address, client: TlsClient::trusting(certificate), token: token.to_owned() }
    }

    /// `None`: it is not there, or does not answer yet.
    pub fn try_get(&self, path: &str) -> Option<Value> {
        let response = self.send("GET", path, "", "")?;
        (response.status == 200).then(|| serde_json::from_str(&response.text()).unwrap_or(Value::Null))
    }

    #[track_caller]
    pub fn get(&self, path: &str) -> Value {
        self.try_get(path).unwrap_or_else(|| panic!("{path} is there"))
    }

    /// What lists have in them.
    #[track_caller]
    pub fn list(&self, path: &str) -> Vec<Value> {
        self.get(path)["items"].as_array().cloned().unwrap_or_default()
    }

    /// `None`: there is no answer.
    pub fn send(&self, method: &str, path: &str, content_type: &str, body: &str) -> Option<Response> {
        let host = self.address.ip().to_string();
        let mut conn = self.client.try_connect(self.address, &host).ok()?;
        let kind = if body.is_empty() { String::new() } else { format!("Content-Type: {content_type}\r\n") };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\
             Accept: application/json\r\n{kind}Content-Length: {}\r\n\r\n{body}",
            self.token,
            body.len(),
        );
        conn.try_send(head).ok()?;
        conn.try_response(method).ok()?
    }

    /// Creates what the text describes.
    pub fn post(&self, path: &str, body: &Value) -> Option<Response> {
        self.send("POST", path, "application/json", &body.to_string())
    }
}
