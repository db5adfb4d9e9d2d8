//! The control groups that limit this process: its own and those around it, of version 2 and 1 (see cgroups(7)).

use std::fs;
use std::path::{Path, PathBuf};

/// Which of the files in a group limit what depends on the version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    /// One hierarchy for all.
    Two,
    /// A hierarchy for each controller.
    One,
}

/// The directory of one group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    pub version: Version,
    pub directory: PathBuf,
}

impl Group {
    /// A file of the group, if there is one.
    pub fn read(&self, file: &str) -> Option<String> {
        fs::read_to_string(self.directory.join(file)).ok()
    }

    /// A file that holds one number, and nothing that means none.
    pub fn number(&self, file: &str) -> Option<u64> {
        self.read(file)?.trim().parse().ok()
    }
}

/// The groups that this process is in and whose limits hold for `controller`, the innermost first. `root` is `/`.
pub(super) fn groups(root: &Path, controller: &str) -> Vec<Group> {
    let read = |file: &str| fs::read_to_string(root.join(file)).unwrap_or_default();
    let (memberships, mounts) = (read("proc/self/cgroup"), read("proc/self/mountinfo"));
    [Version::Two, Version::One]
        .into_iter()
        .flat_map(|version| {
            let path = membership(&memberships, version, controller);
            let mount = mounts.lines().find_map(|line| Mount::parse(line, version, controller));
            path.zip(mount).map(|(path, mount)| mount.groups(root, version, path)).unwrap_or_default()
        })
        .collect()
}

/// The process's path in the hierarchy, from a line such as `0::/a/b` or `4:cpu,cpuacct:/a/b`.
fn membership<'a>(memberships: &'a str, version: Version, controller: &str) -> Option<&'a str> {
    memberships.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let fits = match version {
            Version::Two => controllers.is_empty(),
            Version::One => controllers.split(',').any(|name| name == controller),
        };
        fits.then_some(path)
    })
}

/// Where a hierarchy, or a part of it, is mounted.
struct Mount<'a> {
    /// The path in the hierarchy that is seen at the mount point.
    top: &'a str,
    point: &'a str,
}

impl<'a> Mount<'a> {
    /// From a line of mountinfo (see proc(5)), if it is of this hierarchy.
    fn parse(line: &'a str, version: Version, controller: &str) -> Option<Self> {
        let (mount, system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3);
        let (top, point) = (mount.next()?, mount.next()?);
        let mut system = system.split(' ');
        let (kind, options) = (system.next()?, system.nth(1)?);
        let fits = match version {
            Version::Two => kind == "cgroup2",
            Version::One => kind == "cgroup" && options.split(',').any(|option| option == controller),
        };
        fits.then_some(Self { top, point })
    }

    /// From the process's group up to the mount point. In a container whose groups have no namespace the path is that
    /// of the host, of which only the part below `top` is seen.
    fn groups(&self, root: &Path, version: Version, path: &str) -> Vec<Group> {
        let path = Path::new(path);
        let below = path.strip_prefix(self.top).unwrap_or(Path::new(""));
        // A path may lead out of the namespace ("/../x"); nothing can be known of that.
        let below =
            if below.components().any(|part| part.as_os_str() == "..") { Path::new("") } else { below };
        let point = root.join(self.point.trim_start_matches('/'));
        let directories = below.ancestors().map(|part| point.join(part));
        directories.map(|directory| Group { version, directory }).collect()
    }
}

#[cfg(test)]
pub(super) mod fixture {
    use std::fs;
    use tempfile::TempDir;

    /// A root directory with these files.
    pub fn root(files: &[(&str, &str)]) -> TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    /// A machine with version 2 only, and a process two groups deep.
    pub const TWO: [(&str, &str); 2] = [
        ("proc/self/cgroup", "0::/system.slice/regent.service\n"),
        ("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"),
    ];

    /// A container with version 1, seen without a namespace of its own.
    pub const ONE: [(&str, &str); 2] = [
        ("proc/self/cgroup", "4:memory:/docker/1f\n3:cpu,cpuacct:/docker/1f\n0::/\n"),
        (
            "proc/self/mountinfo",
            "22 27 0:21 / /proc rw - proc proc rw\n\
             32 31 0:29 /docker/1f /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n\
             35 31 0:32 /docker/1f /sys/fs/cgroup/memory ro master:1 - cgroup cgroup rw,memory\n\
             41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
        ),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directories(files: &[(&str, &str)], controller: &str) -> Vec<(Version, String)> {
        let root = fixture::root(files);
        let relative = |group: Group| {
            let path = group.directory.strip_prefix(root.path()).unwrap().to_string_lossy().into_owned();
            (group.version, path.trim_end_matches('/').to_owned())
        };
        groups(root.path(), controller).into_iter().map(relative).collect()
    }

    fn named(version: Version, paths: &[&str]) -> Vec<(Version, String)> {
        paths.iter().map(|path| (version, (*path).to_owned())).collect()
    }

    #[test]
    fn version_2_has_the_group_and_those_around_it() {
        let expected =
            ["sys/fs/cgroup/system.slice/regent.service", "sys/fs/cgroup/system.slice", "sys/fs/cgroup"];
        assert_eq!(directories(&fixture::TWO, "memory"), named(Version::Two, &expected));
    }

    #[test]
    fn version_1_has_a_hierarchy_for_each_controller_beside_an_empty_one_of_version_2() {
        let mut expected = named(Version::Two, &["sys/fs/cgroup/unified"]);
        expected.extend(named(Version::One, &["sys/fs/cgroup/cpu,cpuacct"]));
        assert_eq!(directories(&fixture::ONE, "cpu"), expected);
        assert_eq!(directories(&fixture::ONE, "memory")[1].1, "sys/fs/cgroup/memory");
    }

    #[test]
    fn a_path_that_leads_out_of_the_namespace_is_not_followed() {
        let files = [("proc/self/cgroup", "0::/../other\n"), fixture::TWO[1]];
        assert_eq!(directories(&files, "cpu"), named(Version::Two, &["sys/fs/cgroup"]));
    }

    #[test]
    fn without_groups_there_are_none() {
        assert_eq!(directories(&[], "cpu"), []);
        assert_eq!(
            directories(&[("proc/self/cgroup", "::\nx\n"), ("proc/self/mountinfo", " - \n1 - 2\n")], "cpu"),
            []
        );
    }
}
