//! What PHP gets of the head of a request.

use crate::ffi::{Request, Str, Var};
use regent_wire::Head;
use std::ffi::c_int;

/// Variables that PHP also wants in its `request_info`.
mod keys {
    use regent_wire::names::key;

    pub const REQUEST_METHOD: u16 = key("REQUEST_METHOD");
    pub const REQUEST_URI: u16 = key("REQUEST_URI");
    pub const QUERY_STRING: u16 = key("QUERY_STRING");
    pub const CONTENT_TYPE: u16 = key("CONTENT_TYPE");
    pub const HTTP_COOKIE: u16 = key("HTTP_COOKIE");
    pub const HTTP_AUTHORIZATION: u16 = key("HTTP_AUTHORIZATION");
    pub const SCRIPT_FILENAME: u16 = key("SCRIPT_FILENAME");
    pub const PATH_TRANSLATED: u16 = key("PATH_TRANSLATED");
    pub const SERVER_PROTOCOL: u16 = key("SERVER_PROTOCOL");
    pub const REGENT_THREAD: u16 = key("REGENT_THREAD");
    pub const REGENT_HUB: u16 = key("REGENT_HUB");
    pub const REGENT_CACHE: u16 = key("REGENT_CACHE");
}

/// What the server does for the scripts of a site, as it numbers them; no variables.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Services {
    pub hub: Option<u64>,
    /// What of the cache they may purge.
    pub cache: Option<u64>,
}

/// Points the C struct at the variables of the head, which stay where they are until the release.
pub fn fill(out: &mut Request, head: Head<'_>, variables: &mut Vec<Var>, number: &str) -> Services {
    let mut services = Services::default();
    *out = Request {
        method: Str::EMPTY,
        uri: Str::EMPTY,
        query_string: Str::EMPTY,
        content_type: Str::EMPTY,
        content_length: head.body_length.map_or(-1, |length| i64::try_from(length).unwrap_or(i64::MAX)),
        cookie: Str::EMPTY,
        authorization: Str::EMPTY,
        script_filename: Str::EMPTY,
        path_translated: Str::EMPTY,
        proto_num: 1001,
        vars: std::ptr::null(),
        n_vars: 0,
        env: std::ptr::null(),
        n_env: head.environment,
        started: 0,
        time_limit: 0,
        given_up: std::ptr::null(),
    };
    variables.clear();
    for variable in head {
        let value = Str::new(variable.value);
        match variable.key {
            keys::REQUEST_METHOD => out.method = value,
            keys::REQUEST_URI => out.uri = value,
            keys::QUERY_STRING => out.query_string = value,
            keys::CONTENT_TYPE => out.content_type = value,
            keys::HTTP_COOKIE => out.cookie = value,
            keys::HTTP_AUTHORIZATION => out.authorization = value,
            keys::SCRIPT_FILENAME => out.script_filename = value,
            keys::PATH_TRANSLATED => out.path_translated = value,
            keys::REGENT_HUB => {
                services.hub = parsed(variable.value);
                continue;
            }
            keys::REGENT_CACHE => {
                services.cache = parsed(variable.value);
                continue;
            }
            keys::SERVER_PROTOCOL => out.proto_num = protocol_number(variable.value),
            _ => {}
        }
        variables.push(Var { key: u32::from(variable.key), name: Str::new(variable.name), value });
    }
    variables.push(Var {
        key: u32::from(keys::REGENT_THREAD),
        name: Str::EMPTY,
        value: Str::new(&number.as_bytes()[..number.len() - 1]),
    });
    out.n_env = out.n_env.min(variables.len());
    out.env = variables.as_ptr();
    out.vars = variables.as_ptr();
    out.n_vars = variables.len();
    services
}

fn parsed(number: &[u8]) -> Option<u64> {
    std::str::from_utf8(number).ok()?.parse().ok()
}

/// PHP's number of a protocol version: 1000 × major + minor.
fn protocol_number(protocol: &[u8]) -> c_int {
    match protocol {
        b"HTTP/1.0" => 1000,
        b"HTTP/2.0" => 2000,
        b"HTTP/3.0" => 3000,
        _ => 1001,
    }
}
