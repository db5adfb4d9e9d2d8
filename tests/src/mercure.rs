//! Publishers and subscribers of a Mercure hub.

use crate::{Conn, Response, Server};

/// What the tokens are signed with.
pub const SECRET: &str = "!ChangeThisMercureHubJWTSecretKey!";
/// `{"mercure":{"publish":["*"]}}`.
pub const PUBLISHER: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJtZXJjdXJlIjp7InB1Ymxpc2giOlsiKiJdfX0.a8cjcSRUAcHdnGNMKifA4BK5epRXxQI0UBp2XpNrBdw";
/// `{"mercure":{"subscribe":["*"],"payload":{"user":"dunglas"}}}`.
pub const SUBSCRIBER: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJtZXJjdXJlIjp7InN1YnNjcmliZSI6WyIqIl0sInBheWxvYWQiOnsidXNlciI6ImR1bmdsYXMifX19.L87r-1BduqAun1aSGmfnFDQXkPO3pnNiiUzdqT1_0C8";
pub const HUB: &str = "/.well-known/mercure";

pub fn publish(server: &Server, fields: &[(&str, &str)]) -> Response {
    publish_as(PUBLISHER, server, fields)
}

pub fn publish_as(token: &str, server: &Server, fields: &[(&str, &str)]) -> Response {
    server.request("POST", HUB).header("Authorization", format!("Bearer {token}")).form(fields).send()
}

/// Subscribes without chunks around what comes, and reads the head of the response.
pub fn subscribe(server: &Server, query: &str, fields: &str) -> (Conn, Response) {
    let mut conn = server.connect();
    conn.send(format!("GET {HUB}?{query} HTTP/1.0\r\nHost: x\r\n{fields}\r\n"));
    let head = conn.head().unwrap().unwrap().expect(200);
    (conn, head)
}
