//! The rights of the server that are not its user's, and what the processes have of them that it starts: none, but for the
//! server that takes its place.
//!
//! A server that is not root has capabilities(7) from systemd (`AmbientCapabilities=`): to listen on low ports, and to run PHP
//! as another user. What is in the ambient set is inherited by every program that is started, and changing from one user to
//! another takes nothing out of it unless one of the two is root. So the set is empty while the server runs.
//!
//! Capabilities are each thread's own for the kernel, and a process that a thread starts has that thread's.
#![forbid(unsafe_code)]

use rustix::process::geteuid;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    configure_capability_in_ambient_set, set_capabilities,
};
use std::io;

/// What it takes to run a process as another user: to become that user, to leave the own groups, which the standard library does
/// where it may (`CommandExt::uid`), and to end the process.
const CHANGE_OF_USER: [(CapabilitySet, &str); 3] = [
    (CapabilitySet::SETUID, "CAP_SETUID"),
    (CapabilitySet::SETGID, "CAP_SETGID"),
    (CapabilitySet::KILL, "CAP_KILL"),
];

/// From now on the programs that this thread starts, and the threads that it starts, inherit no capability. Before any other
/// thread is there. What this process may do itself stays as it was.
pub fn keep_to_itself() -> io::Result<()> {
    clear_ambient_capability_set()?;
    set_inheritable(CapabilitySet::empty())
}

/// Calls what starts a process that is to have all capabilities of this one.
pub fn passed_on<T>(start: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    // Root has them all by being root.
    if geteuid().is_root() {
        return start();
    }
    let started = pass_on(capabilities(None)?.permitted).and_then(|()| start());
    keep_to_itself()?;
    started
}

fn pass_on(rights: CapabilitySet) -> io::Result<()> {
    set_inheritable(rights)?;
    Ok(rights.iter().try_for_each(|right| configure_capability_in_ambient_set(right, true))?)
}

/// The capabilities that are missing to run processes as other users; empty: it may.
pub fn missing_to_change_users() -> Vec<&'static str> {
    // A kernel that does not say will refuse.
    let has = capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective);
    CHANGE_OF_USER.into_iter().filter(|(right, _)| !has.contains(*right)).map(|(_, name)| name).collect()
}

fn set_inheritable(inheritable: CapabilitySet) -> io::Result<()> {
    let sets = capabilities(None)?;
    if sets.inheritable == inheritable {
        return Ok(());
    }
    Ok(set_capabilities(None, CapabilitySets { inheritable, ..sets })?)
}
