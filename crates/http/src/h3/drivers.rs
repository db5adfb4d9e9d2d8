//! quinn's own tasks: for each connection one that sends what there is to send.

use quinn::{AsyncTimer, AsyncUdpSocket, Runtime, TokioRuntime};
use std::collections::HashMap;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::UdpSocket;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Instant;
use tokio::sync::oneshot;

/// tokio, which also tells when a task of quinn's ends.
#[derive(Debug, Default)]
pub(super) struct Drivers {
    /// What each thread has begun last.
    begun: Mutex<HashMap<ThreadId, Driver>>,
}

/// The task of a connection.
#[derive(Debug)]
pub(super) struct Driver(oneshot::Receiver<Infallible>);

impl Drivers {
    /// The task that this thread has begun last; `None` if it was taken before.
    pub fn take(&self) -> Option<Driver> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner).remove(&thread::current().id())
    }
}

impl Driver {
    /// Ends with the task, which has sent by then that its connection is closed, and heard what was still on its way.
    pub async fn ended(self) {
        // Nothing is ever sent.
        let _ = self.0.await;
    }
}

impl Runtime for Drivers {
    fn new_timer(&self, until: Instant) -> Pin<Box<dyn AsyncTimer>> {
        TokioRuntime.new_timer(until)
    }

    fn spawn(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        let (runs, ended) = oneshot::channel();
        self.begun
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(thread::current().id(), Driver(ended));
        TokioRuntime.spawn(Box::pin(async move {
            task.await;
            drop(runs);
        }));
    }

    fn wrap_udp_socket(&self, socket: UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        TokioRuntime.wrap_udp_socket(socket)
    }

    fn now(&self) -> Instant {
        TokioRuntime.now()
    }
}
