//! The configuration of packaging/kubernetes: what probes and Prometheus reach, and how a ConfigMap changes.
#![forbid(unsafe_code)]

use regent_tests::{Admin, Request, Server, Setup, until};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

const CONFIG_MAP: &str = include_str!("../../packaging/kubernetes/configmap.yaml");

/// The Caddyfile of the ConfigMap, with addresses and the site's directory from the environment.
fn caddyfile() -> String {
    let lines = CONFIG_MAP.lines().skip_while(|line| *line != "  Caddyfile: |").skip(1);
    let mut text: String =
        lines.map(|line| format!("{}\n", line.strip_prefix("    ").unwrap_or(line))).collect();
    for (written, variable) in [
        ("http://:8080", "http://{$SITE}"),
        ("http://:9180", "http://{$PROBES}"),
        ("127.0.0.1:2019", "{$API}"),
        ("localhost:2019", "{$API}"),
        ("/app/public", "{$PUBLIC}"),
    ] {
        assert!(text.contains(written), "{written} is not in\n{text}");
        text = text.replace(written, variable);
    }
    text
}

/// As the kubelet does it: the file is a link into a directory, and that is a link which is replaced.
fn mount(volume: &Path, version: &str, text: &str) {
    fs::create_dir(volume.join(version)).unwrap();
    fs::write(volume.join(version).join("Caddyfile"), text).unwrap();
    symlink(version, volume.join("..data_tmp")).unwrap();
    fs::rename(volume.join("..data_tmp"), volume.join("..data")).unwrap();
}

fn pod() -> Server {
    let setup = Setup::new().file("index.php", "<?php echo $_SERVER['REMOTE_ADDR'], ' ', $_SERVER['HTTPS'];");
    let volume = setup.directory().join("volume");
    fs::create_dir(&volume).unwrap();
    mount(&volume, "..1", &caddyfile());
    symlink("..data/Caddyfile", volume.join("Caddyfile")).unwrap();
    let setup = setup.arguments(&["run", "--config", "DIRECTORY/volume/Caddyfile", "--watch"]);
    let setup = setup.env("SITE", "ADDRESS").env("PROBES", "LOOPBACK:TLSPORT");
    setup.env("API", "ADMIN").env("PUBLIC", "ROOT").start()
}

fn probe(server: &Server, method: &str, path: &str) -> Request {
    Admin::new(server.tls_address()).request(method, path)
}

#[test]
fn probes_and_prometheus_reach_what_they_need_and_nothing_else_of_the_admin_api() {
    let server = pod();
    until("the pod is ready", || (probe(&server, "GET", "/regent/ready").send().status == 200).then_some(()));
    probe(&server, "GET", "/regent/live").send().expect(200);
    let metrics = probe(&server, "GET", "/metrics").send().expect(200).text().to_owned();
    assert!(metrics.contains("\nregent_threads{"), "{metrics}");
    for (method, path) in [
        ("POST", "/stop"),
        ("POST", "/regent/ready"),
        ("GET", "/config/"),
        ("GET", "/regent/threads"),
        ("POST", "/regent/live/../../stop"),
        ("POST", "/load"),
        ("GET", "/index.php"),
    ] {
        assert_eq!(probe(&server, method, path).send().status, 404, "{method} {path}");
    }
    server.get("/index.php").expect(200);
    server.stop();
}

#[test]
fn php_sees_the_client_that_the_ingress_names() {
    let server = pod();
    let request = server.request("GET", "/index.php").header("X-Forwarded-For", "198.51.100.7");
    assert_eq!(request.header("X-Forwarded-Proto", "https").send().expect(200).text(), "198.51.100.7 on");
    server.stop();
}

#[test]
fn a_config_map_that_changes_is_loaded_and_a_wrong_one_is_not() {
    let server = pod();
    let volume = server.directory().join("volume");
    mount(&volume, "..2", &caddyfile().replace("respond 404", "respond 410"));
    until("the change is in use", || (probe(&server, "GET", "/other").send().status == 410).then_some(()));
    mount(&volume, "..3", &caddyfile().replace("respond 404", "respnd 411"));
    server.wait_for_log("respnd");
    until("the metrics tell of it", || {
        (server.admin().metric("caddy_config_last_reload_successful", &[]) == 0.0).then_some(())
    });
    probe(&server, "GET", "/other").send().expect(410);
    server.stop();
}
