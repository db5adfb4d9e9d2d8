//! A client of the admin listener: one call, one connection.

use super::units::printable;
use anyhow::{Context, Result, anyhow, bail};
use http::header::{CONNECTION, HOST, ORIGIN};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use regent_admin::Address;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::Runtime;

/// Bytes of the longest answer that is read: a hundred thousand threads.
const LONGEST_ANSWER: usize = 64 << 20;

/// How long an answer may take.
#[derive(Debug, Clone, Copy)]
pub enum Patience {
    /// What the server knows already.
    Short,
    /// Until a change is made: workers may boot for a while.
    Long,
    /// What takes so many seconds by itself, and a while.
    Seconds(u16),
}

pub struct Client {
    address: Address,
    runtime: Runtime,
}

/// The body of an error.
#[derive(Deserialize)]
struct Report {
    error: String,
}

impl Client {
    pub fn new(address: Address) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { address, runtime })
    }

    pub fn address(&self) -> &Address {
        &self.address
    }

    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        self.call(Method::GET, path, Patience::Short)
    }

    /// # Errors
    /// When the server does not answer in time, answers an error (with its text), or something else than was asked for.
    pub fn call<T: DeserializeOwned>(&self, method: Method, target: &str, patience: Patience) -> Result<T> {
        let body = self.fetch(method, target, patience)?;
        serde_json::from_slice(&body)
            .with_context(|| format!("what {} answers is not Regent's", self.address))
    }

    /// The same, whatever the answer is.
    pub fn fetch(&self, method: Method, target: &str, patience: Patience) -> Result<Bytes> {
        let seconds = match patience {
            Patience::Short => 5,
            Patience::Long => 120,
            Patience::Seconds(seconds) => u64::from(seconds) + 60,
        };
        let (status, body) = self.runtime.block_on(async {
            let answer = self.exchange(method, target);
            let in_time = tokio::time::timeout(Duration::from_secs(seconds), answer).await;
            in_time.with_context(|| format!("{} did not answer within {seconds} s", self.address))?
        })?;
        if status.is_success() {
            return Ok(body);
        }
        match serde_json::from_slice::<Report>(&body) {
            Ok(Report { error }) => bail!("{}", printable(&error)),
            Err(_) => bail!("{} answered {status}", self.address),
        }
    }

    /// Whether somebody accepts connections there.
    pub fn is_listening(&self) -> bool {
        let connected = async {
            match &self.address {
                Address::Tcp { host, port } => {
                    let host = if host.is_empty() { "localhost" } else { host };
                    TcpStream::connect((host, *port)).await.is_ok()
                }
                Address::Unix(path) => UnixStream::connect(path).await.is_ok(),
            }
        };
        self.runtime.block_on(connected)
    }

    async fn exchange(&self, method: Method, target: &str) -> Result<(StatusCode, Bytes)> {
        let absent = || {
            let address = &self.address;
            format!(
                "no server's admin listener answers at {address}; start one, or name another with --admin"
            )
        };
        match &self.address {
            Address::Tcp { host, port } => {
                let host = if host.is_empty() { "localhost" } else { host };
                let stream = TcpStream::connect((host, *port)).await.with_context(absent)?;
                self.converse(stream, method, target).await
            }
            Address::Unix(path) => {
                let connected = UnixStream::connect(path).await;
                let stream = connected.map_err(|error| match error.kind() {
                    io::ErrorKind::PermissionDenied => anyhow!(
                        "{}: only the server's user may ask it, and root: run this with sudo",
                        self.address
                    ),
                    _ => anyhow!(error).context(absent()),
                })?;
                self.converse(stream, method, target).await
            }
        }
    }

    async fn converse<S>(&self, stream: S, method: Method, target: &str) -> Result<(StatusCode, Bytes)>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // It ends with the answer, or with an error that the answer's reader is told too.
        tokio::spawn(connection);
        let request = Request::builder()
            .method(method)
            .uri(target)
            .header(HOST, self.address.authority())
            // Asked for where `enforce_origin` is set.
            .header(ORIGIN, format!("http://{}", self.address.authority()))
            .header(CONNECTION, "close")
            .body(Empty::<Bytes>::new())?;
        let broken = || format!("{} broke the connection off", self.address);
        let answer = sender.send_request(request).await.with_context(broken)?;
        let (head, body) = answer.into_parts();
        let body = Limited::new(body, LONGEST_ANSWER).collect().await;
        let body = body.map_err(|error| anyhow::anyhow!(error)).with_context(broken)?;
        Ok((head.status, body.to_bytes()))
    }
}
