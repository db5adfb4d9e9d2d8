//! Clients of the load: HTTP/1.1 over a connection that is kept, or over a new one each time, and HTTP/2 over TLS.

use super::question::{Answer, Question, ROUND};
use crate::h2::{Failure, Http2};
use crate::{Conn, DEADLINE, TlsClient};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::runtime::Handle;
use tokio::time::timeout;

/// How often a request may be sent anew that the server has not taken, since it was about to close the connection.
const TRIES: usize = 3;

/// Who asks one question after the other.
pub enum Client {
    Http1 { address: SocketAddr, kept: Option<Conn> },
    Http2(Arc<Line>),
}

/// Over which connection a question goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    Kept,
    New,
}

/// A connection of HTTP/2 that several clients share; another takes its place when the server ends it.
pub struct Line {
    runtime: Handle,
    tls: TlsClient,
    address: SocketAddr,
    current: Mutex<Current>,
}

#[derive(Default)]
struct Current {
    /// How many there were before.
    number: usize,
    connection: Option<Http2>,
}

impl Client {
    pub fn http1(address: SocketAddr) -> Self {
        Self::Http1 { address, kept: None }
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// When there is none: the connection is refused, or breaks.
    pub fn ask(&mut self, question: &Question, over: Over) -> Result<Answer, String> {
        match self {
            Self::Http1 { address, kept } => match over {
                Over::Kept => ask_kept(*address, kept, question),
                Over::New => {
                    let mut conn =
                        Conn::try_open(*address).map_err(|error| format!("no connection: {error}"))?;
                    ask_http1(&mut conn, question, "close").map(|(answer, _)| answer)
                }
            },
            Self::Http2(line) => line.ask(question),
        }
    }
}

/// The connection is kept as long as the server keeps it.
fn ask_kept(address: SocketAddr, kept: &mut Option<Conn>, question: &Question) -> Result<Answer, String> {
    let mut conn = match kept.take() {
        Some(conn) => conn,
        None => Conn::try_open(address).map_err(|error| format!("no connection: {error}"))?,
    };
    let (answer, closes) = ask_http1(&mut conn, question, "keep-alive")?;
    *kept = (!closes).then_some(conn);
    Ok(answer)
}

/// The answer, and whether the server closes the connection.
fn ask_http1(conn: &mut Conn, question: &Question, connection: &str) -> Result<(Answer, bool), String> {
    let Question { target, body, .. } = question;
    let request = match body {
        None => format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: {connection}\r\n\r\n"),
        Some(body) => format!(
            "POST {target} HTTP/1.1\r\nHost: localhost\r\nConnection: {connection}\r\nContent-Type: text/plain\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        ),
    };
    conn.try_send(request).map_err(|error| format!("the connection broke before the request: {error}"))?;
    let answer = conn.try_response("GET").map_err(|error| format!("the answer broke off: {error}"))?;
    let answer = answer.ok_or("the connection ended without an answer")?;
    let closes = answer.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
    let round = answer.header(ROUND).map(str::to_owned);
    Ok((Answer { status: answer.status, round, body: answer.body }, closes))
}

impl Line {
    /// Connections are made by this runtime, and go on in its background.
    pub fn new(runtime: Handle, tls: TlsClient, address: SocketAddr) -> Arc<Self> {
        Arc::new(Self { runtime, tls, address, current: Mutex::default() })
    }

    fn ask(&self, question: &Question) -> Result<Answer, String> {
        let body = question.body.as_ref().map(|body| body.as_bytes());
        let mut failed = String::new();
        for _ in 0..TRIES {
            let (number, connection) = self.connection()?;
            let asking = async { timeout(DEADLINE, connection.ask(&question.target, body)).await };
            match self.runtime.block_on(asking).map_err(|_| "no answer".to_owned())? {
                Ok(answer) => {
                    let round = answer.header(ROUND).map(str::to_owned);
                    return Ok(Answer { status: answer.status.as_u16(), round, body: answer.body });
                }
                Err(Failure::NotTaken(error)) => {
                    failed = error.to_string();
                    self.replace(number);
                }
                Err(Failure::Lost(error)) => {
                    self.replace(number);
                    return Err(format!("the stream broke: {error}"));
                }
            }
        }
        Err(format!("no connection took the request: {failed}"))
    }

    fn connection(&self) -> Result<(usize, Http2), String> {
        let mut current = self.current.lock().expect("no client panics with it");
        if current.connection.is_none() {
            let connecting =
                async { timeout(DEADLINE, Http2::connect(&self.tls, self.address, "localhost")).await };
            let connected =
                self.runtime.block_on(connecting).map_err(|_| "no connection in time".to_owned())?;
            current.connection = Some(connected.map_err(|error| format!("no connection: {error}"))?);
        }
        Ok((current.number, current.connection.clone().expect("it was just made")))
    }

    /// The next request makes another connection, unless somebody else has seen to it already.
    fn replace(&self, number: usize) {
        let mut current = self.current.lock().expect("no client panics with it");
        if current.number == number {
            *current = Current { number: number + 1, connection: None };
        }
    }
}
