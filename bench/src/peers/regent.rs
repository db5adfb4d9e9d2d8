//! Regent in classic and in worker mode.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::programs::version_line;
use super::{
    MOST_ADDRESSES, Parts, Paths, PhpThreads, Plan, Pool, Tuning, addresses, configure, free_port,
    is_listening,
};
use crate::site::{Site, WORKER_PATH};
use crate::supervise::{Daemon, run_to_end};

/// Time that `regent validate` may take.
const VALIDATION: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Classic,
    Worker,
}

pub fn start(mode: Mode, tuning: Tuning, plan: &Plan) -> Result<Parts> {
    let program = plan.regent.as_ref().context("no regent binary was chosen")?;
    let directory = plan.site.server_directory(mode.name())?;
    let port = free_port(MOST_ADDRESSES)?;
    let threads = match tuning {
        Tuning::Best => mode.threads(plan.site, plan.pool),
        Tuning::Default => mode.default_threads(plan.site),
    };
    let options = threads + &deadline(plan.deadline);
    let (config, kept) =
        configure(plan.site, &directory, "Caddyfile", &caddyfile(plan.site, &options, port))?;
    validate(program, &config, plan)?;

    let mut command = Command::new(program);
    command.arg("run").arg("--config").arg(&config);
    command.env("PHP_INI_SCAN_DIR", plan.site.php_settings(&directory, plan.time_limit)?);
    let mut regent = Daemon::start("regent", command, &directory.join("output.log"))?;
    regent.wait_until_ready(plan.interrupt, || is_listening(port, MOST_ADDRESSES))?;
    Ok(Parts {
        port,
        addresses: MOST_ADDRESSES,
        paths: mode.paths(),
        daemons: vec![regent],
        php_threads: Some(mode.php_threads()),
        banner: None,
        sapi: None,
        software: vec![version_line(program, "version")],
        configuration: vec![kept],
    })
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Self::Classic => "regent-classic",
            Self::Worker => "regent-worker",
        }
    }

    fn paths(self) -> Paths {
        let under_worker = |path: &str| Some(format!("{WORKER_PATH}{path}"));
        match self {
            Self::Classic => Paths::classic(),
            Self::Worker => Paths {
                hello: WORKER_PATH.to_owned(),
                sleep: under_worker("/sleep"),
                slow: under_worker("/slow"),
                large: under_worker("/large"),
                upload: under_worker("/upload"),
                ..Paths::classic()
            },
        }
    }

    /// Those that answer what is measured; crates/engine-php names a worker's threads after its script.
    fn php_threads(self) -> PhpThreads {
        let name = match self {
            Self::Classic => "php",
            Self::Worker => WORKER_PATH.trim_start_matches('/'),
        };
        PhpThreads::Named(vec![name.to_owned()])
    }

    /// Lines of the `regent` block.
    fn threads(self, site: &Site, pool: Pool) -> String {
        match self {
            Self::Classic => numbers("num_threads", pool, 0),
            // One thread must be left for classic requests, here only the PHP settings that are asked once.
            Self::Worker => {
                let all = numbers("num_threads", pool, 1);
                let workers = numbers("num", pool, 0);
                let file = site.file(WORKER_PATH);
                format!("{all}worker {{\nfile \"{}\"\n{workers}}}\n", file.display())
            }
        }
    }

    fn default_threads(self, site: &Site) -> String {
        match self {
            Self::Classic => String::new(),
            Self::Worker => format!("worker \"{}\"\n", site.file(WORKER_PATH).display()),
        }
    }
}

fn deadline(deadline: Option<Duration>) -> String {
    deadline.map_or(String::new(), |deadline| format!("deadline {}ms\n", deadline.as_millis()))
}

/// `key`, and for a pool that scales `max_threads`, each with `more` threads than the pool has.
fn numbers(key: &str, pool: Pool, more: u16) -> String {
    match pool {
        Pool::Fixed(threads) => format!("{key} {}\n", threads + more),
        Pool::Scaling { start, most } => format!("{key} {}\nmax_threads {}\n", start + more, most + more),
    }
}

/// So that what Regent does not accept is told in its own words, and not as a server that ended.
fn validate(program: &Path, config: &Path, plan: &Plan) -> Result<()> {
    let mut command = Command::new("sh");
    command.args(["-c", "exec \"$0\" validate --config \"$1\" 2>&1"]).arg(program).arg(config);
    let (status, output) = run_to_end(command, VALIDATION, plan.interrupt)?;
    ensure!(
        status.success(),
        "regent does not accept the configuration: {}",
        plan.site.anonymize(output.trim())
    );
    Ok(())
}

/// With these lines in the `regent` block.
fn caddyfile(site: &Site, options: &str, port: u16) -> String {
    let addresses: Vec<String> =
        addresses(port, MOST_ADDRESSES).iter().map(|address| address.ip().to_string()).collect();
    format!(
        "{{
\tadmin off
\tregent {{
{options}\t}}
}}

http://:{port} {{
\tbind {addresses}
\troot * \"{root}\"
\tphp_server
}}
",
        options = indented(options),
        addresses = addresses.join(" "),
        root = site.document_root().display()
    )
}

/// As `regent fmt` has it, within two blocks.
fn indented(lines: &str) -> String {
    let mut depth = 2;
    let mut text = String::new();
    for line in lines.lines() {
        depth -= usize::from(line == "}");
        text += &format!("{}{line}\n", "\t".repeat(depth));
        depth += usize::from(line.ends_with('{'));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(threads: impl FnOnce(&Site) -> String) -> String {
        let site = Site::create().expect("a directory");
        site.anonymize(&caddyfile(&site, &threads(&site), 8080))
    }

    #[test]
    fn as_many_threads_answer_in_both_modes() {
        let classic = text(|site| Mode::Classic.threads(site, Pool::Fixed(8)));
        assert!(classic.contains("\tregent {\n\t\tnum_threads 8\n\t}\n"), "{classic}");
        let worker = text(|site| Mode::Worker.threads(site, Pool::Fixed(8)));
        let block =
            "\t\tnum_threads 9\n\t\tworker {\n\t\t\tfile \"WORK/site/worker.php\"\n\t\t\tnum 8\n\t\t}\n";
        assert!(worker.contains(block), "{worker}");
    }

    #[test]
    fn a_pool_that_scales_has_a_largest_number() {
        let pool = Pool::Scaling { start: 2, most: 100 };
        let classic = text(|site| Mode::Classic.threads(site, pool));
        assert!(classic.contains("\t\tnum_threads 2\n\t\tmax_threads 100\n"), "{classic}");
        let worker = text(|site| Mode::Worker.threads(site, pool));
        assert!(worker.contains("\t\tnum_threads 3\n\t\tmax_threads 101\n"), "{worker}");
        assert!(worker.contains("\t\t\tnum 2\n\t\t\tmax_threads 100\n"), "{worker}");
    }

    #[test]
    fn a_deadline_is_one_of_the_whole_server() {
        let threads = |site: &Site| Mode::Worker.threads(site, Pool::Fixed(8));
        let with = text(|site| threads(site) + &deadline(Some(Duration::from_secs(3))));
        assert!(with.contains("\t\t}\n\t\tdeadline 3000ms\n\t}\n"), "{with}");
        assert!(!text(|site| threads(site) + &deadline(None)).contains("deadline"));
    }

    #[test]
    fn by_default_regent_chooses_the_number_of_threads() {
        let classic = text(|site| Mode::Classic.default_threads(site));
        assert!(classic.contains("\tregent {\n\t}\n"), "{classic}");
        let worker = text(|site| Mode::Worker.default_threads(site));
        assert!(worker.contains("\tregent {\n\t\tworker \"WORK/site/worker.php\"\n\t}\n"), "{worker}");
    }

    #[test]
    fn the_site_is_on_loopback_only() {
        let text = text(|site| Mode::Classic.default_threads(site));
        assert!(text.contains("http://:8080 {\n\tbind 127.0.0.1 127.0.0.2 127.0.0.3 127.0.0.4\n"), "{text}");
    }
}
