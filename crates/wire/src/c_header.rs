//! Compares `include/regent_wire.h` with the Rust layout, by the C compiler.

use crate::control::{self, descriptors};
use crate::frame;
use crate::head;
use crate::layout::{
    BodyState, Geometry, Header, IDLE_WORDS, IoControl, Layout, MAGIC, MAX_PROCESSES, MAX_THREADS, PAGE,
    PoolControl, ProcessControl, SLOT_HEAD, SlotControl, ThreadControl, ThreadState, fifo_capacity,
};
use crate::names::{OTHER, WELL_KNOWN};
use crate::slot::SlotState;
use std::fmt::Write as _;
use std::mem::offset_of;
use std::process::Command;

/// `offsets!(out, Header, "regent_wire_header", magic, …)`: an assertion for each field, and one for the size.
macro_rules! offsets {
    ($out:ident, $rust:ty, $c:literal, $($field:ident),+) => {
        assertion(&mut $out, &format!("sizeof(struct {})", $c), size_of::<$rust>() as u64);
        $(assertion(
            &mut $out,
            &format!("offsetof(struct {}, {})", $c, stringify!($field)),
            offset_of!($rust, $field) as u64,
        );)+
    };
}

fn assertion(out: &mut String, expression: &str, value: u64) {
    writeln!(out, "_Static_assert({expression} == UINT64_C({value}), \"{expression} is {value}\");").unwrap();
}

fn structures(mut out: String) -> String {
    offsets!(
        out,
        Header,
        "regent_wire_header",
        magic,
        io_threads,
        slots_per_io,
        pools,
        threads,
        head_capacity
    );
    offsets!(
        out,
        Header,
        "regent_wire_header",
        request_capacity,
        response_capacity,
        draining,
        frame_capacity
    );
    offsets!(out, Header, "regent_wire_header", processes);
    offsets!(out, ProcessControl, "regent_wire_process", beat_tid, fault_tid, beat);
    offsets!(out, PoolControl, "regent_wire_pool", tail, head, waking, wake_limit, next_idle, scheduling);
    offsets!(out, PoolControl, "regent_wire_pool", spin, kept_asleep, idle, void_tokens);
    offsets!(out, ThreadControl, "regent_wire_thread", parker, state, pool, tid, retire, token, requests);
    offsets!(out, ThreadControl, "regent_wire_thread", since, busy, restarts, memory, asks);
    offsets!(out, ThreadControl, "regent_wire_thread", asked, answered, answer);
    offsets!(out, IoControl, "regent_wire_io", parked, summary);
    offsets!(
        out,
        SlotControl,
        "regent_wire_slot",
        state,
        head_len,
        pool,
        cancelled,
        body_state,
        request_tail
    );
    offsets!(out, SlotControl, "regent_wire_slot", response_head, request_head, response_tail, engine_waits);
    offsets!(out, SlotControl, "regent_wire_slot", signal, server_waits, submitted, time_limit);
    out
}

fn constants(mut out: String) -> String {
    let values = [
        ("FD_MEMORY", descriptors::MEMORY as u64),
        ("FD_CONTROL", descriptors::CONTROL as u64),
        ("FD_DOORBELLS", descriptors::DOORBELLS as u64),
        ("MAX_EVENT", control::MAX_EVENT as u64),
        ("MAGIC", MAGIC),
        ("PAGE", PAGE as u64),
        ("MAX_THREADS", MAX_THREADS as u64),
        ("MAX_PROCESSES", MAX_PROCESSES as u64),
        ("IDLE_WORDS", IDLE_WORDS as u64),
        ("SLOT_HEAD", SLOT_HEAD as u64),
        ("HEAD_PREFIX", head::PREFIX as u64),
        ("VARIABLE", head::VARIABLE as u64),
        ("KEY_OTHER", u64::from(OTHER)),
        ("THREAD_ABSENT", ThreadState::Absent as u64),
        ("THREAD_BOOTING", ThreadState::Booting as u64),
        ("THREAD_IDLE", ThreadState::Idle as u64),
        ("THREAD_BUSY", ThreadState::Busy as u64),
        ("THREAD_BACKOFF", ThreadState::Backoff as u64),
        ("BODY_OPEN", BodyState::Open as u64),
        ("BODY_COMPLETE", BodyState::Complete as u64),
        ("BODY_BROKEN", BodyState::Broken as u64),
        ("SLOT_FREE", SlotState::Free as u64),
        ("SLOT_QUEUED", SlotState::Queued as u64),
        ("SLOT_RUNNING", SlotState::Running as u64),
        ("SLOT_DONE", SlotState::Done as u64),
        ("FRAME_HEADER", frame::HEADER as u64),
        ("FRAME_HEAD", u64::from(frame::HEAD)),
        ("FRAME_INFORMATIONAL", u64::from(frame::INFORMATIONAL)),
        ("FRAME_BODY", u64::from(frame::BODY)),
        ("FRAME_END", u64::from(frame::END)),
        ("FRAME_LOG", u64::from(frame::LOG)),
        ("FRAME_TRAILERS", u64::from(frame::TRAILERS)),
        ("FRAME_PART", u64::from(frame::PART)),
        ("FLAG_TRUNCATED", u64::from(frame::TRUNCATED)),
        ("FLAG_OVERDUE", u64::from(frame::OVERDUE)),
        ("FLAG_REFUSED", u64::from(frame::REFUSED)),
    ];
    for (name, value) in values {
        assertion(&mut out, &format!("REGENT_WIRE_{name}"), value);
    }
    out
}

const GEOMETRIES: [Geometry; 3] = [
    Geometry {
        io_threads: 1,
        slots_per_io: 64,
        pools: 1,
        threads: 1,
        head_capacity: 4096,
        request_capacity: 4096,
        response_capacity: 4096,
        frame_capacity: 131_072,
    },
    Geometry {
        io_threads: 3,
        slots_per_io: 1024,
        pools: 5,
        threads: 77,
        head_capacity: 70_000,
        request_capacity: 1 << 16,
        response_capacity: 1 << 18,
        frame_capacity: 1 << 18,
    },
    Geometry {
        io_threads: 16,
        slots_per_io: 16_384,
        pools: 64,
        threads: 1024,
        head_capacity: 65_536,
        request_capacity: 1 << 18,
        response_capacity: 1 << 20,
        frame_capacity: 1 << 25,
    },
];

/// What the program below prints for a geometry.
fn offsets(geometry: Geometry) -> String {
    let layout = Layout::new(geometry).unwrap();
    let last_io = geometry.io_threads as usize - 1;
    [
        layout.pools(),
        layout.threads(),
        layout.ios(),
        layout.dirty(last_io),
        layout.cells(geometry.pools as usize - 1),
        fifo_capacity(&geometry),
        layout.slot(geometry.slots_per_io as usize - 1),
        layout.request_ring(),
        layout.response_ring(),
        layout.total,
    ]
    .map(|offset| offset.to_string())
    .join(" ")
}

const MAIN: &str = r#"
static void print(struct regent_wire_header *h) {
    struct regent_wire_layout at = regent_wire_layout(h);
    uint64_t values[] = {at.pools, at.threads, at.ios, at.dirty + (h->io_threads - 1) * at.dirty_size,
        at.cells + (h->pools - 1) * at.fifo_capacity * 8, at.fifo_capacity,
        at.slots + (h->slots_per_io - 1) * at.slot_size, at.request_ring, at.response_ring, at.total};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        printf("%s%llu", i ? " " : "", (unsigned long long)values[i]);
    printf("\n");
}
#define NAME(key, name) printf("%d %s\n", key, name);
"#;

fn program() -> String {
    let mut source = String::from("#include \"regent_wire.h\"\n#include <stdio.h>\n");
    source = constants(structures(source));
    source += MAIN;
    source += "int main(void) {\n    REGENT_WIRE_NAMES(NAME)\n";
    for g in GEOMETRIES {
        writeln!(
            source,
            "    print(&(struct regent_wire_header){{.io_threads = {}, .slots_per_io = {}, .pools = {}, \
             .threads = {}, .head_capacity = {}, .request_capacity = {}, .response_capacity = {}}});",
            g.io_threads,
            g.slots_per_io,
            g.pools,
            g.threads,
            g.head_capacity,
            g.request_capacity,
            g.response_capacity
        )
        .unwrap();
    }
    source += "    printf(\"%llx\\n\", (unsigned long long)regent_wire_state(0x11223344, REGENT_WIRE_SLOT_RUNNING, \
               0x3FF));\n    return 0;\n}\n";
    source
}

#[test]
fn the_c_header_says_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let (source, binary) = (directory.path().join("layout.c"), directory.path().join("layout"));
    std::fs::write(&source, program()).unwrap();
    let compiled = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-I"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/include"))
        .arg("-o")
        .args([&binary, &source])
        .output()
        .expect("a C compiler named cc");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let printed = String::from_utf8(Command::new(&binary).output().unwrap().stdout).unwrap();
    let names = WELL_KNOWN.iter().enumerate().map(|(key, name)| format!("{key} {name}"));
    let expected: Vec<String> =
        names.chain(GEOMETRIES.map(offsets)).chain(["3ff1122334402".to_owned()]).collect();
    assert_eq!(printed.lines().collect::<Vec<_>>(), expected);
}
