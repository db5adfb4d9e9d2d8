//! Regent in classic and in worker mode, with a native module, and by itself.

use std::iter::once;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::module;
use super::programs::version_line;
use super::{
    MOST_ADDRESSES, Parts, Paths, PhpThreads, Plan, Pool, Tuning, Wait, addresses, configure, free_port,
    is_listening, run_command,
};
use crate::site::{BODY, Site, WORKER_PATH};
use crate::supervise::{Daemon, run_to_end};

/// Time that `regent validate` may take.
const VALIDATION: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Classic,
    Worker,
    Native(Place),
    /// Its own answer, which neither PHP nor a module sees.
    Respond,
}

/// Where a module's handlers run that never block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the engine, as all others.
    Engine,
    /// In the server, on the thread of the connection.
    Inline,
}

/// What a mode adds to the configuration.
#[derive(Debug)]
struct Lines {
    /// Of the `regent` block.
    options: String,
    /// Of the site.
    handler: String,
}

pub fn start(mode: Mode, tuning: Tuning, plan: &Plan) -> Result<Parts> {
    let program = plan.regent.as_ref().context("no regent binary was chosen")?;
    let directory = plan.site.server_directory(mode.name())?;
    let port = free_port(MOST_ADDRESSES)?;
    let compiler = mode.is_native().then(|| module::compile_once(plan.site, plan.interrupt)).transpose()?;
    let pool = match tuning {
        Tuning::Best => Some(plan.pool),
        Tuning::Default => None,
    };
    let mut lines = mode.lines(plan.site, pool);
    lines.options += &deadline(plan.deadline);
    lines.options += max_wait_time(plan.wait);
    let (config, kept) = configure(plan.site, &directory, "Caddyfile", &caddyfile(plan.site, &lines, port))?;
    validate(program, &config, plan)?;

    let command = run_command(program, &config, &plan.site.php_settings(&directory, plan.time_limit)?);
    let mut regent = Daemon::start("regent", command, &directory.join("output.log"))?;
    regent.wait_until_ready(plan.interrupt, || is_listening(port, MOST_ADDRESSES))?;
    Ok(Parts {
        port,
        addresses: MOST_ADDRESSES,
        paths: mode.paths(),
        daemons: vec![regent],
        php_threads: mode.threads(),
        banner: None,
        sapi: None,
        software: once(version_line(program, "version")).chain(compiler).collect(),
        configuration: vec![kept],
    })
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Self::Classic => "regent-classic",
            Self::Worker => "regent-worker",
            Self::Native(Place::Engine) => "regent-native",
            Self::Native(Place::Inline) => "regent-native-inline",
            Self::Respond => "regent-respond",
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
            Self::Native(place) => Paths {
                sleep: (place == Place::Engine).then(|| "/sleep".to_owned()),
                ..Paths::hello_alone(format!("/data/{}", BODY.len()))
            },
            Self::Respond => Paths::hello_alone("/".to_owned()),
        }
    }

    fn is_native(self) -> bool {
        matches!(self, Self::Native(_))
    }

    /// The threads that answer what is measured: the engines name those of a worker after its script, and those of a
    /// module after its service.
    fn threads(self) -> Option<PhpThreads> {
        let name = match self {
            Self::Classic => "php",
            Self::Worker => WORKER_PATH.trim_start_matches('/'),
            Self::Native(_) => module::SERVICE,
            Self::Respond => return None,
        };
        Some(PhpThreads::Named(vec![name.to_owned()]))
    }

    /// Without a pool, Regent chooses the number of threads.
    fn lines(self, site: &Site, pool: Option<Pool>) -> Lines {
        match self {
            Self::Classic => Lines {
                options: pool.map_or(String::new(), |pool| numbers("num_threads", pool, 0)),
                handler: "php_server\n".to_owned(),
            },
            Self::Worker => Lines { options: worker(site, pool), handler: "php_server\n".to_owned() },
            Self::Native(place) => Lines { options: IDLE_PHP.to_owned(), handler: native(site, place, pool) },
            Self::Respond => Lines { options: IDLE_PHP.to_owned(), handler: format!("respond \"{BODY}\"\n") },
        }
    }
}

/// The PHP engine is always there; nothing is asked of it here.
const IDLE_PHP: &str = "num_threads 1\n";

/// One thread must be left for classic requests, here only the PHP settings that are asked once.
fn worker(site: &Site, pool: Option<Pool>) -> String {
    let file = site.file(WORKER_PATH);
    match pool {
        Some(pool) => {
            let (all, workers) = (numbers("num_threads", pool, 1), numbers("num", pool, 0));
            format!("{all}worker {{\nfile \"{}\"\n{workers}}}\n", file.display())
        }
        None => format!("worker \"{}\"\n", file.display()),
    }
}

/// The module promises never to block for answers up to `largest`; whether they run inline is the site's choice, so that
/// nothing else differs.
fn native(site: &Site, place: Place, pool: Option<Pool>) -> String {
    let threads = pool.map_or(String::new(), |pool| numbers("threads", pool, 0));
    let place = match place {
        Place::Engine => "",
        Place::Inline => "inline\n",
    };
    format!("native \"{}\" {{\n{threads}{place}config largest 65536\n}}\n", module::library(site).display())
}

fn deadline(deadline: Option<Duration>) -> String {
    deadline.map_or(String::new(), |deadline| format!("deadline {}ms\n", deadline.as_millis()))
}

fn max_wait_time(wait: Wait) -> &'static str {
    match wait {
        Wait::Default => "",
        Wait::Unbounded => "max_wait_time off\n",
    }
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

fn caddyfile(site: &Site, lines: &Lines, port: u16) -> String {
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
{handler}}}
",
        options = indented(&lines.options, 2),
        addresses = addresses.join(" "),
        root = site.document_root().display(),
        handler = indented(&lines.handler, 1),
    )
}

/// As `regent fmt` has it, within so many blocks.
fn indented(lines: &str, mut depth: usize) -> String {
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

    const FIXED: Option<Pool> = Some(Pool::Fixed(8));

    fn text(mode: Mode, pool: Option<Pool>, deadline_ms: Option<u64>) -> String {
        let site = Site::create().expect("a directory");
        let mut lines = mode.lines(&site, pool);
        lines.options += &deadline(deadline_ms.map(Duration::from_millis));
        site.anonymize(&caddyfile(&site, &lines, 8080))
    }

    #[test]
    fn as_many_threads_answer_in_all_modes() {
        let classic = text(Mode::Classic, FIXED, None);
        assert!(classic.contains("\tregent {\n\t\tnum_threads 8\n\t}\n"), "{classic}");
        let worker = text(Mode::Worker, FIXED, None);
        let block =
            "\t\tnum_threads 9\n\t\tworker {\n\t\t\tfile \"WORK/site/worker.php\"\n\t\t\tnum 8\n\t\t}\n";
        assert!(worker.contains(block), "{worker}");
        let native = text(Mode::Native(Place::Engine), FIXED, None);
        let block =
            "\tnative \"WORK/module/libdata.so\" {\n\t\tthreads 8\n\t\tconfig largest 65536\n\t}\n}\n";
        assert!(native.contains(block), "{native}");
    }

    #[test]
    fn a_pool_that_scales_has_a_largest_number() {
        let pool = Some(Pool::Scaling { start: 2, most: 100 });
        let classic = text(Mode::Classic, pool, None);
        assert!(classic.contains("\t\tnum_threads 2\n\t\tmax_threads 100\n"), "{classic}");
        let worker = text(Mode::Worker, pool, None);
        assert!(worker.contains("\t\tnum_threads 3\n\t\tmax_threads 101\n"), "{worker}");
        assert!(worker.contains("\t\t\tnum 2\n\t\t\tmax_threads 100\n"), "{worker}");
        let native = text(Mode::Native(Place::Engine), pool, None);
        assert!(native.contains("\t\tthreads 2\n\t\tmax_threads 100\n"), "{native}");
    }

    #[test]
    fn inline_is_all_that_differs() {
        let engine = text(Mode::Native(Place::Engine), FIXED, None);
        let inline = text(Mode::Native(Place::Inline), FIXED, None);
        assert_eq!(inline.replacen("\t\tinline\n", "", 1), engine);
        assert_ne!(inline, engine);
    }

    #[test]
    fn without_php_the_server_answers_itself() {
        let text = text(Mode::Respond, FIXED, None);
        let end = format!("\trespond \"{}\"\n}}\n", ".".repeat(128));
        assert!(text.ends_with(&end) && !text.contains("php_server"), "{text}");
    }

    #[test]
    fn a_deadline_is_one_of_the_whole_server() {
        let with = text(Mode::Worker, FIXED, Some(3_000));
        assert!(with.contains("\t\t}\n\t\tdeadline 3000ms\n\t}\n"), "{with}");
        assert!(!text(Mode::Worker, FIXED, None).contains("deadline"));
    }

    #[test]
    fn by_default_regent_chooses_the_number_of_threads() {
        let classic = text(Mode::Classic, None, None);
        assert!(classic.contains("\tregent {\n\t}\n"), "{classic}");
        let worker = text(Mode::Worker, None, None);
        assert!(worker.contains("\tregent {\n\t\tworker \"WORK/site/worker.php\"\n\t}\n"), "{worker}");
        let native = text(Mode::Native(Place::Engine), None, None);
        assert!(!native.contains("\tthreads "), "{native}");
    }

    #[test]
    fn the_site_is_on_loopback_only() {
        let text = text(Mode::Classic, None, None);
        assert!(text.contains("http://:8080 {\n\tbind 127.0.0.1 127.0.0.2 127.0.0.3 127.0.0.4\n"), "{text}");
    }
}
