//! An engine in C, written from `include/regent_wire.h` alone, serves requests beside one in Rust.

use crate::common::{Io, Random, SMALL, answered_name, bytes, echo, head, start};
use regent_wire::{Cancelled, Scheduling, ThreadState, Token};
use rustix::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

fn compile(directory: &Path) -> PathBuf {
    let binary = directory.join("engine");
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let status = Command::new("cc")
        .args(["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-I"])
        .arg(manifest.join("include"))
        .arg("-o")
        .args([&binary, &manifest.join("tests/engine.c")])
        .status()
        .expect("a C compiler named cc");
    assert!(status.success());
    binary
}

fn spawn(binary: &Path, io: &Io, first: usize, end: usize) -> Child {
    let duplicate = |fd: &dyn AsFd| -> OwnedFd { fd.as_fd().try_clone_to_owned().unwrap() };
    Command::new(binary)
        .args([first.to_string(), end.to_string(), "0".to_owned()])
        .stdin(Stdio::from(duplicate(&io.backend.region().file())))
        .stdout(Stdio::null())
        .stderr(Stdio::from(duplicate(&io.doorbell)))
        .spawn()
        .unwrap()
}

#[test]
fn a_second_engine_serves_requests() {
    let directory = tempfile::tempdir().unwrap();
    let binary = compile(directory.path());
    let mut io = Io::new(SMALL);
    io.backend.region().tune(0, Scheduling::Spread, 2, 10);
    let mut child = spawn(&binary, &io, 0, 4);
    let engine = io.engine();
    let threads: Vec<_> = (4..8).map(|index| start(&engine, index, 0, echo)).collect();
    let mut random = Random::seeded(3);
    let mut trailers = 0;
    for round in 0..300 {
        let lengths = [0, 3, 5000, 30_000].map(|most| random.below(most + 1) as usize);
        let tokens: Vec<(Token, String, Vec<u8>)> = lengths
            .iter()
            .map(|length| {
                let name = format!("{round}/{length}");
                (io.submit(&head(&name, Some(*length as u64)), 0), name, bytes(round + 1, *length))
            })
            .collect();
        let left = io.submit(&head("left", None), 0);
        for (token, name, body) in tokens {
            let response = io.finish(token, &body).unwrap();
            assert_eq!(answered_name(&response.head.unwrap()), name);
            assert!(response.body == body);
            if let Some(fields) = response.trailers {
                let digit = (body.len() % 10).to_string();
                assert_eq!(fields.fields().collect::<Vec<_>>(), [(&b"X-Digit"[..], digit.as_bytes())]);
                trailers += 1;
            }
        }
        assert_ne!(io.port.cancel(left), Cancelled::Ended);
    }
    io.wait_until_empty();
    let served = |range: std::ops::Range<usize>| {
        range.map(|thread| io.backend.region().thread_view(thread).requests).sum::<u64>()
    };
    assert!(served(0..4) > 0 && served(4..8) > 0, "one of the engines did nothing");
    assert!(trailers > 0, "the engine in C writes them to all that wait for its answer");
    io.backend.region().drain();
    assert!(child.wait().unwrap().success());
    assert_eq!(io.backend.region().thread_state(0), ThreadState::Absent);
    for thread in threads {
        thread.join().unwrap();
    }
}
