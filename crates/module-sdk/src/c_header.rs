//! Compares `include/regent.h` with `abi`, by the C compiler.

use crate::abi::{self, Api, ApiHead, Dependency, ModuleInfo, Route, Statistics, Text};
use std::fmt::Write as _;
use std::mem::offset_of;
use std::path::Path;
use std::process::Command;

/// `same!(out, Route, "regent_route", size, …)`: an assertion for each field, and one for the size of the whole.
macro_rules! same {
    ($out:ident, $rust:ty, $c:literal, $($field:ident),+) => {
        assertion(&mut $out, &format!("sizeof({})", $c), size_of::<$rust>());
        same!(only $out, $rust, $c, $($field),+);
    };
    (only $out:ident, $rust:ty, $c:literal, $($field:ident),+) => {
        $(assertion(&mut $out, &format!("offsetof({}, {})", $c, stringify!($field)), offset_of!($rust, $field));)+
    };
}

fn assertion(out: &mut String, expression: &str, value: usize) {
    writeln!(out, "_Static_assert({expression} == {value}, \"{expression} is {value}\");").unwrap();
}

fn structures(mut out: String) -> String {
    same!(out, Text, "regent_string", data, size);
    same!(out, Route, "regent_route", size, method, path, flags, handler, data);
    same!(out, Dependency, "regent_dependency", name, version);
    same!(out, ModuleInfo, "regent_module_info", size, abi, reserved, name, version, dependencies);
    same!(only out, ModuleInfo, "regent_module_info", dependency_count, init, cleanup);
    same!(out, Statistics, "regent_statistics", size, requests, answers, running, bytes);
    same!(only out, ApiHead, "regent_api", size, abi, reserved);
    same!(
        out,
        Api,
        "regent_api",
        configuration,
        next_configuration,
        route,
        fail,
        offer,
        find,
        log,
        statistics
    );
    same!(only out, Api, "regent_api", method, path, target, query, parameter, query_value, header, next_header);
    same!(only out, Api, "regent_api", variable, body_length, read_body, json, reason, is_gone, set_status);
    same!(only out, Api, "regent_api", set_header, add_header, write, flush, add_trailer, refuse);
    out
}

fn constants(mut out: String) -> String {
    let values = [
        ("REGENT_ABI", i64::from(abi::ABI)),
        ("REGENT_OK", abi::OK.into()),
        ("REGENT_ERROR", abi::ERROR.into()),
        ("REGENT_GONE", abi::GONE.into()),
        ("REGENT_TOO_LATE", abi::TOO_LATE.into()),
        ("REGENT_INVALID", abi::INVALID.into()),
        ("REGENT_ROUTE_INLINE", abi::ROUTE_INLINE.into()),
        ("REGENT_LOG_ERROR", crate::Level::Error as i64),
        ("REGENT_LOG_WARNING", crate::Level::Warning as i64),
        ("REGENT_LOG_INFO", crate::Level::Info as i64),
        ("REGENT_LOG_DEBUG", crate::Level::Debug as i64),
    ];
    for (name, value) in values {
        writeln!(out, "_Static_assert({name} == {value}, \"{name} is {value}\");").unwrap();
    }
    out
}

#[test]
fn the_header_says_what_the_crate_does() {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("same.c");
    std::fs::write(&source, constants(structures("#include \"regent.h\"\n".into()))).unwrap();
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include");
    let output = Command::new("cc")
        .args(["-std=c11", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I"])
        .args([&include, &source])
        .output()
        .expect("a C compiler is there");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
