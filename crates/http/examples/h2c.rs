//! A server for tools that test HTTP/2, such as h2spec: `cargo run -p regent-http --example h2c -- 127.0.0.1:8080`, without TLS.
//!
//! It sends a request's body back, or a line of its own.

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use regent_exchange::{Informational, RequestBody};
use regent_http::Settings;
use regent_http::h2::{Sniffed, serve, sniff};
use regent_net::Drain;
use std::io;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::spawn_local;

const SETTINGS: Settings = Settings {
    read_header: Duration::from_secs(10),
    idle: Duration::from_secs(60),
    last_request: Duration::from_secs(2),
    write: Duration::from_secs(60),
    max_header_size: 16 * 1024,
};

fn main() -> io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:8080".into());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build_local(tokio::runtime::LocalOptions::default())?;
    runtime.block_on(async {
        let listener = TcpListener::bind(address).await?;
        loop {
            let (stream, _) = listener.accept().await?;
            spawn_local(async move { connection(stream).await.unwrap_or_else(|error| eprintln!("{error}")) });
        }
    })
}

async fn connection(stream: TcpStream) -> Result<(), Box<dyn std::error::Error>> {
    stream.set_nodelay(true)?;
    let drain = Drain::default();
    match sniff(stream, &SETTINGS, &drain).await? {
        Sniffed::Http2(stream) => Ok(serve(stream, &SETTINGS, &drain, &drain, respond).await?),
        Sniffed::Http1(_) => Err("the client speaks HTTP/1.1".into()),
        Sniffed::Nothing => Ok(()),
    }
}

async fn respond(
    request: Request<RequestBody>,
    _: Duration,
    _: Rc<dyn Informational>,
) -> Response<impl Body<Data = Bytes, Error = io::Error>> {
    let body = match request.into_body().collect().await {
        Ok(body) => body.to_bytes(),
        Err(_) => Bytes::new(),
    };
    let body = if body.is_empty() { Bytes::from_static(b"hello over HTTP/2\n") } else { body };
    Response::new(Full::new(body).map_err(|never| match never {}))
}
