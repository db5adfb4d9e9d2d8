//! The distribution's Apache with the prefork module and mod_php.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::programs::{APACHE_MODULES, PhpProgram, find, mod_php, version_line};
use super::{
    LISTEN_BACKLOG, Parts, Paths, PhpThreads, Plan, Pool, Tuning, configure, free_port, is_listening,
    worker_user,
};
use crate::generator::plan::Connections;
use crate::site::Site;
use crate::supervise::Daemon;

/// 127.0.0.1 alone: with several listeners prefork passes a lock from process to process for each `accept`. With four,
/// the p99 of a connection for each request was three times as long (100 clients: 38 to 51 ms instead of 12 to 14).
const ADDRESSES: u8 = 1;
/// Processes beyond one for each connection, for the checks and for connections that are being closed.
const SPARE_PROCESSES: u32 = 32;
/// More clients than so many wait in the listen queue, because the processes would only take each other's time.
const MOST_PROCESSES: u32 = 512 + SPARE_PROCESSES;

pub fn start(tuning: Tuning, plan: &Plan) -> Result<Parts> {
    let apache = find("apache2").context("Apache is not installed")?;
    let php = mod_php().context("mod_php is not installed")?;
    let directory = plan.site.server_directory("apache")?;
    let port = free_port(ADDRESSES)?;
    fs::write(directory.join("php.ini"), php.opcache_line())?;
    let text = configuration(plan.site, &directory, &php, port, &performance(tuning, plan));
    let (config, kept) = configure(plan.site, &directory, "apache.conf", &text)?;

    let mut command = Command::new(&apache);
    command.arg("-DFOREGROUND").arg("-f").arg(&config);
    command.env("PHP_INI_SCAN_DIR", plan.site.php_settings(&directory, plan.time_limit)?);
    let mut server = Daemon::start("apache2", command, &directory.join("apache.out"))?;
    server.wait_until_ready(plan.interrupt, || is_listening(port, ADDRESSES))?;
    Ok(Parts {
        port,
        addresses: ADDRESSES,
        paths: Paths::classic(),
        daemons: vec![server],
        php_threads: Some(PhpThreads::Children),
        banner: Some("Apache".to_owned()),
        sapi: Some("apache2handler".to_owned()),
        software: vec![version_line(&apache, "-v")],
        configuration: vec![kept],
    })
}

fn performance(tuning: Tuning, plan: &Plan) -> String {
    let time_limit =
        plan.time_limit_seconds().map_or(String::new(), |seconds| format!("TimeOut {seconds}\n"));
    match tuning {
        Tuning::Best => format!("{}{time_limit}", processes(&Demand::of(plan))),
        Tuning::Default => format!("{DEBIAN}{time_limit}"),
    }
}

/// Of Debian's apache2.conf and mpm_prefork.conf; the listen backlog is Apache's own, 511.
const DEBIAN: &str = "StartServers 5
MinSpareServers 5
MaxSpareServers 10
MaxRequestWorkers 150
MaxConnectionsPerChild 0
KeepAlive On
MaxKeepAliveRequests 100
KeepAliveTimeout 5
";

/// What decides on the number of processes.
#[derive(Clone, Copy, Debug)]
struct Demand {
    pool: Pool,
    most_connections: u32,
    connections: Connections,
}

impl Demand {
    fn of(plan: &Plan) -> Self {
        Self { pool: plan.pool, most_connections: plan.most_connections, connections: plan.connections }
    }

    /// Processes of a fixed pool.
    ///
    /// Prefork holds one for each keep-alive connection. With a connection for each request the pool's number is the
    /// best, as more processes only take each other's time: on two cores and with 50 to 500 users, the distribution's 5
    /// to 10 served 24,000 to 25,000 requests a second, and 545 served 9,000 to 10,000 (bench/results/sweep).
    fn fixed(self, number: u16) -> u32 {
        match self.connections {
            Connections::PerRequest => u32::from(number),
            Connections::KeepAlive => {
                (self.most_connections + SPARE_PROCESSES).min(MOST_PROCESSES).max(u32::from(number))
            }
        }
    }

    /// Where there are more clients than processes, a kept connection must end some time, or the others wait for ever.
    fn keep_alive(self, processes: u32) -> &'static str {
        if self.most_connections <= processes {
            "MaxKeepAliveRequests 0\nKeepAliveTimeout 3600\n"
        } else {
            "MaxKeepAliveRequests 100\nKeepAliveTimeout 1\n"
        }
    }
}

/// All of a fixed pool are started at once, because Apache would otherwise add them over the first seconds of the
/// measurement.
fn processes(demand: &Demand) -> String {
    let (start, most) = match demand.pool {
        Pool::Fixed(number) => (demand.fixed(number), demand.fixed(number)),
        Pool::Scaling { start, most } => (u32::from(start), u32::from(most)),
    };
    format!(
        "ListenBacklog {LISTEN_BACKLOG}
StartServers {start}
ServerLimit {most}
MaxRequestWorkers {most}
MinSpareServers {spare}
MaxSpareServers {most}
MaxConnectionsPerChild 0
EnableSendfile On
KeepAlive On
{keep_alive}",
        spare = start.min(most / 2).max(1),
        keep_alive = demand.keep_alive(most),
    )
}

fn configuration(site: &Site, directory: &Path, php: &PhpProgram, port: u16, performance: &str) -> String {
    let user = worker_user().map_or(String::new(), |user| format!("User {user}\nGroup {user}\n"));
    format!(
        "ServerRoot \"{directory}\"
DefaultRuntimeDir \"{directory}\"
PidFile \"{directory}/apache.pid\"
ErrorLog \"{directory}/apache.log\"
LogLevel warn
LoadModule mpm_prefork_module {APACHE_MODULES}/mod_mpm_prefork.so
LoadModule authz_core_module {APACHE_MODULES}/mod_authz_core.so
LoadModule php_module {module}
PHPIniDir \"{directory}\"
{user}ServerName 127.0.0.1
Listen 127.0.0.1:{port}
{performance}LimitRequestBody 0
HostnameLookups Off
DocumentRoot \"{root}\"
<Directory \"{root}\">
    AllowOverride None
    Require all granted
</Directory>
<FilesMatch \"\\.php$\">
    SetHandler application/x-httpd-php
</FilesMatch>
",
        directory = directory.display(),
        module = php.path.display(),
        root = site.document_root().display(),
    )
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn text(pool: Pool, most_connections: u32, connections: Connections) -> String {
        processes(&Demand { pool, most_connections, connections })
    }

    #[test]
    fn every_kept_connection_finds_a_process() {
        let text = text(Pool::Fixed(8), 500, Connections::KeepAlive);
        assert!(text.contains("StartServers 532\nServerLimit 532\nMaxRequestWorkers 532\n"), "{text}");
        assert!(text.contains("KeepAlive On\nMaxKeepAliveRequests 0\n"), "{text}");
        assert!(text.contains("ListenBacklog 4096\n"), "{text}");
    }

    #[test]
    fn ten_thousand_clients_share_a_bounded_number_of_processes() {
        let text = text(Pool::Fixed(8), 10_000, Connections::KeepAlive);
        assert!(text.contains("MaxRequestWorkers 544\n"), "{text}");
        assert!(text.contains("MaxKeepAliveRequests 100\n"), "{text}");
    }

    #[test]
    fn connections_that_end_with_their_request_need_no_process_each() {
        let text = text(Pool::Fixed(8), 10_000, Connections::PerRequest);
        assert!(text.contains("StartServers 8\nServerLimit 8\nMaxRequestWorkers 8\n"), "{text}");
    }

    #[test]
    fn a_pool_that_scales_starts_small() {
        let text = text(Pool::Scaling { start: 4, most: 100 }, 100, Connections::KeepAlive);
        assert!(text.contains("StartServers 4\nServerLimit 100\nMaxRequestWorkers 100\n"), "{text}");
        assert!(text.contains("MinSpareServers 4\nMaxSpareServers 100\n"), "{text}");
    }

    #[test]
    fn apache_listens_on_loopback_only_and_loads_the_php_that_was_found() {
        let site = Site::create().expect("a directory");
        let php = PhpProgram { path: PathBuf::from("/m/libphp8.2.so"), version: (8, 2) };
        let text = configuration(&site, Path::new("/d"), &php, 8080, DEBIAN);
        assert!(text.contains("\nListen 127.0.0.1:8080\n"), "{text}");
        assert!(text.contains("MaxRequestWorkers 150\n") && !text.contains("ListenBacklog"), "{text}");
        assert!(text.contains("LoadModule php_module /m/libphp8.2.so\n"), "{text}");
    }
}
