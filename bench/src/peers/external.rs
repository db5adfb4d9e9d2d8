//! Servers that this program does not know: a description file says how to start them. See bench/README.md.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use super::programs::{find, version_line};
use super::{
    Contender, Kind, MOST_ADDRESSES, Parts, Paths, PhpThreads, Plan, Pool, Tuning, configure, free_port,
    is_listening,
};
use crate::site::WORKER_PATH;
use crate::supervise::Daemon;

/// The description of one server.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct External {
    /// For people: `FrankenPHP worker`.
    name: String,
    /// For the command line: `frankenphp-worker`.
    identity: String,
    /// Looked for on PATH, unless the variable of [`External::variable`] has a path.
    program: String,
    /// The argument that makes the program print its version.
    version: String,
    /// How the `Server` header of every answer begins.
    banner: Option<String>,
    /// What `PHP_SAPI` must be.
    sapi: Option<String>,
    /// It listens on so many loopback addresses, from 127.0.0.1 on.
    #[serde(default = "one")]
    addresses: u8,
    pools: Vec<PoolKind>,
    php_threads: Option<PhpThreads>,
    start: Start,
    /// Written into the server's directory before the start: name and text, in which placeholders are replaced.
    #[serde(default)]
    files: BTreeMap<String, String>,
    paths: Paths,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum PoolKind {
    Fixed,
    Scaling,
}

/// The command; placeholders are replaced in all of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Start {
    #[serde(default)]
    arguments: Vec<String>,
    #[serde(default)]
    environment: BTreeMap<String, String>,
}

fn one() -> u8 {
    1
}

/// Those that need nothing but their program.
const KNOWN: [&str; 2] =
    [include_str!("../../servers/frankenphp.toml"), include_str!("../../servers/frankenphp-worker.toml")];

pub fn start(identity: &str, tuning: Tuning, plan: &Plan) -> Result<Parts> {
    let external =
        plan.externals.iter().find(|external| external.identity == identity).with_context(|| {
            let known: Vec<&str> = plan.externals.iter().map(|external| external.identity.as_str()).collect();
            format!(
                "there is no server {identity:?}, and no description of one (described are: {})",
                known.join(", ")
            )
        })?;
    ensure!(tuning == Tuning::Best, "{identity} has no default settings: write a description for them");
    external.start(plan)
}

impl External {
    /// Reads a description. An error names the file, and the key that is wrong.
    pub fn load(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))?;
        Self::parse(&text).with_context(|| format!("{} does not describe a server", path.display()))
    }

    /// FrankenPHP's, whether or not it is installed.
    pub fn known() -> impl Iterator<Item = Self> {
        KNOWN.iter().map(|text| Self::parse(text).expect("invariant: a test reads them all"))
    }

    pub fn contender(&self) -> Contender {
        Contender { kind: Kind::External(self.identity.clone()), tuning: Tuning::Best }
    }

    pub fn identity(&self) -> &str {
        &self.identity
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The program, if this machine has it; an error says where it was looked for.
    pub fn find_program(&self) -> Result<PathBuf> {
        let variable = self.variable();
        match env::var_os(&variable).map(PathBuf::from) {
            Some(path) if path.is_file() => Ok(path),
            Some(path) => bail!("{variable} is {}, which is not a file", path.display()),
            None => find(&self.program).with_context(|| {
                format!(
                    "{} is not on PATH; install it, give its path in the variable {variable}, or leave {} out",
                    self.program, self.identity
                )
            }),
        }
    }

    pub fn supports(&self, pool: Pool) -> bool {
        self.pools.contains(&match pool {
            Pool::Fixed(_) => PoolKind::Fixed,
            Pool::Scaling { .. } => PoolKind::Scaling,
        })
    }

    /// Name of the environment variable that gives the program's path: `REGENT_BENCH_FRANKENPHP` for `frankenphp`.
    fn variable(&self) -> String {
        let name = self.program.to_uppercase();
        format!("REGENT_BENCH_{}", name.replace(|c: char| !c.is_ascii_alphanumeric(), "_"))
    }

    fn parse(text: &str) -> Result<Self> {
        let external: Self = toml::from_str(text)?;
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        ensure!(
            !external.identity.is_empty() && external.identity.chars().all(is_plain),
            "identity: {:?} is not made of lower-case letters, digits and hyphens",
            external.identity
        );
        ensure!(
            (1..=MOST_ADDRESSES).contains(&external.addresses),
            "addresses: {} is not from 1 to {MOST_ADDRESSES}",
            external.addresses
        );
        ensure!(!external.pools.is_empty(), "pools: at least one of \"fixed\" and \"scaling\" is needed");
        ensure!(external.paths.info.is_some(), "paths: info is missing");
        if let Some(name) = external.files.keys().find(|name| name.contains('/')) {
            bail!("files: {name:?} is a path, but must be the name of a file in the server's directory");
        }
        Ok(external)
    }

    fn start(&self, plan: &Plan) -> Result<Parts> {
        ensure!(
            self.supports(plan.pool),
            "its description does not list this kind of pool ({:?})",
            plan.pool
        );
        let program = self.find_program()?;
        let directory = plan.site.server_directory(&self.identity)?;
        let port = free_port(self.addresses)?;
        let placeholders = Placeholders::new(plan, &directory, port)?;
        let configuration = self
            .files
            .iter()
            .map(|(name, text)| Ok(configure(plan.site, &directory, name, &placeholders.replace(text))?.1))
            .collect::<Result<_>>()?;

        let mut command = Command::new(&program);
        command.args(self.start.arguments.iter().map(|argument| placeholders.replace(argument)));
        command.envs(self.start.environment.iter().map(|(key, value)| (key, placeholders.replace(value))));
        command.current_dir(&directory);
        let mut server = Daemon::start(&self.identity, command, &directory.join("output.log"))?;
        server.wait_until_ready(plan.interrupt, || is_listening(port, self.addresses))?;
        Ok(Parts {
            port,
            addresses: self.addresses,
            paths: self.paths.clone(),
            daemons: vec![server],
            php_threads: self.php_threads.clone(),
            banner: self.banner.clone(),
            sapi: self.sapi.clone(),
            software: vec![version_line(&program, &self.version)],
            configuration,
        })
    }
}

/// What stands for the settings of a run. Other words in braces are left as they are: they are the server's own.
#[derive(Debug)]
struct Placeholders(Vec<(&'static str, String)>);

impl Placeholders {
    fn new(plan: &Plan, directory: &Path, port: u16) -> Result<Self> {
        let (threads, most) = (plan.pool.start(), plan.pool.most());
        Ok(Self(vec![
            ("{port}", port.to_string()),
            ("{root}", plan.site.document_root().display().to_string()),
            ("{worker}", plan.site.file(WORKER_PATH).display().to_string()),
            ("{directory}", directory.display().to_string()),
            ("{php_ini_dir}", plan.site.php_settings(directory, plan.time_limit)?),
            ("{threads}", threads.to_string()),
            ("{max_threads}", most.to_string()),
            ("{threads_and_one}", (threads + 1).to_string()),
            ("{max_threads_and_one}", (most + 1).to_string()),
        ]))
    }

    fn replace(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (placeholder, value)| text.replace(placeholder, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::plan::Connections;
    use crate::interrupt::Interrupt;
    use crate::peers::{self, Contender};
    use crate::site::{Script, Site};

    /// A server without PHP that says it has one: enough for all of a description to count.
    const TOY: &str = r#"
name = "Toy"
identity = "toy"
program = "python3"
version = "--version"
banner = "Toy"
sapi = "toy"
addresses = 2
pools = ["fixed"]
php_threads = { named = ["toy"] }

[start]
arguments = ["{directory}/server.py", "{port}"]
environment = { ROOT = "{root}", THREADS = "{threads} of {max_threads}" }

[files]
"server.py" = '''
import http.server, json, os, sys, threading
INFO = {"php": os.environ["THREADS"], "sapi": "toy", "thread_safe": True, "opcache": True, "jit": False,
        "validate_timestamps": True}
class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "Toy"
    def __init__(self, *arguments):
        super().__init__(*arguments, directory=os.environ["ROOT"])
    def do_GET(self):
        if self.path.startswith("/static/"):
            return super().do_GET()
        body = json.dumps(INFO) if self.path == "/info" else "." * 128
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())
servers = [http.server.ThreadingHTTPServer((f"127.0.0.{n}", int(sys.argv[1])), Handler) for n in (1, 2)]
for server in servers:
    threading.Thread(target=server.serve_forever).start()
'''

[paths]
hello = "/"
info = "/info"
static = "/static"
"#;

    fn start_toy(description: &str, pool: Pool) -> Result<(peers::Server, Site)> {
        let site = Site::create().expect("a directory");
        let externals = [External::parse(description).expect("valid")];
        let plan = Plan {
            site: &site,
            pool,
            most_connections: 1,
            connections: Connections::KeepAlive,
            regent: None,
            externals: &externals,
            time_limit: None,
            deadline: None,
            wait: crate::peers::Wait::Default,
            interrupt: &Interrupt::default(),
        };
        let contender: Contender = "toy".parse().expect("any name is valid");
        let server = peers::start(&contender, &plan)?;
        Ok((server, site))
    }

    #[test]
    fn a_described_server_is_started_checked_and_ended() {
        let (mut server, _site) = start_toy(TOY, Pool::Fixed(3)).expect("python3 is installed");
        let description = server.describe();
        assert_eq!(
            (description.label.as_str(), description.php.map(|php| php.php)),
            ("Toy", Some("3 of 3".to_owned()))
        );
        assert!(description.software[0].starts_with("Python 3"), "{:?}", description.software);
        assert!(server.check().expect("it still runs") > 128);
        assert_eq!(server.addresses(4).len(), 2);
        let error = server.target(Script::Sleep).expect_err("its description has none").to_string();
        assert!(error.contains("Toy") && error.contains("sleep"), "{error}");
        let address = server.address();
        drop(server);
        assert!(!crate::probe::accepts(address), "it outlived its value");
    }

    #[test]
    fn a_server_with_another_sapi_or_banner_is_not_the_intended_one() {
        for (right, wrong) in
            [("sapi = \"toy\"", "sapi = \"fpm-fcgi\""), ("banner = \"Toy\"", "banner = \"nginx\"")]
        {
            let error = start_toy(&TOY.replace(right, wrong), Pool::Fixed(1)).expect_err(wrong);
            assert!(format!("{error:#}").contains("Toy is not as intended"), "{error:#}");
        }
    }

    #[test]
    fn a_pool_that_the_description_lacks_is_refused() {
        let error = start_toy(TOY, Pool::Scaling { start: 1, most: 2 }).expect_err("it lists only fixed");
        assert!(format!("{error:#}").contains("Scaling"), "{error:#}");
    }

    #[test]
    fn a_missing_program_says_how_to_name_it() {
        let external = External::parse(&TOY.replace("\"python3\"", "\"no-such.server\"")).expect("valid");
        let error = external.find_program().expect_err("it does not exist").to_string();
        assert!(error.contains("REGENT_BENCH_NO_SUCH_SERVER") && error.contains("leave toy out"), "{error}");
    }

    #[test]
    fn a_wrong_description_is_told_with_its_file_and_key() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("toy.toml");
        for (right, wrong, key) in [
            ("addresses = 2", "addresses = 9", "addresses"),
            ("addresses = 2", "adresses = 2", "adresses"),
            ("identity = \"toy\"", "identity = \"Toy!\"", "identity"),
            ("hello = \"/\"", "", "hello"),
            ("info = \"/info\"", "", "info"),
            ("pools = [\"fixed\"]", "pools = []", "pools"),
            ("\"server.py\"", "\"../server.py\"", "files"),
        ] {
            fs::write(&path, TOY.replace(right, wrong)).expect("written");
            let error = format!("{:#}", External::load(&path).expect_err(wrong));
            assert!(error.contains("toy.toml") && error.contains(key), "{error}");
        }
    }

    #[test]
    fn only_known_placeholders_are_replaced() {
        let placeholders = Placeholders(vec![("{port}", "8080".to_owned())]);
        assert_eq!(placeholders.replace("{port} {path} { }"), "8080 {path} { }");
    }

    #[test]
    fn the_examples_are_descriptions() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("servers");
        let entries = fs::read_dir(directory).expect("it exists");
        let examples: Vec<External> =
            entries.map(|entry| External::load(&entry.expect("readable").path()).expect("valid")).collect();
        assert!(examples.iter().any(|example| example.identity() == "frankenphp-worker"), "{examples:?}");
    }
}
