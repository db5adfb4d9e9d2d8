//! What an engine gives up at its start.

use rustix::thread::{
    CapabilitySet, capabilities, capability_is_in_ambient_set, configure_capability_in_ambient_set,
    set_capabilities,
};
use std::io;

/// The right to listen on ports below 1024 where it was given to be passed on, as by `AmbientCapabilities=` of systemd: it
/// is the server's, which has opened its sockets, and no script, module or program of theirs shall have it. A server of
/// root's has it otherwise, and keeps it. Before any other thread runs, as it is each thread's own.
pub(crate) fn give_up_low_ports() -> io::Result<()> {
    const RIGHT: CapabilitySet = CapabilitySet::NET_BIND_SERVICE;
    if !capability_is_in_ambient_set(RIGHT)? {
        return Ok(());
    }
    configure_capability_in_ambient_set(RIGHT, false)?;
    let mut sets = capabilities(None)?;
    for set in [&mut sets.effective, &mut sets.permitted, &mut sets.inheritable] {
        set.remove(RIGHT);
    }
    Ok(set_capabilities(None, sets)?)
}
