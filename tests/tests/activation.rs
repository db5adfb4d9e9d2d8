//! Sockets that were bound by somebody else, as systemd's socket units do.
#![forbid(unsafe_code)]

use regent_tests::h3::{Http3, block_on};
use regent_tests::process::{children_running, listening_ports, runs, signal};
use regent_tests::{Admin, Conn, DEADLINE, Response, TlsClient, own_address, regent_command, until};
use rustix::process::Signal;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use tempfile::TempDir;

/// Passes what it has as its standard streams on as systemd does, and becomes the server.
const PASS: &str = "exec 3<&0 4<&1 5<&2 </dev/null >>log 2>&1; \
                    export LISTEN_FDS=3 LISTEN_PID=$$ LISTEN_FDNAMES=web.socket:local.socket:quic.socket; exec \"$@\"";

/// Holds the sockets, as systemd does.
struct Manager {
    web: TcpListener,
    local: UnixListener,
    quic: UdpSocket,
    directory: TempDir,
}

/// Killed when dropped, if it still runs.
struct Service(Child);

impl Drop for Service {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}

/// A process that is not our child. Killed when dropped, if it still runs.
struct Successor(u32);

impl Drop for Successor {
    fn drop(&mut self) {
        if runs(self.0, "regent") {
            signal(self.0, Signal::KILL);
        }
    }
}

impl Service {
    fn stop(&mut self) -> ExitStatus {
        signal(self.0.id(), Signal::TERM);
        until("the server ends", || self.0.try_wait().expect("it is our child"))
    }
}

impl Manager {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let web = TcpListener::bind(own_address()).unwrap();
        let quic = UdpSocket::bind(web.local_addr().unwrap()).unwrap();
        let local = UnixListener::bind(directory.path().join("site.sock")).unwrap();
        fs::write(directory.path().join("index.php"), "<?php echo 'env:', getenv('LISTEN_FDS'), ';';")
            .unwrap();
        Self { web, local, quic, directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Starts the server with this configuration; `LOOPBACK`, `PORT`, `DIRECTORY` and `ADMIN` are filled in.
    fn start(&self, caddyfile: &str) -> (Service, Admin) {
        let admin = own_address();
        fs::write(self.path("Caddyfile"), self.fill_in(caddyfile, admin)).unwrap();
        let server = regent_command(self.directory.path());
        let mut command = Command::new("sh");
        command.args(["-c", PASS, "sh"]).arg(server.get_program()).arg("run").env_clear();
        command.envs(server.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.env("XDG_DATA_HOME", self.path("data")).current_dir(self.directory.path());
        let pass = |socket: OwnedFd| Stdio::from(socket);
        command.stdin(pass(self.web.try_clone().unwrap().into()));
        command.stdout(pass(self.local.try_clone().unwrap().into()));
        command.stderr(pass(self.quic.try_clone().unwrap().into()));
        (Service(command.spawn().expect("sh can be run")), Admin::new(admin))
    }

    fn fill_in(&self, caddyfile: &str, admin: SocketAddr) -> String {
        let web = self.web.local_addr().unwrap();
        caddyfile
            .replace("LOOPBACK", &web.ip().to_string())
            .replace("PORT", &web.port().to_string())
            .replace("DIRECTORY", &self.directory.path().display().to_string())
            .replace("ADMIN", &admin.to_string())
    }

    fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    fn wait_for_log(&self, text: &str) {
        until(&format!("the log says {text:?}"), || self.log().contains(text).then_some(()));
    }

    /// Asks on a new connection, from which the answer is to be read.
    fn ask(&self, target: &str) -> Conn {
        let mut conn = Conn::open(self.web.local_addr().unwrap());
        conn.send(format!("GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
        conn
    }

    fn get(&self, target: &str) -> Response {
        self.ask(target).response()
    }
}

fn ask_unix(path: &Path) -> String {
    let mut stream = UnixStream::connect(path).expect("it listens");
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

const SITES: &str = "{\n\tadmin ADMIN\n\tfrankenphp {\n\t\tnum_threads 1\n\t}\n}\n\
                     http://:PORT {\n\tbind LOOPBACK\n\troot * DIRECTORY\n\tphp_server\n}\n\
                     http:// {\n\tbind unix/DIRECTORY/site.sock\n\trespond local\n}\n";

#[test]
fn the_sockets_are_used_and_outlive_the_server() {
    let manager = Manager::new();
    // Before there is a server.
    let mut early = manager.ask("/");
    let (mut server, _) = manager.start(SITES);
    assert_eq!(early.response().expect(200).text(), "env:;", "scripts do not see it");
    assert!(ask_unix(&manager.path("site.sock")).ends_with("local"));
    let engine = until("there is an engine", || children_running(server.0.id(), "regent-php").pop());
    assert!(listening_ports(engine).is_empty());
    // The UDP socket.
    manager.wait_for_log("which nothing is served at");
    assert!(server.stop().success());

    let mut between = manager.ask("/");
    let (mut server, _) = manager.start(SITES);
    between.response().expect(200);
    assert!(ask_unix(&manager.path("site.sock")).ends_with("local"));
    assert!(server.stop().success());
    assert!(manager.path("site.sock").exists(), "the file is not the server's");
}

#[test]
fn a_reload_can_come_back_to_a_socket_after_an_upgrade_too() {
    let manager = Manager::new();
    let (mut server, admin) = manager.start(SITES);
    manager.get("/").expect(200);
    let upgraded = admin.request("POST", "/regent/upgrade").send().expect(200).json();
    let successor = Successor(u32::try_from(upgraded["process"].as_u64().unwrap()).unwrap());
    assert!(until("the process before ends", || server.0.try_wait().unwrap()).success());
    let load = |text: &str| {
        let text = manager.fill_in(text, admin.address());
        admin.request("POST", "/load").body("text/caddyfile", text).send().expect(200);
    };
    load("{\n\tadmin ADMIN\n}\n");
    load(SITES);
    manager.get("/").expect(200);
    signal(successor.0, Signal::TERM);
    until("the server ends", || (!runs(successor.0, "regent")).then_some(()));
}

#[test]
fn sockets_are_named_by_the_numbers_that_they_are_passed_as() {
    let manager = Manager::new();
    let sites = "{\n\tadmin ADMIN\n\tfrankenphp {\n\t\tnum_threads 1\n\t}\n}\n\
                 http:// {\n\tbind fd/3\n\troot * DIRECTORY\n\tphp_server\n}\n\
                 http://x {\n\tbind fd/4\n\trespond local\n}\n";
    let (mut server, admin) = manager.start(sites);
    assert_eq!(manager.get("/").expect(200).text(), "env:;");
    assert!(ask_unix(&manager.path("site.sock")).ends_with("local"));
    let load = |text: &str| {
        let text = manager.fill_in(text, admin.address());
        admin.request("POST", "/load").body("text/caddyfile", text).send()
    };
    // What cannot be is said, and the sites before go on.
    for (sites, message) in [
        ("http:// {\n\tbind fd/9\n}\n", "no socket has been passed as this descriptor"),
        ("http:// {\n\tbind fd/5\n}\n", "is one for datagrams"),
        ("http://:PORT {\n\tbind LOOPBACK\n}\nhttp:// {\n\tbind fd/3\n}\n", "are the same socket"),
    ] {
        let answer = load(&format!("{{\n\tadmin ADMIN\n}}\n{sites}"));
        assert!(
            answer.status >= 400 && answer.text().contains(message),
            "{}: {}",
            answer.status,
            answer.text()
        );
        manager.get("/").expect(200);
    }
    let upgraded = admin.request("POST", "/regent/upgrade").send().expect(200).json();
    let successor = Successor(u32::try_from(upgraded["process"].as_u64().unwrap()).unwrap());
    assert!(until("the process before ends", || server.0.try_wait().unwrap()).success());
    manager.get("/").expect(200);
    assert!(ask_unix(&manager.path("site.sock")).ends_with("local"));
    signal(successor.0, Signal::TERM);
    until("the server ends", || (!runs(successor.0, "regent")).then_some(()));
}

#[test]
fn http3_takes_the_socket_for_datagrams() {
    check_http3("https://localhost:PORT {\n\tbind LOOPBACK\n\trespond hello\n}\n");
    check_http3("https://localhost {\n\tbind fd/3\n\tbind fdgram/5\n\trespond hello\n}\n");
}

fn check_http3(site: &str) {
    let manager = Manager::new();
    let options = "{\n\tadmin off\n\tskip_install_trust\n\tauto_https disable_redirects\n}\n";
    let (mut server, _) = manager.start(&format!("{options}{site}"));
    manager.wait_for_log("serving https");
    block_on(async {
        let address = manager.web.local_addr().unwrap();
        let client = TlsClient::credulous();
        let mut conn = Http3::connect(&client, address, "localhost").await.expect("a connection");
        assert_eq!(conn.get("/").await.text(), "hello");
    });
    assert!(server.stop().success());
}

#[test]
fn a_socket_of_another_kind_is_an_error_that_names_it() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("Caddyfile"), "http://127.0.0.1:1 {\n}\n").unwrap();
    let server = regent_command(directory.path());
    let script = "exec 3</dev/null; export LISTEN_FDS=1 LISTEN_PID=$$ LISTEN_FDNAMES=odd; exec \"$@\"";
    let output = Command::new("sh")
        .args(["-c", script, "sh"])
        .arg(server.get_program())
        .arg("run")
        .current_dir(directory.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("`odd`") && said.contains("ListenStream="), "{said}");
}
