//! The app `frankenphp`: PHP's threads and workers. What FrankenPHP does not have stands in its `regent`, as lines of its block in a
//! Caddyfile.

mod tasks;

use crate::Writer;
use crate::handlers::{native, retry};
use crate::object::{Object, nanoseconds};
use crate::text::texts;
use crate::words::{self, Line};
use regent_config::{
    Circuit, Confine, Confinement, Enforcement, EngineUser, HealthCheck, Lane, LaneBound, MaxThreads,
    Namespaces, NativeModule, PhpGlobal, Programs, Scheduling, SlowLog, Spool, UserWish, Worker, WorkerId,
    WorkerRef, WorkerScope, escaped,
};
use std::path::{Path, PathBuf};
use std::time::Duration;

impl Writer<'_> {
    pub(crate) fn frankenphp(&self) -> Object {
        let PhpGlobal {
            num_threads,
            max_threads,
            max_idle_time,
            max_wait_time,
            max_requests,
            php_ini,
            workers,
            // Options of Regent's own.
            engines: _,
            max_queue: _,
            deadline: _,
            request_timeout: _,
            departed_timeout: _,
            max_response_header: _,
            retry: _,
            slow_log: _,
            circuit: _,
            scheduling: _,
            lanes: _,
            spool: _,
            max_memory: _,
            max_age: _,
            program: _,
            user: _,
            confine: _,
            tasks: _,
        } = &self.config.global.php;
        let usual = PhpGlobal::default();
        let mut app = Object::new();
        app.set_some("num_threads", *num_threads);
        match max_threads {
            Some(MaxThreads::Fixed(most)) => app.set("max_threads", *most),
            Some(MaxThreads::Auto) => app.set("max_threads", -1),
            None => {}
        }
        app.set_duration("max_idle_time", *max_idle_time, usual.max_idle_time);
        if *max_wait_time != usual.max_wait_time {
            app.set("max_wait_time", max_wait_time.map_or(0, nanoseconds));
        }
        app.set_unless("max_requests", *max_requests, usual.max_requests);
        let mut settings = Object::new();
        php_ini.iter().for_each(|(name, value)| settings.set(name, escaped(value)));
        app.non_empty("php_ini", settings);
        let globals = (0_u16..).map(WorkerId).take(workers.len()).filter(|id| self.is_global(*id));
        let globals: Vec<_> = globals.map(|id| self.reference(id)).collect();
        // From the first on that needs other words, all have them, so that their order stays.
        let is_plain =
            globals.iter().position(|worker| self.has_own_options(worker)).unwrap_or(globals.len());
        let (plain, own) = globals.split_at(is_plain);
        app.set_list("workers", plain.iter().map(|worker| self.worker(worker)));
        let mut lines = self.lines_of_frankenphp();
        lines.extend(own.iter().map(|worker| self.worker_line(worker)));
        app.set_list("regent", lines.into_iter().map(Line::build));
        app
    }

    /// Options that FrankenPHP does not have, by the defaults that they differ from.
    fn lines_of_frankenphp(&self) -> Vec<Line> {
        let php = &self.config.global.php;
        let usual = PhpGlobal::default();
        let time = |name: &str, value: Duration| Line::new([name]).word(words::duration(value));
        let number = |name: &str, value: String| Line::new([name]).word(value);
        let lines = [
            (php.engines != usual.engines).then(|| number("engines", php.engines.to_string())),
            php.max_queue.map(|most| number("max_queue", most.to_string())),
            php.deadline.map(|limit| time("deadline", limit)),
            php.request_timeout.map(|limit| time("request_timeout", limit)),
            (php.departed_timeout != usual.departed_timeout).then(|| departed_timeout(php.departed_timeout)),
            (php.max_response_header != usual.max_response_header)
                .then(|| number("max_response_header", words::size(php.max_response_header as u64))),
            (php.retry != usual.retry).then(|| retry(php.retry)),
            php.slow_log.as_ref().map(slow_log),
            circuit(php.circuit),
            (php.scheduling == Scheduling::Pack).then(|| Line::new(["scheduling", "pack"])),
            spool(&php.spool),
            (php.max_memory > 0).then(|| number("max_memory", words::size(php.max_memory))),
            (!php.max_age.is_zero()).then(|| time("max_age", php.max_age)),
            php.program.as_ref().map(|program| path("php", program)),
            // What the environment says is not the configuration's.
            php.user.as_ref().filter(|user| user.wish == UserWish::Firm).map(user),
            confine(&php.confine),
            self.config.global.health.as_ref().map(health),
        ];
        let lanes = php.lanes.iter().map(lane);
        let modules = self.config.global.native.modules.iter().map(module);
        lines
            .into_iter()
            .flatten()
            .chain(lanes)
            .chain(modules)
            .chain(php.tasks.iter().map(tasks::line))
            .collect()
    }

    /// Whether it is a worker of the whole server: those have the first numbers, and stand last in the list of each handler of
    /// PHP, in their order. One that several handlers have is taken for one of the whole server too, as it must not be there twice.
    pub(crate) fn is_global(&self, id: WorkerId) -> bool {
        let count = self.config.global.php.workers.len();
        let stand_last = |globals: usize| {
            let last = |refs: &Vec<WorkerRef>| refs.len().checked_sub(globals).map(|at| refs[at..].to_vec());
            let mut ends = self.worker_lists.iter().map(last);
            let first = self.worker_lists.first().and_then(last);
            let in_order = |refs: &Vec<WorkerRef>| {
                refs.iter().enumerate().all(|(at, worker)| usize::from(worker.id.0) == at)
            };
            first.as_ref().is_some_and(in_order) && ends.all(|end| end == first)
        };
        let globals = if self.worker_lists.is_empty() {
            count
        } else {
            (0..=count).rev().find(|count| stand_last(*count)).unwrap_or(0)
        };
        let of_several: Vec<_> =
            self.worker_lists.iter().flatten().filter(|worker| worker.id == id).collect();
        usize::from(id.0) < globals
            || (of_several.len() > 1 && of_several.iter().all(|worker| worker.matches.is_empty()))
    }

    fn reference(&self, id: WorkerId) -> WorkerRef {
        let known = self.worker_lists.iter().flatten().find(|worker| worker.id == id);
        known.cloned().unwrap_or(WorkerRef { id, matches: Vec::new(), scope: WorkerScope::Global })
    }

    fn worker_of(&self, worker: &WorkerRef) -> &Worker {
        &self.config.global.php.workers[usize::from(worker.id.0)]
    }

    /// Whether it needs the words of a Caddyfile.
    pub(crate) fn has_own_options(&self, worker: &WorkerRef) -> bool {
        let Worker { request_timeout, warmup, .. } = self.worker_of(worker);
        request_timeout.is_some() || !warmup.is_empty()
    }

    /// As FrankenPHP has it.
    pub(crate) fn worker(&self, worker: &WorkerRef) -> Object {
        let WorkerRef { id: _, matches, scope: _ } = worker;
        let Worker {
            name,
            file,
            num,
            max_threads,
            env,
            max_consecutive_failures,
            watch,
            request_timeout: _,
            warmup: _,
        } = self.worker_of(worker);
        let mut object = Object::new();
        object.set("name", name.as_str());
        object.set("file_name", escaped(&file.display().to_string()));
        object.set_some("num", *num);
        object.set_some("max_threads", *max_threads);
        let mut variables = Object::new();
        env.iter().for_each(|(name, value)| variables.set(name, escaped(value)));
        object.non_empty("env", variables);
        object.set_list("watch", watch.iter().map(|pattern| escaped(pattern)));
        object.set_list("match_path", texts(matches));
        if *max_consecutive_failures != Worker::default().max_consecutive_failures {
            object.set("max_consecutive_failures", max_consecutive_failures.map_or(-1, i64::from));
        }
        object
    }

    pub(crate) fn worker_line(&self, worker: &WorkerRef) -> Line {
        let WorkerRef { id: _, matches, scope: _ } = worker;
        let Worker {
            name,
            file,
            num,
            max_threads,
            env,
            max_consecutive_failures,
            watch,
            request_timeout,
            warmup,
        } = self.worker_of(worker);
        let number = |name: &str, value: Option<String>| value.map(|value| Line::new([name]).word(value));
        let list =
            |name: &str, values: Vec<String>| (!values.is_empty()).then(|| Line::new([name]).words(values));
        let failures = (*max_consecutive_failures != Worker::default().max_consecutive_failures)
            .then(|| max_consecutive_failures.map_or("-1".to_owned(), |most| most.to_string()));
        let lines = [
            Some(path("file", file)),
            Some(Line::new(["name", name])),
            number("num", num.map(|num| num.to_string())),
            number("max_threads", max_threads.map(|most| most.to_string())),
            request_timeout.map(|limit| Line::new(["request_timeout"]).word(words::duration(limit))),
            list("match", texts(matches)),
            number("max_consecutive_failures", failures),
            list("warmup", warmup.clone()),
            list("watch", watch.iter().map(|pattern| escaped(pattern)).collect()),
        ];
        let env = env.iter().map(|(name, value)| Line::new(["env", name]).word(escaped(value)));
        Line::new(["worker"]).block(lines.into_iter().flatten().chain(env).collect())
    }
}

fn path(name: &str, path: &Path) -> Line {
    Line::new([name]).word(escaped(&path.display().to_string()))
}

fn departed_timeout(timeout: Option<Duration>) -> Line {
    Line::new(["departed_timeout"]).word(timeout.map_or_else(|| "off".into(), words::duration))
}

fn slow_log(slow_log: &SlowLog) -> Line {
    let SlowLog { after, file } = slow_log;
    let line = Line::new(["slow_log"]).word(words::duration(*after));
    line.words(file.iter().map(|file| escaped(&file.display().to_string())))
}

fn circuit(circuit: Option<Circuit>) -> Option<Line> {
    let Some(Circuit { failures, within, pause, max_pause }) = circuit else {
        return Some(Line::new(["circuit", "off"]));
    };
    let time = |name: &str, value| Line::new([name]).word(words::duration(value));
    (circuit != Some(Circuit::default())).then(|| {
        Line::new(["circuit"]).block(vec![
            Line::new(["failures"]).word(failures.to_string()),
            time("within", within),
            time("pause", pause),
            time("max_pause", max_pause),
        ])
    })
}

fn spool(spool: &Spool) -> Option<Line> {
    let Spool { memory, file, directory } = spool;
    let usual = Spool::default();
    let size = |name: &str, value: u64, usual: u64| {
        (value != usual).then(|| Line::new([name]).word(words::size(value)))
    };
    let lines = [
        size("memory", *memory, usual.memory),
        size("file", *file, usual.file),
        directory.as_ref().map(|directory| path("directory", directory)),
    ];
    let lines: Vec<_> = lines.into_iter().flatten().collect();
    (!lines.is_empty()).then(|| Line::new(["spool"]).block(lines))
}

fn user(user: &EngineUser) -> Line {
    // On another machine they have other numbers.
    let EngineUser { name, uid: _, gid: _, group, home: _, wish: _ } = user;
    let line = Line::new(["user"]).word(escaped(name));
    group.iter().fold(line, |line, group| line.word(escaped(group)))
}

fn confine(confine: &Confine) -> Option<Line> {
    match confine {
        Confine::Unasked => None,
        Confine::Off => Some(Line::new(["confine", "off"])),
        Confine::Asked(Confinement { read, write, programs, namespaces, enforcement }) => {
            let paths = |name: &str, paths: &Option<Vec<PathBuf>>| {
                let paths = paths.as_ref()?.iter().map(|path| escaped(&path.display().to_string()));
                Some(Line::new([name]).words(paths))
            };
            let lines = [
                paths("read", read),
                paths("write", write),
                (*programs == Programs::Refused).then(|| Line::new(["exec", "off"])),
                (*namespaces == Namespaces::Allowed).then(|| Line::new(["namespaces", "on"])),
                (*enforcement == Enforcement::Strict).then(|| Line::new(["strict"])),
            ];
            Some(Line::new(["confine"]).block(lines.into_iter().flatten().collect()))
        }
    }
}

fn health(check: &HealthCheck) -> Line {
    let HealthCheck { host, path, timeout } = check;
    Line::new(["health_uri"]).word(format!("{host}{path}")).word(words::duration(*timeout))
}

fn lane(lane: &Lane) -> Line {
    let Lane { name, bound } = lane;
    let bound = match bound {
        LaneBound::Threads(count) => Line::new(["threads"]).word(count.to_string()),
        LaneBound::Share(percent) => Line::new(["share"]).word(format!("{percent}%")),
    };
    Line::new(["lane", name]).block(vec![bound])
}

fn module(module: &NativeModule) -> Line {
    let NativeModule { file, config } = module;
    path("module", file).block(config.iter().map(|(name, value)| native::setting(name, value)).collect())
}
