//! System calls that answer `EPERM`, by a filter of the kernel (seccomp(2)).
//!
//! A list of what is denied and not of what is allowed: scripts start ImageMagick, git, browsers. The filter is our own, since
//! that of the crate `seccompiler` ends every process of another ABI at its first system call, which 32-bit programs are, sets
//! `no_new_privs` in any case, and before Linux 5.16 makes PHP pay for it (`SPEC_ALLOW`, below).

use libc::{c_long, sock_filter, sock_fprog};
use std::io;

/// Which system calls are denied.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Denials {
    /// By which processes are traced and changed, or the kernel is: no application makes them.
    pub attacks: bool,
    /// Modules, clocks, quotas, names of the machine, its restart.
    pub administration: bool,
    /// Of the kernel, as Kerberos may use them.
    pub keyrings: bool,
    /// And mounts: what programs make a sandbox of.
    pub namespaces: bool,
    /// The start of others.
    pub programs: bool,
}

/// What becomes of a system call of an ABI whose numbers this file does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ForeignCalls {
    Allowed,
    Refused,
}

/// A system call by its number in the ABI of this program, and in that of 32-bit programs on x86.
struct Call(
    c_long,
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "there is one ABI"))] u32,
);

/// There is no such call in that ABI.
const NONE: u32 = u32::MAX;
const NOT_HERE: c_long = -1;

/// Not `process_vm_readv`, by which the engine looks at its own stacks: `/proc/PID/mem` would say the same, and who may not read
/// that may not call it.
const ATTACKS: &[Call] = &[
    Call(libc::SYS_ptrace, 26),
    Call(libc::SYS_process_vm_writev, 348),
    Call(libc::SYS_kcmp, 349),
    Call(libc::SYS_pidfd_getfd, 438),
    Call(libc::SYS_bpf, 357),
    Call(libc::SYS_perf_event_open, 336),
    Call(libc::SYS_userfaultfd, 374),
    Call(libc::SYS_io_uring_setup, 425),
    Call(libc::SYS_io_uring_enter, 426),
    Call(libc::SYS_io_uring_register, 427),
    Call(libc::SYS_open_by_handle_at, 342),
];

/// What the administrator of a machine does: scripts of root, as control panels have them, may.
const ADMINISTRATION: &[Call] = &[
    Call(libc::SYS_kexec_load, 283),
    Call(libc::SYS_kexec_file_load, NONE),
    Call(libc::SYS_init_module, 128),
    Call(libc::SYS_finit_module, 350),
    Call(libc::SYS_delete_module, 129),
    Call(libc::SYS_swapon, 87),
    Call(libc::SYS_swapoff, 115),
    Call(libc::SYS_reboot, 88),
    Call(libc::SYS_acct, 51),
    Call(libc::SYS_quotactl, 131),
    Call(libc::SYS_quotactl_fd, 443),
    Call(libc::SYS_settimeofday, 79),
    Call(libc::SYS_clock_settime, 264),
    Call(NOT_HERE, 404), // clock_settime64
    Call(NOT_HERE, 25),  // stime
    Call(libc::SYS_syslog, 103),
    Call(libc::SYS_vhangup, 111),
    Call(libc::SYS_sethostname, 74),
    Call(libc::SYS_setdomainname, 121),
    #[cfg(target_arch = "x86_64")]
    Call(libc::SYS_iopl, 110),
    #[cfg(target_arch = "x86_64")]
    Call(libc::SYS_ioperm, 101),
];

const KEYRINGS: &[Call] =
    &[Call(libc::SYS_add_key, 286), Call(libc::SYS_request_key, 287), Call(libc::SYS_keyctl, 288)];

const MOUNTS: &[Call] = &[
    Call(libc::SYS_mount, 21),
    Call(NOT_HERE, 22), // umount
    Call(libc::SYS_umount2, 52),
    Call(libc::SYS_pivot_root, 217),
    Call(libc::SYS_move_mount, 429),
    Call(libc::SYS_open_tree, 428),
    Call(libc::SYS_fsopen, 430),
    Call(libc::SYS_fsconfig, 431),
    Call(libc::SYS_fsmount, 432),
    Call(libc::SYS_fspick, 433),
    Call(libc::SYS_mount_setattr, 442),
    Call(libc::SYS_setns, 346),
];

const PROGRAMS: &[Call] = &[Call(libc::SYS_execve, 11), Call(libc::SYS_execveat, 358)];

const UNSHARE: Call = Call(libc::SYS_unshare, 310);
const CLONE: Call = Call(libc::SYS_clone, 120);
/// Its flags are in memory, which a filter cannot read: libraries that are told that it does not exist call `clone`.
const CLONE3: Call = Call(libc::SYS_clone3, 435);

/// What `unshare` takes for new namespaces; `CLONE_FS`, which this engine needs, is none. `CLONE_NEWTIME` is a signal's
/// number to `clone`.
const NEW_NAMESPACES: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u32;
const NEW_TIME_NAMESPACE: u32 = 0x80;

/// `AUDIT_ARCH_*` (linux/audit.h).
#[cfg(target_arch = "x86_64")]
const ABIS: &[(u32, Abi)] = &[(0xC000_003E, Abi::Own), (0x4000_0003, Abi::X86)];
#[cfg(target_arch = "aarch64")]
const ABIS: &[(u32, Abi)] = &[(0xC000_00B7, Abi::Own)];

/// From here on numbers are of the x32 ABI, which shares the `AUDIT_ARCH` of x86-64 and which no program uses.
#[cfg(target_arch = "x86_64")]
const X32: Option<u32> = Some(0x4000_0000);
#[cfg(target_arch = "aarch64")]
const X32: Option<u32> = None;

/// Offsets in `struct seccomp_data`; of the first argument, its lower half.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const FIRST_ARGUMENT: u32 = 16;

#[derive(Clone, Copy)]
enum Abi {
    Own,
    #[cfg(target_arch = "x86_64")]
    X86,
}

/// Denies them to this thread and to all that it makes. Returns what they are, in words.
pub(super) fn deny(denials: Denials, foreign: ForeignCalls) -> io::Result<Vec<&'static str>> {
    install(&mut filter(denials, foreign))?;
    let words = [
        (denials.attacks, "no attacks on processes and the kernel"),
        (denials.administration, "no administration of the machine"),
        (denials.keyrings, "no keyrings"),
        (denials.namespaces, "no namespaces and mounts"),
        (denials.programs, "no programs"),
    ];
    Ok(words.into_iter().filter_map(|(is_denied, words)| is_denied.then_some(words)).collect())
}

fn install(filter: &mut [sock_filter]) -> io::Result<()> {
    let length = u16::try_from(filter.len()).map_err(io::Error::other)?;
    let program = sock_fprog { len: length, filter: filter.as_mut_ptr() };
    // Kernels before 5.16 switch speculation off for who has a filter, which costs PHP much and protects nobody here.
    let flags = libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    // SAFETY: law 5: the program outlives the call, in which the kernel copies and checks it.
    let result =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// For each ABI a part that ends with a verdict.
fn filter(denials: Denials, foreign: ForeignCalls) -> Vec<sock_filter> {
    let mut all = vec![load(ARCHITECTURE)];
    for &(architecture, abi) in ABIS {
        let part = part(denials, abi);
        all.push(jump(libc::BPF_JEQ, architecture, 1, 0));
        all.push(instruction(libc::BPF_JMP | libc::BPF_JA, part.len() as u32));
        all.extend(part);
    }
    all.push(match foreign {
        ForeignCalls::Allowed => allow(),
        ForeignCalls::Refused => refuse(libc::ENOSYS),
    });
    all
}

fn part(denials: Denials, abi: Abi) -> Vec<sock_filter> {
    let groups = [
        (denials.attacks, ATTACKS),
        (denials.administration, ADMINISTRATION),
        (denials.keyrings, KEYRINGS),
        (denials.namespaces, MOUNTS),
        (denials.programs, PROGRAMS),
    ];
    let calls = groups.into_iter().filter(|(is_denied, _)| *is_denied).flat_map(|(_, calls)| calls);
    let mut part = vec![load(NUMBER)];
    if let (Abi::Own, Some(first)) = (abi, X32) {
        part.extend([jump(libc::BPF_JGE, first, 0, 1), refuse(libc::ENOSYS)]);
    }
    for number in calls.filter_map(|call| abi.number(call)) {
        part.extend([jump(libc::BPF_JEQ, number, 0, 1), refuse(libc::EPERM)]);
    }
    if denials.namespaces {
        for (call, flags) in [(CLONE, NEW_NAMESPACES), (UNSHARE, NEW_NAMESPACES | NEW_TIME_NAMESPACE)] {
            part.extend(abi.number(&call).into_iter().flat_map(|number| {
                [
                    jump(libc::BPF_JEQ, number, 0, 4),
                    load(FIRST_ARGUMENT),
                    jump(libc::BPF_JSET, flags, 0, 1),
                    refuse(libc::EPERM),
                    load(NUMBER),
                ]
            }));
        }
        part.extend(
            abi.number(&CLONE3)
                .into_iter()
                .flat_map(|number| [jump(libc::BPF_JEQ, number, 0, 1), refuse(libc::ENOSYS)]),
        );
    }
    part.push(allow());
    part
}

impl Abi {
    fn number(self, call: &Call) -> Option<u32> {
        match self {
            Self::Own => u32::try_from(call.0).ok(),
            #[cfg(target_arch = "x86_64")]
            Self::X86 => Some(call.1).filter(|number| *number != NONE),
        }
    }
}

fn load(offset: u32) -> sock_filter {
    instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset)
}

/// Over so many instructions, if it is so and if not.
fn jump(condition: u32, value: u32, if_so: u8, if_not: u8) -> sock_filter {
    let code = (libc::BPF_JMP | condition | libc::BPF_K) as u16;
    sock_filter { code, jt: if_so, jf: if_not, k: value }
}

fn refuse(errno: i32) -> sock_filter {
    instruction(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | errno as u32)
}

fn allow() -> sock_filter {
    instruction(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW)
}

fn instruction(code: u32, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::thread::set_no_new_privs;

    const ALL: Denials =
        Denials { attacks: true, administration: true, keyrings: true, namespaces: true, programs: true };

    /// In a thread of its own, to which alone the filter applies.
    fn confined<T: Send + 'static>(denials: Denials, attempt: impl FnOnce() -> T + Send + 'static) -> T {
        let attempt = move || {
            set_no_new_privs(true).unwrap();
            deny(denials, ForeignCalls::Refused).unwrap();
            attempt()
        };
        std::thread::spawn(attempt).join().unwrap()
    }

    fn errno(result: c_long) -> i32 {
        if result < 0 { io::Error::last_os_error().raw_os_error().unwrap() } else { 0 }
    }

    /// With arguments that the kernel refuses for other reasons.
    fn refusals(calls: &'static [Call], denials: Denials) -> Vec<i32> {
        let numbers = calls.iter().filter_map(|call| Abi::Own.number(call));
        let numbers: Vec<u32> = numbers.collect();
        let call = |number: u32| {
            // SAFETY: no pointer is valid, so that nothing is read or written.
            errno(unsafe { libc::syscall(number.into(), -1, -1, -1, -1, -1, -1) })
        };
        confined(denials, move || numbers.into_iter().map(call).collect())
    }

    #[test]
    fn what_is_listed_is_not_permitted() {
        for calls in [ATTACKS, ADMINISTRATION, KEYRINGS, MOUNTS, PROGRAMS] {
            let found = refusals(calls, ALL);
            assert!(found.len() > 1 && found.iter().all(|errno| *errno == libc::EPERM), "{found:?}");
        }
    }

    #[test]
    fn what_was_not_asked_for_is_left_to_the_kernel() {
        let attacks = Denials { attacks: true, ..Denials::default() };
        assert!(refusals(PROGRAMS, attacks).iter().all(|errno| *errno == libc::EFAULT));
        assert!(refusals(KEYRINGS, attacks).iter().all(|errno| *errno != libc::EPERM));
    }

    #[test]
    fn namespaces_are_refused_and_what_threads_share_is_not() {
        let unshare = |flags: i32| {
            // SAFETY: takes no pointer.
            move || errno(unsafe { libc::syscall(libc::SYS_unshare, flags) })
        };
        for flags in [libc::CLONE_NEWUSER, libc::CLONE_NEWNET | libc::CLONE_FS, NEW_TIME_NAMESPACE as i32] {
            assert_eq!(confined(ALL, unshare(flags)), libc::EPERM, "{flags:x}");
        }
        assert_eq!(confined(ALL, unshare(libc::CLONE_FS)), 0);
        // SAFETY: it is refused before anything is made.
        let clone = || errno(unsafe { libc::syscall(libc::SYS_clone, libc::CLONE_NEWUSER, 0, 0, 0, 0) });
        assert_eq!(confined(ALL, clone), libc::EPERM);
    }

    #[test]
    fn threads_and_processes_can_still_be_made() {
        let attempt = || std::thread::spawn(|| 7).join().unwrap();
        assert_eq!(confined(ALL, attempt), 7);
        let denials = Denials { programs: false, ..ALL };
        assert!(confined(denials, || std::process::Command::new("true").status().unwrap().success()));
        assert!(confined(ALL, || std::process::Command::new("true").status().is_err()));
    }
}
