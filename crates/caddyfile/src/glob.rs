//! The file patterns of `import`: `*` and `?` in any part of a path.

use std::path::{Component, Path, PathBuf};

pub(crate) fn is_pattern(path: &str) -> bool {
    path.contains(['*', '?'])
}

/// The files that match, sorted. Directories do not count, nor do hidden files unless the pattern names the dot.
/// What cannot be read is left out, as a pattern that matches nothing is not an error.
pub(crate) fn files(pattern: &Path) -> Vec<PathBuf> {
    let mut paths = vec![PathBuf::new()];
    for component in pattern.components() {
        paths = match component {
            Component::Normal(name) if is_pattern(&name.to_string_lossy()) => {
                paths.iter().flat_map(|path| entries(path, &name.to_string_lossy())).collect()
            }
            _ => paths.iter().map(|path| path.join(component)).collect(),
        };
    }
    paths.retain(|path| path.is_file());
    paths.sort();
    paths
}

fn entries(directory: &Path, pattern: &str) -> Vec<PathBuf> {
    let readable = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let Ok(entries) = std::fs::read_dir(readable) else { return Vec::new() };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let visible = names.filter(|name| pattern.starts_with('.') || !name.starts_with('.'));
    visible.filter(|name| matches(pattern, name)).map(|name| directory.join(name)).collect()
}

/// Linear in the product of the lengths: only the last `*` is ever gone back to.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    let mut star = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(c) if *c == '?' || *c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => {
                let Some((star_p, star_n)) = star else { return false };
                star = Some((star_p, star_n + 1));
                p = star_p + 1;
                n = star_n + 1;
            }
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, name) in [("*", ""), ("*", "ab"), ("a*c", "abcbc"), ("?b", "ab"), ("*.x", "a.b.x")] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("?", ""), ("a*c", "abcb"), ("a", "ab"), ("*.x", "a.xy")] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn only_visible_files_in_order() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["b.conf", "a.conf", ".c.conf", "d.txt"] {
            std::fs::write(directory.path().join(name), "").unwrap();
        }
        std::fs::create_dir(directory.path().join("e.conf")).unwrap();
        let found = files(&directory.path().join("*.conf"));
        assert_eq!(found, [directory.path().join("a.conf"), directory.path().join("b.conf")]);
        assert!(files(&directory.path().join("none/*")).is_empty());
    }
}
