//! The distribution's nginx in front of its php-fpm, over a Unix socket.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::configurations::{fastcgi_parameters, fixed_children, fpm};
use super::programs::{PhpProgram, find, php_fpm, version_line};
use super::{
    LISTEN_BACKLOG, MOST_ADDRESSES, Parts, Paths, PhpThreads, Plan, Pool, Tuning, addresses, configure,
    free_port, is_listening, worker_user,
};
use crate::site::Site;
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

pub fn start(upstream: Upstream, tuning: Tuning, plan: &Plan) -> Result<Parts> {
    let nginx = find("nginx").context("nginx is not installed")?;
    let program = php_fpm().context("php-fpm is not installed")?;
    let directory = plan.site.server_directory(upstream.name())?;
    let socket = directory.join("php.sock");
    let port = free_port(MOST_ADDRESSES)?;

    fs::write(directory.join("php.ini"), program.opcache_line())?;
    let pool = pool_configuration(&directory, &socket, tuning, plan);
    let (pool_path, pool) = configure(plan.site, &directory, "php-fpm.conf", &pool)?;
    let front = Front::of(upstream, tuning, plan).configuration(plan.site, &directory, &socket, port);
    let (front_path, front) = configure(plan.site, &directory, "nginx.conf", &front)?;

    let mut php = start_php(&program, plan, &directory, &pool_path)?;
    php.wait_until_ready(plan.interrupt, || UnixStream::connect(&socket).is_ok())?;
    let mut command = Command::new(&nginx);
    command.arg("-e").arg(directory.join("nginx.log")).arg("-p").arg(&directory).arg("-c").arg(&front_path);
    let mut server = Daemon::start("nginx", command, &directory.join("nginx.out"))?;
    server.wait_until_ready(plan.interrupt, || is_listening(port, MOST_ADDRESSES))?;
    Ok(Parts {
        port,
        addresses: MOST_ADDRESSES,
        paths: Paths::classic(),
        daemons: vec![server, php],
        php_threads: Some(PhpThreads::Children),
        banner: Some("nginx".to_owned()),
        sapi: Some("fpm-fcgi".to_owned()),
        software: vec![version_line(&nginx, "-v"), version_line(&program.path, "-v")],
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

fn start_php(fpm: &PhpProgram, plan: &Plan, directory: &Path, pool: &Path) -> Result<Daemon> {
    let mut command = Command::new(&fpm.path);
    command
        .arg("--nodaemonize")
        .arg("--php-ini")
        .arg(directory.join("php.ini"))
        .arg("--fpm-config")
        .arg(pool);
    command.env("PHP_INI_SCAN_DIR", plan.site.php_settings(directory, plan.time_limit)?);
    Daemon::start("php-fpm", command, &directory.join("php-fpm.out"))
}

fn pool_configuration(directory: &Path, socket: &Path, tuning: Tuning, plan: &Plan) -> String {
    let time_limit = plan
        .time_limit_seconds()
        .map_or(String::new(), |seconds| format!("request_terminate_timeout = {seconds}s\n"));
    let processes = match tuning {
        Tuning::Best => format!("listen.backlog = {LISTEN_BACKLOG}\n{}", process_manager(plan.pool)),
        Tuning::Default => DEFAULT_PROCESS_MANAGER.to_owned(),
    };
    fpm(directory, socket, &format!("{processes}{time_limit}"))
}

/// Of Debian's pool.d/www.conf.
const DEFAULT_PROCESS_MANAGER: &str = "pm = dynamic
pm.max_children = 5
pm.start_servers = 2
pm.min_spare_servers = 1
pm.max_spare_servers = 3
";

/// A pool that scales starts children as long as fewer are idle than at the start, and ends none.
fn process_manager(pool: Pool) -> String {
    match pool {
        Pool::Fixed(children) => fixed_children(children),
        Pool::Scaling { start, most } => format!(
            "pm = dynamic
pm.max_children = {most}
pm.start_servers = {start}
pm.min_spare_servers = {start}
pm.max_spare_servers = {most}
pm.max_requests = 0
"
        ),
    }
}

/// What differs between nginx configurations.
#[derive(Debug)]
struct Front {
    processes: usize,
    connections_of_process: u32,
    /// Of each address; `None` is nginx's own.
    backlog: Option<u32>,
    /// Lines of the `http` block.
    http: &'static str,
    keeping: Keeping,
    /// Seconds that an answer of PHP may take; `None` is nginx's own, 60.
    time_limit: Option<u64>,
}

/// A kept connection is never closed, and what nginx knows of a file is as old as what opcache knows of a script.
const BEST_HTTP: &str = "    keepalive_timeout 3600s;
    keepalive_requests 1000000000;
    open_file_cache max=1000;
    open_file_cache_valid 2s;
";

impl Front {
    fn of(upstream: Upstream, tuning: Tuning, plan: &Plan) -> Self {
        let processes = std::thread::available_parallelism().map_or(1, usize::from);
        let keeping = upstream.directives(plan.pool.most(), processes);
        let time_limit = plan.time_limit_seconds();
        match tuning {
            // One process may get all clients, and has a connection to php-fpm for each.
            Tuning::Best => Self {
                processes,
                connections_of_process: (2 * plan.most_connections + 1024).max(16_384),
                backlog: Some(LISTEN_BACKLOG),
                http: BEST_HTTP,
                keeping,
                time_limit,
            },
            // Debian's nginx.conf.
            Tuning::Default => {
                Self { processes, connections_of_process: 768, backlog: None, http: "", keeping, time_limit }
            }
        }
    }

    fn listen(&self, port: u16) -> String {
        let backlog = self.backlog.map_or(String::new(), |backlog| format!(" backlog={backlog}"));
        let line = |address| format!("        listen {address}{backlog};\n");
        addresses(port, MOST_ADDRESSES).into_iter().map(line).collect()
    }

    fn location(&self) -> String {
        let time_limit = self
            .time_limit
            .map_or(String::new(), |seconds| format!("            fastcgi_read_timeout {seconds}s;\n"));
        format!("{}{time_limit}{}", self.keeping.location, fastcgi_parameters())
    }

    fn configuration(&self, site: &Site, directory: &Path, socket: &Path, port: u16) -> String {
        let user = worker_user().map_or(String::new(), |user| format!("user {user};\n"));
        format!(
            "{user}daemon off;
worker_processes {processes};
pid \"{directory}/nginx.pid\";
events {{
    worker_connections {connections};
}}
http {{
    access_log off;
    server_tokens on;
    sendfile on;
    tcp_nopush on;
    client_max_body_size 0;
{http}    client_body_temp_path \"{directory}/body\";
    proxy_temp_path \"{directory}/proxy\";
    fastcgi_temp_path \"{directory}/fastcgi\";
    uwsgi_temp_path \"{directory}/uwsgi\";
    scgi_temp_path \"{directory}/scgi\";
    upstream php {{
        server \"unix:{socket}\";
{upstream}    }}
    server {{
{listen}        root \"{root}\";
        location ~ \\.php$ {{
            fastcgi_pass php;
{location}        }}
    }}
}}
",
            processes = self.processes,
            connections = self.connections_of_process,
            http = self.http,
            directory = directory.display(),
            root = site.document_root().display(),
            socket = socket.display(),
            upstream = self.keeping.upstream,
            listen = self.listen(port),
            location = self.location(),
        )
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::generator::plan::Connections;
    use crate::interrupt::Interrupt;

    fn with_plan<T>(pool: Pool, time_limit: Option<Duration>, use_it: impl FnOnce(&Plan) -> T) -> T {
        let site = Site::create().expect("a directory");
        let interrupt = Interrupt::default();
        use_it(&Plan {
            site: &site,
            pool,
            most_connections: 10_000,
            connections: Connections::PerRequest,
            regent: None,
            externals: &[],
            time_limit,
            deadline: None,
            wait: crate::peers::Wait::Default,
            interrupt: &interrupt,
        })
    }

    fn php_fpm_conf(tuning: Tuning, pool: Pool, time_limit: Option<Duration>) -> String {
        with_plan(pool, time_limit, |plan| {
            pool_configuration(Path::new("/d"), Path::new("/d/php.sock"), tuning, plan)
        })
    }

    fn nginx_conf(upstream: Upstream, tuning: Tuning, time_limit: Option<Duration>) -> String {
        with_plan(Pool::Fixed(8), time_limit, |plan| {
            let front = Front { processes: 2, ..Front::of(upstream, tuning, plan) };
            front.configuration(plan.site, Path::new("/d"), Path::new("/d/php.sock"), 8080)
        })
    }

    #[test]
    fn a_fixed_pool_is_static_with_as_many_children_as_regent_has_threads() {
        let pool = php_fpm_conf(Tuning::Best, Pool::Fixed(8), None);
        assert!(pool.contains("pm = static\npm.max_children = 8\n"), "{pool}");
        assert!(
            pool.contains("listen = /d/php.sock\n") && pool.contains("listen.backlog = 4096\n"),
            "{pool}"
        );
        assert!(!pool.contains("terminate"), "{pool}");
    }

    #[test]
    fn a_pool_that_scales_is_dynamic_and_keeps_what_it_has_started() {
        let pool = php_fpm_conf(Tuning::Best, Pool::Scaling { start: 4, most: 100 }, None);
        assert!(pool.contains("pm = dynamic\npm.max_children = 100\npm.start_servers = 4\n"), "{pool}");
        assert!(pool.contains("pm.min_spare_servers = 4\npm.max_spare_servers = 100\n"), "{pool}");
    }

    #[test]
    fn default_settings_are_debians_whatever_the_plan() {
        let pool = php_fpm_conf(Tuning::Default, Pool::Fixed(8), None);
        assert!(
            pool.contains("pm.max_children = 5\npm.start_servers = 2\n") && !pool.contains("backlog"),
            "{pool}"
        );
        let front = nginx_conf(Upstream::Fresh, Tuning::Default, None);
        assert!(
            front.contains("worker_connections 768;") && front.contains("listen 127.0.0.4:8080;"),
            "{front}"
        );
        assert!(!front.contains("keepalive_requests"), "{front}");
    }

    #[test]
    fn both_programs_end_a_request_at_the_time_limit() {
        let limit = Some(Duration::from_secs(10));
        let pool = php_fpm_conf(Tuning::Default, Pool::Fixed(8), limit);
        assert!(pool.ends_with("request_terminate_timeout = 10s\n"), "{pool}");
        let front = nginx_conf(Upstream::Fresh, Tuning::Best, limit);
        assert!(front.contains("            fastcgi_read_timeout 10s;\n"), "{front}");
    }

    #[test]
    fn nginx_listens_on_loopback_only_and_never_closes_a_kept_connection() {
        let text = nginx_conf(Upstream::Fresh, Tuning::Best, None);
        assert_eq!(text.matches("        listen 127.0.0.").count(), 4, "{text}");
        assert!(text.contains("listen 127.0.0.1:8080 backlog=4096;"), "{text}");
        assert!(
            text.contains("keepalive_requests 1000000000;") && text.contains("access_log off;"),
            "{text}"
        );
        assert!(text.contains("    upstream php {\n        server \"unix:/d/php.sock\";\n    }\n"), "{text}");
        assert!(!text.contains("fastcgi_keep_conn"), "{text}");
    }

    #[test]
    fn a_process_of_nginx_has_connections_for_all_clients_and_as_many_to_php() {
        let text = nginx_conf(Upstream::Fresh, Tuning::Best, None);
        assert!(text.contains("worker_connections 21024;"), "{text}");
    }

    #[test]
    fn kept_connections_leave_children_for_the_others() {
        let text = nginx_conf(Upstream::Kept, Tuning::Best, None);
        assert!(Upstream::Kept.directives(8, 2).upstream.contains("        keepalive 3;\n"), "{text}");
        assert!(
            text.contains("            fastcgi_pass php;\n            fastcgi_keep_conn on;\n"),
            "{text}"
        );
        assert!(Upstream::Kept.directives(1, 8).upstream.contains("keepalive 1;"));
    }
}
