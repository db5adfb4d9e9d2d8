//! The `Content-Type` of a file, by the ending of its name.

use crate::paths::url_path;
use http::HeaderValue;
use mime_guess::MimeGuess;
use rustc_hash::FxHashMap;

/// Endings that are looked up once, when a server is compiled: the search through all that `mime_guess` knows takes as
/// long as opening the file.
const COMMON: &str = "html css js mjs json map txt xml svg png jpg jpeg gif webp avif ico woff woff2 ttf otf pdf wasm \
                      mp3 mp4 webm zip webmanifest";

/// Types that IANA has registered, where `mime_guess` has others.
const REGISTERED: [(&str, &str); 14] = [
    ("ts", "video/mp2t"),
    ("m3u8", "application/vnd.apple.mpegurl"),
    ("mpd", "application/dash+xml"),
    ("m4s", "video/iso.segment"),
    ("m4a", "audio/mp4"),
    ("woff", "font/woff"),
    ("woff2", "font/woff2"),
    ("otf", "font/otf"),
    ("ttf", "font/ttf"),
    ("mjs", "text/javascript"),
    ("cjs", "text/javascript"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    ("toml", "application/toml"),
];

/// Types by ending.
#[derive(Debug)]
pub(crate) struct ContentTypes {
    common: FxHashMap<&'static [u8], HeaderValue>,
}

impl ContentTypes {
    pub(crate) fn new() -> Self {
        let endings = COMMON.split_ascii_whitespace();
        Self { common: endings.map(|ending| (ending.as_bytes(), by_ending(ending))).collect() }
    }

    /// Browsers guess the type of what has none, which turns an upload into a page with scripts, so an unknown file is
    /// bytes.
    pub(crate) fn of(&self, file: &[u8]) -> HeaderValue {
        let name = url_path::file_name(file);
        let ending = name.iter().rposition(|byte| *byte == b'.').map_or(&[][..], |dot| &name[dot + 1..]);
        match self.common.get(ending) {
            Some(kind) => kind.clone(),
            None => std::str::from_utf8(ending).map_or(BYTES, by_ending),
        }
    }
}

const BYTES: HeaderValue = HeaderValue::from_static("application/octet-stream");

fn by_ending(ending: &str) -> HeaderValue {
    let registered = REGISTERED.iter().find(|(known, _)| known.eq_ignore_ascii_case(ending));
    match registered.map(|(_, kind)| *kind).or_else(|| MimeGuess::from_ext(ending).first_raw()) {
        Some(kind) if kind.starts_with("text/") => {
            HeaderValue::try_from(format!("{kind}; charset=utf-8")).unwrap_or(HeaderValue::from_static(kind))
        }
        Some(kind) => HeaderValue::from_static(kind),
        None => BYTES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_decides() {
        let types = ContentTypes::new();
        for (file, kind) in [
            ("/a/index.html", "text/html; charset=utf-8"),
            ("/a.b/app.JS", "text/javascript; charset=utf-8"),
            ("/app.js", "text/javascript; charset=utf-8"),
            ("/x.md", "text/markdown; charset=utf-8"),
            ("/module.mjs", "text/javascript; charset=utf-8"),
            ("/a.ts", "video/mp2t"),
            ("/a.M3U8", "application/vnd.apple.mpegurl"),
            ("/a.woff", "font/woff"),
            ("/a.otf", "font/otf"),
            ("/photo.jpeg", "image/jpeg"),
            ("/a.html/plain", "application/octet-stream"),
            ("/x.", "application/octet-stream"),
            ("/x.no-such-ending", "application/octet-stream"),
        ] {
            assert_eq!(types.of(file.as_bytes()), kind, "{file}");
        }
        assert_eq!(types.of(b"/x.\xff"), "application/octet-stream");
    }

    #[test]
    fn common_endings_are_known_ones() {
        for ending in COMMON.split_ascii_whitespace() {
            assert_ne!(by_ending(ending), BYTES, "{ending}");
        }
    }
}
