//! Listening addresses: their sockets, and what is served there.

use crate::StartError;
use regent_config::{Config, HttpProtocol, Listen, Server, SniHost, UnixSocket};
use regent_handlers::Sites;
use regent_net::SocketFile;
use regent_tls::SiteTable;
use rustix::fd::OwnedFd;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

/// What each I/O thread is told of a listening address.
#[derive(Clone)]
pub(crate) struct Listener {
    pub sites: Arc<Sites>,
    /// `None`: plain HTTP.
    pub tls: Option<Arc<SiteTable>>,
    pub sni_host: SniHost,
    pub protocols: Vec<HttpProtocol>,
}

/// The listening addresses of a server.
#[derive(Default)]
pub(crate) struct Listening {
    /// With the ports that the system chose for port 0.
    pub addresses: Vec<Listen>,
    /// By address: the non-blocking sockets that share it.
    pub sockets: Vec<Vec<OwnedFd>>,
    /// Removed when they are dropped.
    pub files: Vec<SocketFile>,
}

impl Listener {
    /// `tls`: by address.
    pub fn all(config: &Config, tls: Vec<Option<Arc<SiteTable>>>) -> Result<Vec<Self>, StartError> {
        let listener = |(server, tls): (&Server, Option<Arc<SiteTable>>)| {
            let sites = Arc::new(Sites::build(server, &config.global.php.workers)?);
            let sni_host = server.tls.as_ref().map_or(SniHost::Free, |tls| tls.sni_host);
            Ok(Self { sites, tls, sni_host, protocols: server.protocols.clone() })
        };
        config.servers.iter().zip(tls).map(listener).collect()
    }
}

impl Listening {
    pub fn open(servers: &[Server]) -> Result<Self, StartError> {
        let mut listening = Self::default();
        servers.iter().try_for_each(|server| listening.add(server))?;
        Ok(listening)
    }

    fn add(&mut self, server: &Server) -> Result<(), StartError> {
        let (address, sockets) = match &server.listen {
            Listen::Tcp(address) => listen_tcp(*address)
                .map_err(|cause| StartError::Listen { address: address.to_string(), cause })?,
            Listen::Unix(UnixSocket { path, mode }) => {
                let (socket, file) = regent_net::listen_unix(path, *mode)
                    .map_err(|cause| StartError::ListenUnix { path: path.clone(), cause })?;
                self.files.push(file);
                (server.listen.clone(), vec![socket.into()])
            }
        };
        self.addresses.push(address);
        self.sockets.push(sockets);
        Ok(())
    }
}

fn listen_tcp(address: SocketAddr) -> io::Result<(Listen, Vec<OwnedFd>)> {
    let sockets = regent_net::listen(address)?;
    Ok((Listen::Tcp(sockets[0].local_addr()?), sockets.into_iter().map(OwnedFd::from).collect()))
}
