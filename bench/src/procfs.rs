//! What `/proc` says about processes, sockets and the network stack.

use std::collections::HashSet;
use std::fs;

/// One process, as `/proc/PID/stat` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    pub pid: i32,
    pub parent: i32,
    pub group: i32,
    /// Clock ticks of all its threads, also of those that have ended.
    pub own_ticks: u64,
    /// Clock ticks of its children that have ended and were waited for.
    pub children_ticks: u64,
    pub threads: u64,
    /// Pages in memory, whoever shares them.
    pub resident_bytes: u64,
}

/// Connections that the kernel dropped since boot, on the whole machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListenCounters {
    /// Because the queue of a listener was full.
    pub overflows: u64,
    /// For any reason: the overflows, and others such as a lack of memory.
    pub drops: u64,
}

/// Every process of the leaders' groups, and every descendant of the leaders wherever its group is.
pub fn family(leaders: &[i32]) -> Vec<Process> {
    select_family(all_processes(), leaders)
}

/// A process as it is now; `None` when it has gone.
pub fn process(pid: i32) -> Option<Process> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Ids of the children of all threads of a process, those included that have ended and were not waited for.
pub fn children(pid: i32) -> Vec<i32> {
    of_threads(pid, "children")
        .iter()
        .flat_map(|text| text.split_whitespace())
        .filter_map(|child| child.parse().ok())
        .collect()
}

/// Ids of a process' children, of theirs, and so on.
pub fn descendants(pid: i32) -> Vec<i32> {
    let mut found = children(pid);
    let mut next = 0;
    while let Some(&pid) = found.get(next) {
        found.extend(children(pid));
        next += 1;
    }
    found
}

/// Names of the threads of a process, of at most 15 bytes each; none when it has gone.
pub fn thread_names(pid: i32) -> Vec<String> {
    of_threads(pid, "comm").into_iter().map(|name| name.trim_end().to_owned()).collect()
}

/// Voluntary and involuntary context switches of all threads of a process; 0 when it has gone.
pub fn context_switches(pid: i32) -> u64 {
    of_threads(pid, "status").iter().map(|status| parse_context_switches(status)).sum()
}

/// CPU time in nanoseconds of the threads that a process has now; 0 when it has gone or the kernel does not say.
pub fn cpu_time_of_threads(pid: i32) -> u64 {
    of_threads(pid, "schedstat")
        .iter()
        .filter_map(|text| text.split_whitespace().next()?.parse::<u64>().ok())
        .sum()
}

/// The proportional set size of a process in bytes: shared pages count in equal parts for all who map them.
pub fn proportional_set_size(pid: i32) -> u64 {
    fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).map_or(0, |text| parse_pss(&text))
}

/// The counters of full listen queues.
pub fn listen_counters() -> ListenCounters {
    fs::read_to_string("/proc/net/netstat")
        .map_or(ListenCounters::default(), |text| parse_listen_counters(&text))
}

/// Whether each socket that listens on this TCP port (IPv4) belongs to one of the processes, and there is one.
pub fn listener_belongs_to(port: u16, processes: &[Process]) -> bool {
    let Ok(table) = fs::read_to_string("/proc/net/tcp") else { return false };
    let mut wanted: HashSet<String> =
        listening_inodes(&table, port).into_iter().map(|inode| format!("socket:[{inode}]")).collect();
    if wanted.is_empty() {
        return false;
    }
    for process in processes {
        for descriptor in fs::read_dir(format!("/proc/{}/fd", process.pid)).into_iter().flatten().flatten() {
            if let Ok(target) = fs::read_link(descriptor.path()) {
                wanted.remove(&*target.to_string_lossy());
            }
        }
        if wanted.is_empty() {
            return true;
        }
    }
    false
}

/// One file of `/proc/PID/task/TID/` for each thread.
fn of_threads(pid: i32, file: &str) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    tasks.filter_map(|task| fs::read_to_string(task.path().join(file)).ok()).collect()
}

fn all_processes() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(|c: char| c.is_ascii_digit()))
        .filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok())
        .filter_map(|stat| parse_stat(&stat))
        .collect()
}

fn select_family(processes: Vec<Process>, leaders: &[i32]) -> Vec<Process> {
    let mut members: HashSet<i32> = leaders.iter().copied().collect();
    members.extend(processes.iter().filter(|p| leaders.contains(&p.group)).map(|p| p.pid));
    loop {
        let before = members.len();
        members.extend(
            processes.iter().filter(|p| members.contains(&p.parent)).map(|p| p.pid).collect::<Vec<_>>(),
        );
        if members.len() == before {
            break;
        }
    }
    processes.into_iter().filter(|p| members.contains(&p.pid)).collect()
}

/// proc_pid_stat(5). The second field, the name, is in parentheses and may hold spaces and parentheses itself.
fn parse_stat(stat: &str) -> Option<Process> {
    let pid = stat.split_once(' ')?.0.parse().ok()?;
    // From field 3 (the state) on.
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split_whitespace().collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some(Process {
        pid,
        parent: i32::try_from(number(4)?).ok()?,
        group: i32::try_from(number(5)?).ok()?,
        own_ticks: number(14)? + number(15)?,
        children_ticks: number(16)? + number(17)?,
        threads: number(20)?,
        resident_bytes: number(24)? * rustix::param::page_size() as u64,
    })
}

fn parse_context_switches(status: &str) -> u64 {
    status
        .lines()
        .filter_map(|line| line.split_once(':'))
        .filter(|(key, _)| key.ends_with("voluntary_ctxt_switches"))
        .filter_map(|(_, value)| value.trim().parse::<u64>().ok())
        .sum()
}

fn parse_pss(smaps_rollup: &str) -> u64 {
    smaps_rollup
        .lines()
        .find_map(|line| line.strip_prefix("Pss:"))
        .and_then(|value| value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok())
        .map_or(0, |kibibytes| kibibytes * 1024)
}

/// `/proc/net/netstat` is pairs of lines: names, then values, both with the same prefix.
fn parse_listen_counters(netstat: &str) -> ListenCounters {
    let mut lines = netstat.lines().filter(|line| line.starts_with("TcpExt:"));
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else { return ListenCounters::default() };
    let value_of = |wanted: &str| {
        names
            .split_whitespace()
            .zip(values.split_whitespace())
            .find(|(name, _)| *name == wanted)
            .and_then(|(_, value)| value.parse().ok())
            .unwrap_or(0)
    };
    ListenCounters { overflows: value_of("ListenOverflows"), drops: value_of("ListenDrops") }
}

/// proc_pid_net(5), `tcp`: the local address is `HEXADDRESS:HEXPORT`, state 0A is LISTEN, the tenth field the inode.
fn listening_inodes(table: &str, port: u16) -> Vec<u64> {
    let suffix = format!(":{port:04X}");
    table
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|fields| fields.len() > 9 && fields[1].ends_with(&suffix) && fields[3] == "0A")
        .filter_map(|fields| fields[9].parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(pid: i32, parent: i32, group: i32) -> Process {
        Process { pid, parent, group, own_ticks: 0, children_ticks: 0, threads: 1, resident_bytes: 0 }
    }

    #[test]
    fn a_name_with_spaces_and_parentheses_does_not_shift_the_fields() {
        let stat = "42 (php-fpm: (pool) x) S 7 42 42 0 -1 4194560 1 0 0 0 100 20 3 4 20 0 9 0 500 1 2 3";
        let resident_bytes = 2 * rustix::param::page_size() as u64;
        let expected = Process {
            pid: 42,
            parent: 7,
            group: 42,
            own_ticks: 120,
            children_ticks: 7,
            threads: 9,
            resident_bytes,
        };
        assert_eq!(parse_stat(stat), Some(expected));
        assert_eq!(parse_stat("42 (short) S 7"), None);
    }

    #[test]
    fn a_family_holds_the_group_and_descendants_that_left_it() {
        let all = vec![
            member(1, 0, 1),
            member(10, 1, 10),
            member(11, 10, 10),
            member(12, 11, 12),
            member(20, 1, 20),
        ];
        let pids: Vec<i32> = select_family(all, &[10]).iter().map(|p| p.pid).collect();
        assert_eq!(pids, [10, 11, 12]);
    }

    #[test]
    fn both_kinds_of_context_switches_count() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t30\n";
        assert_eq!(parse_context_switches(status), 42);
    }

    #[test]
    fn pss_is_read_in_bytes() {
        assert_eq!(
            parse_pss("0-1 ---p [rollup]\nRss:  1696 kB\nPss:   346 kB\nPss_Dirty: 112 kB\n"),
            346 * 1024
        );
        assert_eq!(parse_pss(""), 0);
    }

    #[test]
    fn listen_counters_are_found_by_name() {
        let netstat =
            "TcpExt: SyncookiesSent ListenOverflows ListenDrops X\nTcpExt: 1 2 33 4\nIpExt: A\nIpExt: 9\n";
        assert_eq!(parse_listen_counters(netstat), ListenCounters { overflows: 2, drops: 33 });
    }

    #[test]
    fn only_listeners_of_the_port_are_found() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:1F90 00000000:0000 0A 0:0 0:0 0 0 0 777 1 x\n\
            1: 0100007F:1F90 0100007F:9999 01 0:0 0:0 0 0 0 778 1 x\n\
            2: 0100007F:0050 00000000:0000 0A 0:0 0:0 0 0 0 779 1 x\n";
        assert_eq!(listening_inodes(table, 8080), [777]);
    }

    #[test]
    fn the_test_process_sees_itself() {
        let own = i32::try_from(std::process::id()).expect("a pid");
        let family = family(&[own]);
        assert!(family.iter().any(|p| p.pid == own && p.threads >= 1));
        assert!(process(own).is_some_and(|p| p.resident_bytes > 0));
        assert!(proportional_set_size(own) > 0);
        assert!(cpu_time_of_threads(own) > 0);
    }

    #[test]
    fn a_child_is_its_parents() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("started");
        let pid = i32::try_from(child.id()).expect("a pid");
        let own = i32::try_from(std::process::id()).expect("a pid");
        let found = children(own).contains(&pid);
        child.kill().expect("it runs");
        child.wait().expect("it ended");
        assert!(found && !children(own).contains(&pid));
    }

    #[test]
    fn a_childs_child_is_a_descendant() {
        use std::io::{BufRead, BufReader};
        use std::process::{Command, Stdio};
        let mut shell = Command::new("sh")
            .args(["-c", "sh -c 'echo $$; read end; :'; :"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("started");
        let mut line = String::new();
        BufReader::new(shell.stdout.take().expect("piped")).read_line(&mut line).expect("it says its pid");
        let own = i32::try_from(std::process::id()).expect("a pid");
        let inner: i32 = line.trim().parse().expect("a pid");
        assert!(descendants(own).contains(&inner) && !children(own).contains(&inner));
        drop(shell.stdin.take());
        shell.wait().expect("it ended");
    }

    #[test]
    fn a_listener_belongs_to_the_process_that_opened_it() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = socket.local_addr().expect("an address").port();
        let own = i32::try_from(std::process::id()).expect("a pid");
        assert!(listener_belongs_to(port, &family(&[own])));
        assert!(!listener_belongs_to(port, &[member(1, 0, 1)]));
    }
}
