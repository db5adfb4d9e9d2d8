//! `frankenphp { … }` or `regent { … }`: the PHP threads.
//!
//! | option | default | meaning |
//! |---|---|---|
//! | `num_threads N` | 2 per core, at most `max_threads` | threads at start in all, classic and worker; more than those of the workers |
//! | `max_threads N` \| `auto` | `num_threads`, and what the `max_threads` of workers add to it; `auto` without `num_threads` | threads in all that scaling may reach; `auto`: as many as the memory allows |
//! | `engines N` | 1 | processes that the threads are divided among, up to 16: a crash costs what runs in one of them; see [several processes](crashes.md#several-processes) |
//! | `max_idle_time DURATION` | 5s | a thread that scaling added ends when it was idle for so long; 0: it stays |
//! | `max_wait_time DURATION` \| `off` | 3s | longest time in the queue, then 503; `off`: no bound |
//! | `max_queue N` | 32768 | requests that may wait in each pool's queue, and in its lanes; more get 503 |
//! | `deadline DURATION` | none | soft real-time limit of requests to PHP; see `directives/deadline.rs` |
//! | `request_timeout DURATION` \| `off` | off | longest time that a request may run in PHP, waiting included; then 504, and its script is ended: see [time limits](deadlines.md#end-what-takes-too-long) |
//! | `departed_timeout DURATION` \| `off` | 1m | ends requests that wait when their clients have left; see `departed_timeout.rs` |
//! | `max_response_header SIZE` | 256KiB | the fields of a response; see `max_response_header.rs` |
//! | `retry [METHOD…]` \| `off` | off | which requests are run once more when their engine dies; see `directives/retry.rs` |
//! | `scheduling spread` \| `pack` | spread | which idle thread gets a request: all in turn, or the one that was used last |
//! | `lane NAME { threads N \| share N% }` | automatic | bound of a lane; see `lanes.rs` |
//! | `circuit { … }` \| `off` | on | what kills its engine again and again gets 503 for a while; see `circuit.rs` |
//! | `slow_log DURATION [FILE]` \| `off` | off | tells of requests that run for long, with what their scripts are at; see `slow_log.rs` |
//! | `spool { … }` | | where large bodies wait; see `spool.rs` |
//! | `task FILE …` | | a script that runs beside the pools; see `task.rs` |
//! | `max_requests N` | 0: never | a thread is renewed after so many requests, or up to half as many more if others are being renewed |
//! | `max_memory SIZE` | 0: never | a worker's thread is renewed after a request that leaves so much memory allocated |
//! | `max_age DURATION` | 0: never | a thread is renewed after a request, when its script has run for so long |
//! | `module LIBRARY`, with or without a block | | a native module that others depend on; see `module.rs` |
//! | `php PROGRAM` | `regent-php` beside the server, or `REGENT_ENGINE` | the engine, which is built for one PHP; see `php.rs` |
//! | `php_ini KEY VALUE`, or a block | | overrides of php.ini |
//! | `health_uri [HOST]PATH [TIMEOUT]` | none | what `/regent/ready` asks PHP for; see `health_uri.rs` |
//! | `user NAME [GROUP]` | the server's | whom PHP and native modules run as; see `user.rs` |
//! | `confine`, with or without a block \| `off` | what costs nothing | what the kernel keeps PHP and native modules from; see `confine.rs` |
//! | `worker …` | | see `workers.rs`; these serve every site |
//!
//! ```caddyfile
//! {
//!     frankenphp {
//!         num_threads 16
//!         max_threads auto
//!         worker public/index.php 8
//!     }
//! }
//! ```

use super::{
    GlobalOptions, circuit, confine, departed_timeout, health_uri, lanes, max_response_header, module, php,
    slow_log, spool, task, user,
};
use crate::call::Call;
use crate::context::Context;
use crate::model::{MaxThreads, Scheduling};
use crate::problems::{unknown, unknown_option};
use crate::values;
use crate::workers::{self, Place};
use regent_caddyfile::{Error, Token};

const OPTIONS: &[&str] = &[
    "circuit",
    "confine",
    "deadline",
    "departed_timeout",
    "engines",
    "health_uri",
    "lane",
    "max_idle_time",
    "max_queue",
    "max_age",
    "max_memory",
    "max_requests",
    "max_response_header",
    "max_threads",
    "max_wait_time",
    "module",
    "num_threads",
    "php",
    "php_ini",
    "request_timeout",
    "retry",
    "scheduling",
    "slow_log",
    "spool",
    "task",
    "user",
    "worker",
];
const UNBUILT: &[&str] = &["watch"];

pub(super) fn parse(cx: &mut Context<'_>, call: &Call<'_>, options: &mut GlobalOptions) -> Result<(), Error> {
    call.no_arguments("frankenphp { OPTION… }")?;
    let mut workers = Vec::new();
    for option in call.options() {
        match option.name() {
            "worker" => workers.push(option),
            "php_ini" => php_ini(cx, &option, options),
            "module" => module::declare(cx, &option),
            "slow_log" => {
                let parsed = slow_log::parse(cx, &option);
                if let Some(slow_log) = cx.check(parsed) {
                    options.global.php.slow_log = slow_log;
                }
            }
            "circuit" => {
                let parsed = circuit::parse(cx, &option);
                if let Some(circuit) = cx.check(parsed) {
                    options.global.php.circuit = circuit;
                }
            }
            "health_uri" => {
                let parsed = health_uri::parse(&option);
                options.global.health = cx.check(parsed);
            }
            "user" => {
                let parsed = user::parse(cx, &option);
                options.global.php.user = cx.check(parsed);
            }
            "confine" => {
                let parsed = confine::parse(cx, &option, &mut options.confined);
                if let Some(confine) = cx.check(parsed) {
                    options.global.php.confine = confine;
                }
            }
            "task" => {
                let result = task::declare(cx, &option, &mut options.global.php.tasks);
                cx.check(result);
            }
            "php" => options.global.php.program = cx.check(php::parse(cx, &option)),
            "spool" => spool::parse(cx, &option, &mut options.global.php.spool),
            _ => {
                let result = apply(&option, options, call.name());
                cx.check(result);
            }
        }
    }
    workers::declare(cx, &workers, &Place::Global);
    Ok(())
}

fn apply(option: &Call<'_>, options: &mut GlobalOptions, owner: &str) -> Result<(), Error> {
    let php = &mut options.global.php;
    match option.name() {
        "num_threads" => {
            let token = option.one("num_threads N")?;
            let threads = values::integer(token, 1..=u16::MAX, "num_threads")?;
            php.num_threads = Some(threads);
            options.num_threads = Some((token.clone(), threads));
        }
        "max_threads" => {
            let token = option.one("max_threads N | auto")?;
            let most = max_threads(token)?;
            php.max_threads = Some(most);
            options.max_threads = match most {
                MaxThreads::Fixed(most) => Some((token.clone(), most)),
                MaxThreads::Auto => None,
            };
        }
        "engines" => php.engines = values::integer(option.one("engines N")?, 1..=16, "engines")?,
        "max_idle_time" => php.max_idle_time = values::duration(option.one("max_idle_time DURATION")?)?,
        "max_wait_time" => {
            php.max_wait_time = values::time_or_off(option.one("max_wait_time DURATION | off")?)?
        }
        "max_queue" => {
            php.max_queue = Some(values::integer(option.one("max_queue N")?, 0..=u32::MAX, "max_queue")?);
        }
        "deadline" => php.deadline = Some(values::positive_duration(option.one("deadline DURATION")?)?),
        "request_timeout" => {
            let limit = values::request_timeout(option.one("request_timeout DURATION | off")?)?;
            php.request_timeout = (!limit.is_zero()).then_some(limit);
        }
        "departed_timeout" => {
            php.departed_timeout = departed_timeout::parse(option)?;
        }
        "max_response_header" => {
            php.max_response_header = max_response_header::parse(option)?;
        }
        "retry" => php.retry = values::retry(option, "retry [METHOD…] | off")?,
        "scheduling" => php.scheduling = scheduling(option.one("scheduling spread | pack")?)?,
        "lane" => lanes::declare(option, &mut php.lanes)?,
        "max_memory" => php.max_memory = values::size(option.one("max_memory SIZE")?)?,
        "max_age" => php.max_age = values::duration(option.one("max_age DURATION")?)?,
        "max_requests" => {
            php.max_requests =
                values::integer(option.one("max_requests N")?, 0..=u64::from(u32::MAX), "max_requests")?;
        }
        _ => return Err(unknown_option(option.name, owner, OPTIONS, UNBUILT)),
    }
    Ok(())
}

fn max_threads(token: &Token) -> Result<MaxThreads, Error> {
    match token.text.as_str() {
        "auto" => Ok(MaxThreads::Auto),
        _ => values::integer(token, 1..=u16::MAX, "max_threads").map(MaxThreads::Fixed),
    }
}

fn scheduling(token: &Token) -> Result<Scheduling, Error> {
    match token.text.as_str() {
        "spread" => Ok(Scheduling::Spread),
        "pack" => Ok(Scheduling::Pack),
        _ => Err(unknown(token, "scheduling", &["spread", "pack"])),
    }
}

fn php_ini(cx: &mut Context<'_>, option: &Call<'_>, options: &mut GlobalOptions) {
    for (key, value) in workers::pairs(cx, option, "php_ini KEY VALUE") {
        let value = cx.fixed_text(value);
        options.global.php.php_ini.extend(cx.check(value).map(|value| (key, value)));
    }
}

#[cfg(test)]
mod tests {
    use crate::model::{MaxThreads, PhpGlobal, Scheduling};
    use crate::{Environment, Errors, Loaded};
    use std::collections::BTreeMap;
    use std::path::Path;
    use std::time::Duration;

    /// Loads a file next to the scripts `a.php` and `public/b.php`.
    fn load(text: &str) -> (Result<Loaded, Errors>, tempfile::TempDir) {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("public")).unwrap();
        for name in ["a.php", "public/b.php"] {
            std::fs::write(directory.path().join(name), "<?php").unwrap();
        }
        let environment =
            Environment { variables: BTreeMap::new(), current_dir: directory.path().to_owned() };
        (crate::parse("Caddyfile", text, Path::new(""), &environment), directory)
    }

    fn php(options: &str) -> PhpGlobal {
        load(&format!("{{\nfrankenphp {{\n{options}\n}}\n}}"))
            .0
            .unwrap_or_else(|errors| panic!("{errors}"))
            .config
            .global
            .php
    }

    fn errors(text: &str) -> Vec<String> {
        let errors = load(text).0.err().map_or(Vec::new(), |errors| errors.0);
        errors.into_iter().map(|error| error.message).collect()
    }

    fn option_errors(options: &str) -> Vec<String> {
        errors(&format!("{{\nregent {{\n{options}\n}}\n}}"))
    }

    #[test]
    fn options() {
        let found = php(
            "num_threads 4\nmax_threads 40\nmax_idle_time 1m\nmax_wait_time 5s\nmax_queue 100\ndeadline 300ms\n\
             request_timeout 30s\nscheduling pack\nmax_requests 500\nphp_ini a 1\nphp_ini {\nb 2\n}",
        );
        let expected = PhpGlobal {
            num_threads: Some(4),
            max_threads: Some(MaxThreads::Fixed(40)),
            max_idle_time: Duration::from_secs(60),
            max_wait_time: Some(Duration::from_secs(5)),
            max_queue: Some(100),
            deadline: Some(Duration::from_millis(300)),
            request_timeout: Some(Duration::from_secs(30)),
            scheduling: Scheduling::Pack,
            max_requests: 500,
            php_ini: vec![("a".into(), "1".into()), ("b".into(), "2".into())],
            ..PhpGlobal::default()
        };
        assert_eq!(found, expected);
        assert_eq!(php(""), PhpGlobal::default());
    }

    #[test]
    fn the_wait_for_a_thread_is_bounded_unless_it_is_switched_off() {
        let wait = |options| php(options).max_wait_time;
        assert_eq!(wait(""), Some(Duration::from_secs(3)));
        assert_eq!(wait("max_wait_time 100ms"), Some(Duration::from_millis(100)));
        assert_eq!((wait("max_wait_time off"), wait("max_wait_time 0")), (None, None));
        assert!(!option_errors("max_wait_time soon").is_empty());
    }

    #[test]
    fn a_request_may_run_without_end_unless_it_is_limited() {
        let limit = |options| php(options).request_timeout;
        assert_eq!(limit("request_timeout 1m30s"), Some(Duration::from_secs(90)));
        assert_eq!((limit(""), limit("request_timeout off"), limit("request_timeout 0")), (None, None, None));
        assert_eq!(option_errors("request_timeout 30\nrequest_timeout").len(), 2);
        let of_worker =
            |limit: &str| php(&format!("worker a.php {{\n{limit}\n}}")).workers[0].request_timeout;
        assert_eq!(of_worker("request_timeout 5s"), Some(Duration::from_secs(5)));
        assert_eq!((of_worker(""), of_worker("request_timeout off")), (None, Some(Duration::ZERO)));
    }

    #[test]
    fn numbers_have_ranges() {
        for number in ["0", "-1", "x", "70000", "1.5", ""] {
            let found = option_errors(&format!("num_threads \"{number}\""));
            assert_eq!(
                found,
                [format!("`num_threads` must be a whole number from 1 to 65535, not `{number}`")]
            );
        }
    }

    #[test]
    fn the_most_threads_are_no_less_than_those_at_start() {
        assert_eq!(php("max_threads auto").max_threads, Some(MaxThreads::Auto));
        assert_eq!(php("num_threads 3\nmax_threads 3").max_threads, Some(MaxThreads::Fixed(3)));
        assert_eq!(
            option_errors("max_threads 1\nnum_threads 2"),
            ["`max_threads` is 1, less than `num_threads`, which is 2"]
        );
        assert_eq!(
            option_errors("max_threads 2\nworker a.php 2"),
            ["`max_threads` is 2, but the workers alone take 2: it must be at least 3"]
        );
        // The later one counts.
        assert_eq!(option_errors("num_threads 2\nmax_threads 1\nmax_threads auto"), Vec::<String>::new());
    }

    #[test]
    fn workers_may_say_how_far_all_threads_grow() {
        let worker = "worker a.php {\nnum 2\nmax_threads 10\n}";
        assert_eq!(php(&format!("num_threads 4\n{worker}")).max_threads, Some(MaxThreads::Fixed(12)));
        assert_eq!(
            php(&format!("num_threads 4\nmax_threads 11\n{worker}")).max_threads,
            Some(MaxThreads::Fixed(11))
        );
        assert_eq!(php(worker).max_threads, None);
        assert_eq!(php("num_threads 4").max_threads, None);
        assert_eq!(
            option_errors(&format!("max_threads 9\n{worker}")),
            ["`max_threads` of this worker is 10, but of all threads it is 9"]
        );
    }

    #[test]
    fn mistakes() {
        let found = option_errors(
            "max_idle_time 5\nmax_queue -1\ndeadline 0\nscheduling pak\nengines 0\nwatch\nmax_thread 3",
        );
        assert_eq!(found[2], "`0` is too short: it must be longer than 0");
        assert_eq!(found[3], "unknown scheduling `pak`; did you mean `pack`?");
        assert_eq!(found[5], "`regent watch` is not built yet in Regent");
        assert!(found[6].contains("did you mean `max_threads`?"), "{found:?}");
        assert_eq!(found.len(), 7, "{found:?}");
    }

    #[test]
    fn a_warm_up_asks_for_paths() {
        let worker = |paths: &str| format!("worker a.php {{\nwarmup {paths}\n}}");
        for path in ["/", "/up", "/a/b.html?x=1&y=%20;z", "/@:~!$'()*+,-_"] {
            assert_eq!(php(&worker(path)).workers[0].warmup, [path]);
        }
        for path in ["up", "http://x/", "/a#b", "/ä", "\"/a b\"", "/<x>", &format!("/{}", "x".repeat(8192))]
        {
            let found = option_errors(&worker(&format!("/up {path}")));
            let [message] = found.as_slice() else { panic!("one mistake in {path}, not {found:?}") };
            assert!(message.contains("is not the path of a request"), "{message}");
        }
        assert_eq!(option_errors(&worker("")).len(), 1);
    }

    #[test]
    fn workers() {
        let found = php(
            "worker a.php 2\nworker {\nfile ./public/b.php\nnum 3\nmax_threads 30\nname b\nenv X 1\nmatch /b/*\nmax_consecutive_failures -1\nwarmup /up /search?q=a%20b\nwarmup /\n}",
        );
        let [a, b] = found.workers.as_slice() else { panic!("{found:?}") };
        assert_eq!((a.name.as_str(), a.num, a.max_consecutive_failures), ("a.php", Some(2), Some(6)));
        assert_eq!((b.name.as_str(), b.num, b.max_consecutive_failures), ("b", Some(3), None));
        assert!(a.file.is_absolute() && b.file.ends_with("public/b.php"));
        assert_eq!(b.env, [("X".into(), "1".into())]);
        assert_eq!((a.max_threads, b.max_threads), (None, Some(30)));
        assert!(a.warmup.is_empty() && a.watch.is_empty());
        assert_eq!(b.warmup, ["/up", "/search?q=a%20b", "/"]);
    }

    #[test]
    fn global_workers_serve_every_block_after_its_own() {
        let text = "{\nfrankenphp {\nworker a.php\n}\n}\n:80 {\nphp_server {\nroot public\nenv E 1\nworker b.php {\nmatch /x\n}\n}\n}";
        let config = load(text).0.unwrap_or_else(|errors| panic!("{errors}")).config;
        let crate::Handler::PhpServer(server) = &config.servers[0].sites[0].routes[0].handler else {
            panic!("{config:?}")
        };
        let ids: Vec<_> = server.php.workers.iter().map(|worker| worker.id.0).collect();
        assert_eq!(ids, [1, 0]);
        assert_eq!(config.global.php.workers[1].env, [("E".into(), "1".into())]);
        assert!(config.global.php.workers[1].file.ends_with("public/b.php"));
    }

    #[test]
    fn workers_are_told_apart() {
        assert!(option_errors("worker a.php\nworker ./a.php")[0].contains("has a worker for"));
        assert_eq!(
            option_errors("worker {\nfile a.php\nname x\n}\nworker {\nfile public/b.php\nname x\n}"),
            ["another worker has the name `x` already"]
        );
        let two = ":80 {\nphp_server {\nworker a.php\n}\n}\n:81 {\nphp_server {\nworker a.php\n}\n}";
        let names: Vec<_> =
            load(two).0.unwrap().config.global.php.workers.into_iter().map(|worker| worker.name).collect();
        assert_eq!(names, ["a.php", "a.php#2"]);
    }

    #[test]
    fn workers_watch_files() {
        let watched = |text: &str| php(text).workers.remove(0).watch;
        let usual = "./**/*.{env,php,twig,yaml,yml}";
        assert_eq!(watched("worker a.php watch"), [usual]);
        assert_eq!(watched("worker a.php {\nwatch\n}"), [usual]);
        assert_eq!(
            watched("worker a.php {\nwatch src config/*.yaml\nwatch .env\n}"),
            ["src", "config/*.yaml", ".env"]
        );
        let found = option_errors("worker a.php {\nwatch src/{a\n}");
        assert!(found[0].starts_with("`src/{a` is no pattern: "), "{found:?}");
    }

    #[test]
    fn workers_need_a_file_that_exists() {
        let loaded =
            crate::directives::testing::load("{\nfrankenphp {\nworker none.php\n}\n}\n:80 {\n}").unwrap();
        assert!(
            loaded.warnings[0].to_string().contains("3:8: the worker's file does not exist: /srv/none.php")
        );
        assert!(loaded.complete().unwrap_err().to_string().contains("the worker's file does not exist"));
        assert!(option_errors("worker {\nnum 1\n}")[0].starts_with("a worker needs a file"));
        assert_eq!(
            option_errors(
                "worker a.php 0\nworker a.php x 3\nworker a.php {\nwatch a[\n}\nworker a.php 3 {\nmax_threads 2\n}\nworker {\nfile a.php\nfil a\n}\nworker {path}"
            )
            .len(),
            6
        );
    }

    #[test]
    fn workers_leave_a_thread_for_others() {
        let found = errors(
            "{\nfrankenphp {\nnum_threads 4\nworker a.php 2\n}\n}\n:80 {\nphp_server {\nworker a.php 2\n}\n}",
        );
        assert_eq!(found, ["`num_threads` is 4, but the workers alone take 4: it must be at least 5"]);
        assert_eq!(option_errors("num_threads 3\nworker a.php 2"), Vec::<String>::new());
    }
}
