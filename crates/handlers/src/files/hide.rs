//! Files that the static file server does not show.

use crate::context::exchange::Exchange;
use crate::error::BuildError;
use crate::paths::glob::Glob;
use crate::paths::script::Split;
use crate::templates::text::Text;
use regent_config::Template;

/// Dot-files, sources, and what `hide` names.
#[derive(Debug)]
pub(crate) struct Hide {
    patterns: Vec<HidePattern>,
    sources: Sources,
}

/// What passes for source code.
#[derive(Debug, Clone)]
pub(crate) enum Sources {
    /// What the site runs.
    Scripts(Split),
    /// That, and copies of it by whatever name.
    Copies(Split),
}

#[derive(Debug, Clone)]
enum HidePattern {
    /// Without a slash: any file or directory of that name, wherever it is.
    Name(Glob),
    /// With a slash: that path, absolute or below the root, and all below it.
    Path {
        text: Vec<u8>,
        glob: Glob,
    },
    Computed(Text),
}

impl Hide {
    pub(crate) fn compile(patterns: &[Template], sources: Sources) -> Result<Self, BuildError> {
        let compile = |template: &Template| {
            let text = Text::compile(template);
            match text.literal() {
                Some(literal) => {
                    HidePattern::parse(literal.as_bytes()).ok_or_else(|| BuildError::Glob(literal.to_owned()))
                }
                None => Ok(HidePattern::Computed(text)),
            }
        };
        Ok(Self { patterns: patterns.iter().map(compile).collect::<Result<_, _>>()?, sources })
    }

    /// What is hidden from this request, for a thread that does not have it.
    pub(crate) fn of_request(&self, exchange: &Exchange) -> Self {
        let settle = |pattern: &HidePattern| match pattern {
            HidePattern::Computed(text) => HidePattern::parse(&text.render(exchange)),
            fixed => Some(fixed.clone()),
        };
        Self { patterns: self.patterns.iter().filter_map(settle).collect(), sources: self.sources.clone() }
    }

    /// As [`Self::hides`], once it is [of a request](Self::of_request).
    pub(crate) fn hides_settled(&self, relative: &[u8], absolute: &[u8]) -> bool {
        self.hides_always(relative)
            || self.patterns.iter().any(|pattern| pattern.hides_settled(relative, absolute) == Some(true))
    }

    /// Whether the file at this decoded path below the root is hidden. `absolute` is where it is on the disk.
    pub(crate) fn hides(&self, exchange: &Exchange, relative: &[u8], absolute: &[u8]) -> bool {
        self.hides_always(relative)
            || self.patterns.iter().any(|pattern| pattern.hides(exchange, relative, absolute))
    }

    fn hides_always(&self, relative: &[u8]) -> bool {
        let mut segments = relative.split(|byte| *byte == b'/').filter(|segment| !segment.is_empty());
        let mut first = true;
        let dotted = segments.any(|segment| {
            let well_known = std::mem::take(&mut first) && segment == b".well-known";
            segment.starts_with(b".") && !well_known
        });
        let name = relative.rsplit(|byte| *byte == b'/').find(|segment| !segment.is_empty());
        dotted || name.is_some_and(|name| self.sources.has(name))
    }
}

impl Sources {
    fn has(&self, name: &[u8]) -> bool {
        match self {
            Self::Scripts(scripts) => scripts.hides(name),
            Self::Copies(scripts) => scripts.hides(name) || scripts.hides_copies(name),
        }
    }
}

impl HidePattern {
    fn parse(text: &[u8]) -> Option<Self> {
        let glob = Glob::parse(text)?;
        if text.contains(&b'/') {
            let text = text.strip_prefix(b"./").unwrap_or(text);
            let text = text.strip_suffix(b"/").unwrap_or(text).to_vec();
            Some(Self::Path { text, glob })
        } else {
            Some(Self::Name(glob))
        }
    }

    fn hides(&self, exchange: &Exchange, relative: &[u8], absolute: &[u8]) -> bool {
        self.hides_settled(relative, absolute).unwrap_or_else(|| match self {
            Self::Computed(text) => Self::parse(&text.render(exchange))
                .is_some_and(|pattern| pattern.hides_settled(relative, absolute) == Some(true)),
            Self::Name(_) | Self::Path { .. } => false,
        })
    }

    /// `None`: that takes the request.
    fn hides_settled(&self, relative: &[u8], absolute: &[u8]) -> Option<bool> {
        match self {
            Self::Name(glob) => Some(
                relative
                    .split(|byte| *byte == b'/')
                    .any(|segment| !segment.is_empty() && glob.matches(segment)),
            ),
            Self::Path { text, glob } => Some(
                [absolute, relative, relative.strip_prefix(b"/").unwrap_or(relative)]
                    .into_iter()
                    .any(|path| is_below(path, text) || glob.matches(path)),
            ),
            Self::Computed(_) => None,
        }
    }
}

fn is_below(path: &[u8], directory: &[u8]) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::exchange::tests::get;

    fn hidden(patterns: &[&str], relative: &str) -> bool {
        let patterns: Vec<_> = patterns.iter().map(|text| Template::text(*text)).collect();
        let hide = Hide::compile(&patterns, Sources::Scripts(Split::new(&[".php".into()]))).unwrap();
        hide.hides(&get("/"), relative.as_bytes(), format!("/srv/.app{relative}").as_bytes())
    }

    #[test]
    fn dot_files_and_scripts_are_always_hidden() {
        for path in
            ["/.env", "/.git/config", "/a/.htaccess", "/x.php", "/x.PHP", "/a/x.php.", "/.well-known/.secret"]
        {
            assert!(hidden(&[], path), "{path}");
        }
        for path in ["/", "/a", "/a..b", "/.well-known/acme-challenge/x", "/x.phps"] {
            assert!(!hidden(&[], path), "{path}");
        }
    }

    #[test]
    fn patterns_hide_names_and_paths() {
        for (pattern, path, want) in [
            ("*.bak", "/a/b.BAK", true),
            ("secret", "/a/secret/b", true),
            ("secret", "/a/secrets", false),
            ("/private", "/private/x", true),
            ("/private", "/privateer", false),
            ("/srv/.app/private", "/private/x", true),
            ("./private/", "/private/x", true),
            ("/a/*.txt", "/a/b.txt", true),
        ] {
            assert_eq!(hidden(&[pattern], path), want, "{pattern} {path}");
        }
    }
}
