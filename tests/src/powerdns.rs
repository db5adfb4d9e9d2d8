//! A name server of a test's own with an interface by HTTP: PowerDNS from the distribution's packages, with one zone.

use crate::apps::{libraries_of, packages_of};
use crate::{Conn, Response, own_addresses, until};
use std::fs::{self, File};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Ends when it is dropped.
pub struct PowerDns {
    process: Child,
    dns: SocketAddr,
    api: SocketAddr,
    log: PathBuf,
}

impl PowerDns {
    /// What the interface asks for.
    pub const API_KEY: &str = "the-key-of-the-tests";

    pub fn start(directory: &Path, zone: &str) -> Self {
        let packages = packages_of("powerdns");
        let [dns, api] = own_addresses();
        let log = directory.join("pdns.log");
        let output = File::create(&log).expect("the directory is the test's own");
        let backend = file_below(&packages.join("usr/lib"), "liblmdbbackend.so");
        let modules = backend.parent().expect("a file is in a directory");
        let process = Command::new(packages.join("usr/sbin/pdns_server"))
            .args(["--no-config", "--daemon=no", "--guardian=no", "--setuid=", "--setgid=", "--launch=lmdb"])
            .args(["--api=yes", "--webserver=yes"])
            .args(["--loglevel=6", "--log-dns-queries=yes", "--cache-ttl=0", "--query-cache-ttl=0"])
            .args(["--negquery-cache-ttl=0", "--zone-cache-refresh-interval=0"])
            .arg(format!("--api-key={}", Self::API_KEY))
            .arg(format!("--module-dir={}", modules.display()))
            .arg(format!("--lmdb-filename={}", directory.join("zones").display()))
            .arg(format!("--socket-dir={}", directory.display()))
            .arg(format!("--local-address={dns}"))
            .arg(format!("--webserver-address={}", api.ip()))
            .arg(format!("--webserver-port={}", api.port()))
            .env("LD_LIBRARY_PATH", libraries_of(&packages))
            .stdin(Stdio::null())
            .stdout(output.try_clone().expect("a descriptor is left"))
            .stderr(output)
            .spawn()
            .expect("pdns_server can be started");
        let server = Self { process, dns, api, log };
        until("PowerDNS listens", || TcpStream::connect(api).and(TcpStream::connect(dns)).ok());
        let zone =
            serde_json::json!({ "name": format!("{zone}."), "kind": "Native", "nameservers": ["ns.test."] });
        server.request("POST", "", &zone.to_string()).expect(201);
        server
    }

    /// Of the name server.
    pub fn dns(&self) -> SocketAddr {
        self.dns
    }

    /// The URL of the interface.
    pub fn url(&self) -> String {
        format!("http://{}", self.api)
    }

    /// The values of the TXT records of a name with a dot at its end.
    pub fn texts(&self, zone: &str, name: &str) -> Vec<String> {
        let zone = self.request("GET", &format!("/{zone}."), "").expect(200).json();
        let sets = zone["rrsets"].as_array().expect("a list");
        let of_name = sets.iter().filter(|set| set["name"] == name && set["type"] == "TXT");
        let records = of_name.flat_map(|set| set["records"].as_array().expect("a list"));
        records
            .map(|record| record["content"].as_str().expect("a text").trim_matches('"').to_owned())
            .collect()
    }

    /// What it has been asked, among others.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).expect("the log is the test's own")
    }

    /// To the zones of the interface; the path is that below them.
    pub fn request(&self, method: &str, path: &str, body: &str) -> Response {
        let mut conn = Conn::open(self.api);
        conn.send(format!(
            "{method} /api/v1/servers/localhost/zones{path} HTTP/1.1\r\nHost: pdns\r\nX-API-Key: {}\r\n\
             Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
            Self::API_KEY,
            body.len(),
        ));
        conn.response()
    }
}

impl Drop for PowerDns {
    fn drop(&mut self) {
        // Its zone is the test's and goes with it.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Its folder is named by the processor.
fn file_below(directory: &Path, name: &str) -> PathBuf {
    let entries = fs::read_dir(directory)
        .expect("the packages are unpacked")
        .map(|entry| entry.expect("the same").path());
    let mut found = entries.map(|entry| entry.join("pdns").join(name));
    found.find(|path| path.exists()).unwrap_or_else(|| panic!("{name} is in the packages"))
}
