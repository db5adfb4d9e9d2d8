//! Servers that have the answers which a test gives them.

use crate::Address;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, channel};

/// Of commands that have the text in them. `PORT` in an answer is that of the server.
pub(crate) type Answers = Vec<(&'static str, String)>;

/// A server that has these answers, one connection after the other; other commands are fine with it. Tells of its connections.
pub(crate) fn server(answers: &[(&'static str, &'static str)]) -> (Address, Receiver<()>) {
    let answers = answers.iter().map(|(command, answer)| (*command, (*answer).to_owned())).collect();
    server_with(answers)
}

pub(crate) fn server_with(answers: Answers) -> (Address, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = address_of(listener.local_addr().unwrap());
    let port = address.port.to_string();
    let (heard, connections) = channel();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let Ok(mut connection) = connection else { return };
            if heard.send(()).is_err() {
                return;
            }
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = connection.read(&mut buffer) {
                let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
                let known = answers.iter().find(|(command, _)| text.contains(command));
                // What a connection begins with are commands about the client.
                let begun = text.matches("CLIENT").count().max(1);
                let answer = known
                    .map_or_else(|| "+OK\r\n".repeat(begun), |(_, answer)| answer.replace("PORT", &port));
                if connection.write_all(answer.as_bytes()).is_err() {
                    break;
                }
            }
        }
    });
    (address, connections)
}

pub(crate) fn address_of(address: SocketAddr) -> Address {
    Address { host: address.ip().to_string(), port: address.port() }
}

/// Where nobody listens: port 1 of the last address in 127/8, all of which is this machine.
pub(crate) fn nobody() -> Address {
    address_of(SocketAddr::from(([127, 255, 255, 254], 1)))
}

/// As an answer has it.
pub(crate) fn text(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}
