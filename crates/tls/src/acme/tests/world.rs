//! A CA, the network that it looks at, and servers on one storage.

use super::dns;
use super::pebble::{Behaviour, Pebble, Ports};
use crate::tests::ManualClock;
use crate::{
    Acceptor, Acme, CertificateSource, CertificateState, ChallengeKind, Handshakes, Issuance, OnDemand,
    Options, Policy, Site, SiteTable, Tls, crypto,
};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use std::cell::RefCell;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{LocalSet, spawn_local};
use tokio_rustls::TlsConnector;

pub(super) struct World {
    pub directory: tempfile::TempDir,
    pub clock: Arc<ManualClock>,
    pub ports: Ports,
    /// What the CA reaches at the names; nothing if it is `None`.
    front: Rc<RefCell<Option<Server>>>,
    /// What it reaches by HTTP.
    plain_front: Rc<RefCell<Option<Server>>>,
}

/// A process, as far as the storage can tell.
#[derive(Clone)]
pub(super) struct Server {
    pub tls: Tls,
    table: Arc<SiteTable>,
}

/// Runs a test in a world with a CA; if there is none to be had, it is skipped.
pub(super) async fn with_pebble(behaviour: Behaviour, test: impl AsyncFnOnce(&World, &mut Pebble)) {
    in_world(async |world| {
        if let Some(mut pebble) = Pebble::start(world.directory.path(), world.ports, &behaviour).await {
            test(world, &mut pebble).await;
        }
    })
    .await;
}

pub(super) async fn in_world(test: impl AsyncFnOnce(&World)) {
    LocalSet::new().run_until(async { test(&World::new().await).await }).await;
}

impl World {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let front = Rc::<RefCell<Option<Server>>>::default();
        let plain_front = Rc::<RefCell<Option<Server>>>::default();
        let [http, tls, dns] = [listener().await, listener().await, listener().await];
        let ports = Ports { http: port(&http), tls: port(&tls), dns: port(&dns) };
        let records = directory.path().join("records");
        std::fs::create_dir(&records).unwrap();
        spawn_local(dns::serve(dns, records));
        spawn_local(serve_http(http, Rc::clone(&plain_front)));
        spawn_local(serve_tls(tls, Rc::clone(&front)));
        Self { directory, clock: ManualClock::new(), ports, front, plain_front }
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.directory.path().join(path)
    }

    /// Options for a CA with the certificate of [`Pebble`].
    pub fn acme(&self, directory: String) -> Acme {
        Acme {
            directory: Some(directory),
            trusted_roots: vec![self.path("ca.pem")],
            email: Some("me@example.com".into()),
            ..Acme::default()
        }
    }

    /// A server with sites for these names.
    pub fn server(&self, acme: &Acme, names: &[&str]) -> Server {
        let source = CertificateSource::Acme(vec![acme.clone()], Issuance::AtStart);
        self.server_of(source, names, OnDemand::default())
    }

    /// A server with a site for any name.
    pub fn server_on_demand(&self, acme: &Acme, on_demand: OnDemand) -> Server {
        let source = CertificateSource::Acme(vec![acme.clone()], Issuance::OnDemand);
        self.server_of(source, &[], on_demand)
    }

    pub fn server_of(&self, certificate: CertificateSource, names: &[&str], on_demand: OnDemand) -> Server {
        let options = Options { on_demand, ..Options::of_storage(self.path("storage")) };
        let tls = Tls::open_with_clock(options, Arc::clone(&self.clock) as _).unwrap();
        let names = names.iter().map(|name| name.to_string()).collect();
        let site = Site { names, certificate, policy: Policy::default(), client_auth: None };
        let table = tls.site_table(&[site]).unwrap();
        Server { tls, table }
    }

    /// From now on the CA reaches this server.
    pub fn lead_to(&self, server: &Server) {
        *self.front.borrow_mut() = Some(server.clone());
        *self.plain_front.borrow_mut() = Some(server.clone());
    }

    /// From now on the CA reaches nobody by HTTP.
    pub fn break_http(&self) {
        *self.plain_front.borrow_mut() = None;
    }
}

impl Server {
    /// Does all that is due now.
    pub async fn tend(&self) {
        self.tls.tend().await;
    }

    pub fn state(&self, name: &str) -> CertificateState {
        self.tls.certificates().into_iter().find(|state| state.name == name).unwrap()
    }

    /// Does what this needs while it runs.
    pub async fn maintain_while<T>(&self, work: impl Future<Output = T>) -> T {
        tokio::select! {
            () = self.tls.maintain() => unreachable!("it never ends"),
            done = work => done,
        }
    }

    pub fn last_error(&self, name: &str) -> String {
        self.state(name).last_error.expect("the last order failed")
    }

    /// A handshake; the certificate that the client got, or why it got none.
    pub async fn connect(&self, name: &str) -> Result<Vec<u8>, String> {
        let acceptor = Acceptor::new(Arc::clone(&self.table), Handshakes::default());
        let (near, far) = duplex(64 * 1024);
        let connector = TlsConnector::from(Arc::new(client()));
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let (_, client) = tokio::join!(acceptor.accept(far, None), connector.connect(name, near));
        let client = client.map_err(|error| error.to_string())?;
        Ok(client.get_ref().1.peer_certificates().unwrap()[0].to_vec())
    }
}

pub(super) const BOTH: [ChallengeKind; 2] = [ChallengeKind::Http, ChallengeKind::TlsAlpn];

async fn listener() -> TcpListener {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap()
}

fn port(listener: &TcpListener) -> u16 {
    listener.local_addr().unwrap().port()
}

async fn serve_tls(listener: TcpListener, front: Rc<RefCell<Option<Server>>>) {
    while let Ok((stream, _)) = listener.accept().await {
        let Some(server) = front.borrow().clone() else { continue };
        let acceptor = Acceptor::new(server.table, Handshakes::default());
        spawn_local(async move {
            // Each ends with an error, since a CA wants no more than the handshake.
            let _ = acceptor.accept(stream, None).await;
        });
    }
}

async fn serve_http(listener: TcpListener, front: Rc<RefCell<Option<Server>>>) {
    while let Ok((stream, _)) = listener.accept().await {
        let Some(server) = front.borrow().clone() else { continue };
        spawn_local(respond(stream, server));
    }
}

/// Of a request, only what the CA is about.
async fn respond(mut stream: TcpStream, server: Server) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let head = String::from_utf8(head).unwrap();
    let path = head.split(' ').nth(1).unwrap();
    let token = path.strip_prefix("/.well-known/acme-challenge/").unwrap();
    let host = head.lines().find_map(|line| line.strip_prefix("Host: ")).unwrap();
    let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
    let response = match server.tls.http_challenge(host, token) {
        Some(body) => format!("HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()),
        None => "HTTP/1.0 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
    };
    let _ = stream.write_all(response.as_bytes()).await;
}

/// What it trusts is not what these tests are about.
#[derive(Debug)]
struct TrustingClient;

fn client() -> ClientConfig {
    ClientConfig::builder_with_provider(crypto::provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(TrustingClient))
        .with_no_client_auth()
}

impl ServerCertVerifier for TrustingClient {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = crypto::provider().signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, &algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = crypto::provider().signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, &algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        crypto::provider().signature_verification_algorithms.supported_schemes()
    }
}
