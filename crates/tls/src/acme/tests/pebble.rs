//! Let's Encrypt's test CA, as a process of its own.

use crate::tests::own_address;
use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Once, OnceLock};
use std::time::Duration;

const VERSION: &str = "v2.10.1";

/// `None` if it can neither be found nor built; the test is then to be skipped.
fn binary() -> Option<&'static Path> {
    static BINARY: OnceLock<Option<PathBuf>> = OnceLock::new();
    BINARY.get_or_init(|| find("pebble").or_else(build)).as_deref()
}

fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let usual = std::iter::once(PathBuf::from("/usr/local/go/bin"));
    std::env::split_paths(&path).chain(usual).map(|dir| dir.join(program)).find(|file| file.is_file())
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
    let output = Command::new(find("go")?)
        .args(["install", &module])
        .env("GOBIN", &directory)
        .env("GOFLAGS", "-mod=mod")
        .output()
        .ok()?;
    if !output.status.success() {
        eprintln!("go install {module}: {}", String::from_utf8_lossy(&output.stderr));
    }
    pebble.is_file().then_some(pebble)
}

/// How the CA is to behave.
#[derive(Debug, Clone, Default)]
pub(super) struct Behaviour {
    /// Of certificates, in seconds; 90 days if it is 0.
    pub lifetime: u64,
    /// A profile with certificates of an hour, beside the default one. An order that names none gets any of them.
    pub brief_profile: Option<&'static str>,
    /// Of 100 good nonces, how many are refused.
    pub refused_nonces: u8,
    /// The key id and the MAC key, in base64url, that a new account has to be bound to.
    pub external_account: Option<(String, String)>,
}

/// Ends with this.
pub(super) struct Pebble {
    binary: &'static Path,
    configuration: PathBuf,
    dns: u16,
    refused_nonces: u8,
    process: Child,
    address: SocketAddr,
    log: PathBuf,
}

/// Where the CA looks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ports {
    pub http: u16,
    pub tls: u16,
    pub dns: u16,
}

impl Pebble {
    /// `None`: it cannot be had here, and that was said. Its own root is `ca.pem` in the directory.
    pub async fn start(directory: &Path, ports: Ports, behaviour: &Behaviour) -> Option<Self> {
        let Some(binary) = binary() else {
            skip();
            return None;
        };
        let address = own_address();
        let port = address.port();
        let configuration = directory.join(format!("pebble-{port}.json"));
        std::fs::write(&configuration, configure(directory, address, ports, behaviour).to_string()).unwrap();
        let log = directory.join(format!("pebble-{port}.log"));
        let (dns, refused_nonces) = (ports.dns, behaviour.refused_nonces);
        let process = spawn(binary, &configuration, dns, refused_nonces, &log);
        let mut pebble = Self { binary, configuration, dns, refused_nonces, process, address, log };
        assert!(pebble.listens().await, "pebble does not start; see {}", directory.display());
        Some(pebble)
    }

    /// Whether it does, or has ended.
    async fn listens(&mut self) -> bool {
        while self.process.try_wait().unwrap().is_none() {
            if tokio::net::TcpStream::connect(self.address).await.is_ok() {
                return true;
            }
            // Nothing tells when it listens.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        false
    }

    pub fn stop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// At the same address. It remembers nothing.
    pub async fn start_again(&mut self) {
        self.process = spawn(self.binary, &self.configuration, self.dns, self.refused_nonces, &self.log);
        assert!(self.listens().await, "pebble starts again");
    }

    pub fn directory(&self) -> String {
        format!("https://{}/dir", self.address)
    }

    /// How many orders were asked for, with those that were refused for their nonce.
    pub fn orders(&self) -> usize {
        self.count("POST /order-plz")
    }

    pub fn issued(&self) -> usize {
        self.count("Issued certificate serial")
    }

    pub fn renewal_questions(&self) -> usize {
        self.count("GET /draft-ietf-acme-ari")
    }

    fn count(&self, what: &str) -> usize {
        std::fs::read_to_string(&self.log).unwrap().matches(what).count()
    }
}

impl Drop for Pebble {
    fn drop(&mut self) {
        self.stop();
    }
}

fn spawn(binary: &Path, configuration: &Path, dns: u16, refused_nonces: u8, log: &Path) -> Child {
    let output = File::create(log).unwrap();
    Command::new(binary)
        .arg("-config")
        .arg(configuration)
        .args(["-dnsserver", &format!("127.0.0.1:{dns}")])
        .env("PEBBLE_VA_NOSLEEP", "1")
        .env("PEBBLE_AUTHZREUSE", "0")
        .env("PEBBLE_WFE_NONCEREJECT", refused_nonces.to_string())
        .stdin(Stdio::null())
        .stderr(output.try_clone().unwrap())
        .stdout(output)
        .spawn()
        .unwrap()
}

/// Said once, and past the harness, which keeps what tests print.
fn skip() {
    static SAID: Once = Once::new();
    let text = "SKIPPED: ACME against pebble, Let's Encrypt's test CA: install Go, with which it is built";
    SAID.call_once(|| writeln!(std::io::stderr(), "{text}").expect("standard error is open"));
}

fn configure(
    directory: &Path,
    address: SocketAddr,
    ports: Ports,
    behaviour: &Behaviour,
) -> serde_json::Value {
    let made = rcgen::generate_simple_self_signed([address.ip().to_string()]).unwrap();
    let (certificate, key) = (directory.join("ca.pem"), directory.join("ca.key"));
    if !certificate.exists() {
        std::fs::write(&certificate, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    }
    let lifetime = if behaviour.lifetime == 0 { 90 * 86_400 } else { behaviour.lifetime };
    let (key_id, mac_key) = behaviour.external_account.clone().unzip();
    let keys: serde_json::Map<_, _> = key_id.into_iter().zip(mac_key.map(Into::into)).collect();
    let mut profiles = serde_json::json!({ "default": { "description": "any", "validityPeriod": lifetime } });
    if let Some(name) = behaviour.brief_profile {
        profiles[name] = serde_json::json!({ "description": "an hour", "validityPeriod": 3600 });
    }
    serde_json::json!({ "pebble": {
        "listenAddress": address.to_string(),
        "certificate": certificate,
        "privateKey": key,
        "httpPort": ports.http,
        "tlsPort": ports.tls,
        "keyAlgorithm": "ecdsa",
        "retryAfter": { "authz": 1, "order": 1 },
        "externalAccountBindingRequired": !keys.is_empty(),
        "externalAccountMACKeys": keys,
        "profiles": profiles,
    } })
}
