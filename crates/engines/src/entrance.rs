//! The way into an engine from one I/O thread.

use crate::admission::AdmissionControl;
use crate::engine_client::{ClientStart, ClientWatch, EngineClient};
use regent_metrics::Recorder;
use regent_wire::clock;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::spawn_local;

/// Between two looks at which requests are running.
const RUNNING_LOOK: Duration = Duration::from_millis(20);
/// Between two looks for damage that engines have done to their requests, in looks at what is running: 260 ms.
const INSPECTION: u32 = 13;

/// The way into an engine, which configurations in a row share if the engine goes on.
#[derive(Clone)]
pub struct Entrance {
    pub client: Rc<EngineClient>,
    pub admission: Rc<AdmissionControl>,
}

impl Entrance {
    /// `drain_all`: as for [`EngineClient::open`]. Must be called within a local runtime.
    pub fn open(start: ClientStart, recorder: &Rc<Recorder>, drain_all: fn()) -> io::Result<Self> {
        let (pools, bounds) = (Arc::clone(&start.pools), start.bounds);
        let admission = AdmissionControl::new(pools, Rc::clone(recorder), bounds);
        let client = EngineClient::open(start, drain_all)?;
        spawn_local(watch_running(client.watch(), Rc::clone(&admission)));
        Ok(Self { client, admission })
    }
}

/// Tells the lanes which requests have started, as long as there can be any: only so a route that hangs is noticed before its
/// requests end. Now and then it looks at all requests that engines have.
async fn watch_running(watch: ClientWatch, admission: Rc<AdmissionControl>) {
    for look in (0..INSPECTION).cycle() {
        if watch.used().await.is_none() {
            return;
        }
        tokio::time::sleep(RUNNING_LOOK).await;
        let Some(client) = watch.client() else { return };
        let now = clock::now();
        // An engine can say anything; nothing starts later than now.
        client.running(|place, since| place.started(since.min(now)));
        admission.max_wait_time().into_iter().for_each(|most| client.wake_late(now, most));
        client.wake_overdue(now);
        admission.tick();
        if look + 1 == INSPECTION {
            client.inspect();
        }
    }
}
