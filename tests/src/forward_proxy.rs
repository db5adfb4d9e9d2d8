//! A proxy by CONNECT (RFC 9110 §9.3.6), which leads to servers of the test instead of those that clients name.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

/// `server`: where a host is; `None` refuses it. The proxy ends with the test's process.
pub fn forward_proxy(server: impl Fn(&str) -> Option<SocketAddr> + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    let server = Arc::new(server);
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let server = Arc::clone(&server);
            thread::spawn(move || lead(client, &*server));
        }
    });
    address
}

fn lead(client: TcpStream, server: &dyn Fn(&str) -> Option<SocketAddr>) -> io::Result<()> {
    let mut head = BufReader::new(client.try_clone()?);
    let mut first = String::new();
    head.read_line(&mut first)?;
    let mut line = String::new();
    while head.read_line(&mut line)? > 2 {
        line.clear();
    }
    let target = first.split(' ').nth(1).unwrap_or_default();
    let host = target.rsplit_once(':').map_or(target, |(host, _)| host);
    let Some(server) = server(host) else {
        return (&client).write_all(b"HTTP/1.1 502 Bad Gateway\r\n\r\n");
    };
    let server = TcpStream::connect(server)?;
    (&client).write_all(b"HTTP/1.1 200 Connected\r\n\r\n")?;
    let (from, to) = (server.try_clone()?, client.try_clone()?);
    let back = thread::spawn(move || pass(from, to));
    pass(client, server)?;
    back.join().expect("it does not panic")
}

fn pass(mut from: TcpStream, mut to: TcpStream) -> io::Result<()> {
    io::copy(&mut from, &mut to)?;
    to.shutdown(Shutdown::Write)
}
