//! Where in a path the script's name ends (`split_path`).

/// Endings of files that hold PHP's source code by custom, or on other servers, whether this site runs them or not.
const CUSTOMARY: [&str; 11] =
    [".php", ".php3", ".php4", ".php5", ".php7", ".php8", ".phtml", ".pht", ".phps", ".phar", ".inc"];

/// Endings of files that no editor and no person gives to a copy of a script: what is made of sources to be published, and
/// sums and signatures of archives. Everything else behind a script's name may be a copy.
const HARMLESS: [&str; 39] = [
    "html", "htm", "xhtml", "css", "js", "mjs", "map", "json", "xml", "svg", "png", "jpg", "jpeg", "gif",
    "webp", "avif", "ico", "bmp", "woff", "woff2", "ttf", "otf", "eot", "mp3", "mp4", "m4a", "ogg", "wav",
    "webm", "pdf", "md5", "sha1", "sha256", "sha384", "sha512", "asc", "sig", "minisig", "pubkey",
];

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

    /// Whether a file of this name may hold source code that is not run: a copy that an editor or a person has made of a
    /// script (`x.php~`, `x.php.bak`, `x.php_old`), or a script by another name (`x.phtml`).
    ///
    /// The last ending decides whether a file is of another kind (`User.php.html`). It is taken as it is: one with a dot,
    /// a space or `~` behind it is none of those. A script may have such an ending itself.
    pub(crate) fn hides_copies(&self, name: &[u8]) -> bool {
        let is_named = has_customary_ending(name) || self.0.iter().any(|ending| is_in_name(ending, name));
        is_named && (self.is_script(name) || !has_harmless_ending(name))
    }

    /// Whether a name, or the last name of a path, has one of the endings.
    pub(crate) fn is_script(&self, name: &[u8]) -> bool {
        self.0.iter().any(|ending| {
            name.len() >= ending.len() && name[name.len() - ending.len()..].eq_ignore_ascii_case(ending)
        })
    }
}

fn has_harmless_ending(name: &[u8]) -> bool {
    let last = name.iter().rposition(|byte| *byte == b'.').map_or(&[][..], |dot| &name[dot + 1..]);
    HARMLESS.iter().any(|ending| last.eq_ignore_ascii_case(ending.as_bytes()))
}

/// Looks behind dots alone, and there first for the letter that all these endings begin with: every file is asked about.
fn has_customary_ending(name: &[u8]) -> bool {
    let dots = name.iter().enumerate().filter(|(_, byte)| **byte == b'.').map(|(at, _)| at);
    let may_begin = |at: &usize| matches!(name.get(at + 1), Some(b'p' | b'P' | b'i' | b'I'));
    let begins = |at: usize, ending: &str| {
        let rest = name[at..].get(..ending.len());
        rest.is_some_and(|part| part.eq_ignore_ascii_case(ending.as_bytes()))
            && is_followed_by_no_name(ending.as_bytes(), &name[at + ending.len()..])
    };
    dots.filter(may_begin).any(|at| CUSTOMARY.iter().any(|ending| begins(at, ending)))
}

/// Whether the ending is in the name, and no letter or digit follows it. One of `.inc` ends the name: `x.inc.js` is
/// a script for browsers.
fn is_in_name(ending: &[u8], name: &[u8]) -> bool {
    let places =
        name.windows(ending.len()).enumerate().filter(|(_, part)| part[0].eq_ignore_ascii_case(&ending[0]));
    places
        .filter(|(_, part)| part.eq_ignore_ascii_case(ending))
        .any(|(at, _)| is_followed_by_no_name(ending, &name[at + ending.len()..]))
}

fn is_followed_by_no_name(ending: &[u8], rest: &[u8]) -> bool {
    match rest {
        [] | [b'~', ..] => true,
        [next, ..] => ending != b".inc" && !next.is_ascii_alphanumeric(),
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

    #[test]
    fn copies_of_sources_are_known_by_their_names() {
        let split = Split::new(&[".php".into(), ".hh".into()]);
        for name in [
            "x.php",
            "x.php~",
            "x.PHP.bak",
            "x.php.swp",
            "x.php.save",
            "x.php.orig",
            "x.php.dist",
            "x.php.txt",
            "x.php_old",
            "x.php-1",
            "#x.php#",
            "x.php copy",
            "x.php.2024",
            "x.php.",
            "x.hh.bak",
            "x.phtml",
            "x.phtml~",
            "x.phar",
            "x.phar.gz",
            "x.inc",
            "x.inc~",
            "x.php5",
            "x.PHPS",
            "wp-config.php.gz",
            "x.php.html.bak",
            "x.php.html~",
            "x.php.html.",
            "x.php.html ",
            "x.php.html.php",
            "x.php.zip",
            "x.php.unknown",
            "x.phar.tar",
            "x.php.md",
            "html.php.TXT",
        ] {
            assert!(split.hides_copies(name.as_bytes()), "{name}");
        }
        for name in
            ["x.phpx", "php", "x.js", "php.js", "jquery.inc.js", "x.incl", "phar.html", "x.php5x", "~", ""]
        {
            assert!(!split.hides_copies(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn a_file_of_another_kind_is_no_copy_because_of_a_script_s_name_in_its_own() {
        let split = Split::new(&[".php".into()]);
        for name in [
            "User.php.html",
            "User.PHP.HTML",
            "wp-config.php_.png",
            "style.php.css",
            "app.php.js",
            "app.php.js.map",
            "composer.phar.sha256",
            "composer.phar.asc",
            "box.phar.pubkey",
            "coverage.php.xml",
            "shell.php.jpg",
            "x.phtml.svg",
        ] {
            assert!(!split.hides_copies(name.as_bytes()), "{name}");
            assert_eq!(split.position(format!("/{name}").as_bytes()), None, "{name} is not run either");
        }
    }
}
