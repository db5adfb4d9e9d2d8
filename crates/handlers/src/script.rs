//! Where in a path the script's name ends (`split_path`).

/// The endings that make a path segment a script's name: `.php`.
#[derive(Debug, Clone)]
pub(crate) struct Split(Vec<Vec<u8>>);

impl Split {
    pub(crate) fn new(endings: &[String]) -> Self {
        Self(
            endings
                .iter()
                .filter(|ending| !ending.is_empty())
                .map(|ending| ending.clone().into_bytes())
                .collect(),
        )
    }

    /// Length of the script's part of a path: up to the end of the first *segment* that has one of the endings.
    ///
    /// Only whole segments count (`/x.phpfoo/y` names no script), and case does not, byte by byte: lower-casing by
    /// Unicode's rules changes lengths, and with them the place of the cut.
    pub(crate) fn position(&self, path: &[u8]) -> Option<usize> {
        let mut end = 0;
        for segment in path.split(|byte| *byte == b'/') {
            end += segment.len();
            if self.is_script(segment) {
                return Some(end);
            }
            end += 1;
        }
        None
    }

    /// Whether a file of this name may hold source code, also where a client has put dots or spaces behind it.
    pub(crate) fn hides(&self, name: &[u8]) -> bool {
        let mut name = name;
        while let [rest @ .., b'.' | b' '] = name {
            name = rest;
        }
        self.is_script(name)
    }

    /// Whether a name, or the last name of a path, has one of the endings.
    pub(crate) fn is_script(&self, name: &[u8]) -> bool {
        self.0.iter().any(|ending| {
            name.len() >= ending.len() && name[name.len() - ending.len()..].eq_ignore_ascii_case(ending)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cut_behind_a_segment() {
        let split = Split::new(&[".php".into()]);
        for (path, want) in [
            ("/index.php", Some(10)),
            ("/index.PHP/info", Some(10)),
            ("/a.php/b.php", Some(6)),
            ("/a.phpx/b", None),
            ("/a.php.txt", None),
            ("/a", None),
            ("/", None),
            ("/a.php/", Some(6)),
        ] {
            assert_eq!(split.position(path.as_bytes()), want, "{path}");
        }
    }

    #[test]
    fn sources_are_known_by_their_names() {
        let split = Split::new(&[".php".into()]);
        for name in ["x.php", "x.PhP", "x.php.", "x.php. .", "x.php "] {
            assert!(split.hides(name.as_bytes()), "{name}");
        }
        assert!(!split.hides(b"x.php.txt"));
        assert!(!Split::new(&[]).hides(b"x.php"));
    }
}
