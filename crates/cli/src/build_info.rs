//! `regent build-info` and `regent environ`: facts for who looks after a server.

use std::fmt::Write;

/// Laravel Octane finds its server's version in this line of `build-info`, and warns when it is missing or too old.
const COMPATIBLE_WITH: &str = "dep\tgithub.com/dunglas/frankenphp\tv1.12.7";

/// A line for each fact, and one for the FrankenPHP whose functions and configuration this server offers.
pub fn build_info() -> String {
    let mut text = String::new();
    let facts = [
        ("regent", concat!("v", env!("CARGO_PKG_VERSION"))),
        ("profile", if cfg!(debug_assertions) { "debug" } else { "release" }),
        ("architecture", std::env::consts::ARCH),
        ("system", std::env::consts::OS),
    ];
    for (name, value) in facts {
        let _ = writeln!(text, "{name}\t{value}");
    }
    text + COMPATIBLE_WITH + "\n"
}

/// The build, where the program works, and all variables of its environment, in their order.
pub fn environment() -> String {
    let mut text = build_info();
    if let Ok(directory) = std::env::current_dir() {
        let _ = writeln!(text, "directory\t{}", directory.display());
    }
    let mut variables: Vec<_> = std::env::vars_os().collect();
    variables.sort();
    for (name, value) in variables {
        let _ = writeln!(text, "{}={}", name.to_string_lossy(), value.to_string_lossy());
    }
    text
}
