//! What an engine gives up before any of its threads runs, so that scripts, modules and what they start never have it:
//! set-user-ID programs (`no_new_privs`), system calls ([`syscalls`]), files ([`files`]).
//!
//! All of it is the calling thread's and goes to what that makes, so it has to be done while there is no other. Nothing of it
//! can be taken back.

mod files;
mod syscalls;

use regent_wire::confine::{Confined, Confinement, Grant, Limits, Shortfall};
use rustix::thread::{CapabilitySet, capabilities, no_new_privs, set_no_new_privs};
use std::path::PathBuf;
use syscalls::{Denials, ForeignCalls};

/// What the kernel does not enforce though the configuration insists.
#[derive(Debug, thiserror::Error)]
#[error(
    "it cannot be confined as `confine` of the configuration says: {}; leave out `strict`, and it is confined as far as the kernel can",
    .0.join(", ")
)]
pub struct NotConfined(Vec<String>);

/// Gives it up. `needs`: what this engine has to read. `None`: nothing was to be given up.
pub(crate) fn apply(
    confinement: &Confinement,
    needs: impl FnOnce() -> Vec<PathBuf>,
) -> Result<Option<Confined>, NotConfined> {
    match confinement {
        Confinement::Off => Ok(None),
        Confinement::Unasked => Ok(Some(without_asking())),
        Confinement::Asked(limits) => as_asked(limits, needs).map(Some),
    }
}

/// The kernel lets nobody refuse system calls to set-user-ID programs: who wants to must have given those up, or be allowed
/// to do anything to anybody (seccomp(2)).
fn without_asking() -> Confined {
    let mut confined = Confined::default();
    let may = capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_ADMIN));
    if may || no_new_privs().unwrap_or(false) {
        let denials = Denials { attacks: true, ..Denials::default() };
        note_calls(syscalls::deny(denials, ForeignCalls::Allowed), &mut confined);
    }
    confined
}

fn as_asked(limits: &Limits, needs: impl FnOnce() -> Vec<PathBuf>) -> Result<Confined, NotConfined> {
    let mut confined = Confined::default();
    match set_no_new_privs(true) {
        Ok(()) => confined.enforced.push("no set-user-ID programs".to_owned()),
        Err(error) => confined.missing.push(format!("no set-user-ID programs ({error})")),
    }
    let denials = Denials {
        attacks: true,
        administration: true,
        keyrings: true,
        namespaces: limits.namespaces == Grant::Refused,
        programs: limits.programs == Grant::Refused,
    };
    files::limit(limits, needs, &mut confined);
    note_calls(syscalls::deny(denials, ForeignCalls::Refused), &mut confined);
    if limits.shortfall == Shortfall::Ends && !confined.missing.is_empty() {
        return Err(NotConfined(confined.missing));
    }
    Ok(confined)
}

fn note_calls(denied: std::io::Result<Vec<&'static str>>, confined: &mut Confined) {
    match denied {
        Ok(denied) => confined.enforced.extend(denied.into_iter().map(str::to_owned)),
        Err(error) => confined.missing.push(format!("system calls (seccomp: {error})")),
    }
}
