//! One file for each target.

use crate::Target;

macro_rules! targets {
    ($($name:ident),* $(,)?) => {
        $(pub mod $name;)*

        /// All of them, in the order in which `make fuzz` runs them.
        pub const ALL: &[Target] = &[$(Target { name: stringify!($name), run: $name::run }),*];
    };
}

targets! {
    connection,
    http3,
    routes,
    config,
    caddyfile,
    frames,
    memory,
    matchers,
    module_answer,
    module_header,
    url_path,
    ranges,
    access_log,
    exposition,
    control,
}
