//! What a cluster has on its nodes, simulated: pods are placed in turn, run at once, and are gone at once when they are to go.
//! There is no scheduler, no kubelet, no container and no network; a probe asks nobody.

use super::Api;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Between looks at the pods that there are.
const PAUSE: Duration = Duration::from_millis(100);

/// Nodes that run `P` for each pod. They end when this is dropped, and all that runs on them.
pub struct Nodes<P> {
    shared: Arc<Shared<P>>,
    thread: Option<JoinHandle<()>>,
}

struct Shared<P> {
    api: Api,
    stopping: AtomicBool,
    /// New pods do not get ready meanwhile.
    is_held: AtomicBool,
    state: Mutex<State<P>>,
}

struct State<P> {
    running: HashMap<String, Arc<P>>,
    placed: usize,
    counts: PodCounts,
}

/// The extremes that were seen since [`Nodes::count_anew`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodCounts {
    pub fewest_ready: usize,
    pub most: usize,
}

impl<P: Send + Sync + 'static> Nodes<P> {
    pub const NAMES: [&str; 2] = ["node-a", "node-b"];

    /// `run` starts what a pod of this name is.
    pub fn start(api: &Api, run: impl Fn(&str) -> P + Send + 'static) -> Self {
        for name in Self::NAMES {
            let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
            api.post("/api/v1/nodes", &node).expect("the API server answers").expect(201);
        }
        let counts = PodCounts { fewest_ready: usize::MAX, most: 0 };
        let state = Mutex::new(State { running: HashMap::new(), placed: 0, counts });
        let (stopping, is_held) = (AtomicBool::new(false), AtomicBool::new(false));
        let shared = Arc::new(Shared { api: api.clone(), stopping, is_held, state });
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            while !of_thread.stopping.load(Ordering::Relaxed) {
                of_thread.look(&run);
                crate::pause(PAUSE);
            }
        });
        Self { shared, thread: Some(thread) }
    }

    /// What runs on them, by the names of the pods.
    pub fn running(&self) -> Vec<(String, Arc<P>)> {
        let state = self.shared.state();
        let mut all: Vec<_> =
            state.running.iter().map(|(name, pod)| (name.clone(), Arc::clone(pod))).collect();
        all.sort_by(|one, other| one.0.cmp(&other.0));
        all
    }

    /// No pod gets ready until [`Self::let_go`].
    pub fn hold(&self) {
        self.shared.is_held.store(true, Ordering::Relaxed);
    }

    pub fn let_go(&self) {
        self.shared.is_held.store(false, Ordering::Relaxed);
    }

    /// Pods that are about to end count no more.
    pub fn counts(&self) -> PodCounts {
        self.shared.state().counts
    }

    pub fn count_anew(&self) {
        self.shared.state().counts = PodCounts { fewest_ready: usize::MAX, most: 0 };
    }
}

impl<P> Shared<P> {
    fn state(&self) -> MutexGuard<'_, State<P>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look(&self, run: &impl Fn(&str) -> P) {
        let Some(list) = self.api.try_get("/api/v1/pods") else { return };
        let pods = list["items"].as_array().cloned().unwrap_or_default();
        self.count(&pods);
        for pod in &pods {
            if is_leaving(pod) {
                self.end(pod);
            } else if pod["spec"]["nodeName"].is_null() {
                self.place(pod);
            } else if pod["status"]["phase"] != "Running" && !self.is_held.load(Ordering::Relaxed) {
                self.run(pod, run);
            }
        }
        let names: HashSet<&str> = pods.iter().map(name).collect();
        self.state().running.retain(|name, _| names.contains(name.as_str()));
    }

    fn count(&self, pods: &[Value]) {
        let staying = pods.iter().filter(|pod| !is_leaving(pod));
        let ready = staying.clone().filter(|pod| pod["status"]["phase"] == "Running").count();
        let counts = &mut self.state().counts;
        counts.fewest_ready = counts.fewest_ready.min(ready);
        counts.most = counts.most.max(staying.count());
    }

    fn place(&self, pod: &Value) {
        let mut state = self.state();
        let node = Nodes::<()>::NAMES[state.placed % Nodes::<()>::NAMES.len()];
        state.placed += 1;
        drop(state);
        let binding = json!({
            "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name(pod)},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        });
        // It may be gone by now; the next look says so.
        let _ = self.api.post(&format!("{}/binding", path(pod)), &binding);
    }

    fn run(&self, pod: &Value, run: &impl Fn(&str) -> P) {
        let known = self.state().running.contains_key(name(pod));
        if !known {
            let started = Arc::new(run(name(pod)));
            self.state().running.insert(name(pod).to_owned(), started);
        }
        let status = json!({"status": running_status(pod)}).to_string();
        let kind = "application/strategic-merge-patch+json";
        let _ = self.api.send("PATCH", &format!("{}/status", path(pod)), kind, &status);
    }

    fn end(&self, pod: &Value) {
        let ended = self.state().running.remove(name(pod));
        drop(ended);
        let at_once =
            json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}).to_string();
        let _ = self.api.send("DELETE", &path(pod), "application/json", &at_once);
    }
}

impl<P> Drop for Nodes<P> {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::Relaxed);
        self.thread.take().into_iter().for_each(|thread| drop(thread.join()));
    }
}

fn running_status(pod: &Value) -> Value {
    let now = now();
    let condition = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": now});
    let conditions = ["Initialized", "Ready", "ContainersReady", "PodScheduled"].map(condition);
    let containers = pod["spec"]["containers"].as_array().cloned().unwrap_or_default();
    let containers = containers.iter().map(|container| {
        json!({
            "name": container["name"], "image": container["image"], "imageID": "", "restartCount": 0,
            "ready": true, "started": true, "state": {"running": {"startedAt": now}},
        })
    });
    json!({
        "phase": "Running", "startTime": now, "podIP": "10.244.0.1", "podIPs": [{"ip": "10.244.0.1"}],
        "conditions": conditions, "containerStatuses": containers.collect::<Vec<_>>(),
    })
}

/// As the API has times.
pub(super) fn now() -> String {
    OffsetDateTime::now_utc().replace_nanosecond(0).expect("0 is one").format(&Rfc3339).expect("it has years")
}

fn is_leaving(pod: &Value) -> bool {
    !pod["metadata"]["deletionTimestamp"].is_null()
}

fn name(pod: &Value) -> &str {
    pod["metadata"]["name"].as_str().unwrap_or_default()
}

fn path(pod: &Value) -> String {
    let namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default();
    format!("/api/v1/namespaces/{namespace}/pods/{}", name(pod))
}
