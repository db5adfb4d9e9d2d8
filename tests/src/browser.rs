//! A visitor's browser: it keeps cookies from one request to the next.

use crate::{Request, Response, Server};
use std::collections::BTreeMap;
use std::sync::Mutex;

pub struct Browser<'a> {
    server: &'a Server,
    cookies: Mutex<BTreeMap<String, String>>,
}

impl<'a> Browser<'a> {
    pub fn new(server: &'a Server) -> Self {
        Self { server, cookies: Mutex::default() }
    }

    pub fn get(&self, target: &str) -> Response {
        self.send(self.server.request("GET", target))
    }

    /// Submits an HTML form.
    pub fn submit(&self, target: &str, fields: &[(&str, &str)]) -> Response {
        self.send(self.server.request("POST", target).form(fields))
    }

    /// Sends the cookies along and keeps those that come back.
    pub fn send(&self, request: Request) -> Response {
        let mut cookies = self.cookies.lock().expect("no visitor panics with it");
        let pairs: Vec<_> = cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let answer =
            if pairs.is_empty() { request.send() } else { request.header("Cookie", pairs.join("; ")).send() };
        for cookie in answer.header_all("set-cookie") {
            let pair = cookie.split(';').next().unwrap_or_default();
            if let Some((name, value)) = pair.split_once('=') {
                cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        answer
    }
}

/// The value of a form's hidden field.
pub fn hidden_field(page: &str, name: &str) -> String {
    let start = format!("name=\"{name}\" value=\"");
    let (_, rest) = page.split_once(&start).unwrap_or_else(|| panic!("no field {name} in {page}"));
    rest.split('"').next().unwrap_or_default().to_owned()
}
