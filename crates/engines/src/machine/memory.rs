//! Memory that the machine or a control group limits, and memory that a process takes.

use super::cgroup::{Group, Version, groups};
use std::fs;
use std::path::Path;

/// In bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    pub limit: u64,
    /// Without what the kernel can take back at once, as file caches.
    pub used: u64,
}

impl Memory {
    fn left(&self) -> u64 {
        self.limit.saturating_sub(self.used)
    }
}

/// Of the machine and the control groups that this process is in: the one with the least left.
pub fn memory() -> Option<Memory> {
    tightest(Path::new("/"))
}

/// Bytes of a process that lie in memory, without shared memory: the opcache and the queues belong to no thread. None if
/// the process is gone.
pub fn resident(pid: u32) -> Option<u64> {
    resident_in(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?)
}

/// Bytes of a process of this group that lie in memory and are of no file; what it shares with the one that it was forked from
/// counts in full. None if there is no such process, or it is in another group.
pub fn anonymous(group: u32, pid: u32) -> Option<u64> {
    // A thread has such a file too, but not in the list.
    if fs::exists(format!("/proc/{group}/task/{pid}")).unwrap_or(true) {
        return None;
    }
    anonymous_in(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?, group)
}

fn anonymous_in(status: &str, group: u32) -> Option<u64> {
    let of = status.lines().find_map(|line| line.strip_prefix("NSpgid:"))?;
    let is_member = of.split_ascii_whitespace().next().is_some_and(|number| number.parse() == Ok(group));
    is_member.then(|| kilobytes(status, "RssAnon:"))?
}

fn tightest(root: &Path) -> Option<Memory> {
    let machine = fs::read_to_string(root.join("proc/meminfo")).ok().and_then(|text| of_machine(&text));
    let groups = groups(root, "memory");
    groups.iter().filter_map(of_group).chain(machine).min_by_key(Memory::left)
}

fn of_machine(meminfo: &str) -> Option<Memory> {
    let limit = kilobytes(meminfo, "MemTotal:")?;
    Some(Memory { limit, used: limit.saturating_sub(kilobytes(meminfo, "MemAvailable:")?) })
}

/// None without a limit: in version 2 the file says "max", in version 1 the limit is beyond all memory, so that the
/// machine's is tighter.
fn of_group(group: &Group) -> Option<Memory> {
    let (limit, used, prefix) = match group.version {
        Version::Two => ("memory.max", "memory.current", ""),
        Version::One => ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_"),
    };
    let (limit, used) = (group.number(limit)?, group.number(used)?);
    let cache = reclaimable(&group.read("memory.stat").unwrap_or_default(), prefix);
    Some(Memory { limit, used: used.saturating_sub(cache) })
}

/// File caches, except what is mapped: those are programs that run.
fn reclaimable(stat: &str, prefix: &str) -> u64 {
    let value = |name: &str| {
        stat.lines().find_map(|line| line.strip_prefix(prefix)?.strip_prefix(name)?.trim().parse().ok())
    };
    let files: u64 = ["inactive_file ", "active_file "].into_iter().filter_map(value).sum();
    let mapped: u64 = ["file_mapped ", "mapped_file "].into_iter().find_map(value).unwrap_or(0);
    files.saturating_sub(mapped)
}

fn resident_in(status: &str) -> Option<u64> {
    Some(kilobytes(status, "RssAnon:")? + kilobytes(status, "RssFile:")?)
}

/// The value of a line such as `MemTotal:   24684084 kB`, in bytes.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::super::cgroup::fixture::{ONE, TWO, root};
    use super::*;

    const MEMINFO: (&str, &str) =
        ("proc/meminfo", "MemTotal:        1000000 kB\nMemFree:  1 kB\nMemAvailable:   400000 kB\n");
    const SERVICE: &str = "sys/fs/cgroup/system.slice/regent.service";

    fn tightest_of(groups: &[(&str, &str)], files: &[(String, &str)]) -> Option<Memory> {
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let root = root(&[groups, &[MEMINFO], &files].concat());
        tightest(root.path())
    }

    #[test]
    fn without_a_group_the_machine_is_the_limit() {
        let machine = Memory { limit: 1_024_000_000, used: 614_400_000 };
        assert_eq!(tightest_of(&[], &[]), Some(machine));
        assert_eq!(tightest_of(&TWO, &[(format!("{SERVICE}/memory.max"), "max\n")]), Some(machine));
    }

    #[test]
    fn file_caches_of_a_group_do_not_count_as_used_unless_they_are_mapped() {
        let stat = "anon 50\nfile 900\nfile_mapped 100\ninactive_file 400\nactive_file 300\n";
        let files = [
            (format!("{SERVICE}/memory.max"), "1000\n"),
            (format!("{SERVICE}/memory.current"), "950\n"),
            (format!("{SERVICE}/memory.stat"), stat),
        ];
        assert_eq!(tightest_of(&TWO, &files), Some(Memory { limit: 1000, used: 350 }));
    }

    #[test]
    fn the_group_with_the_least_left_is_the_limit() {
        let slice = "sys/fs/cgroup/system.slice";
        let files = [
            (format!("{SERVICE}/memory.max"), "1000"),
            (format!("{SERVICE}/memory.current"), "100"),
            (format!("{slice}/memory.max"), "4000"),
            (format!("{slice}/memory.current"), "3900"),
        ];
        assert_eq!(tightest_of(&TWO, &files), Some(Memory { limit: 4000, used: 3900 }));
    }

    #[test]
    fn a_group_of_version_1_counts_what_its_children_use() {
        let directory = "sys/fs/cgroup/memory";
        let stat = "inactive_file 1\nmapped_file 1\ntotal_inactive_file 200\ntotal_active_file 50\ntotal_mapped_file 30\n";
        let files = [
            (format!("{directory}/memory.limit_in_bytes"), "1000\n"),
            (format!("{directory}/memory.usage_in_bytes"), "600\n"),
            (format!("{directory}/memory.stat"), stat),
        ];
        assert_eq!(tightest_of(&ONE, &files), Some(Memory { limit: 1000, used: 380 }));

        let unlimited = [
            (format!("{directory}/memory.limit_in_bytes"), "9223372036854771712\n"),
            (format!("{directory}/memory.usage_in_bytes"), "600\n"),
        ];
        assert_eq!(tightest_of(&ONE, &unlimited).unwrap().limit, 1_024_000_000);
    }

    #[test]
    fn what_cannot_be_read_is_not_known() {
        assert_eq!(tightest(root(&[]).path()), None);
        assert_eq!(of_machine("MemTotal: x kB\n"), None);
        assert_eq!(resident_in("Name: x\n"), None);
        assert_eq!(resident(u32::MAX), None);
    }

    #[test]
    fn shared_memory_is_not_of_the_process() {
        let status =
            "VmRSS:\t     800 kB\nRssAnon:\t     100 kB\nRssFile:\t     200 kB\nRssShmem:\t     500 kB\n";
        assert_eq!(resident_in(status), Some(300 * 1024));
    }

    #[test]
    fn memory_that_is_written_to_becomes_resident() {
        const SIZE: usize = 64 << 20;
        let before = resident(std::process::id()).unwrap();
        let written = vec![1u8; SIZE];
        let after = resident(std::process::id()).unwrap();
        std::hint::black_box(&written);
        assert!(after > before + SIZE as u64 / 2, "{before} {after}");
    }

    #[test]
    fn this_machine_has_memory() {
        let memory = memory().unwrap();
        assert!(memory.used > 0 && memory.used < memory.limit, "{memory:?}");
    }

    #[test]
    fn a_process_counts_only_in_its_own_group() {
        let status = "Name:\tphp-0\nNSpgid:\t17\t3\nRssAnon:\t      80 kB\nRssFile:\t 9 kB\n";
        assert_eq!((anonymous_in(status, 17), anonymous_in(status, 3)), (Some(80 << 10), None));
        assert_eq!((anonymous_in("", 17), anonymous(std::process::id(), std::process::id())), (None, None));
    }
}
