//! What a native module says of itself and asks for: its description, structs of any size, routes, fields, JSON.
//!
//! Size and filling of a struct, then lines: name, version, another version, field name, field value, method, path of a
//! route, path of a request, pointer, body.

use crate::input::Input;
use http::{HeaderName, HeaderValue};
use regent_module_loader::fuzzing::{
    Found, Router, STATISTICS, accepts_field, compare_versions, describe, json_at, route, structs_of_size,
};
use std::ffi::CString;

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let claimed = if input.byte() < 200 { input.short() as usize % 256 } else { input.word() as usize };
    assert_structs(claimed, input.byte());
    assert_description(input.line(), input.line());
    let (a, b) = (input.text_line(), input.text_line());
    assert_eq!(compare_versions(a, b), compare_versions(b, a).reverse());
    assert_field(input.line(), input.line());
    assert_route(input.text_line(), input.text_line(), input.line());
    let pointer = input.text_line();
    json_at(input.rest(), pointer);
}

fn assert_structs(claimed: usize, filling: u8) {
    let (_, is_written, bytes) = structs_of_size(claimed, filling);
    let (least, all) = STATISTICS;
    if claimed < least {
        assert!(!is_written);
    }
    let changed_to = if is_written { claimed.min(all) } else { size_of::<usize>() };
    assert!(bytes[changed_to.min(bytes.len())..].iter().all(|byte| *byte == filling), "written beyond its size");
}

fn assert_description(name: &[u8], version: &[u8]) {
    let text = |bytes: &[u8]| CString::new(bytes).ok();
    let (name, version) = (text(name), text(version));
    let needs = [(name.as_deref(), version.as_deref()), (version.as_deref(), None)];
    if let Ok((name, version, count)) = describe(name.as_deref(), version.as_deref(), &needs) {
        assert!((1..=128).contains(&name.len()) && (1..=128).contains(&version.len()));
        assert!(name.bytes().all(|byte| byte.is_ascii_graphic()), "a name that cannot be printed");
        assert_eq!(count, needs.len());
    }
}

/// What is accepted is what the `http` crate accepts, but for fields of the connection.
fn assert_field(name: &[u8], value: &[u8]) {
    let is_http = HeaderName::from_bytes(name).is_ok() && HeaderValue::from_bytes(value.trim_ascii()).is_ok();
    if accepts_field(name, value) {
        assert!(is_http);
    } else if name.starts_with(b"x-") && name.len() + value.len() < 1000 {
        assert!(!is_http || HeaderValue::from_bytes(value).is_err(), "refused without a reason");
    }
}

/// A parameter's value is a part of the path.
fn assert_route(method: &str, path: &str, requested: &[u8]) {
    let mut router = Router::default();
    if router.add(Some(method).filter(|method| !method.is_empty()), path, route()).is_err() {
        return;
    }
    assert!(router.add(Some("X-OTHER"), "/{a}/{b...}", route()).is_ok() || path == "/{a}/{b...}");
    match router.find(method.as_bytes(), requested) {
        Found::Route(route, captures) => {
            for segment in path.split('/').filter(|segment| segment.starts_with('{')) {
                let name = segment.trim_start_matches('{').trim_end_matches('}').trim_end_matches("...");
                if let Some(value) = route.parameter(name.as_bytes(), &captures) {
                    assert!(value.is_empty() || requested.windows(value.len()).any(|part| part == value));
                }
            }
        }
        Found::Options(methods) | Found::OtherMethods(methods) => assert!(!methods.is_empty()),
        Found::Nothing => {}
    }
}
