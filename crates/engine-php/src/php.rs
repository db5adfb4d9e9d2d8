//! Starting and ending PHP in this process.

use crate::ffi::{self, Str};
use crate::host;
use crate::ini;
use anyhow::{Result, bail};
use regent_engine_host::Reporter;
use regent_wire::control::{Opcache, Start, descriptors};
use regent_wire::names::WELL_KNOWN;
use std::ffi::{CStr, CString, c_int};
use std::sync::Arc;

/// The real-time signal that is ours: interrupts a thread's blocking system call. PHP's timers use the first ones.
const INTERRUPT_SIGNAL_BELOW_MAX: c_int = 2;
/// The one that asks a process what its script is at.
const TRACE_SIGNAL_BELOW_MAX: c_int = 3;

/// Starts PHP, once. What goes wrong has been logged by the time of the error.
pub fn start(start: &Start, reporter: &Arc<Reporter>) -> Result<()> {
    host::set_reporter(reporter);
    let ini = CString::new(ini::lines(&start.ini))?;
    let software = CString::new(start.software.as_str())?;
    let names: Vec<Str> = WELL_KNOWN.iter().map(|name| Str::new(name.as_bytes())).collect();
    let options = ffi::Options {
        threads: start.threads.len() as c_int,
        ini: ini.as_ptr(),
        software: software.as_ptr(),
        well_known: names.as_ptr(),
        n_well_known: names.len(),
        interrupt_signal: libc::SIGRTMAX() - INTERRUPT_SIGNAL_BELOW_MAX,
        slow_after: nanoseconds(start.slow_after_ms),
        departed_after: nanoseconds(start.departed_after_ms),
        trace_signal: if cfg!(php_threads) { 0 } else { trace_signal() },
        socket: descriptors::CONTROL,
    };
    // SAFETY: laws 3 and 5: the table and the strings outlive the call (the C side copies what it keeps); this is
    // the only start in this process.
    match unsafe { ffi::regent_php_start(&options, &host::CALLBACKS) } {
        0 => Ok(()),
        _ => bail!("PHP could not be started"),
    }
}

/// Of milliseconds; 0 where there would be too many.
fn nanoseconds(milliseconds: u64) -> i64 {
    i64::try_from(milliseconds.saturating_mul(1_000_000)).unwrap_or(0)
}

/// Asks a process what its script is at.
pub fn trace_signal() -> c_int {
    libc::SIGRTMAX() - TRACE_SIGNAL_BELOW_MAX
}

/// What the process that serves needs beside PHP itself. Once in it, after [`start`], which may have been in a process that
/// this one was forked from.
pub fn enter_process() -> Result<()> {
    // SAFETY: law 3: PHP has been started, and no PHP thread runs in this process yet.
    match unsafe { ffi::regent_php_enter_process() } {
        0 => Ok(()),
        _ => bail!("the process could not be prepared for PHP"),
    }
}

/// Ends PHP after its threads have ended.
pub fn stop() {
    // SAFETY: law 1: no PHP thread runs any more.
    unsafe { ffi::regent_php_stop() }
}

/// As `PHP_VERSION`, of the libphp that was loaded. On the thread that started PHP.
pub fn version() -> String {
    // SAFETY: laws 1 and 5: reads a table that nothing changes after PHP's start; the string lives as long as PHP does.
    unsafe { CStr::from_ptr(ffi::regent_php_version()) }.to_string_lossy().into_owned()
}

pub fn opcache() -> Opcache {
    // SAFETY: law 1: reads a flag.
    match unsafe { ffi::regent_php_opcache_enabled() } {
        0 => Opcache::Disabled,
        _ => Opcache::Enabled,
    }
}

/// The names of all settings, with those of the extensions.
pub fn settings() -> Vec<String> {
    let name = |index| {
        // SAFETY: laws 1 and 5: reads a table that nothing changes after PHP's start, on the thread that started it; the
        // names live as long as PHP does.
        unsafe { ffi::regent_php_ini_name(index).bytes() }
    };
    let names = (0..).map(name).take_while(|name| !name.is_empty());
    names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}
