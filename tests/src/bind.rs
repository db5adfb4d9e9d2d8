//! A name server of a test's own: BIND from the distribution's packages, with one zone that takes signed updates
//! (RFC 2136) of one TXT record.

use crate::apps::{libraries_of, packages_of};
use crate::{own_address, until};
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Ends when it is dropped.
pub struct Bind {
    process: Child,
    address: SocketAddr,
    log: PathBuf,
}

impl Bind {
    /// The name of the key that may update, and its secret (HMAC-SHA256).
    pub const KEY: (&str, &str) = ("acme-update", "c2VjcmV0IG9mIHRoZSB0ZXN0cywgMzIgYnl0ZXMgbG9uZyE=");

    /// Starts one for this zone, of which the key may change the TXT records of `_acme-challenge` and nothing else.
    pub fn start(directory: &Path, zone: &str) -> Self {
        let packages = packages_of("bind");
        // It listens at the addresses that interfaces have, and that of the loopback interface is this one.
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, own_address().port()));
        let (configuration, log) = (directory.join("named.conf"), directory.join("named.log"));
        fs::write(directory.join("zone"), zone_file(address)).expect("the directory is the test's own");
        fs::write(&configuration, configuration_of(directory, address, zone)).expect("the same");
        let output = File::create(&log).expect("the same");
        let process = Command::new(packages.join("usr/sbin/named"))
            .args(["-g", "-n", "1", "-c"])
            .arg(&configuration)
            .env("LD_LIBRARY_PATH", libraries_of(&packages))
            .stdin(Stdio::null())
            .stdout(output.try_clone().expect("a descriptor is left"))
            .stderr(output)
            .spawn()
            .expect("named can be started");
        let server = Self { process, address, log };
        until("BIND listens", || TcpStream::connect(address).ok());
        server
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it has logged: each update that it made or refused, among others.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).expect("the log is the test's own")
    }
}

impl Drop for Bind {
    fn drop(&mut self) {
        // Its zone is the test's and goes with it.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn zone_file(address: SocketAddr) -> String {
    let ip = address.ip();
    format!("$TTL 60\n@ IN SOA ns hostmaster 1 3600 600 86400 60\n@ IN NS ns\nns IN A {ip}\n")
}

fn configuration_of(directory: &Path, address: SocketAddr, zone: &str) -> String {
    let (directory, ip, port) = (directory.display(), address.ip(), address.port());
    let (key, secret) = Bind::KEY;
    format!(
        "options {{ directory \"{directory}\"; pid-file none; session-keyfile none; recursion no; notify no;\n\
         dnssec-validation no; listen-on-v6 {{ none; }}; listen-on port {port} {{ {ip}; }}; }};\n\
         controls {{ }};\n\
         key \"{key}\" {{ algorithm hmac-sha256; secret \"{secret}\"; }};\n\
         zone \"{zone}\" {{ type primary; file \"{directory}/zone\";\n\
         update-policy {{ grant {key} name _acme-challenge.{zone}. TXT; }}; }};\n"
    )
}
