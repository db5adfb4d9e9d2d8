//! The chart and the manifests in a Kubernetes, whose API server and controllers are real. What is on its nodes is not: where a
//! test needs pods that serve, each is a real server that the test starts. `tests/src/kubernetes/mod.rs` says more. They are not
//! run by themselves, since `tools/kubernetes` builds for twenty minutes before: `make test-kubernetes`.
#![forbid(unsafe_code)]

use regent_tests::kubernetes::{Cluster, Metric, MetricsApi, Nodes, StandIn, until_agreed};
use regent_tests::{Admin, Response};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

const CHART: &str = "packaging/helm/regent";
/// All that the chart can make beside an autoscaler.
const ALL: &[&str] = &[
    "--set=ingress.enabled=true,ingress.hosts={shop.example.com},ingress.className=nginx",
    "--set=httpRoute.enabled=true,httpRoute.parentRefs[0].name=public,httpRoute.hostnames={shop.example.com}",
    "--set=serviceMonitor.enabled=true,prometheusRule.enabled=true",
];

/// `helm ACTION shop CHART`, in the namespace `web`.
fn helm(cluster: &Cluster, action: &str, options: &[&str]) -> String {
    let words: Vec<&str> = action.split(' ').collect();
    cluster.helm(&[&words[..], &["shop", CHART, "--namespace", "web"], options].concat())
}

/// As who applies the resources without helm has them; helm takes itself for an old Kubernetes then.
fn rendered(cluster: &Cluster, options: &[&str]) -> String {
    helm(cluster, "template", &[&["--kube-version=1.34.0", "--no-hooks"], options].concat())
}

fn deployment(cluster: &Cluster) -> Value {
    cluster.api().get("/apis/apps/v1/namespaces/web/deployments/shop-regent")
}

fn replicas(cluster: &Cluster) -> u64 {
    deployment(cluster)["spec"]["replicas"].as_u64().expect("a number")
}

fn wait_for_replicas(cluster: &Cluster, number: u64) {
    until_agreed(&format!("there are {number} replicas"), || (replicas(cluster) == number).then_some(()));
}

/// All pods that there are to be are there and ready, of the latest template, and no others.
fn wait_for_rollout(cluster: &Cluster) {
    until_agreed("the pods are those of the latest template", || {
        let (spec, status) = (&deployment(cluster)["spec"], &deployment(cluster)["status"]);
        let is = |field: &str| status[field].as_u64() == spec["replicas"].as_u64();
        let is_current = status["observedGeneration"] == deployment(cluster)["metadata"]["generation"];
        (is_current && is("replicas") && is("updatedReplicas") && is("readyReplicas")).then_some(())
    });
}

#[test]
#[ignore = "needs tools/kubernetes"]
fn an_api_server_takes_the_chart_and_gets_rid_of_it() {
    let cluster = Cluster::start();
    cluster.restricted_namespace("web");
    for options in [&[][..], ALL, &["--set=autoscaling.enabled=true,autoscaling.queueWait.enabled=true"]] {
        let rendered = rendered(&cluster, options);
        cluster.apply("web", &rendered);
        let versions = || {
            let kinds = "configmap,service,ingress,httproute,servicemonitor,prometheusrule";
            let each =
                "jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.resourceVersion}{'\\n'}{end}";
            cluster.kubectl(&["get", kinds, "--namespace", "web", "--output", each])
        };
        let before = versions();
        assert!(before.contains("ConfigMap shop-regent"), "{before}");
        cluster.apply("web", &rendered);
        assert_eq!(versions(), before, "applied a second time, it changes nothing");
    }
    let keda = ["--set=autoscaling.enabled=true,autoscaling.kind=keda,autoscaling.queueWait.enabled=true"];
    cluster.apply("web", &rendered(&cluster, &keda));
    cluster.kubectl(&["delete", "namespace", "web"]);

    cluster.restricted_namespace("web");
    helm(&cluster, "install", &[]);
    assert_eq!(replicas(&cluster), 2);
    helm(&cluster, "upgrade", &[&["--set=replicas=3", "--set-string=image.tag=2"], ALL].concat());
    assert_eq!(replicas(&cluster), 3);
    cluster.helm(&["uninstall", "shop", "--namespace", "web"]);
    until_agreed("nothing of it is left", || {
        let kinds = "all,configmap,ingress,httproute,servicemonitor,prometheusrule,poddisruptionbudget";
        let selector = "app.kubernetes.io/instance=shop";
        let left = cluster.kubectl(&[
            "get",
            kinds,
            "--namespace",
            "web",
            "--selector",
            selector,
            "--output",
            "name",
        ]);
        (!left.contains('/')).then_some(())
    });
}

#[test]
#[ignore = "needs tools/kubernetes"]
fn an_api_server_takes_the_manifests() {
    let cluster = Cluster::start();
    cluster.restricted_namespace("default-shop");
    let take = |what: &[&str]| {
        let apply = ["apply", "--server-side", "--warnings-as-errors", "--namespace", "default-shop"];
        cluster.kubectl(&[&apply[..], what].concat());
    };
    take(&["--kustomize", "packaging/kubernetes"]);
    for name in ["ingress", "httproute", "servicemonitor"] {
        take(&["--filename", &format!("packaging/kubernetes/{name}.yaml")]);
    }
    for name in ["hpa-cpu", "hpa-queue-wait", "keda"] {
        take(&["--filename", &format!("packaging/kubernetes/autoscaling/{name}.yaml")]);
    }
    // The alerts of the chart are those that Prometheus reads from a file.
    let images =
        cluster.kubectl(&["get", "deployment", "regent", "--namespace", "default-shop", "--output", "yaml"]);
    assert!(images.contains("image: registry.example.com/shop:1"), "{images}");
}

#[test]
#[ignore = "needs tools/kubernetes"]
fn new_pods_come_before_old_ones_go_and_a_node_is_emptied_one_pod_at_a_time() {
    let cluster = Cluster::start();
    cluster.restricted_namespace("web");
    let nodes = Nodes::start(cluster.api(), |_| ());
    helm(&cluster, "install", &["--set=replicas=4"]);
    wait_for_rollout(&cluster);

    // While new pods do not get ready, none of the old ones goes.
    nodes.count_anew();
    nodes.hold();
    helm(&cluster, "upgrade", &["--set=replicas=4", "--set-string=image.tag=2"]);
    until_agreed("a new pod is there", || (nodes.counts().most == 5).then_some(()));
    nodes.let_go();
    wait_for_rollout(&cluster);
    let counts = nodes.counts();
    assert_eq!((counts.fewest_ready, counts.most), (4, 5), "maxUnavailable 0, maxSurge 1");

    // Of two pods that are to go at once, the budget lets one.
    nodes.hold();
    let budget = || cluster.api().get("/apis/policy/v1/namespaces/web/poddisruptionbudgets/shop-regent");
    until_agreed("one may go", || (budget()["status"]["disruptionsAllowed"] == 1).then_some(()));
    let pods: Vec<String> = nodes.running().into_iter().map(|(name, _)| name).collect();
    assert_eq!(evict(&cluster, &pods[0]).status, 201);
    let refused = until_agreed("another may not", || {
        Some(evict(&cluster, &pods[1])).filter(|response| response.status == 429)
    });
    assert!(refused.text().contains("disruption budget"), "{}", refused.text());
    nodes.let_go();
    wait_for_rollout(&cluster);

    // So a drain takes its time and serves on. It has to be told that volumes go with the pods.
    let node = Nodes::<()>::NAMES[0];
    let refused = cluster.try_kubectl(&["drain", node, "--ignore-daemonsets"]);
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && message.contains("--delete-emptydir-data"), "{message}");
    cluster.kubectl(&["uncordon", node]);
    nodes.count_anew();
    let drained = cluster.kubectl(&["drain", node, "--ignore-daemonsets", "--delete-emptydir-data"]);
    assert!(drained.contains("evicted"), "{drained}");
    wait_for_rollout(&cluster);
    assert!(nodes.counts().fewest_ready >= 3, "{:?}", nodes.counts());
}

fn evict(cluster: &Cluster, pod: &str) -> Response {
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}});
    let path = format!("/api/v1/namespaces/web/pods/{pod}/eviction");
    cluster.api().post(&path, &eviction).expect("the API server answers")
}

/// Threads of each server, and what a request takes: ten at once need ten threads.
const THREADS: usize = 2;
const MILLISECONDS: u64 = 100;
const VISITORS: usize = 10;

/// Pods that are real servers, and autoscalers that see what those serve as metrics.
struct Fleet {
    cluster: Cluster,
    nodes: Arc<Nodes<StandIn>>,
    _metrics: MetricsApi,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    /// How often the wait was asked for.
    looks: AtomicUsize,
    /// The metrics server is away.
    has_no_cpu: AtomicBool,
    /// The last that was told of waits, in microseconds.
    waits: Mutex<Vec<u64>>,
}

impl Fleet {
    fn start() -> Self {
        let cluster = Cluster::start();
        cluster.restricted_namespace("web");
        let nodes = Arc::new(Nodes::start(cluster.api(), |_| StandIn::start(THREADS, MILLISECONDS)));
        let seen = Arc::<Seen>::default();
        let (running, seeing) = (Arc::downgrade(&nodes), Arc::clone(&seen));
        let metrics = MetricsApi::start(&cluster, "web", move |metric| seeing.values(metric, &running));
        Self { cluster, nodes, _metrics: metrics, seen }
    }

    /// What the autoscaler has decided has been carried out when it has looked so often.
    fn wait_for_looks(&self, more: usize) {
        let until_here = self.seen.looks.load(Ordering::Relaxed) + more;
        until_agreed("the autoscaler looks", || {
            (self.seen.looks.load(Ordering::Relaxed) >= until_here).then_some(())
        });
    }

    /// The numbers of replicas while the autoscaler looks so often.
    fn replicas_during(&self, looks: usize) -> Vec<u64> {
        let mut all = Vec::new();
        for _ in 0..looks {
            self.wait_for_looks(1);
            all.push(replicas(&self.cluster));
        }
        all
    }

    fn addresses(&self) -> Vec<SocketAddr> {
        self.nodes.running().iter().map(|(_, pod)| pod.address()).collect()
    }

    /// So many visitors at once, spread over the pods as a Service would do it, until `meanwhile` is over.
    fn visited<T>(&self, visitors: usize, meanwhile: impl FnOnce() -> T) -> T {
        let is_over = AtomicBool::new(false);
        let turn = AtomicUsize::new(0);
        let visit = || {
            while !is_over.load(Ordering::Relaxed) {
                let addresses = self.addresses();
                let next = turn.fetch_add(1, Ordering::Relaxed);
                let Some(address) = addresses.get(next % addresses.len().max(1)) else { continue };
                // A pod that goes takes its visitors along, since nothing here tells them of it.
                let _ = Admin::new(*address).request("GET", "/index.php").try_send();
            }
        };
        std::thread::scope(|scope| {
            (0..visitors).for_each(|_| drop(scope.spawn(visit)));
            let _ending = Ending(&is_over);
            meanwhile()
        })
    }

    fn condition(&self, kind: &str) -> Value {
        let path = "/apis/autoscaling/v2/namespaces/web/horizontalpodautoscalers/shop-regent";
        let autoscaler = self.cluster.api().get(path);
        let conditions = autoscaler["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.into_iter().find(|condition| condition["type"] == kind).unwrap_or_default()
    }
}

impl Seen {
    fn values(&self, metric: Metric, nodes: &Weak<Nodes<StandIn>>) -> Option<Vec<(String, u64)>> {
        let pods = nodes.upgrade().map(|nodes| nodes.running()).unwrap_or_default();
        let of_all = |value: &dyn Fn(&StandIn) -> f64| {
            pods.iter().map(|(name, pod)| (name.clone(), value(pod) as u64)).collect::<Vec<_>>()
        };
        match metric {
            Metric::Cpu if self.has_no_cpu.load(Ordering::Relaxed) => None,
            // A tenth of what they request: they wait for something else.
            Metric::Cpu => Some(of_all(&|_| 100.0)),
            Metric::BusyThreads => Some(of_all(&|pod| pod.busy_ratio() * 1e3)),
            Metric::QueueWait => {
                let waits = of_all(&|pod| pod.mean_wait_seconds() * 1e6);
                *self.waits.lock().expect("nobody panics with it") =
                    waits.iter().map(|(_, wait)| *wait).collect();
                self.looks.fetch_add(1, Ordering::Relaxed);
                Some(waits)
            }
        }
    }
}

struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// In steps that a test can wait for.
const FAST: &str = r#"--set-json=autoscaling.behavior={"scaleUp":{"stabilizationWindowSeconds":0,"policies":[{"type":"Pods","value":2,"periodSeconds":5}]},"scaleDown":{"stabilizationWindowSeconds":8,"policies":[{"type":"Percent","value":50,"periodSeconds":5}]}}"#;

#[test]
#[ignore = "needs tools/kubernetes"]
fn pods_come_when_requests_wait_and_go_when_they_do_not() {
    let fleet = Fleet::start();
    helm(&fleet.cluster, "install", &["--set=replicas=3"]);
    wait_for_rollout(&fleet.cluster);

    // The autoscaler takes over the number that there is.
    fleet.nodes.count_anew();
    let scaling = "--set=autoscaling.enabled=true,autoscaling.minReplicas=2,autoscaling.maxReplicas=12,\
                   autoscaling.queueWait.enabled=true";
    helm(&fleet.cluster, "upgrade", &[scaling, FAST]);
    wait_for_replicas(&fleet.cluster, 2);
    wait_for_rollout(&fleet.cluster);
    assert!(fleet.nodes.counts().fewest_ready >= 2, "turning it on takes no more pods away than it says");

    let (waits, steady) = fleet.visited(VISITORS, || {
        until_agreed("pods come", || (replicas(&fleet.cluster) > 2).then_some(()));
        let waits = fleet.seen.waits.lock().expect("nobody panics with it").clone();
        until_agreed("there are enough", || (replicas(&fleet.cluster) >= 5).then_some(()));
        fleet.wait_for_looks(20);
        (waits, fleet.replicas_during(20))
    });
    println!("waits in µs when pods began to come: {waits:?}; replicas from then on: {steady:?}");
    assert!(waits.iter().any(|wait| *wait > 50_000), "{waits:?}");
    // Ten busy threads of at most 70 % are seven or eight pods of two threads. By the wait alone the number would swing.
    assert!(steady.iter().all(|number| *number == steady[0] && *number >= 7), "{steady:?}");
    wait_for_replicas(&fleet.cluster, 2);
    // What was said to the autoscaler is what the servers say.
    fleet.wait_for_looks(2);
    let waits = fleet.seen.waits.lock().expect("nobody panics with it").clone();
    assert!(waits.iter().all(|wait| *wait == 0), "{waits:?}");
}

#[test]
#[ignore = "needs tools/kubernetes"]
fn pods_come_and_do_not_go_while_a_metric_is_missing() {
    let fleet = Fleet::start();
    fleet.seen.has_no_cpu.store(true, Ordering::Relaxed);
    let scaling = "--set=autoscaling.enabled=true,autoscaling.minReplicas=2,autoscaling.maxReplicas=4,\
                   autoscaling.queueWait.enabled=true";
    helm(&fleet.cluster, "install", &[scaling, FAST]);
    wait_for_replicas(&fleet.cluster, 2);
    wait_for_rollout(&fleet.cluster);
    fleet.visited(VISITORS, || wait_for_replicas(&fleet.cluster, 4));
    until_agreed("it says why it does nothing", || {
        (fleet.condition("ScalingActive")["reason"] == "FailedGetResourceMetric").then_some(())
    });
    fleet.wait_for_looks(15);
    assert_eq!(replicas(&fleet.cluster), 4, "{}", fleet.condition("ScalingActive"));
    fleet.seen.has_no_cpu.store(false, Ordering::Relaxed);
    wait_for_replicas(&fleet.cluster, 2);
}
