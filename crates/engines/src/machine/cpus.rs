//! The CPUs that this process may use.

use super::cgroup::{Group, Version, groups};
use std::path::Path;
use std::thread::available_parallelism;

/// How many CPUs, in parts of one too: those that the process may run on, or the time that its control groups give it.
pub fn cpus() -> f32 {
    limited(allowed(), Path::new("/"))
}

fn limited(allowed: f32, root: &Path) -> f32 {
    groups(root, "cpu").iter().filter_map(quota).fold(allowed, f32::min)
}

fn allowed() -> f32 {
    let few = rustix::thread::sched_getaffinity(None).map(|set| set.count() as f32);
    // Machines with more CPUs than the set has room for.
    few.unwrap_or_else(|_| available_parallelism().map_or(1.0, |count| count.get() as f32))
}

/// CPU time in each period ÷ the period; none without a limit.
fn quota(group: &Group) -> Option<f32> {
    let (quota, period) = match group.version {
        Version::Two => {
            let text = group.read("cpu.max")?;
            let (quota, period) = text.trim().split_once(' ')?;
            (quota.parse::<u64>().ok()?, period.parse::<u64>().ok()?)
        }
        Version::One => (group.number("cpu.cfs_quota_us")?, group.number("cpu.cfs_period_us")?),
    };
    (quota > 0 && period > 0).then_some(quota as f32 / period as f32)
}

#[cfg(test)]
mod tests {
    use super::super::cgroup::fixture::{ONE, TWO, root};
    use super::*;

    fn limited_by(groups: &[(&str, &str)], files: &[(&str, &str)]) -> f32 {
        let root = root(&[groups, files].concat());
        limited(8.0, root.path())
    }

    #[test]
    fn a_quota_counts_in_parts_of_a_cpu() {
        let service = "sys/fs/cgroup/system.slice/regent.service/cpu.max";
        assert_eq!(limited_by(&TWO, &[(service, "150000 100000\n")]), 1.5);
        assert_eq!(limited_by(&TWO, &[(service, "max 100000\n")]), 8.0);
        assert_eq!(limited_by(&TWO, &[(service, "1600000 100000\n")]), 8.0);
    }

    #[test]
    fn the_smallest_quota_of_all_groups_counts() {
        let service = ("sys/fs/cgroup/system.slice/regent.service/cpu.max", "400000 100000\n");
        let slice = ("sys/fs/cgroup/system.slice/cpu.max", "200000 100000\n");
        assert_eq!(limited_by(&TWO, &[service, slice]), 2.0);
    }

    #[test]
    fn version_1_has_quota_and_period_in_two_files() {
        let directory = "sys/fs/cgroup/cpu,cpuacct";
        let (quota, period) =
            (format!("{directory}/cpu.cfs_quota_us"), format!("{directory}/cpu.cfs_period_us"));
        assert_eq!(limited_by(&ONE, &[(&quota, "50000\n"), (&period, "100000\n")]), 0.5);
        assert_eq!(limited_by(&ONE, &[(&quota, "-1\n"), (&period, "100000\n")]), 8.0);
    }

    #[test]
    fn nonsense_is_no_limit() {
        let service = "sys/fs/cgroup/system.slice/regent.service/cpu.max";
        for text in ["", "0 100000", "100000 0", "x y", "100000"] {
            assert_eq!(limited_by(&TWO, &[(service, text)]), 8.0, "{text}");
        }
    }

    #[test]
    fn this_process_has_a_cpu_or_a_part_of_one() {
        assert!(cpus() > 0.0);
    }
}
