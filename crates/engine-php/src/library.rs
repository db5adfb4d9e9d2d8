//! The file of libphp that this program has loaded.

use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// `None`: the system does not say, or the file is gone by now.
pub fn loaded() -> Option<PathBuf> {
    in_maps(&fs::read_to_string("/proc/self/maps").ok()?)
}

/// Writes it to the standard output.
pub fn print() -> Result<()> {
    let library = loaded().context("/proc/self/maps names no libphp")?;
    println!("{}", library.display());
    Ok(())
}

/// A line of proc(5) ends with the path of the file, if there is one.
fn in_maps(maps: &str) -> Option<PathBuf> {
    let paths = maps.lines().filter_map(|line| Some(Path::new(&line[line.find('/')?..])));
    let is_libphp = |path: &&Path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("libphp") && name.ends_with(".so")
    };
    paths.filter(is_libphp).map(Path::to_owned).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_told_from_other_files_and_from_one_that_is_gone() {
        let maps = |path: &str| {
            format!("7f00-7f01 r--p 00000000 08:01 42  {path}\n7f02-7f03 rw-p 00000000 00:00 0\n")
        };
        for (path, expected) in [
            ("/usr/lib/libphp8.2.so", Some("/usr/lib/libphp8.2.so")),
            ("/home/me/my php/lib/libphp.so", Some("/home/me/my php/lib/libphp.so")),
            ("/usr/lib/libphp8.2.so (deleted)", None),
            ("/usr/lib/php/20220829/opcache.so", None),
            ("[heap]", None),
        ] {
            assert_eq!(in_maps(&maps(path)), expected.map(PathBuf::from), "{path}");
        }
    }

    #[test]
    fn the_libphp_of_this_program_is_found() {
        assert!(loaded().is_some_and(|library| library.is_file()));
    }
}
