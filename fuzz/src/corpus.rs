//! Where seeds and words come from.

use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};

/// What the mutations of a target begin with.
pub struct Corpus {
    /// In the order of their names.
    pub seeds: Vec<Vec<u8>>,
    /// Words that random bytes would hardly ever make.
    pub words: Vec<Vec<u8>>,
}

/// Seeds above this size make a run slow and hardly better.
const LARGEST: u64 = 16 * 1024;

impl Corpus {
    /// Reads `corpus/NAME/`, the directories of the tree that `corpus/NAME.also` names one a line, and
    /// `dictionaries/NAME.dict`, of which the last two need not exist.
    pub fn of(target: &str) -> Result<Self> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut files = files(&here.join("corpus").join(target))?;
        for directory in lines(&here.join("corpus").join(format!("{target}.also"))) {
            files.extend(self::files(&repository().join(directory))?);
        }
        let seeds: Vec<_> = files.iter().map(fs::read).collect::<Result<_, _>>()?;
        ensure!(!seeds.is_empty(), "there are no seeds in fuzz/corpus/{target}");
        let entries = lines(&here.join("dictionaries").join(format!("{target}.dict")));
        let words = entries.iter().filter_map(|entry| word(entry)).collect();
        Ok(Self { seeds, words })
    }
}

/// The files that configurations and requests of the targets find.
pub fn fixtures() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures"))
}

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory).with_context(|| format!("reading {}", directory.display()))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let metadata = path.metadata()?;
        if metadata.is_file() && metadata.len() <= LARGEST {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Those that are neither empty nor comments; none if there is no such file.
fn lines(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(str::to_owned)
        .collect()
}

/// A word of libFuzzer's dictionaries: `"…"`, or `name="…"`, with `\\`, `\"` and `\xAB`.
fn word(entry: &str) -> Option<Vec<u8>> {
    let quoted = &entry[entry.find('"')?..];
    let mut bytes = quoted.strip_prefix('"')?.strip_suffix('"')?.bytes();
    let mut word = Vec::new();
    while let Some(byte) = bytes.next() {
        word.push(match byte {
            b'\\' => match bytes.next()? {
                b'x' => hex(bytes.next()?)? << 4 | hex(bytes.next()?)?,
                other => other,
            },
            byte => byte,
        });
    }
    Some(word)
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_libfuzzer_does() {
        assert_eq!(word(r#""GET ""#), Some(b"GET ".to_vec()));
        assert_eq!(word(r#"end="\x0d\x0a\\\"""#), Some(b"\r\n\\\"".to_vec()));
        assert_eq!(word("no word"), None);
    }
}
