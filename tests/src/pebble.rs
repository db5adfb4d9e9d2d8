//! Let's Encrypt's test CA, as a process of its own, with a name server for which every name has the address of the tested
//! server.

use crate::{Response, TlsClient, own_addresses, until};
use serde_json::json;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Once;

/// That of the tests of `regent-tls`, which share the program.
const VERSION: &str = "v2.10.1";

/// Ends when it is dropped.
pub struct Pebble {
    process: Child,
    directory: PathBuf,
    address: SocketAddr,
    management: SocketAddr,
}

impl Pebble {
    /// A CA that looks for challenges of all names at these addresses, by HTTP and by TLS, which have one IP. Its files go
    /// to the directory. `None`: it cannot be had here, and that was said.
    pub fn start(directory: &Path, places: [SocketAddr; 2]) -> Option<Self> {
        Self::asking(serve_names(places), directory, places)
    }

    /// As [`Self::start`], with a name server of the caller's.
    pub fn asking(names: SocketAddr, directory: &Path, places: [SocketAddr; 2]) -> Option<Self> {
        Self::launch(names, directory, places, None)
    }

    /// As [`Self::start`]; new accounts have to be bound to the external one with this id and this key, in base64url.
    pub fn binding(id: &str, key: &str, directory: &Path, places: [SocketAddr; 2]) -> Option<Self> {
        Self::launch(serve_names(places), directory, places, Some((id, key)))
    }

    fn launch(
        names: SocketAddr,
        directory: &Path,
        [http, tls]: [SocketAddr; 2],
        account: Option<(&str, &str)>,
    ) -> Option<Self> {
        let Some(program) = find("pebble").or_else(build) else {
            skip();
            return None;
        };
        let [address, management] = own_addresses();
        let made = rcgen::generate_simple_self_signed([address.ip().to_string()]).expect("a certificate");
        write(directory, "ca.pem", made.cert.pem());
        write(directory, "ca.key", made.signing_key.serialize_pem());
        let configuration = json!({ "pebble": {
            "listenAddress": address.to_string(),
            "managementListenAddress": management.to_string(),
            "certificate": directory.join("ca.pem"),
            "privateKey": directory.join("ca.key"),
            "httpPort": http.port(),
            "tlsPort": tls.port(),
            "keyAlgorithm": "ecdsa",
            "retryAfter": { "authz": 1, "order": 1 },
            "externalAccountBindingRequired": account.is_some(),
            "externalAccountMACKeys": account.into_iter().collect::<HashMap<_, _>>(),
            "profiles": { "default": { "description": "any", "validityPeriod": 90 * 86_400 } },
        } });
        write(directory, "pebble.json", configuration.to_string());
        let log = File::create(directory.join("pebble.log")).expect("the directory is ours");
        let process = Command::new(program)
            .arg("-config")
            .arg(directory.join("pebble.json"))
            .args(["-dnsserver", &names.to_string()])
            .env("PEBBLE_VA_NOSLEEP", "1")
            .env("PEBBLE_WFE_NONCEREJECT", "0")
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a descriptor is left"))
            .stderr(log)
            .spawn()
            .expect("pebble is a program");
        let pebble = Self { process, directory: directory.to_owned(), address, management };
        until("pebble listens", || {
            let listens = |address: SocketAddr| TcpStream::connect(address).is_ok();
            (listens(address) && listens(management)).then_some(())
        });
        Some(pebble)
    }

    /// The URL of its ACME directory.
    pub fn url(&self) -> String {
        format!("https://{}/dir", self.address)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Of its own server.
    pub fn certificate(&self) -> PathBuf {
        self.directory.join("ca.pem")
    }

    /// A client that trusts what it issues.
    pub fn client(&self) -> TlsClient {
        let ip = self.management.ip().to_string();
        let mut conn = TlsClient::trusting(&self.certificate()).connect(self.management, &ip);
        conn.send(format!("GET /roots/0 HTTP/1.1\r\nHost: {ip}\r\n\r\n"));
        let root: Response = conn.response();
        write(&self.directory, "root.pem", root.expect(200).text());
        TlsClient::trusting(&self.directory.join("root.pem"))
    }

    /// How many orders were asked for.
    pub fn orders(&self) -> usize {
        self.log().matches("POST /order-plz").count()
    }

    /// How many certificates it has given.
    pub fn issued(&self) -> usize {
        self.log().matches("Issued certificate serial").count()
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.directory.join("pebble.log")).expect("it is ours")
    }
}

impl Drop for Pebble {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn write(directory: &Path, name: &str, content: impl AsRef<[u8]>) {
    fs::write(directory.join(name), content).expect("the directory is ours");
}

fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let usual = std::iter::once(PathBuf::from("/usr/local/go/bin"));
    std::env::split_paths(&path)
        .chain(usual)
        .map(|directory| directory.join(program))
        .find(|file| file.is_file())
}

/// Into the cache of the user, outside of the checkout.
fn build() -> Option<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from)?;
    let cache = std::env::var_os("XDG_CACHE_HOME").map_or_else(|| home.join(".cache"), PathBuf::from);
    let directory = cache.join("regent/go").join(format!("pebble-{VERSION}"));
    let pebble = directory.join("pebble");
    if pebble.is_file() {
        return Some(pebble);
    }
    let module = format!("github.com/letsencrypt/pebble/v2/cmd/pebble@{VERSION}");
    let mut install = Command::new(find("go")?);
    install.args(["install", &module]).env("GOBIN", &directory).env("GOFLAGS", "-mod=mod");
    let output = install.output().ok()?;
    if !output.status.success() {
        eprintln!("go install {module}: {}", String::from_utf8_lossy(&output.stderr));
    }
    pebble.is_file().then_some(pebble)
}

/// Said once, and past the harness, which keeps what tests print.
fn skip() {
    static SAID: Once = Once::new();
    let text = "SKIPPED: ACME against pebble, Let's Encrypt's test CA: install Go, with which it is built";
    SAID.call_once(|| writeln!(std::io::stderr(), "{text}").expect("standard error is open"));
}

/// A name server for which all names have the IP of these addresses, by TCP, as pebble asks; it ends with the process.
fn serve_names([http, tls]: [SocketAddr; 2]) -> SocketAddr {
    assert_eq!(http.ip(), tls.ip(), "a name has one address");
    let IpAddr::V4(ip) = http.ip() else { panic!("it is below 127.0.0.0") };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || respond_to_all(stream, ip));
        }
    });
    address
}

fn respond_to_all(mut stream: TcpStream, ip: Ipv4Addr) -> Option<()> {
    loop {
        let mut length = [0; 2];
        stream.read_exact(&mut length).ok()?;
        let mut query = vec![0; usize::from(u16::from_be_bytes(length))];
        stream.read_exact(&mut query).ok()?;
        let response = response_to(&query, ip)?;
        stream.write_all(&u16::try_from(response.len()).ok()?.to_be_bytes()).ok()?;
        stream.write_all(&response).ok()?;
    }
}

/// RFC 1035 section 4.1: the address for those who ask for one of IPv4, nothing else.
fn response_to(query: &[u8], ip: Ipv4Addr) -> Option<Vec<u8>> {
    const A: [u8; 2] = [0, 1];
    let end_of_name = 12 + query.get(12..)?.iter().position(|byte| *byte == 0)? + 1;
    let is_address = query.get(end_of_name..end_of_name + 2)? == A;
    let mut response = [&query[..2], &[0x84, 0, 0, 1, 0, is_address.into(), 0, 0, 0, 0]].concat();
    response.extend(query.get(12..end_of_name + 4)?);
    if is_address {
        response.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
        response.extend(ip.octets());
    }
    Some(response)
}
