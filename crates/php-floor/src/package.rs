//! The package of the distribution that a library of PHP is from: dpkg's database, read as files.

use std::fs;
use std::path::Path;

/// dpkg's database: the files of each package in `info`, the packages with their versions in `status`.
const DATABASE: &str = "/var/lib/dpkg";

/// A package that is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// Such as `libphp8.2-embed`.
    pub name: String,
    /// Such as `8.2.36-1~deb12u1`.
    pub version: String,
}

impl Package {
    /// The package that `library`, a libphp, is from. `None`: it is of no package of PHP, or this system has no dpkg.
    pub fn of(library: &Path) -> Option<Self> {
        Self::in_database(Path::new(DATABASE), library)
    }

    fn in_database(database: &Path, library: &Path) -> Option<Self> {
        let library = library.canonicalize().ok()?;
        let lists = fs::read_dir(database.join("info")).ok()?.flatten();
        let name = lists
            .filter_map(|entry| Some((package_of_php(entry.file_name().to_str()?)?, entry.path())))
            .find(|(_, list)| names(list, &library))?
            .0;
        let version = version(&fs::read_to_string(database.join("status")).ok()?, &name)?;
        Some(Self { name, version })
    }
}

/// Of the name of a list: `libphp8.2-embed.list`, or `libphp8.2-embed:amd64.list`.
fn package_of_php(list: &str) -> Option<String> {
    let name = list.strip_suffix(".list")?;
    let name = name.split_once(':').map_or(name, |(name, _)| name);
    name.starts_with("libphp").then(|| name.to_owned())
}

/// Whether the list names the file, by whatever links lead to it.
fn names(list: &Path, library: &Path) -> bool {
    let text = fs::read_to_string(list).unwrap_or_default();
    let mut same_name = text.lines().map(Path::new).filter(|path| path.file_name() == library.file_name());
    same_name.any(|path| path.canonicalize().is_ok_and(|path| path == library))
}

fn version(status: &str, name: &str) -> Option<String> {
    let field = |stanza: &str, field: &str| {
        let value = |line: &str| Some(line.strip_prefix(field)?.strip_prefix(": ")?.trim().to_owned());
        stanza.lines().find_map(value)
    };
    let stanza = status.split("\n\n").find(|stanza| field(stanza, "Package").as_deref() == Some(name))?;
    field(stanza, "Version")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_found_in_dpkg_s_database_with_its_version() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let (library, other) = (root.join("libphp8.2.so"), root.join("libphp.so"));
        fs::write(&library, "").unwrap();
        fs::write(&other, "").unwrap();
        fs::create_dir(root.join("info")).unwrap();
        let list = |name: &str, text: String| fs::write(root.join("info").join(name), text).unwrap();
        list("libphp8.2-embed:amd64.list", format!("/.\n{}\n", library.display()));
        list("zlib1g:amd64.list", format!("/.\n{}\n", other.display()));
        let status = "Package: libphp8.2-embed-dbg\nVersion: 1\n\n\
            Package: libphp8.2-embed\nStatus: install ok installed\nVersion: 8.2.36-1~deb12u1\n";
        fs::write(root.join("status"), status).unwrap();
        let found = Package::in_database(&root, &library).expect("its package is there");
        assert_eq!((found.name.as_str(), found.version.as_str()), ("libphp8.2-embed", "8.2.36-1~deb12u1"));
        assert_eq!(Package::in_database(&root, &other), None);
        assert_eq!(Package::in_database(&root, Path::new("/nonexistent/libphp8.2.so")), None);
    }
}
