//! The server behind the cache: it says what the step of a case has it say, and notes what it is asked.

use super::case::{Manner, Says};
use crate::upstream::{Received, Upstream, receive};
use std::collections::HashMap;
use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The field by which a response tells in which run it was made.
pub const RUN: &str = "Run";

/// Ends when it is dropped.
pub struct Origin {
    upstream: Upstream,
    cases: Arc<Cases>,
}

type Cases = Mutex<HashMap<String, Own>>;

/// What the origin knows of a case.
#[derive(Default)]
pub struct Own {
    says: Option<Says>,
    /// The bodies of the responses that it has made; a response says which it is of.
    bodies: Vec<String>,
    /// What it was asked since the last step has begun.
    asked: Vec<Received>,
}

impl Origin {
    pub fn start() -> Self {
        let cases = Arc::<Cases>::default();
        let known = Arc::clone(&cases);
        let upstream = Upstream::talking(move |stream, connection| talk(&stream, connection, &known));
        Self { upstream, cases }
    }

    pub fn address(&self) -> SocketAddr {
        self.upstream.address()
    }

    /// From now on it says this; its dates are dates already. Gives the number of runs so far.
    pub fn begin_step(&self, id: &str, says: Says) -> usize {
        let mut cases = lock(&self.cases);
        let own = cases.entry(id.to_owned()).or_default();
        own.says = Some(says);
        own.asked.clear();
        own.bodies.len()
    }

    /// What it was asked in this step.
    pub fn asked(&self, id: &str) -> Vec<Received> {
        lock(&self.cases).get(id).map(|own| own.asked.clone()).unwrap_or_default()
    }

    /// The body of a run, from 1.
    pub fn body_of(&self, id: &str, run: usize) -> Option<String> {
        lock(&self.cases).get(id)?.bodies.get(run.checked_sub(1)?).cloned()
    }
}

fn lock(cases: &Cases) -> MutexGuard<'_, HashMap<String, Own>> {
    cases.lock().unwrap_or_else(PoisonError::into_inner)
}

fn talk(stream: &TcpStream, connection: usize, cases: &Cases) {
    let mut reader = BufReader::new(stream.try_clone().expect("a descriptor"));
    while let Some(request) = receive(&mut reader, connection) {
        let Some((bytes, goes_on)) = answer(request, cases) else { return };
        let mut stream = stream;
        if stream.write_all(&bytes).is_err() || !goes_on {
            return;
        }
    }
}

/// The bytes, and whether the connection stays. `None`: it hangs up.
fn answer(request: Received, cases: &Cases) -> Option<(Vec<u8>, bool)> {
    let target = request.line().split(' ').nth(1).unwrap_or_default();
    let id = target.trim_start_matches('/').split(['/', '?']).next().unwrap_or_default().to_owned();
    let mut cases = lock(cases);
    let Some(own) = cases.get_mut(&id) else {
        return Some((b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec(), true));
    };
    let says = own.says.clone()?;
    let has_condition =
        !request.field("if-none-match").is_empty() || !request.field("if-modified-since").is_empty();
    let is_head = request.line().starts_with("HEAD ");
    own.asked.push(request);
    match says.manner {
        Manner::HangsUp => None,
        Manner::GoodStill if has_condition => Some((head(304, &says.fields), true)),
        _ => Some(own.made(&id, &says, is_head)),
    }
}

impl Own {
    fn made(&mut self, id: &str, says: &Says, is_head: bool) -> (Vec<u8>, bool) {
        let run = self.bodies.len() + 1;
        let body = says.body.map_or_else(|| format!("{id}, run {run}\n"), Into::into);
        self.bodies.push(body.clone());
        let mut fields = says.fields.clone();
        fields.push(format!("{RUN}: {run}"));
        let has_body = !matches!(says.status, 204 | 304);
        if has_body && !fields.iter().any(|field| is_length(field)) {
            fields.push(format!("Content-Length: {}", body.len()));
        }
        let mut bytes = match &says.manner {
            Manner::Interim(status, fields) => head(*status, &[(*fields).to_owned()]),
            _ => Vec::new(),
        };
        bytes.extend(head(says.status, &fields));
        match says.manner {
            Manner::BreaksOff => {
                bytes.extend_from_slice(&body.as_bytes()[..body.len() / 2]);
                (bytes, false)
            }
            _ if is_head || !has_body => (bytes, true),
            _ => {
                bytes.extend_from_slice(body.as_bytes());
                (bytes, true)
            }
        }
    }
}

fn is_length(field: &str) -> bool {
    field.split(':').next().is_some_and(|name| name.eq_ignore_ascii_case("content-length"))
}

fn head(status: u16, fields: &[String]) -> Vec<u8> {
    let fields: String =
        fields.iter().filter(|field| !field.is_empty()).map(|field| format!("{field}\r\n")).collect();
    format!("HTTP/1.1 {status} Said\r\n{fields}\r\n").into_bytes()
}
