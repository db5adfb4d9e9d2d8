//! Where autoscalers get metrics, simulated: an API of the test's own in the place of prometheus-adapter and of the metrics
//! server, to which the real API server hands on what it is asked.

use super::nodes::now;
use super::{Cluster, until_agreed};
use crate::upstream::{Upstream, receive};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::sync::Arc;

const CUSTOM: &str = "/apis/custom.metrics.k8s.io/v1beta2";
const RESOURCES: &str = "/apis/metrics.k8s.io/v1beta1";

/// What is asked for of all pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// In millionths of a second.
    QueueWait,
    /// In thousandths of all threads.
    BusyThreads,
    /// In thousandths of a core.
    Cpu,
}

/// Ends when it is dropped.
pub struct MetricsApi {
    _server: Upstream,
}

/// The values of pods by their names. `None`: the metric cannot be had.
type Values = dyn Fn(Metric) -> Option<Vec<(String, u64)>> + Send + Sync;

impl MetricsApi {
    /// Registered with the API server, for pods of this namespace.
    pub fn start(
        cluster: &Cluster,
        namespace: &str,
        values: impl Fn(Metric) -> Option<Vec<(String, u64)>> + Send + Sync + 'static,
    ) -> Self {
        let (config, namespace) = (tls(), namespace.to_owned());
        let values: Arc<Values> = Arc::new(values);
        let server = Upstream::talking(move |stream, connection| {
            // Who breaks off comes again.
            let _ = talk(stream, connection, &config, &namespace, &*values);
        });
        let port = server.address().port();
        cluster.apply("default", &registration(port));
        for path in [CUSTOM, RESOURCES] {
            until_agreed("the API server hands on what it is asked", || {
                cluster.api().try_get(path).map(drop)
            });
        }
        Self { _server: server }
    }
}

fn talk(
    stream: TcpStream,
    connection: usize,
    config: &Arc<ServerConfig>,
    namespace: &str,
    values: &Values,
) -> Option<()> {
    let tls = ServerConnection::new(Arc::clone(config)).ok()?;
    let mut reader = BufReader::new(StreamOwned::new(tls, stream));
    while let Some(request) = receive(&mut reader, connection) {
        let target = request.line().split(' ').nth(1)?.to_owned();
        // The API server hands it on in its own spelling.
        let path = target.split('?').next().unwrap_or_default().replace("%2A", "*");
        let (status, body) = match answer(&path, namespace, values) {
            Some(body) => ("200 OK", body.to_string()),
            None => ("404 Not Found", "{}".to_owned()),
        };
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        reader.get_mut().write_all(format!("{head}{body}").as_bytes()).ok()?;
        reader.get_mut().flush().ok()?;
    }
    Some(())
}

fn answer(path: &str, namespace: &str, values: &Values) -> Option<Value> {
    let pods = format!("/namespaces/{namespace}/pods");
    if path == CUSTOM {
        let names = ["regent_queue_wait_seconds_mean", "regent_threads_busy_ratio"];
        return Some(resources(
            "custom.metrics.k8s.io/v1beta2",
            &names.map(|name| (format!("pods/{name}"), "MetricValueList")),
        ));
    }
    if path == RESOURCES {
        return Some(resources("metrics.k8s.io/v1beta1", &[("pods".to_owned(), "PodMetrics")]));
    }
    if path == format!("{RESOURCES}{pods}") {
        return Some(cpu(namespace, &values(Metric::Cpu)?));
    }
    let metric = path.strip_prefix(CUSTOM)?.strip_prefix(&pods)?.strip_prefix("/*/")?;
    let (of, unit) = match metric {
        "regent_queue_wait_seconds_mean" => (Metric::QueueWait, "u"),
        "regent_threads_busy_ratio" => (Metric::BusyThreads, "m"),
        _ => return None,
    };
    Some(custom(namespace, metric, unit, &values(of)?))
}

fn resources(version: &str, all: &[(String, &str)]) -> Value {
    let resources = all.iter().map(|(name, kind)| {
        json!({"name": name, "singularName": "", "namespaced": true, "kind": kind, "verbs": ["get", "list"]})
    });
    json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version,
        "resources": resources.collect::<Vec<_>>(),
    })
}

fn custom(namespace: &str, metric: &str, unit: &str, values: &[(String, u64)]) -> Value {
    let items = values.iter().map(|(pod, value)| {
        json!({
            "describedObject": {"kind": "Pod", "namespace": namespace, "name": pod, "apiVersion": "/v1"},
            "metric": {"name": metric}, "timestamp": now(), "value": format!("{value}{unit}"),
        })
    });
    json!({
        "kind": "MetricValueList", "apiVersion": "custom.metrics.k8s.io/v1beta2", "metadata": {},
        "items": items.collect::<Vec<_>>(),
    })
}

fn cpu(namespace: &str, values: &[(String, u64)]) -> Value {
    let items = values.iter().map(|(pod, value)| {
        json!({
            "metadata": {"name": pod, "namespace": namespace}, "timestamp": now(), "window": "5s",
            "containers": [{"name": "regent", "usage": {"cpu": format!("{value}m"), "memory": "64Mi"}}],
        })
    });
    json!({
        "kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "metadata": {},
        "items": items.collect::<Vec<_>>(),
    })
}

/// A Service that leads out of the cluster, as there is no network within.
fn registration(port: u16) -> String {
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "metrics-of-the-test"},
        "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]},
    });
    let register = |group: &str, version: &str| {
        json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {"name": format!("{version}.{group}")},
            "spec": {
                "group": group, "version": version, "groupPriorityMinimum": 100, "versionPriority": 100,
                "insecureSkipTLSVerify": true,
                "service": {"name": "metrics-of-the-test", "namespace": "default", "port": port},
            },
        })
    };
    let custom = register("custom.metrics.k8s.io", "v1beta2");
    let resources = register("metrics.k8s.io", "v1beta1");
    format!("{service}\n---\n{custom}\n---\n{resources}\n")
}

fn tls() -> Arc<ServerConfig> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let certificate = CertificateDer::from_pem_slice(made.cert.pem().as_bytes()).expect("a certificate");
    let key = PrivateKeyDer::from_pem_slice(made.signing_key.serialize_pem().as_bytes()).expect("a key");
    let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().expect("versions of the provider");
    Arc::new(builder.with_no_client_auth().with_single_cert(vec![certificate], key).expect("a pair"))
}
