//! The admin listener's life: bound before anything is started, serving until everything has stopped.

use regent_admin::{Access, Address, Control, Listeners, OriginError};
use regent_config::{Admin, AdminListen};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Why there is no admin listener.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    #[error("{0}; write `admin off`, or another address (`admin localhost:2020`), in the global options")]
    Bind(#[from] regent_admin::BindError),
    #[error("admin origins: {0}")]
    Origin(#[from] OriginError),
}

/// A listener that does not answer yet.
pub(crate) struct AdminListener {
    listeners: Listeners,
    access: Access,
}

/// A listener that answers. Dropped, it ends at once.
pub(crate) struct AdminTask {
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl AdminListener {
    pub fn bind(admin: &Admin) -> Result<Self, AdminError> {
        let origins = admin.origins.iter().map(|origin| origin.parse()).collect::<Result<_, _>>()?;
        let origin_check = match admin.origin_check {
            regent_config::OriginCheck::Browsers => regent_admin::OriginCheck::Browsers,
            regent_config::OriginCheck::Everyone => regent_admin::OriginCheck::Everyone,
        };
        let address = match &admin.listen {
            AdminListen::Tcp { host, port } => Address::Tcp { host: host.clone(), port: *port },
            AdminListen::Unix(path) => Address::Unix(path.clone()),
        };
        Ok(Self { listeners: regent_admin::bind(&address)?, access: Access { origins, origin_check } })
    }

    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listeners.tcp_addresses()
    }

    pub fn serve(self, control: Arc<dyn Control>) -> AdminTask {
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            let stopped = async {
                // A sender that was dropped says the same.
                let _ = stopped.await;
            };
            if let Err(error) = regent_admin::serve(self.listeners, self.access, control, stopped).await {
                tracing::error!(%error, "the admin API could not be served");
            }
        });
        AdminTask { stop: Some(stop), task }
    }
}

impl AdminTask {
    /// Answers what is being asked, and ends.
    pub async fn stop(mut self) {
        drop(self.stop.take());
        // It was cancelled otherwise.
        let _ = (&mut self.task).await;
    }
}

impl Drop for AdminTask {
    fn drop(&mut self) {
        self.task.abort();
    }
}
