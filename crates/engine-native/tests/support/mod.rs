//! A regent-native with a server around it, and modules for it.

use crate::common::{Io, backend, eventfd};
use command_fds::{CommandFdExt, FdMapping};
use regent_wire::confine::Confinement;
use regent_wire::control::{
    self, Event, ModuleStart, Order, PoolStart, Start, Started, ThreadStart, descriptors,
};
use regent_wire::names::key;
use regent_wire::{Geometry, HeadBuilder};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// Long enough for the slowest machine, short enough for a test that hangs.
const PATIENCE: Duration = Duration::from_secs(60);

const GEOMETRY: Geometry = Geometry {
    io_threads: 1,
    slots_per_io: 64,
    pools: 2,
    threads: 8,
    head_capacity: 16 * 1024,
    request_capacity: 64 * 1024,
    response_capacity: 64 * 1024,
    frame_capacity: 128 * 1024,
};

/// A head that a server would write.
pub fn request(method: &str, target: &str) -> Vec<u8> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut builder = HeadBuilder::new();
    builder.named(b"HTTP_X_OF_THE_SITE", b"1");
    builder.end_environment();
    let variables = [
        ("REQUEST_METHOD", method),
        ("REQUEST_URI", target),
        ("QUERY_STRING", query),
        ("PATH_INFO", path),
        ("REMOTE_ADDR", "127.0.0.1"),
        ("HTTP_ACCEPT", "*/*"),
    ];
    for (name, value) in variables {
        builder.known(key(name), value.as_bytes());
    }
    builder.named(b"HTTP_X_OWN", b"1");
    builder.build(None).to_vec()
}

/// Compiles modules.
pub struct Workshop(TempDir);

/// A module that was compiled.
pub struct Compiled(PathBuf);

impl Workshop {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// `crates/module-loader/tests/modules/answers.c`.
    pub fn answers(&self) -> Compiled {
        self.compile("cc", "../module-loader/tests/modules/answers.c", "answers", &[])
    }

    /// A module of this name, with one route of this name.
    pub fn plain(&self, name: &str) -> Compiled {
        self.compile("cc", "../module-loader/tests/modules/plain.c", name, &[format!("-DNAME=\"{name}\"")])
    }

    pub fn throwing(&self) -> Compiled {
        self.compile("c++", "tests/modules/throwing.cpp", "throwing", &[])
    }

    pub fn missing(&self) -> Compiled {
        Compiled(self.0.path().join("libmissing.so"))
    }

    fn compile(&self, compiler: &str, source: &str, name: &str, options: &[String]) -> Compiled {
        let library = self.0.path().join(format!("lib{name}.so"));
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let output = Command::new(compiler)
            .args(["-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-I"])
            .arg(here.join("../../include"))
            .args(options)
            .arg("-o")
            .arg(&library)
            .arg(here.join(source))
            .output()
            .expect("compilers named cc and c++");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Compiled(library)
    }
}

impl Compiled {
    /// Of this pool.
    pub fn service(self, pool: u16) -> Module {
        Module { file: self.0, pool: Some(pool) }
    }
}

/// A module as the server names it.
pub struct Module {
    file: PathBuf,
    pool: Option<u16>,
}

impl From<Compiled> for Module {
    fn from(compiled: Compiled) -> Self {
        Self { file: compiled.0, pool: None }
    }
}

/// A running engine. Dropped, it is killed.
pub struct Native {
    pub io: Io,
    child: Child,
    events: BufReader<UnixStream>,
}

impl Native {
    /// Pools `0..pools`, with so many threads each.
    pub fn start(modules: Vec<Module>, pools: u16, threads: u16) -> Self {
        let io = Io::of(0, backend(GEOMETRY), eventfd());
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_read_timeout(Some(PATIENCE)).unwrap();
        let memory = io.backend.region().file().try_clone_to_owned().unwrap();
        let mapping = |parent_fd, child_fd| FdMapping { parent_fd, child_fd };
        let child = Command::new(env!("CARGO_BIN_EXE_regent-native"))
            .stdin(Stdio::null())
            .fd_mappings(vec![
                mapping(memory, descriptors::MEMORY),
                mapping(theirs.into(), descriptors::CONTROL),
                mapping(io.doorbell.try_clone().unwrap(), descriptors::DOORBELLS),
            ])
            .unwrap()
            .spawn()
            .unwrap();
        let mut native = Self { io, child, events: BufReader::new(ours) };
        native.say(&control::encode(&start(modules, pools, threads)));
        native
    }

    pub fn order(&mut self, order: &Order) {
        self.say(&control::encode(order));
    }

    /// Waits for the next event.
    pub fn event(&mut self) -> Event {
        let mut line = String::new();
        self.events.read_line(&mut line).unwrap();
        control::decode(&line).expect("an event")
    }

    /// Waits until all threads are ready; the version that it has said.
    pub fn until_ready(&mut self) -> String {
        let mut started = None;
        loop {
            match self.event() {
                Event::Started(Started { version, opcache: None, library: None }) => started = Some(version),
                Event::Ready => return started.expect("it starts before it is ready"),
                Event::Log { .. } => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// Lets it drain, and waits for its end; what it said.
    pub fn stop(mut self) -> Vec<Event> {
        self.io.backend.region().drain();
        let mut lines = String::new();
        std::io::Read::read_to_string(&mut self.events, &mut lines).unwrap();
        assert!(self.wait().success());
        lines.lines().map(|line| control::decode(line).expect("an event")).collect()
    }

    /// Closes the control socket.
    pub fn hang_up(&mut self) {
        self.events.get_ref().shutdown(std::net::Shutdown::Both).unwrap();
    }

    pub fn wait(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    fn say(&mut self, line: &[u8]) {
        self.events.get_mut().write_all(line).unwrap();
    }
}

impl Drop for Native {
    fn drop(&mut self) {
        // It has ended already otherwise.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start(modules: Vec<Module>, pools: u16, threads: u16) -> Start {
    let thread = |index| ThreadStart { index, pool: index % pools };
    let pool = |pool| PoolStart {
        name: format!("service{pool}"),
        max_requests: 0,
        max_memory: 0,
        max_age_ms: 0,
        worker: None,
    };
    let module = |module: Module| ModuleStart { file: module.file, config: Vec::new(), pool: module.pool };
    Start {
        process: 0,
        confinement: Confinement::Off,
        ini: Vec::new(),
        software: "test".into(),
        pools: (0..pools).map(pool).collect(),
        modules: modules.into_iter().map(module).collect(),
        slow_after_ms: 0,
        departed_after_ms: 0,
        threads: (0..pools * threads).map(thread).collect(),
    }
}
