//! Logs that a collector gets over the network.
#![forbid(unsafe_code)]

use regent_tests::{Setup, own_address, own_addresses, regent_command, until};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixListener;
use std::time::Duration;

/// So that a test that waits in vain ends.
const PATIENCE: Duration = Duration::from_secs(30);

fn accept(listener: &TcpListener) -> BufReader<TcpStream> {
    let (stream, _) = listener.accept().expect("the server connects");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    BufReader::new(stream)
}

/// The URI of the request that the next line is about, but for those by which the tests find out that the server is ready.
fn next_uri(lines: &mut impl BufRead) -> String {
    loop {
        let mut line = String::new();
        lines.read_line(&mut line).expect("a line comes");
        let line: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        let uri = line["request"]["uri"].as_str().expect("an access log");
        if uri != "/is-it-ready.txt" {
            return uri.to_owned();
        }
    }
}

fn site(address: &str) -> String {
    format!("log {{\n\t\toutput net {address} {{\n\t\t\tsoft_start\n\t\t}}\n\t}}\nrespond ok")
}

#[test]
fn lines_wait_for_a_collector_and_for_the_one_after_it() {
    let address = own_address();
    let server = Setup::new().site(&site(&address.to_string())).start();
    server.get("/early").expect(200);
    server.wait_for_log(&format!("cannot send log lines to tcp/{address}"));
    let listener = TcpListener::bind(address).expect("the port is free");
    let mut lines = accept(&listener);
    assert_eq!(next_uri(&mut lines), "/early");
    server.wait_for_log(&format!("log lines are sent to tcp/{address} again"));
    drop((lines, listener));
    for target in ["/one", "/two"] {
        server.get(target).expect(200);
    }
    let listener = TcpListener::bind(address).expect("the port is free");
    let mut lines = accept(&listener);
    assert_eq!([next_uri(&mut lines), next_uri(&mut lines)], ["/one", "/two"]);
    server.get("/last").expect(200);
    server.stop();
    assert_eq!(next_uri(&mut lines), "/last", "also at the end");
}

#[test]
fn unix_sockets_and_datagrams() {
    let setup = Setup::new();
    let listener = UnixListener::bind(setup.directory().join("collector.sock")).expect("a socket");
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let address = socket.local_addr().expect("bound");
    let logs = format!(
        "log {{\n\t\toutput net unix/DIRECTORY/collector.sock\n\t}}\nlog {{\n\t\toutput net udp/{address}\n\t}}"
    );
    let server = setup.site(&format!("{logs}\nrespond ok")).start();
    server.get("/both").expect(200);
    let (stream, _) = listener.accept().expect("the server connects");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    assert_eq!(next_uri(&mut BufReader::new(stream)), "/both");
    let mut datagram = vec![0; 65_536];
    let mut lines = Vec::new();
    while !String::from_utf8_lossy(&lines).contains("/both") {
        let read = socket.recv(&mut datagram).expect("a datagram comes");
        assert!(datagram[..read].ends_with(b"}\n"), "each is a line");
        lines.extend_from_slice(&datagram[..read]);
    }
    assert_eq!(next_uri(&mut &lines[..]), "/both");
    server.stop();
}

#[test]
fn a_collector_that_hangs_holds_up_no_request() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let server = Setup::new().site(&site(&address.to_string())).start();
    // It takes the connection and nothing else: what the kernel holds of it is soon full.
    let held = accept(&listener);
    let target = format!("/{}", "x".repeat(6000));
    let mut connection = server.connect();
    for _ in 0..3000 {
        connection.send(format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        connection.response().expect(200);
    }
    drop(held);
    let mut lines = accept(&listener);
    assert_eq!(next_uri(&mut lines), target, "what waited is sent over a new connection");
    server.stop();
}

#[test]
fn without_a_collector_nothing_starts_unless_the_start_is_soft() {
    let [address, site] = own_addresses();
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("Caddyfile");
    let output = format!("log {{\noutput net {address}\n}}");
    for text in [
        format!("{{\nadmin off\n}}\nhttp://{site} {{\n{output}\nrespond ok\n}}\n"),
        format!("{{\nadmin off\n{output}\n}}\nhttp://{site} {{\nrespond ok\n}}\n"),
    ] {
        fs::write(&file, text).expect("a file");
        let run =
            regent_command(directory.path()).args(["run", "--config"]).arg(&file).output().expect("it runs");
        let told = String::from_utf8_lossy(&run.stderr);
        assert!(!run.status.success(), "{told}");
        assert!(told.contains(&format!("tcp/{address}")) && told.contains("soft_start"), "{told}");
    }
}

#[test]
fn the_servers_own_log_is_sent_to_its_last_line() {
    let address = own_address();
    let text = format!(
        "{{\n\tadmin off\n\tlog {{\n\t\toutput net {address} {{\n\t\t\tsoft_start\n\t\t}}\n\t}}\n}}\n\
         http://:PORT {{\n\tbind LOOPBACK\n\trespond ok\n}}\n"
    );
    let server = Setup::new().caddyfile(&text).start();
    server.wait_for_log(&format!("cannot send log lines to tcp/{address}"));
    let listener = TcpListener::bind(address).expect("the port is free");
    let lines = accept(&listener);
    server.stop();
    let lines: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(&line.expect("a line")).expect("JSON")).collect();
    assert!(
        lines.iter().any(|line| line["msg"].as_str().is_some_and(|text| text.starts_with("serving http://")))
    );
    assert_eq!(lines.last().expect("there are lines")["msg"], "stopped");
}

#[test]
fn a_reload_opens_and_closes_connections() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let caddyfile =
        |site: &str| format!("{{\n\tadmin ADMIN\n}}\nhttp://:PORT {{\n\tbind LOOPBACK\n\t{site}\n}}\n");
    let server = Setup::new().caddyfile(&caddyfile("respond before")).start();
    server.write_caddyfile(&caddyfile(&site(&address.to_string())));
    let reload = || server.admin().request("POST", "/regent/reload").send().expect(200);
    reload();
    server.get("/logged").expect(200);
    let mut lines = accept(&listener);
    assert_eq!(next_uri(&mut lines), "/logged");
    let mut rounds = 0;
    // What the last requests of a configuration use is closed with the next one.
    // clock: a round of a loop, which goes on until the connection is closed.
    lines.get_ref().set_read_timeout(Some(Duration::from_millis(100))).expect("a socket");
    until("the connection is closed", || {
        rounds += 1;
        server.write_caddyfile(&caddyfile(&format!("respond {rounds}")));
        reload();
        (lines.read_line(&mut String::new()).ok()? == 0).then_some(())
    });
    server.stop();
}
