//! Where a log goes.

use crate::object::Object;
use regent_config::{
    LogCompression, LogDirectoryMode, LogFile, LogNet, LogNetStart, LogOutput, LogRolling, escaped,
};
use std::time::Duration;

const DIAL_TIMEOUT: Duration = Duration::from_secs(10);
const DAY: u64 = 86_400;
const MEBIBYTE: u64 = 1 << 20;

/// `None`: the standard error.
pub(super) fn writer(output: &LogOutput) -> Option<Object> {
    Some(match output {
        LogOutput::Stderr => return None,
        LogOutput::Stdout => Object::of_kind("output", "stdout"),
        LogOutput::Discard => Object::of_kind("output", "discard"),
        LogOutput::File(file) => self::file(file),
        LogOutput::Net(net) => self::net(net),
    })
}

fn net(net: &LogNet) -> Object {
    let LogNet { address, dial_timeout, start } = net;
    let mut object = Object::of_kind("output", "net");
    let address = address.to_string();
    object.set("address", escaped(address.strip_prefix("tcp/").unwrap_or(&address)));
    object.set_duration("dial_timeout", *dial_timeout, DIAL_TIMEOUT);
    object.set_if("soft_start", *start == LogNetStart::GoesOn);
    object
}

fn file(file: &LogFile) -> Object {
    let LogFile { path, mode, directory_mode, rolling } = file;
    let mut object = Object::of_kind("output", "file");
    object.set("filename", escaped(&path.display().to_string()));
    object.set_some("mode", mode.map(|mode| format!("{mode:04o}")));
    object.set_some("dir_mode", directory_mode.map(self::directory_mode));
    match rolling {
        None => object.set("roll", false),
        Some(rolling) => set_rolling(&mut object, rolling),
    }
    object
}

/// Caddy's units are mebibytes and days; other sizes and times are rounded up, as Caddy's adapter does.
fn set_rolling(object: &mut Object, rolling: &LogRolling) {
    let LogRolling { size, interval, at, keep, keep_for, compress, compression } = rolling;
    let usual = LogRolling::default();
    if *size != usual.size {
        object.set("roll_size_mb", size.div_ceil(MEBIBYTE));
    }
    object.set_some_duration("roll_interval", *interval);
    object.set_list("roll_at", at.iter().map(|minute| format!("{:02}:{:02}", minute / 60, minute % 60)));
    object.set_some("roll_keep", keep.filter(|_| *keep != usual.keep));
    object.set_some(
        "roll_keep_days",
        keep_for.filter(|_| *keep_for != usual.keep_for).map(|time| time.as_secs().div_ceil(DAY)),
    );
    match (compress, compression) {
        (false, _) => object.set("roll_gzip", false),
        (true, LogCompression::Gzip) => {}
        (true, LogCompression::Zstd) => object.set("roll_compression", "zstd"),
    }
}

fn directory_mode(mode: LogDirectoryMode) -> String {
    match mode {
        LogDirectoryMode::Fixed(mode) => format!("{mode:04o}"),
        LogDirectoryMode::Inherited => "inherit".to_owned(),
    }
}
