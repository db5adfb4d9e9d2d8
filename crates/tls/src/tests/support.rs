//! A clock, a server in a directory of its own, and clients.

use crate::clock::RustlsClock;
use crate::{
    Acceptor, CertificateFiles, CertificateSource, Clock, ConnectionFacts, Handshakes, Internal,
    KeyPairFiles, Options, Policy, Site, Stream, Tickets, Tls, crypto,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio_rustls::{TlsConnector, client};

/// Moves only when it is told to.
#[derive(Debug)]
pub(crate) struct ManualClock(Mutex<SystemTime>);

impl ManualClock {
    pub fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(SystemTime::now())))
    }

    pub fn advance(&self, by: Duration) {
        *self.0.lock().unwrap() += by;
    }
}

impl Clock for ManualClock {
    fn now(&self) -> SystemTime {
        *self.0.lock().unwrap()
    }
}

/// An address that no other test has: all of 127/8 is this machine. Those of a process have one IP.
pub(crate) fn own_address() -> SocketAddr {
    static PORTS: AtomicU16 = AtomicU16::new(12_000);
    let byte = |number: u32| u8::try_from(number).unwrap();
    let process = std::process::id();
    let ip = Ipv4Addr::new(127, byte(1 + process / 256 % 255), byte(process % 256), 1);
    SocketAddr::from((ip, PORTS.fetch_add(1, Ordering::Relaxed)))
}

/// Writes a script that can be run at once. Another process does: of a file that this one has open for writing, each child that
/// another test starts at that moment has a copy for a while, and what is open for writing is not run ("Text file busy").
pub(crate) fn write_program(path: &Path, text: &str) {
    let mut writer = Command::new("sh");
    writer.args(["-c", "cat >\"$0\" && chmod 755 \"$0\""]).arg(path).stdin(Stdio::piped());
    let mut writer = writer.spawn().unwrap();
    writer.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(writer.wait().unwrap().success());
}

pub(super) const HOUR: Duration = Duration::from_secs(3600);

/// A storage directory, and the time.
pub(super) struct Machine {
    pub directory: tempfile::TempDir,
    pub clock: Arc<ManualClock>,
}

impl Machine {
    pub fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), clock: ManualClock::new() }
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.directory.path().join(path)
    }

    pub fn options(&self) -> Options {
        Options {
            redis: None,
            storage: self.path("storage"),
            default_sni: None,
            fallback_sni: None,
            tickets: Tickets::Stored,
            renew_interval: Duration::from_secs(600),
            on_demand: Default::default(),
            authority: Default::default(),
        }
    }

    pub fn tls(&self) -> Tls {
        self.tls_of(self.options())
    }

    pub fn tls_of(&self, options: Options) -> Tls {
        Tls::open_with_clock(options, Arc::clone(&self.clock) as _).unwrap()
    }

    pub fn acceptor(&self, sites: &[Site]) -> Acceptor {
        acceptor(&self.tls(), sites)
    }

    /// What a client believes that trusts the local CA of this machine.
    pub fn trust(&self) -> RootCertStore {
        trust(&[self.path("storage/pki/authorities/local/root.crt")])
    }

    /// One that trusts the local CA, with the time of this machine.
    pub fn client(&self) -> ClientConfig {
        self.client_of(self.trust())
    }

    pub fn client_of(&self, roots: RootCertStore) -> ClientConfig {
        self.client_with(roots, rustls::ALL_VERSIONS)
    }

    pub fn client_with(
        &self,
        roots: RootCertStore,
        versions: &[&'static rustls::SupportedProtocolVersion],
    ) -> ClientConfig {
        self.client_builder(versions).with_root_certificates(roots).with_no_client_auth()
    }

    /// One that can verify signatures of these schemes only.
    pub fn client_with_schemes(
        &self,
        roots: RootCertStore,
        versions: &[&'static rustls::SupportedProtocolVersion],
        is_known: impl Fn(&rustls::SignatureScheme) -> bool,
    ) -> ClientConfig {
        let mut provider = (*crypto::provider()).clone();
        let mapping = provider.signature_verification_algorithms.mapping;
        let known: Vec<_> = mapping.iter().filter(|(scheme, _)| is_known(scheme)).copied().collect();
        // As a provider has them: for the life of the process.
        provider.signature_verification_algorithms.mapping = known.leak();
        let time = Arc::new(RustlsClock(Arc::clone(&self.clock) as _));
        let builder = ClientConfig::builder_with_details(Arc::new(provider), time);
        let builder = builder.with_protocol_versions(versions).unwrap();
        builder.with_root_certificates(roots).with_no_client_auth()
    }

    fn client_builder(
        &self,
        versions: &[&'static rustls::SupportedProtocolVersion],
    ) -> rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier> {
        let time = Arc::new(RustlsClock(Arc::clone(&self.clock) as _));
        ClientConfig::builder_with_details(crypto::provider(), time).with_protocol_versions(versions).unwrap()
    }

    /// With a certificate of its own, from these two files.
    pub fn client_with_certificate(&self, certificate: &Path, key: &Path) -> ClientConfig {
        self.client_with_certificate_and(certificate, key, rustls::ALL_VERSIONS)
    }

    pub fn client_with_certificate_and(
        &self,
        certificate: &Path,
        key: &Path,
        versions: &[&'static rustls::SupportedProtocolVersion],
    ) -> ClientConfig {
        let chain = vec![CertificateDer::from_pem_file(certificate).unwrap()];
        let key = PrivateKeyDer::from_pem_file(key).unwrap();
        let builder = self.client_builder(versions).with_root_certificates(self.trust());
        builder.with_client_auth_cert(chain, key).unwrap()
    }
}

pub(super) fn trust(files: &[PathBuf]) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    for file in files {
        roots.add(CertificateDer::from_pem_file(file).unwrap()).unwrap();
    }
    roots
}

pub(super) fn acceptor(tls: &Tls, sites: &[Site]) -> Acceptor {
    Acceptor::new(tls.site_table(sites).unwrap(), Handshakes::default())
}

pub(super) fn site(names: &[&str], certificate: CertificateSource) -> Site {
    let names = names.iter().map(|name| name.to_string()).collect();
    Site { names, certificate, policy: Policy::default(), client_auth: None }
}

pub(super) fn files(pairs: &[(&Path, &Path)]) -> CertificateSource {
    let pair = |(certificate, key): &(&Path, &Path)| KeyPairFiles {
        certificate: certificate.to_path_buf(),
        key: key.to_path_buf(),
    };
    let pairs = pairs.iter().map(pair).collect();
    CertificateSource::Files(CertificateFiles { pairs, directories: Vec::new() })
}

pub(super) fn internal(names: &[&str]) -> Site {
    site(names, CertificateSource::Internal(Internal::default()))
}

/// Both ends of a connection.
pub(super) struct Connected {
    pub server: Stream<DuplexStream>,
    pub client: client::TlsStream<DuplexStream>,
}

impl Connected {
    pub fn facts(&self) -> &ConnectionFacts {
        self.server.facts()
    }

    /// The server's certificate, DER.
    pub fn certificate(&self) -> Vec<u8> {
        self.client.get_ref().1.peer_certificates().unwrap()[0].to_vec()
    }

    /// A word each way; the client has its ticket then.
    pub async fn exchange(&mut self) {
        self.client.write_all(b"ping").await.unwrap();
        self.client.flush().await.unwrap();
        let mut word = [0; 4];
        self.server.read_exact(&mut word).await.unwrap();
        assert_eq!(&word, b"ping");
        self.server.write_all(b"pong").await.unwrap();
        self.server.flush().await.unwrap();
        self.client.read_exact(&mut word).await.unwrap();
        assert_eq!(&word, b"pong");
    }
}

type Ends = (io::Result<Stream<DuplexStream>>, io::Result<client::TlsStream<DuplexStream>>);

/// What both ends see. `name`: an address makes the client send no SNI.
pub(super) async fn try_connect(acceptor: &Acceptor, client: &ClientConfig, name: &str) -> Ends {
    try_connect_to(acceptor, client, name, name.parse().ok()).await
}

pub(super) async fn try_connect_to(
    acceptor: &Acceptor,
    client: &ClientConfig,
    name: &str,
    local: Option<IpAddr>,
) -> Ends {
    let (near, far) = duplex(64 * 1024);
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let connector = TlsConnector::from(Arc::new(client.clone()));
    tokio::join!(acceptor.accept(far, local), connector.connect(name, near))
}

pub(super) async fn connect(acceptor: &Acceptor, client: &ClientConfig, name: &str) -> Connected {
    let (server, client) = try_connect(acceptor, client, name).await;
    Connected { server: server.unwrap(), client: client.unwrap() }
}
