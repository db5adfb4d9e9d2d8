//! The programs of a cluster that decide what there should be.

use super::program::Program;
use super::{Api, until_agreed};
use crate::apps::{libraries_of, packages_of};
use crate::native::repository;
use crate::{own_address, own_addresses};
use std::fs;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// What the tests need of them. They need neither nodes nor a cloud.
const CONTROLLERS: &str = "deployment-controller,replicaset-controller,horizontal-pod-autoscaler-controller,\
    disruption-controller,garbage-collector-controller,namespace-controller,serviceaccount-controller,\
    endpointslice-controller";
/// Of somebody who may do everything.
const TOKEN: &str = "the-token-of-the-tests";

/// All end when it is dropped, the API server after those that ask it.
pub struct Cluster {
    api: Api,
    programs: PathBuf,
    kubeconfig: PathBuf,
    _running: Vec<Program>,
    directory: TempDir,
}

impl Cluster {
    /// With addresses, keys and certificates of its own, in a fresh directory. It has nothing but what every cluster has.
    pub fn start() -> Self {
        let programs = programs();
        let directory =
            TempDir::with_prefix("regent-kubernetes-").expect("a temporary directory can be made");
        let address = own_address();
        let made = rcgen::generate_simple_self_signed([address.ip().to_string()]).expect("a certificate");
        let write = |name: &str, text: &str| {
            let file = directory.path().join(name);
            fs::write(&file, text).expect("the directory is ours");
            file
        };
        let certificate = write("apiserver.crt", &made.cert.pem());
        write("apiserver.key", &made.signing_key.serialize_pem());
        let of_accounts = rcgen::KeyPair::generate().expect("a key");
        write("accounts.key", &of_accounts.serialize_pem());
        write("accounts.pub", &of_accounts.public_key_pem());
        write("tokens.csv", &format!("{TOKEN},test,test,system:masters\n"));
        let kubeconfig = write("kubeconfig", &kubeconfig(address, &certificate));
        let (etcd, clients) = etcd(directory.path());
        let mut server = api_server(&programs, directory.path(), address, clients);
        let api = Api::new(address, &certificate, TOKEN);
        until_agreed("the API server is ready", || {
            server.expect_running();
            api.try_get("/readyz?verbose=false").map(drop)
        });
        let controllers = controllers(&programs, directory.path(), &kubeconfig);
        let cluster =
            Self { api, programs, kubeconfig, _running: vec![controllers, server, etcd], directory };
        cluster.kubectl(&["apply", "--server-side", "--filename", &cluster.crds()]);
        cluster.kubectl(&["wait", "--for=condition=established", "crd", "--all", "--timeout=60s"]);
        until_agreed("namespaces have what pods need", || {
            cluster.api.try_get("/api/v1/namespaces/default/serviceaccounts/default").map(drop)
        });
        cluster
    }

    pub fn api(&self) -> &Api {
        &self.api
    }

    /// A directory that goes with the cluster.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// A namespace whose pods have to keep to the Pod Security Standard *restricted*; who would make others is warned.
    pub fn restricted_namespace(&self, name: &str) {
        self.kubectl(&["create", "namespace", name]);
        let labels = ["enforce", "warn"].map(|mode| format!("pod-security.kubernetes.io/{mode}=restricted"));
        self.kubectl(&["label", "namespace", name, &labels[0], &labels[1]]);
        let account = format!("/api/v1/namespaces/{name}/serviceaccounts/default");
        until_agreed("the namespace has what pods need", || self.api.try_get(&account).map(drop));
    }

    /// What it prints. It has to succeed.
    #[track_caller]
    pub fn kubectl(&self, arguments: &[&str]) -> String {
        succeeded("kubectl", arguments, &self.try_kubectl(arguments))
    }

    pub fn try_kubectl(&self, arguments: &[&str]) -> Output {
        self.program("kubectl").args(arguments).output().expect("kubectl can be started")
    }

    /// Applies the resources of the text on the side of the server; a warning is a failure.
    #[track_caller]
    pub fn apply(&self, namespace: &str, resources: &str) -> String {
        let arguments =
            ["apply", "--server-side", "--warnings-as-errors", "--namespace", namespace, "--filename", "-"];
        let mut command = self.program("kubectl");
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("kubectl can be started");
        let mut input = process.stdin.take().expect("it was asked for");
        input.write_all(resources.as_bytes()).expect("kubectl reads");
        drop(input);
        let output = process.wait_with_output().expect("kubectl ends");
        succeeded("kubectl", &arguments, &output)
    }

    /// What it prints. It has to succeed.
    #[track_caller]
    pub fn helm(&self, arguments: &[&str]) -> String {
        let output = self.program("helm").args(arguments).output().expect("helm can be started");
        succeeded("helm", arguments, &output)
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        command.env("KUBECONFIG", &self.kubeconfig).current_dir(repository()).stdin(Stdio::null());
        for variable in ["CACHE", "CONFIG", "DATA"] {
            command.env(format!("HELM_{variable}_HOME"), self.directory.path().join("helm"));
        }
        // Where it keeps what it has learnt of servers.
        command.env("KUBECACHEDIR", self.directory.path().join("kubectl"));
        command
    }

    /// Of what is not Kubernetes' own in the chart and the manifests.
    fn crds(&self) -> String {
        self.programs.join("crds").display().to_string()
    }
}

/// The directory that has them.
fn programs() -> PathBuf {
    let mut tool = Command::new(repository().join("tools/kubernetes"));
    let output =
        tool.stdin(Stdio::null()).stderr(Stdio::inherit()).output().expect("the tool can be started");
    assert!(output.status.success(), "tools/kubernetes failed, and this test needs a Kubernetes");
    PathBuf::from(String::from_utf8(output.stdout).expect("a path in UTF-8").trim_end())
}

/// And where its clients reach it.
fn etcd(directory: &Path) -> (Program, SocketAddr) {
    let packages = packages_of("etcd");
    let [clients, peers] = own_addresses();
    let url = |address: SocketAddr| format!("http://{address}");
    let mut command = Command::new(packages.join("usr/bin/etcd"));
    command.env("LD_LIBRARY_PATH", libraries_of(&packages));
    command.arg("--data-dir").arg(directory.join("etcd"));
    for option in ["listen-client-urls", "advertise-client-urls"] {
        command.args([format!("--{option}"), url(clients)]);
    }
    for option in ["listen-peer-urls", "initial-advertise-peer-urls"] {
        command.args([format!("--{option}"), url(peers)]);
    }
    command.args(["--initial-cluster", &format!("default={}", url(peers))]);
    let mut etcd = Program::start("etcd", command, directory);
    until_agreed("etcd listens", || {
        etcd.expect_running();
        TcpStream::connect(clients).ok()
    });
    (etcd, clients)
}

fn api_server(programs: &Path, directory: &Path, address: SocketAddr, etcd: SocketAddr) -> Program {
    let mut command = Command::new(programs.join("kube-apiserver"));
    let file = |name: &str| directory.join(name).display().to_string();
    for (option, value) in [
        ("etcd-servers", format!("http://{etcd}")),
        ("bind-address", address.ip().to_string()),
        ("secure-port", address.port().to_string()),
        ("tls-cert-file", file("apiserver.crt")),
        ("tls-private-key-file", file("apiserver.key")),
        ("cert-dir", file("certificates")),
        ("token-auth-file", file("tokens.csv")),
        ("authorization-mode", "RBAC".to_owned()),
        ("service-account-issuer", "https://kubernetes.default.svc".to_owned()),
        ("service-account-key-file", file("accounts.pub")),
        ("service-account-signing-key-file", file("accounts.key")),
        ("service-cluster-ip-range", "10.96.0.0/16".to_owned()),
        // Nobody but the test reaches it, and an address of this machine is none for a Service.
        ("advertise-address", address.ip().to_string()),
        ("endpoint-reconciler-type", "none".to_owned()),
    ] {
        command.arg(format!("--{option}={value}"));
    }
    Program::start("kube-apiserver", command, directory)
}

fn controllers(programs: &Path, directory: &Path, kubeconfig: &Path) -> Program {
    let mut command = Command::new(programs.join("kube-controller-manager"));
    let kubeconfig = kubeconfig.display();
    for option in [
        format!("--kubeconfig={kubeconfig}"),
        format!("--controllers={CONTROLLERS}"),
        format!("--service-account-private-key-file={}", directory.join("accounts.key").display()),
        "--leader-elect=false".to_owned(),
        "--secure-port=0".to_owned(),
        // They are 15 s, 5 min and 30 s where nobody waits for a test.
        "--horizontal-pod-autoscaler-sync-period=1s".to_owned(),
        "--horizontal-pod-autoscaler-cpu-initialization-period=1s".to_owned(),
        "--horizontal-pod-autoscaler-initial-readiness-delay=1s".to_owned(),
    ] {
        command.arg(option);
    }
    Program::start("kube-controller-manager", command, directory)
}

fn kubeconfig(address: SocketAddr, certificate: &Path) -> String {
    let certificate = certificate.display();
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: test\n\
         clusters:\n- name: test\n  cluster:\n    server: https://{address}\n    certificate-authority: {certificate}\n\
         users:\n- name: test\n  user:\n    token: {TOKEN}\n\
         contexts:\n- name: test\n  context:\n    cluster: test\n    user: test\n"
    )
}

#[track_caller]
fn succeeded(name: &str, arguments: &[&str], output: &Output) -> String {
    let (out, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{name} {}:\n{out}{errors}", arguments.join(" "));
    out.into_owned()
}
