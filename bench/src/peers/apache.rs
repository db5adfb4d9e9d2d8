//! The distribution's Apache with the prefork module and mod_php, with the best settings known.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::programs::{APACHE_MODULES, PhpProgram, find, mod_php, version_line};
use super::{LISTEN_BACKLOG, Parts, Plan, configure, free_port, worker_user};
use crate::probe;
use crate::site::{HELLO_PATH, Site};
use crate::supervise::Daemon;

/// Processes beyond one for each keep-alive connection, for the checks and for connections that are being closed.
const SPARE_PROCESSES: u32 = 32;

pub fn start(plan: &Plan) -> Result<Parts> {
    let apache = find("apache2").context("Apache is not installed")?;
    let php = mod_php().context("mod_php is not installed")?;
    let directory = plan.site.server_directory("apache")?;
    let port = free_port()?;
    fs::write(directory.join("php.ini"), php.opcache_line())?;
    let text = configuration(plan.site, &directory, &php, port, plan.most_connections + SPARE_PROCESSES);
    let (config, kept) = configure(plan.site, &directory, "apache.conf", &text)?;

    let mut command = Command::new(&apache);
    command.arg("-DFOREGROUND").arg("-f").arg(&config);
    command.env("PHP_INI_SCAN_DIR", plan.site.php_settings_directory());
    let mut server = Daemon::start("apache2", command, &directory.join("apache.out"))?;
    server.wait_until_ready(plan.interrupt, || probe::accepts(port))?;
    Ok(Parts {
        port,
        path: HELLO_PATH,
        daemons: vec![server],
        software: vec![version_line(&apache, "-v")],
        configuration: vec![kept],
    })
}

/// Prefork holds a process for each keep-alive connection; all are started at once, because Apache would otherwise
/// add them over the first seconds of the measurement.
fn configuration(site: &Site, directory: &Path, php: &PhpProgram, port: u16, processes: u32) -> String {
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
ListenBacklog {LISTEN_BACKLOG}
StartServers {processes}
ServerLimit {processes}
MaxRequestWorkers {processes}
MinSpareServers 1
MaxSpareServers {processes}
MaxConnectionsPerChild 0
KeepAlive On
MaxKeepAliveRequests 0
KeepAliveTimeout 3600
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

    #[test]
    fn every_connection_finds_a_process() {
        let site = Site::create().expect("a directory");
        let php = PhpProgram { path: PathBuf::from("/m/libphp8.2.so"), version: (8, 2) };
        let text = configuration(&site, Path::new("/d"), &php, 8080, 532);
        assert!(text.contains("StartServers 532\nServerLimit 532\nMaxRequestWorkers 532\n"), "{text}");
        assert!(text.contains("Listen 127.0.0.1:8080\nListenBacklog 4096\n"), "{text}");
        assert!(text.contains("KeepAlive On\nMaxKeepAliveRequests 0\n"), "{text}");
        assert!(text.contains("LoadModule php_module /m/libphp8.2.so\n"), "{text}");
    }
}
