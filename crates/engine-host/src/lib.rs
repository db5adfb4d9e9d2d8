//! What the process of every engine in Rust does besides its requests: takes what the server gave it, tells the server
//! what happens, starts and counts its threads.
//!
//! A crate apart from `regent-wire`, so that the server cannot link what only an engine may do: to end the process, or to
//! change how its threads are scheduled. `unsafe` is here for six calls: to own the inherited descriptors, to handle faults,
//! to end the process, to fork it, to ask for a thread's class, and to refuse system calls; and for the allocator's.

mod confine;
mod faults;
mod flood;
mod heap;
pub mod processes;
mod profiling;
mod reporter;
mod sched_batch;
mod thread_pool;

pub use confine::NotConfined;
pub use heap::allow_huge_pages;
pub use profiling::{Profiling, RunningThread};
pub use reporter::Reporter;
pub use sched_batch::{EngineLoad, SchedPolicy};
pub use thread_pool::{Afterwards, Job, Readiness, ThreadPool};

use regent_wire::confine::{Confined, Confinement};
use regent_wire::control::{self, Event, Order, Start, descriptors};
use regent_wire::{Engine, Region, RegionError};
use rustix::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};

/// This process, as the server has started it.
pub struct Host {
    pub engine: Arc<Engine>,
    pub start: Start,
    pub reporter: Arc<Reporter>,
    /// What the server has ordered and goes on ordering, but for beats.
    pub orders: mpsc::Receiver<Order>,
}

/// The same before this process has any other thread.
pub struct Attached {
    engine: Arc<Engine>,
    start: Start,
    socket: UnixStream,
    lines: BufReader<UnixStream>,
    confined: Option<Confined>,
}

/// The process was not started by a server, or by one that this engine does not fit.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    #[error(
        "this program is started by `regent`, which passes it everything it needs; see `regent run --help`"
    )]
    Arguments,
    #[error("file descriptor {0} is not open: this program is started by `regent`")]
    NotInherited(RawFd),
    #[error("reading the start message: {0}")]
    Socket(#[from] io::Error),
    #[error("understanding the start message: {0}")]
    Start(#[from] serde_json::Error),
    #[error(transparent)]
    Region(#[from] RegionError),
    #[error(transparent)]
    NotConfined(#[from] NotConfined),
}

impl Host {
    /// Takes over what the server gave, and follows it. Once, at the start of the process, before any other thread runs.
    /// `needs`: what this engine itself has to read.
    pub fn attach(needs: impl FnOnce() -> Vec<PathBuf>) -> Result<Self, HostError> {
        Attached::take_over(needs)?.follow()
    }
}

impl Attached {
    /// Takes over what the server gave. Once, at the start of the process: from then on it dies with its server and of every
    /// fault, and has nothing that it was to give up. `needs`: what this engine itself has to read.
    pub fn take_over(needs: impl FnOnce() -> Vec<PathBuf>) -> Result<Self, HostError> {
        if std::env::args_os().len() > 1 {
            return Err(HostError::Arguments);
        }
        die_with_parent()?;
        let socket = UnixStream::from(inherited(descriptors::CONTROL)?);
        let mut lines = BufReader::new(socket.try_clone()?);
        let start = read_start(&mut lines)?;
        let engine = Arc::new(open_engine(start.process)?);
        faults::tell(&engine);
        let confined = give_up(&start, needs, &socket)?;
        Ok(Self { engine, start, socket, lines, confined })
    }

    /// From now on a thread answers the server's beats, and ends the process with it.
    pub fn follow(self) -> Result<Host, HostError> {
        let Self { engine, start, socket, lines, confined } = self;
        let reporter = Arc::new(Reporter::new(socket)?);
        confined.into_iter().for_each(|confined| reporter.send(&Event::Confined(confined)));
        let (sender, orders) = mpsc::channel();
        follow_server(lines, Arc::clone(&engine), sender);
        Ok(Host { engine, start, reporter, orders })
    }
}

/// A server that is killed takes its engines with it, whatever they are doing, and a process of an engine those that it has
/// forked. The kernel keeps this for each thread, and
/// a program that a script puts in the place of the engine has what the script's thread had.
pub fn die_with_parent() -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    Ok(())
}

/// Gives up what a confinement says, for ever, in this process and all that it starts. Before it has any other thread.
/// `needs`: what it has to read, beside this program and its libraries. `None`: nothing was to be given up.
pub fn confine(
    confinement: &Confinement,
    needs: impl FnOnce() -> Vec<PathBuf>,
) -> Result<Option<Confined>, NotConfined> {
    confine::apply(confinement, || own_files().into_iter().chain(needs()).collect())
}

/// A descriptor that the server opened for us.
fn inherited(number: RawFd) -> Result<OwnedFd, HostError> {
    // SAFETY: law 5: only asks whether the number is open.
    let open = rustix::io::fcntl_getfd(unsafe { BorrowedFd::borrow_raw(number) }).is_ok();
    if !open {
        return Err(HostError::NotInherited(number));
    }
    // SAFETY: law 5: the server opened it for us, and nothing else in this process uses it.
    let fd = unsafe { OwnedFd::from_raw_fd(number) };
    // Children of scripts and modules must not hold the server's memory and sockets.
    rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC).map_err(io::Error::from)?;
    Ok(fd)
}

fn read_start(lines: &mut impl BufRead) -> Result<Start, HostError> {
    let mut line = String::new();
    lines.read_line(&mut line)?;
    Ok(control::decode(&line)?)
}

/// Gives up what the server says, and tells it if that is not enough.
fn give_up(
    start: &Start,
    needs: impl FnOnce() -> Vec<PathBuf>,
    mut socket: &UnixStream,
) -> Result<Option<Confined>, NotConfined> {
    let modules = start.modules.iter().filter_map(|module| module.file.parent()).map(Path::to_owned);
    let confined = confine(&start.confinement, || modules.chain(needs()).collect());
    if let Err(error) = &confined {
        // The server learns of it by the end of this process otherwise.
        let _ = socket.write_all(&control::encode(&Event::Failed { message: error.to_string() }));
    }
    confined
}

/// The folders of this program and of the libraries that it is linked with, which may be anywhere. Of a file in the root
/// directory, as in a small container image, the file alone: its folder would be everything.
fn own_files() -> Vec<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let maps = maps.lines().filter(|line| !line.ends_with("(deleted)"));
    let files = maps.filter_map(|line| Some(Path::new(&line[line.find('/')?..])));
    let below_root = |folder: &&Path| folder.parent().is_some();
    let folders = files.map(|file| file.parent().filter(below_root).unwrap_or(file));
    let mut folders: Vec<PathBuf> = folders.map(Path::to_owned).collect();
    folders.sort_unstable();
    folders.dedup();
    folders
}

fn open_engine(process: u16) -> Result<Engine, HostError> {
    let region = Region::open(inherited(descriptors::MEMORY)?)?;
    let doorbells = (0..region.geometry().io_threads as RawFd)
        .map(|io| inherited(descriptors::DOORBELLS + io))
        .collect::<Result<_, _>>()?;
    Ok(Engine::new(process.into(), region, doorbells))
}

/// Passes on what the server orders, and answers its beats. When the socket ends, so does this process, in whatever state
/// it is.
fn follow_server(lines: BufReader<UnixStream>, engine: Arc<Engine>, orders: mpsc::Sender<Order>) {
    let follow = move || {
        engine.answers();
        for line in lines.lines().map_while(Result::ok) {
            match control::decode(&line) {
                Ok(Order::Beat { number }) => engine.answer(number),
                // Its receiver is gone when this process ends anyway.
                Ok(order) => drop(orders.send(order)),
                // A server of another build has been refused by the version of its memory.
                Err(_) => break,
            }
        }
        // SAFETY: law 4: ends the process without unwinding or running handlers of PHP or of modules.
        unsafe { libc::_exit(0) }
    };
    std::thread::Builder::new().name("control".into()).spawn(follow).expect("a thread can be made at start");
}
