//! The distribution's nginx in front of its php-fpm, over a Unix socket, with the best settings known.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::programs::{PhpProgram, find, php_fpm, version_line};
use super::{LISTEN_BACKLOG, Parts, Plan, configure, free_port, worker_user};
use crate::probe;
use crate::site::{HELLO_PATH, Site};
use crate::supervise::Daemon;

/// The connections from nginx to php-fpm.
///
/// php-fpm binds a child to a connection for as long as it is kept. With more clients than children, the connections
/// that were there first keep the children, and the other clients wait: about a third more throughput, but from 100
/// connections on a p99 of ten times the mean latency, and of seconds when nginx may keep as many connections as there
/// are children. Hence fresh ones, nginx's default, are the reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upstream {
    /// One for each request.
    Fresh,
    /// Kept by each nginx process, together fewer than there are children, so that some are left for the others.
    Kept,
}

pub fn start(upstream: Upstream, plan: &Plan) -> Result<Parts> {
    let nginx = find("nginx").context("nginx is not installed")?;
    let fpm = php_fpm().context("php-fpm is not installed")?;
    let directory = plan.site.server_directory(upstream.name())?;
    let socket = directory.join("php.sock");
    let port = free_port()?;

    fs::write(directory.join("php.ini"), fpm.opcache_line())?;
    let pool = pool_configuration(&directory, &socket, plan.threads);
    let (pool_path, pool) = configure(plan.site, &directory, "php-fpm.conf", &pool)?;
    let processes = std::thread::available_parallelism().map_or(1, usize::from);
    let keeping = upstream.directives(plan.threads, processes);
    let front = nginx_configuration(plan.site, &directory, &socket, port, processes, keeping);
    let (front_path, front) = configure(plan.site, &directory, "nginx.conf", &front)?;

    let mut php = start_php(&fpm, plan.site, &directory, &pool_path)?;
    php.wait_until_ready(plan.interrupt, || UnixStream::connect(&socket).is_ok())?;
    let mut command = Command::new(&nginx);
    command.arg("-e").arg(directory.join("nginx.log")).arg("-p").arg(&directory).arg("-c").arg(&front_path);
    let mut server = Daemon::start("nginx", command, &directory.join("nginx.out"))?;
    server.wait_until_ready(plan.interrupt, || probe::accepts(port))?;
    Ok(Parts {
        port,
        path: HELLO_PATH,
        daemons: vec![server, php],
        software: vec![version_line(&nginx, "-v"), version_line(&fpm.path, "-v")],
        configuration: vec![front, pool],
    })
}

/// Lines of nginx.conf that keep connections.
#[derive(Debug, Default)]
struct Keeping {
    upstream: String,
    location: &'static str,
}

impl Upstream {
    fn name(self) -> &'static str {
        match self {
            Self::Fresh => "fpm",
            Self::Kept => "fpm-kept",
        }
    }

    fn directives(self, children: u16, processes: usize) -> Keeping {
        match self {
            Self::Fresh => Keeping::default(),
            Self::Kept => {
                let each = (usize::from(children).saturating_sub(1) / processes).max(1);
                Keeping {
                    upstream: format!("        keepalive {each};\n        keepalive_requests 1000000000;\n"),
                    location: "            fastcgi_keep_conn on;\n",
                }
            }
        }
    }
}

fn start_php(fpm: &PhpProgram, site: &Site, directory: &Path, pool: &Path) -> Result<Daemon> {
    let mut command = Command::new(&fpm.path);
    command
        .arg("--nodaemonize")
        .arg("--php-ini")
        .arg(directory.join("php.ini"))
        .arg("--fpm-config")
        .arg(pool);
    command.env("PHP_INI_SCAN_DIR", site.php_settings_directory());
    Daemon::start("php-fpm", command, &directory.join("php-fpm.out"))
}

fn pool_configuration(directory: &Path, socket: &Path, children: u16) -> String {
    let user = worker_user().map_or(String::new(), |user| format!("user = {user}\ngroup = {user}\n"));
    format!(
        "[global]
daemonize = no
error_log = {directory}/php-fpm.log
log_level = warning

[bench]
{user}listen = {socket}
listen.mode = 0666
listen.backlog = {LISTEN_BACKLOG}
pm = static
pm.max_children = {children}
pm.max_requests = 0
",
        directory = directory.display(),
        socket = socket.display(),
    )
}

fn nginx_configuration(
    site: &Site,
    directory: &Path,
    socket: &Path,
    port: u16,
    processes: usize,
    keeping: Keeping,
) -> String {
    let user = worker_user().map_or(String::new(), |user| format!("user {user};\n"));
    let parameters: String = FASTCGI_PARAMETERS
        .iter()
        .map(|(name, value)| format!("            fastcgi_param {name} {value};\n"))
        .collect();
    format!(
        "{user}daemon off;
worker_processes {processes};
worker_rlimit_nofile 65536;
pid \"{directory}/nginx.pid\";
events {{
    worker_connections 16384;
}}
http {{
    access_log off;
    server_tokens on;
    tcp_nodelay on;
    keepalive_timeout 3600s;
    keepalive_requests 1000000000;
    client_body_temp_path \"{directory}/body\";
    proxy_temp_path \"{directory}/proxy\";
    fastcgi_temp_path \"{directory}/fastcgi\";
    uwsgi_temp_path \"{directory}/uwsgi\";
    scgi_temp_path \"{directory}/scgi\";
    upstream php {{
        server \"unix:{socket}\";
{upstream}    }}
    server {{
        listen 127.0.0.1:{port} backlog={LISTEN_BACKLOG};
        root \"{root}\";
        location ~ \\.php$ {{
            fastcgi_pass php;
{location}{parameters}        }}
    }}
}}
",
        directory = directory.display(),
        root = site.document_root().display(),
        socket = socket.display(),
        upstream = keeping.upstream,
        location = keeping.location,
    )
}

/// Those of nginx's own fastcgi.conf, which other distributions keep elsewhere.
const FASTCGI_PARAMETERS: &[(&str, &str)] = &[
    ("SCRIPT_FILENAME", "$document_root$fastcgi_script_name"),
    ("QUERY_STRING", "$query_string"),
    ("REQUEST_METHOD", "$request_method"),
    ("CONTENT_TYPE", "$content_type"),
    ("CONTENT_LENGTH", "$content_length"),
    ("SCRIPT_NAME", "$fastcgi_script_name"),
    ("REQUEST_URI", "$request_uri"),
    ("DOCUMENT_URI", "$document_uri"),
    ("DOCUMENT_ROOT", "$document_root"),
    ("SERVER_PROTOCOL", "$server_protocol"),
    ("REQUEST_SCHEME", "$scheme"),
    ("GATEWAY_INTERFACE", "CGI/1.1"),
    ("SERVER_SOFTWARE", "nginx/$nginx_version"),
    ("REMOTE_ADDR", "$remote_addr"),
    ("REMOTE_PORT", "$remote_port"),
    ("SERVER_ADDR", "$server_addr"),
    ("SERVER_PORT", "$server_port"),
    ("SERVER_NAME", "$server_name"),
    ("REDIRECT_STATUS", "200"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pool_is_static_with_as_many_children_as_regent_has_threads() {
        let pool = pool_configuration(Path::new("/d"), Path::new("/d/php.sock"), 8);
        assert!(pool.contains("pm = static\npm.max_children = 8\n"), "{pool}");
        assert!(
            pool.contains("listen = /d/php.sock\n") && pool.contains("listen.backlog = 4096\n"),
            "{pool}"
        );
    }

    fn nginx(upstream: Upstream) -> String {
        let site = Site::create().expect("a directory");
        let keeping = upstream.directives(8, 2);
        nginx_configuration(&site, Path::new("/d"), Path::new("/d/php.sock"), 8080, 2, keeping)
    }

    #[test]
    fn nginx_listens_on_loopback_only_and_never_closes_a_kept_connection() {
        let text = nginx(Upstream::Fresh);
        assert!(text.contains("listen 127.0.0.1:8080 backlog=4096;"), "{text}");
        assert!(
            text.contains("keepalive_requests 1000000000;") && text.contains("access_log off;"),
            "{text}"
        );
        assert!(text.contains("    upstream php {\n        server \"unix:/d/php.sock\";\n    }\n"), "{text}");
        assert!(!text.contains("fastcgi_keep_conn"), "{text}");
    }

    #[test]
    fn kept_connections_leave_children_for_the_others() {
        let text = nginx(Upstream::Kept);
        assert!(text.contains("        keepalive 3;\n"), "{text}");
        assert!(
            text.contains("            fastcgi_pass php;\n            fastcgi_keep_conn on;\n"),
            "{text}"
        );
        assert!(Upstream::Kept.directives(1, 8).upstream.contains("keepalive 1;"));
    }
}
