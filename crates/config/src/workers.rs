//! Worker scripts: `worker FILE [NUM]`, or a block, in `frankenphp`, `php` and `php_server`.
//!
//! | option | default | meaning |
//! |---|---|---|
//! | `file PATH` | | the script; relative to the block's `root`, or to the working directory |
//! | `num N` | 2 per core, at most `max_threads` | threads at start |
//! | `max_threads N` | what the `max_threads` of all threads leaves | threads that scaling may reach |
//! | `name TEXT` | the file as written | in lists and metrics |
//! | `env NAME VALUE`, or a block | | environment of the script, at boot and in its requests; `env` of a site goes before that of a worker of all sites |
//! | `request_timeout DURATION` \| `off` | that of `frankenphp` | longest time that a request may run in it; see [time limits](deadlines.md#end-what-takes-too-long) |
//! | `match PATTERN…` | | paths that go to it whatever the file |
//! | `max_consecutive_failures N` | 6; -1: no limit | boots in a row that may fail |
//! | `watch [PATTERN…]` | `./**/*.{env,php,twig,yaml,yml}` | starts all workers anew when such a file changes; see [development](worker.md#development) |
//! | `warmup PATH…` | | GET requests that each thread runs after its boot, before it takes those of clients; see [warm-up](worker.md#warm-up) |

use crate::call::Call;
use crate::context::Context;
use crate::model::{Template, Worker, WorkerId, WorkerRef, WorkerScope};
use crate::problems::{error, unknown_option};
use crate::values;
use regent_caddyfile::{Error, Token};
use std::path::{Path, PathBuf};
use std::time::Duration;

const SYNTAX: &str = "worker FILE [NUM|watch], or worker { file FILE … }";
const OPTIONS: &[&str] = &[
    "env",
    "file",
    "match",
    "max_consecutive_failures",
    "max_threads",
    "name",
    "num",
    "request_timeout",
    "warmup",
    "watch",
];
/// What `watch` alone watches, as in FrankenPHP.
const USUALLY_WATCHED: &str = "./**/*.{env,php,twig,yaml,yml}";
/// Bytes of a path to warm up with, far more than any needs.
const MOST_PATH: usize = 8192;

/// All workers of the file so far.
#[derive(Default)]
pub(crate) struct Workers {
    workers: Vec<Worker>,
    /// Those of the global block, which serve every site.
    global: Vec<WorkerRef>,
    /// The `max_threads` of those that have one, and where they were written.
    most: Vec<(Token, u16)>,
}

/// Where a worker stands.
pub(crate) enum Place {
    Global,
    Block {
        /// The block's own root.
        root: Option<PathBuf>,
        /// The block's own variables, which a worker's do not override.
        env: Vec<(String, String)>,
    },
}

impl Workers {
    /// The threads that the workers take at least: one for those that do not say.
    pub fn least_threads(&self) -> u32 {
        self.workers.iter().map(|worker| u32::from(worker.num.unwrap_or(1))).sum()
    }

    /// The threads that scaling may add to those workers that say how many.
    pub fn growth(&self) -> u16 {
        let growth =
            |worker: &Worker| worker.max_threads.unwrap_or(0).saturating_sub(worker.num.unwrap_or(0));
        self.workers.iter().map(growth).fold(0, u16::saturating_add)
    }

    /// No worker may have more threads than there are at most, as in FrankenPHP.
    pub fn check_most(&self, all: u16) -> Vec<Error> {
        let too_many = self.most.iter().filter(|(_, most)| *most > all);
        let message =
            |most| format!("`max_threads` of this worker is {most}, but of all threads it is {all}");
        too_many.map(|(token, most)| error(token, message(most))).collect()
    }

    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.workers.iter().map(|worker| worker.file.as_path())
    }

    pub fn into_vec(self) -> Vec<Worker> {
        self.workers
    }

    /// Whether `name` is taken.
    pub fn has(&self, name: &str) -> bool {
        self.workers.iter().any(|worker| worker.name == name)
    }

    /// `written`, with a number behind it if there is a worker of this name.
    fn free_name(&self, written: &str) -> String {
        let numbered = (2_u32..).map(|number| format!("{written}#{number}"));
        let mut names = std::iter::once(written.to_owned()).chain(numbered);
        names.find(|name| !self.has(name)).unwrap_or_default()
    }
}

/// Adds the workers of one block; returns those that it can use, with the global ones last.
pub(crate) fn declare(cx: &mut Context<'_>, calls: &[Call<'_>], place: &Place) -> Vec<WorkerRef> {
    let mut refs: Vec<WorkerRef> = Vec::new();
    for call in calls {
        if let Some(parsed) = Parsed::new(cx, call) {
            let result = add(cx, parsed, place, &refs);
            refs.extend(cx.check(result));
        }
    }
    match place {
        Place::Global => cx.workers.global.extend(refs.iter().cloned()),
        Place::Block { .. } => refs.extend(cx.workers.global.iter().cloned()),
    }
    refs
}

/// `NAME VALUE`, or a block of such lines.
pub(crate) fn pairs<'a>(cx: &mut Context<'_>, call: &Call<'a>, syntax: &str) -> Vec<(String, &'a Token)> {
    if call.block.is_none() {
        let pair = cx.check(call.exactly(syntax));
        return pair.map(|[name, value]| (name.text.clone(), value)).into_iter().collect();
    }
    cx.check(call.no_arguments(syntax));
    let mut pairs = Vec::new();
    for option in call.options() {
        let value = cx.check(option.one(syntax));
        pairs.extend(value.map(|value| (option.name().to_owned(), value)));
    }
    pairs
}

/// A worker as written.
struct Parsed<'a> {
    file: &'a Token,
    options: Options<'a>,
}

struct Options<'a> {
    name: Option<&'a Token>,
    num: Option<u16>,
    /// With its place.
    max_threads: Option<(&'a Token, u16)>,
    env: Vec<(String, String)>,
    request_timeout: Option<Duration>,
    matches: Vec<Template>,
    max_consecutive_failures: Option<u32>,
    warmup: Vec<String>,
    watch: Vec<String>,
}

impl<'a> Parsed<'a> {
    /// `None` if there was a mistake; all of them are noted.
    fn new(cx: &mut Context<'_>, call: &Call<'a>) -> Option<Self> {
        let before = cx.errors.len();
        let mut file = call.args.first();
        let mut options = Options::new();
        match call.args {
            [_, _, ..] if call.args.len() > 2 => cx.errors.push(call.wrong_arguments(2, SYNTAX)),
            [_, watch] if watch.text == "watch" => options.watch.push(USUALLY_WATCHED.to_owned()),
            [_, num] => options.num = cx.check(values::integer(num, 1..=u16::MAX, "num")),
            _ => {}
        }
        for option in call.options() {
            match option.name() {
                "file" => file = cx.check(option.one("file PATH")),
                "env" => options.env(cx, &option),
                "watch" => options.watch(cx, &option),
                _ => {
                    let result = options.apply(&option);
                    cx.check(result);
                }
            }
        }
        cx.check(options.check_max_threads());
        if file.is_none() && cx.errors.len() == before {
            cx.errors.push(error(call.name, format!("a worker needs a file; write: {SYNTAX}")));
        }
        file.filter(|_| cx.errors.len() == before).map(|file| Self { file, options })
    }
}

impl<'a> Options<'a> {
    fn new() -> Self {
        let Worker { max_consecutive_failures, .. } = Worker::default();
        Self {
            name: None,
            num: None,
            max_threads: None,
            env: Vec::new(),
            request_timeout: None,
            matches: Vec::new(),
            max_consecutive_failures,
            warmup: Vec::new(),
            watch: Vec::new(),
        }
    }

    fn apply(&mut self, option: &Call<'a>) -> Result<(), Error> {
        match option.name() {
            "name" => self.name = Some(option.one("name TEXT")?),
            "num" => self.num = Some(values::integer(option.one("num N")?, 1..=u16::MAX, "num")?),
            "max_threads" => {
                let token = option.one("max_threads N")?;
                self.max_threads = Some((token, values::integer(token, 1..=u16::MAX, "max_threads")?));
            }
            "request_timeout" => {
                self.request_timeout =
                    Some(values::request_timeout(option.one("request_timeout DURATION | off")?)?);
            }
            "match" => {
                self.matches
                    .extend(option.some("match PATTERN…")?.iter().map(|token| Template::parse(&token.text)));
            }
            "max_consecutive_failures" => {
                let token = option.one("max_consecutive_failures N")?;
                self.max_consecutive_failures = match token.text.as_str() {
                    "-1" => None,
                    _ => Some(values::integer(token, 0..=u32::MAX, "max_consecutive_failures")?),
                };
            }
            "warmup" => {
                for token in option.some("warmup PATH…")? {
                    self.warmup.push(request_path(token)?);
                }
            }
            _ => return Err(unknown_option(option.name, "worker", OPTIONS, &[])),
        }
        Ok(())
    }

    fn check_max_threads(&self) -> Result<(), Error> {
        match (self.max_threads, self.num) {
            (Some((token, most)), Some(num)) if most < num => {
                Err(error(token, format!("`max_threads` is {most}, less than `num`, which is {num}")))
            }
            _ => Ok(()),
        }
    }

    /// Patterns are relative to the working directory, as in FrankenPHP.
    fn watch(&mut self, cx: &mut Context<'_>, option: &Call<'_>) {
        if option.args.is_empty() {
            self.watch.push(USUALLY_WATCHED.to_owned());
        }
        for token in option.args {
            let text = cx.fixed_text(token);
            let Some(text) = cx.check(text) else { continue };
            let pattern = regent_watch::Pattern::new(&text, &cx.environment.current_dir);
            cx.check(pattern.map(|_| self.watch.push(text)).map_err(|cause| error(token, cause.to_string())));
        }
    }

    fn env(&mut self, cx: &mut Context<'_>, option: &Call<'_>) {
        for (name, value) in pairs(cx, option, "env NAME VALUE") {
            let value = cx.fixed_text(value);
            self.env.extend(cx.check(value).map(|value| (name, value)));
        }
    }
}

/// A path as it stands in a request, with a query or without (RFC 3986 §3.3 and §3.4).
fn request_path(token: &Token) -> Result<String, Error> {
    let text = &token.text;
    if is_request_path(text) {
        return Ok(text.clone());
    }
    Err(error(token, format!("`{text}` is not the path of a request, such as `/up` or `/search?q=a%20b`")))
}

/// Of the path and the query of a request.
pub(crate) fn is_request_path(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?%".contains(&byte);
    text.starts_with('/') && text.len() <= MOST_PATH && text.bytes().all(fits)
}

/// Gives the worker its identity; `siblings` are those of its block so far.
fn add(
    cx: &mut Context<'_>,
    Parsed { file: token, options }: Parsed<'_>,
    place: &Place,
    siblings: &[WorkerRef],
) -> Result<WorkerRef, Error> {
    let written = cx.fixed_text(token)?;
    let (root, block_env) = match place {
        Place::Global => (None, &[][..]),
        Place::Block { root, env } => (root.as_deref(), env.as_slice()),
    };
    let file = cx.environment.absolute(&root.unwrap_or(Path::new("")).join(&written));
    if !file.is_file() {
        let message = format!("the worker's file does not exist: {}", file.display());
        cx.warn(token, message.clone());
        cx.missing.push(error(token, message));
    }
    let same = |sibling: &&WorkerRef| {
        sibling.matches.is_empty() && cx.workers.workers[usize::from(sibling.id.0)].file == file
    };
    if siblings.iter().find(same).is_some() {
        return Err(error(token, format!("this block has a worker for {} already", file.display())));
    }
    let name = match options.name {
        Some(name) if cx.workers.has(&name.text) => {
            return Err(error(name, format!("another worker has the name `{}` already", name.text)));
        }
        Some(name) => name.text.clone(),
        None => cx.workers.free_name(&written),
    };
    let mut env = options.env;
    for (name, value) in block_env {
        if !env.iter().any(|(own, _)| own == name) {
            env.push((name.clone(), value.clone()));
        }
    }
    let id =
        u16::try_from(cx.workers.workers.len()).map_err(|_| error(token, "there are too many workers"))?;
    cx.workers.most.extend(options.max_threads.map(|(token, most)| (token.clone(), most)));
    cx.workers.workers.push(Worker {
        name,
        file,
        num: options.num,
        max_threads: options.max_threads.map(|(_, most)| most),
        env,
        request_timeout: options.request_timeout,
        max_consecutive_failures: options.max_consecutive_failures,
        warmup: options.warmup,
        watch: options.watch,
    });
    let scope = match place {
        Place::Global => WorkerScope::Global,
        Place::Block { .. } => WorkerScope::Block,
    };
    Ok(WorkerRef { id: WorkerId(id), matches: options.matches, scope })
}
