//! Opens the file of a log, and makes it and its directory if need be.

use regent_config::{LogDirectoryMode, LogFile};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// `mode`: of a file that is made.
pub(super) fn append_to(config: &LogFile, mode: Option<u32>) -> io::Result<File> {
    let path = &config.path;
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    if let Some(mode) = mode {
        options.mode(mode & 0o777);
    }
    match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            path.parent().map_or(Ok(()), |directory| make_directory(directory, config.directory_mode))?;
            options.open(path)
        }
        opened => opened,
    }
}

/// With all above it. They have the mode of the directory that is there, if that is inherited, and whoever can read one of
/// them can go through it, as in Caddy.
fn make_directory(directory: &Path, mode: Option<LogDirectoryMode>) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    match mode {
        None => {}
        Some(LogDirectoryMode::Fixed(mode)) => drop(builder.mode(mode)),
        Some(LogDirectoryMode::Inherited) => {
            let above = directory.ancestors().find_map(|above| fs::metadata(above).ok());
            let mode = above.map_or(0o700, |found| found.permissions().mode() & 0o777);
            builder.mode(mode | (mode & 0o444) >> 2);
        }
    }
    builder.create(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_made_with_a_mode_of_their_own() {
        let directory = tempfile::tempdir().unwrap();
        let above = directory.path().join("above");
        fs::create_dir(&above).unwrap();
        fs::set_permissions(&above, fs::Permissions::from_mode(0o740)).unwrap();
        for (name, mode, expected) in [
            ("fixed/a/x.log", LogDirectoryMode::Fixed(0o710), 0o710),
            ("above/a/x.log", LogDirectoryMode::Inherited, 0o750),
        ] {
            let path = directory.path().join(name);
            let config =
                LogFile { path: path.clone(), mode: None, directory_mode: Some(mode), rolling: None };
            append_to(&config, None).unwrap();
            let found = fs::metadata(path.parent().unwrap()).unwrap().permissions().mode();
            assert_eq!(found & 0o777, expected, "{name}");
        }
    }
}
