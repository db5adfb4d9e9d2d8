//! Requests that get no response.
#![forbid(unsafe_code)]

use regent_tests::{Setup, until};
use std::fs;

#[test]
fn an_aborted_request_is_a_closed_connection() {
    let site =
        "log {\n\t\toutput file DIRECTORY/access.log\n\t\tformat json\n\t}\n\tabort /probe*\n\trespond fine";
    let server = Setup::new().site(site).start();
    let address = server.address();
    assert_eq!(server.raw(format!("GET /probe HTTP/1.1\r\nHost: {address}\r\n\r\n")), "");
    let post = format!("POST /probe HTTP/1.1\r\nHost: {address}\r\nContent-Length: 5\r\n\r\nhello");
    assert_eq!(server.raw(post), "");
    assert_eq!(server.get("/other").expect(200).text(), "fine");
    let log = server.directory().join("access.log");
    until("both are logged", || {
        let text = fs::read_to_string(&log).ok()?;
        (text.matches("\"status\":444").count() == 2).then_some(())
    });
    server.stop();
}
