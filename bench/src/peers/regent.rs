//! Regent in classic and in worker mode.

use std::process::Command;

use anyhow::{Context, Result};

use super::programs::version_line;
use super::{Parts, Plan, ServerKind, configure, free_port};
use crate::probe;
use crate::site::{HELLO_PATH, Site, WORKER_PATH};
use crate::supervise::Daemon;

pub fn start(kind: ServerKind, plan: &Plan) -> Result<Parts> {
    let program = plan.regent.as_ref().context("no regent binary was chosen")?;
    let (name, path) = match kind {
        ServerKind::Worker => ("regent-worker", WORKER_PATH),
        _ => ("regent-classic", HELLO_PATH),
    };
    let directory = plan.site.server_directory(name)?;
    let port = free_port()?;
    let text = caddyfile(kind, plan.site, plan.threads, port);
    let (config, kept) = configure(plan.site, &directory, "Caddyfile", &text)?;

    let mut command = Command::new(program);
    command.arg("run").arg("--config").arg(&config);
    command.env("PHP_INI_SCAN_DIR", plan.site.php_settings_directory());
    let mut regent = Daemon::start("regent", command, &directory.join("output.log"))?;
    regent.wait_until_ready(plan.interrupt, || probe::accepts(port))?;
    Ok(Parts {
        port,
        path,
        daemons: vec![regent],
        software: vec![version_line(program, "version")],
        configuration: vec![kept],
    })
}

fn caddyfile(kind: ServerKind, site: &Site, threads: u16, port: u16) -> String {
    let pool = match kind {
        // One thread must be left for classic requests, here only the PHP settings that are asked once.
        ServerKind::Worker => {
            let script = site.script(WORKER_PATH);
            format!("num_threads {}\n\t\tworker \"{}\" {threads}", threads + 1, script.display())
        }
        _ => format!("num_threads {threads}"),
    };
    format!(
        "{{
\tadmin off
\tregent {{
\t\t{pool}
\t}}
}}

http://:{port} {{
\tbind 127.0.0.1
\troot * \"{root}\"
\tphp_server
}}
",
        root = site.document_root().display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_threads_answer_in_both_modes() {
        let site = Site::create().expect("a directory");
        let classic = site.anonymize(&caddyfile(ServerKind::Classic, &site, 8, 8080));
        assert!(classic.contains("\t\tnum_threads 8\n") && !classic.contains("worker"), "{classic}");
        let worker = site.anonymize(&caddyfile(ServerKind::Worker, &site, 8, 8080));
        assert!(worker.contains("\t\tnum_threads 9\n\t\tworker \"WORK/site/worker.php\" 8\n"), "{worker}");
        assert!(worker.contains("http://:8080 {\n\tbind 127.0.0.1\n\troot * \"WORK/site\"\n"), "{worker}");
    }
}
