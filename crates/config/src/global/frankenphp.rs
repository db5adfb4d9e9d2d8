//! `frankenphp { … }` or `regent { … }`: the PHP threads.
//!
//! | option | default | meaning |
//! |---|---|---|
//! | `num_threads N` | 2 per core | threads in all; more than those of the workers |
//! | `max_threads N` | `num_threads` | only the same number is possible yet |
//! | `max_wait_time DURATION` | no bound | longest time in the queue, then 503 |
//! | `max_requests N` | 0: never | a thread is renewed after so many requests |
//! | `php_ini KEY VALUE`, or a block | | overrides of php.ini |
//! | `worker …` | | see `workers.rs`; these serve every site |
//!
//! ```caddyfile
//! {
//!     frankenphp {
//!         num_threads 16
//!         worker public/index.php 8
//!     }
//! }
//! ```

use super::GlobalOptions;
use crate::call::Call;
use crate::context::Context;
use crate::problems::{error, not_built_as, unknown_option};
use crate::values;
use crate::workers::{self, Place};
use regent_caddyfile::{Error, Token};

const OPTIONS: &[&str] =
    &["max_requests", "max_threads", "max_wait_time", "num_threads", "php_ini", "worker"];
const UNBUILT: &[&str] = &[
    "deadline",
    "engines",
    "max_idle_time",
    "max_queue",
    "request_timeout",
    "scheduling",
    "slow_log",
    "watch",
];

pub(super) fn parse(cx: &mut Context<'_>, call: &Call<'_>, options: &mut GlobalOptions) -> Result<(), Error> {
    call.no_arguments("frankenphp { OPTION… }")?;
    let mut max_threads = None;
    let mut workers = Vec::new();
    for option in call.options() {
        match option.name() {
            "worker" => workers.push(option),
            "max_threads" => max_threads = cx.check(option.one("max_threads N")),
            "php_ini" => php_ini(cx, &option, options),
            _ => {
                let result = apply(&option, options, call.name());
                cx.check(result);
            }
        }
    }
    workers::declare(cx, &workers, &Place::Global);
    max_threads.map_or(Ok(()), |token| check_max_threads(token, options.global.php.num_threads))
}

/// The workers of the whole file must leave a thread for other requests.
pub(crate) fn check_threads(cx: &mut Context<'_>, options: &GlobalOptions) {
    let (Some(token), Some(threads)) = (&options.num_threads, options.global.php.num_threads) else { return };
    let workers = cx.workers.least_threads();
    if u32::from(threads) <= workers {
        let message = format!(
            "`num_threads` is {threads}, but the workers alone take {workers}: it must be at least {}",
            workers + 1
        );
        cx.errors.push(error(token, message));
    }
}

fn apply(option: &Call<'_>, options: &mut GlobalOptions, owner: &str) -> Result<(), Error> {
    let php = &mut options.global.php;
    match option.name() {
        "num_threads" => {
            let token = option.one("num_threads N")?;
            php.num_threads = Some(values::integer(token, 1..=u16::MAX, "num_threads")?);
            options.num_threads = Some(token.clone());
        }
        "max_wait_time" => {
            let wait = values::duration(option.one("max_wait_time DURATION")?)?;
            php.max_wait_time = (!wait.is_zero()).then_some(wait);
        }
        "max_requests" => {
            php.max_requests =
                values::integer(option.one("max_requests N")?, 0..=u64::from(u32::MAX), "max_requests")?;
        }
        _ => return Err(unknown_option(option.name, owner, OPTIONS, UNBUILT)),
    }
    Ok(())
}

fn php_ini(cx: &mut Context<'_>, option: &Call<'_>, options: &mut GlobalOptions) {
    for (key, value) in workers::pairs(cx, option, "php_ini KEY VALUE") {
        let value = cx.fixed_text(value);
        options.global.php.php_ini.extend(cx.check(value).map(|value| (key, value)));
    }
}

/// There is no scaling yet, so that only the number that changes nothing is possible.
fn check_max_threads(token: &Token, num_threads: Option<u16>) -> Result<(), Error> {
    if token.text == "auto" {
        return Err(not_built_as(token, "max_threads auto"));
    }
    let most: u16 = values::integer(token, 1..=u16::MAX, "max_threads")?;
    match num_threads {
        Some(threads) if most == threads => Ok(()),
        Some(threads) if most < threads => {
            Err(error(token, format!("`max_threads` is {most}, less than `num_threads`, which is {threads}")))
        }
        _ => Err(not_built_as(token, "max_threads (other than num_threads)")),
    }
}

#[cfg(test)]
mod tests {
    use crate::model::PhpGlobal;
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
            "num_threads 4\nmax_threads 4\nmax_wait_time 5s\nmax_requests 500\nphp_ini a 1\nphp_ini {\nb 2\n}",
        );
        assert_eq!(found.num_threads, Some(4));
        assert_eq!(found.max_wait_time, Some(Duration::from_secs(5)));
        assert_eq!(found.max_requests, 500);
        assert_eq!(found.php_ini, [("a".into(), "1".into()), ("b".into(), "2".into())]);
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
    fn more_threads_than_at_start_are_not_built() {
        assert_eq!(option_errors("max_threads auto"), ["`max_threads auto` is not built yet in Regent"]);
        assert!(option_errors("num_threads 2\nmax_threads 3")[0].contains("not built yet"));
        assert!(option_errors("num_threads 2\nmax_threads 1")[0].contains("less than `num_threads`"));
        assert_eq!(option_errors("max_idle_time 1s\nengines 2\nmax_thread 3").len(), 3);
    }

    #[test]
    fn workers() {
        let found = php(
            "worker a.php 2\nworker {\nfile ./public/b.php\nnum 3\nname b\nenv X 1\nmatch /b/*\nmax_consecutive_failures -1\n}",
        );
        let [a, b] = found.workers.as_slice() else { panic!("{found:?}") };
        assert_eq!((a.name.as_str(), a.num, a.max_consecutive_failures), ("a.php", Some(2), Some(6)));
        assert_eq!((b.name.as_str(), b.num, b.max_consecutive_failures), ("b", Some(3), None));
        assert!(a.file.is_absolute() && b.file.ends_with("public/b.php"));
        assert_eq!(b.env, [("X".into(), "1".into())]);
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
    fn workers_need_a_file_that_exists() {
        assert!(option_errors("worker none.php")[0].starts_with("the worker's file does not exist: "));
        assert!(option_errors("worker {\nnum 1\n}")[0].starts_with("a worker needs a file"));
        assert_eq!(
            option_errors(
                "worker a.php 0\nworker a.php x 3\nworker a.php watch\nworker {\nfile a.php\nfil a\n}\nworker {path}"
            )
            .len(),
            5
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
