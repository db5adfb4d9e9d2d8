//! A UDP socket, and the QUIC connections that come by it.

use crate::h1::Settings;
use crate::h3::drivers::{Driver, Drivers};
use crate::h3::failure::Failure;
use quinn::crypto::ServerConfig as Crypto;
use quinn::{
    Connecting, EndpointConfig, IdleTimeout, Incoming, Runtime, ServerConfig, TransportConfig, VarInt,
};
use std::any::Any;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The one version of QUIC (RFC 9000).
const VERSION: u32 = 1;

/// Requests at once. RFC 9114 §6.1 recommends no fewer than 100.
const REQUESTS: u32 = 100;

/// Other streams at once: three have a meaning, and some clients open one that has none.
const OTHERS: u32 = 8;

/// Bytes of a request's body that a client may send ahead of who reads it, and those of all streams together. As in HTTP/2.
const STREAM_WINDOW: u32 = 512 * 1024;
const CONNECTION_WINDOW: u32 = 4 * STREAM_WINDOW;

/// Bytes of responses that a client has not acknowledged.
const SEND_WINDOW: u64 = 2 * 1024 * 1024;

/// Handshakes under way from which on clients have to prove their addresses first (RFC 9000 §8.1.2), which takes a round trip.
const UNPROVEN: usize = 256;

/// First packets that wait to be looked at, and what may follow each, in bytes: nothing waits for long.
const MOST_INCOMING: usize = 1024;
const INCOMING_BUFFER: u64 = 64 * 1024;
const INCOMING_BUFFERS: u64 = 16 * 1024 * 1024;

/// Where connections come from. What it receives goes to their own tasks, on whichever thread they run.
pub struct Endpoint {
    quic: quinn::Endpoint,
    drivers: Arc<Drivers>,
    local: SocketAddr,
    config: ServerConfig,
    handshakes: Arc<AtomicUsize>,
}

/// What has come to an endpoint.
pub enum Came {
    Client(Box<Arriving>),
    /// A client that has to prove its address first. It will come again.
    Unproven,
}

/// A client that wants a connection. Dropped, it is refused.
pub struct Arriving {
    incoming: Incoming,
    /// Of the socket.
    local: SocketAddr,
    config: ServerConfig,
    drivers: Arc<Drivers>,
    under_way: UnderWay,
}

/// A connection that is being made.
pub struct Handshake {
    connecting: Connecting,
    driver: Option<Driver>,
    _under_way: UnderWay,
}

/// A connection whose handshake is done.
pub struct Connection {
    pub(super) quic: quinn::Connection,
    pub(super) driver: Option<Driver>,
}

/// A handshake, counted as long as this lives.
struct UnderWay(Arc<AtomicUsize>);

impl UnderWay {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Endpoint {
    /// Must be called within a runtime, which receives for all connections. `crypto`: for first packets.
    pub fn new(socket: UdpSocket, crypto: Arc<dyn Crypto>) -> io::Result<Self> {
        let mut config = ServerConfig::with_crypto(crypto);
        config
            .max_incoming(MOST_INCOMING)
            .incoming_buffer_size(INCOMING_BUFFER)
            .incoming_buffer_size_total(INCOMING_BUFFERS);
        let local = socket.local_addr()?;
        let mut of_endpoint = EndpointConfig::default();
        of_endpoint.supported_versions(vec![VERSION]);
        let drivers = Arc::<Drivers>::default();
        let runtime = Arc::clone(&drivers) as Arc<dyn Runtime>;
        let quic = quinn::Endpoint::new(of_endpoint, Some(config.clone()), socket, runtime)?;
        Ok(Self { quic, drivers, local, config, handshakes: Arc::default() })
    }

    /// The next client; `None`: the socket has failed.
    pub async fn next(&self) -> Option<Came> {
        let incoming = self.quic.accept().await?;
        let is_busy = self.handshakes.load(Ordering::Relaxed) >= UNPROVEN;
        if is_busy && !incoming.remote_address_validated() {
            // An error says that it has proved its address.
            let _ = incoming.retry();
            return Some(Came::Unproven);
        }
        let (config, drivers) = (self.config.clone(), Arc::clone(&self.drivers));
        let under_way = UnderWay::new(&self.handshakes);
        Some(Came::Client(Box::new(Arriving { incoming, local: self.local, config, drivers, under_way })))
    }
}

impl Arriving {
    pub fn remote(&self) -> SocketAddr {
        let address = self.incoming.remote_address();
        SocketAddr::new(address.ip().to_canonical(), address.port())
    }

    /// This end.
    pub fn local(&self) -> Option<SocketAddr> {
        let ip = self.incoming.local_ip().unwrap_or(self.local.ip()).to_canonical();
        (!ip.is_unspecified()).then_some(SocketAddr::new(ip, self.local.port()))
    }

    /// Begins the handshake. What belongs to the connection runs on this thread from now on. `crypto`: what its site is chosen from.
    pub fn accept(self, crypto: Arc<dyn Crypto>, settings: &Settings) -> Result<Handshake, Failure> {
        let Self { incoming, mut config, drivers, under_way, .. } = self;
        config.crypto = crypto;
        config.transport = Arc::new(transport(settings));
        let connecting = incoming.accept_with(Arc::new(config)).map_err(Failure::Lost)?;
        Ok(Handshake { connecting, driver: drivers.take(), _under_way: under_way })
    }
}

impl Connection {
    /// What the crypto that it was accepted with has to say of the handshake.
    pub fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.quic.handshake_data()
    }
}

impl Handshake {
    /// The connection, once the client has shown all that it has to.
    pub async fn done(self) -> Result<Connection, Failure> {
        let Self { connecting, driver, _under_way } = self;
        let quic = connecting.await.map_err(Failure::Lost)?;
        Ok(Connection { quic, driver })
    }
}

fn transport(settings: &Settings) -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport
        .max_concurrent_bidi_streams(VarInt::from_u32(REQUESTS))
        .max_concurrent_uni_streams(VarInt::from_u32(OTHERS))
        .stream_receive_window(VarInt::from_u32(STREAM_WINDOW))
        .receive_window(VarInt::from_u32(CONNECTION_WINDOW))
        .send_window(SEND_WINDOW)
        .datagram_receive_buffer_size(None)
        // Longer ones than QUIC can say are none.
        .max_idle_timeout(IdleTimeout::try_from(settings.idle).ok());
    transport
}
