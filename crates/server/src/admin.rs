//! The admin listener's life: bound before anything is started, serving until everything has stopped.

use regent_admin::{Access, Address, Control, Listeners, OriginError, Phase};
use regent_config::{Admin, AdminListen};
use regent_net::{Inherited, InheritedSocket};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Why there is no admin listener.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    #[error("{0}; write `admin off`, or another address (`admin localhost:2020`), in the global options")]
    Bind(#[from] regent_admin::BindError),
    #[error("admin origins: {0}")]
    Origin(#[from] OriginError),
    #[error("the sockets of the admin API cannot be had twice: {0}")]
    Sockets(io::Error),
}

/// A listener that does not answer yet.
pub(crate) struct AdminListener {
    listeners: Listeners,
    access: Access,
}

/// A listener that answers. Dropped, it ends at once.
pub(crate) struct AdminTask(JoinHandle<()>);

/// What the rest of the server has of the listener; nothing happens where there is none.
pub(crate) struct AdminHandle {
    phase: watch::Sender<Phase>,
    /// For a server that takes them over.
    sockets: Mutex<Vec<InheritedSocket>>,
}

impl AdminListener {
    pub fn bind(admin: &Admin, inherited: &Inherited) -> Result<Self, AdminError> {
        let origins = admin.origins.iter().map(|origin| origin.parse()).collect::<Result<_, _>>()?;
        let origin_check = match admin.origin_check {
            regent_config::OriginCheck::Browsers => regent_admin::OriginCheck::Browsers,
            regent_config::OriginCheck::Everyone => regent_admin::OriginCheck::Everyone,
        };
        let address = match &admin.listen {
            AdminListen::Tcp { host, port } => Address::Tcp { host: host.clone(), port: *port },
            AdminListen::Unix { path, .. } => Address::Unix(path.clone()),
        };
        let listeners = regent_admin::bind(&address, inherited)?;
        if let AdminListen::Unix { mode, .. } = &admin.listen {
            listeners.set_mode(*mode)?;
        }
        Ok(Self { listeners, access: Access { origins, origin_check } })
    }

    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listeners.tcp_addresses()
    }

    /// Answers until [`AdminTask::stop`].
    pub fn serve(self, control: Arc<dyn Control>, handle: &AdminHandle) -> AdminTask {
        let phases = handle.phase.subscribe();
        AdminTask(tokio::spawn(async move {
            if let Err(error) = regent_admin::serve(self.listeners, self.access, control, phases).await {
                tracing::error!(%error, "the admin API could not be served");
            }
        }))
    }
}

impl AdminHandle {
    pub fn new(listener: Option<&AdminListener>) -> io::Result<Self> {
        let lent = listener.map(|listener| listener.listeners.lend()).transpose()?.unwrap_or_default();
        let sockets = lent.into_iter().map(|(socket, keeper)| InheritedSocket::new(socket, keeper));
        let sockets = Mutex::new(sockets.collect::<io::Result<_>>()?);
        Ok(Self { phase: watch::Sender::new(Phase::Serving), sockets })
    }

    /// Other descriptors of its sockets.
    pub fn lend(&self) -> io::Result<Vec<InheritedSocket>> {
        self.sockets().iter().map(InheritedSocket::try_clone).collect()
    }

    /// Whoever comes waits until [`Self::resume`], or is another server's.
    pub fn pause(&self) {
        self.phase.send_replace(Phase::Paused);
    }

    pub fn resume(&self) {
        self.phase.send_replace(Phase::Serving);
    }

    fn end(&self, phase: Phase) {
        self.sockets().clear();
        self.phase.send_replace(phase);
    }

    fn sockets(&self) -> MutexGuard<'_, Vec<InheritedSocket>> {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AdminTask {
    /// Answers what is being asked, and ends, with the file of a Unix socket.
    pub async fn stop(self, handle: &AdminHandle) {
        self.end(handle, Phase::Stopped).await;
    }

    /// The same when another server has taken the sockets over.
    pub async fn leave(self, handle: &AdminHandle) {
        self.end(handle, Phase::Left).await;
    }

    async fn end(mut self, handle: &AdminHandle, phase: Phase) {
        handle.end(phase);
        // It was cancelled otherwise.
        let _ = (&mut self.0).await;
    }
}

impl Drop for AdminTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}
