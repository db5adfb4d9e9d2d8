//! The PHP engine: a process that links libphp and runs PHP threads for the server.
//!
//! The server starts it with the file descriptors of [`regent_wire::control::descriptors`]; nobody calls it by hand.
//! It ends when its threads have drained, and at once when the server goes away.

mod courtesy;
mod ffi;
mod host;
mod php;
mod reporter;
mod threads;

use anyhow::{Context, Result, bail};
use regent_wire::control::{self, Event, Order, Start, descriptors};
use regent_wire::{Engine, Region};
use reporter::Reporter;
use rustix::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::{Arc, mpsc};
use threads::Threads;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("regent-php: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    if std::env::args_os().len() > 1 {
        bail!(
            "this program is started by `regent`, which passes it everything it needs; see `regent run --help`"
        );
    }
    die_with_server()?;
    die_of_faults();
    let socket = UnixStream::from(inherited(descriptors::CONTROL)?);
    let mut lines = BufReader::new(socket.try_clone()?);
    let start = read_start(&mut lines)?;
    let engine = Arc::new(open_engine()?);
    let reporter = Arc::new(Reporter::new(socket)?);
    let (orders, received) = mpsc::channel();
    follow_server(lines, orders);

    php::start(&start, &reporter)?;
    reporter.send(&Event::Started { version: php::version(), opcache: php::opcache() });
    let threads = Threads::start(engine, start, reporter);
    obey(received, &threads);
    threads.wait();
    php::stop();
    Ok(())
}

/// A server that is killed takes its engines with it, whatever they are doing.
fn die_with_server() -> Result<()> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    // A Ctrl-C on the terminal is for the server, which drains its engines.
    let _ = rustix::process::setpgid(None, None);
    Ok(())
}

/// Rust's handler looks for overflows of its own stacks and lets a signal that was sent, not raised, pass; an engine
/// that gets one must end, so that the next can start.
fn die_of_faults() {
    for signal in [libc::SIGSEGV, libc::SIGBUS] {
        // SAFETY: law 7: sets a default disposition, before any other thread runs.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// A descriptor that the server opened for us.
fn inherited(number: RawFd) -> Result<OwnedFd> {
    // SAFETY: law 5: only asks whether the number is open.
    let open = rustix::io::fcntl_getfd(unsafe { BorrowedFd::borrow_raw(number) }).is_ok();
    if !open {
        bail!("file descriptor {number} is not open: this program is started by `regent`");
    }
    // SAFETY: law 5: the server opened it for us, and nothing else in this process uses it.
    let fd = unsafe { OwnedFd::from_raw_fd(number) };
    // Children of scripts must not hold the server's memory and sockets.
    rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC)?;
    Ok(fd)
}

fn read_start(lines: &mut impl BufRead) -> Result<Start> {
    let mut line = String::new();
    lines.read_line(&mut line).context("reading the start message")?;
    control::decode(&line).context("understanding the start message")
}

fn open_engine() -> Result<Engine> {
    let region = Region::open(inherited(descriptors::MEMORY)?)?;
    let doorbells = (0..region.geometry().io_threads as RawFd)
        .map(|io| inherited(descriptors::DOORBELLS + io))
        .collect::<Result<_>>()?;
    Ok(Engine::new(region, doorbells))
}

/// Passes on what the server orders. When the socket ends, so does this process, in whatever state it is.
fn follow_server(lines: BufReader<UnixStream>, orders: mpsc::Sender<Order>) {
    let follow = move || {
        for line in lines.lines().map_while(Result::ok) {
            // A server of another build has been refused by the version of its memory.
            let Ok(order) = control::decode(&line) else { break };
            // Its receiver is gone when this process ends anyway.
            let _ = orders.send(order);
        }
        // SAFETY: law 4: ends the process without unwinding or running handlers of PHP.
        unsafe { libc::_exit(0) }
    };
    std::thread::Builder::new().name("control".into()).spawn(follow).expect("a thread can be made at start");
}

/// Carries out the server's orders, those from before PHP was ready among them.
fn obey(orders: mpsc::Receiver<Order>, threads: &Arc<Threads>) {
    let threads = Arc::clone(threads);
    let carry_out = move || {
        for Order::Start { threads: more } in orders {
            threads.add(more);
        }
    };
    std::thread::Builder::new()
        .name("orders".into())
        .spawn(carry_out)
        .expect("a thread can be made at start");
}
