//! What holds for any text whatever.

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use regent_caddyfile::{File, Line, Source, format, parse};
use std::path::Path;

fn tree(text: &str) -> Option<(File, usize)> {
    let source = Source::from_text("Caddyfile", text, Path::new("nowhere"));
    parse(source, &|name| (name == "A").then(|| "x {\ny\n".to_owned()))
        .ok()
        .map(|parsed| (parsed.file, parsed.errors.len()))
}

fn words(lines: &[Line], out: &mut Vec<String>) {
    for line in lines {
        out.push("<line>".to_owned());
        out.extend(
            std::iter::once(&line.name)
                .chain(&line.args)
                .map(|token| format!("{}{}", token.quoted, token.text)),
        );
        if let Some(block) = &line.block {
            out.push("<block>".to_owned());
            words(block, out);
            out.push("<end>".to_owned());
        }
    }
}

fn all_words(file: &File) -> Vec<String> {
    let mut out = Vec::new();
    words(&file.global, &mut out);
    for site in &file.sites {
        out.push("<site>".to_owned());
        out.extend(site.addresses.iter().map(|token| token.text.clone()));
        words(&site.lines, &mut out);
    }
    out
}

/// Texts made of what the language gives a meaning to, which random characters would hardly ever hit.
fn caddyfile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("{"),
        Just("}"),
        Just("{\n"),
        Just("}\n"),
        Just("\n"),
        Just("\n\n\n"),
        Just(" "),
        Just("\t"),
        Just("\r\n"),
        Just("\\"),
        Just("\\\n"),
        Just("\\\n\n"),
        Just("\""),
        Just("\"a b\""),
        Just("`"),
        Just("`a\nb`"),
        Just("<<E"),
        Just("<<E\n  x\n  E"),
        Just("E\n"),
        Just("#"),
        Just("# c\n"),
        Just("import "),
        Just("(s)"),
        Just("import s"),
        Just("{args[0]}"),
        Just("{args[:]}"),
        Just("{block}"),
        Just("{$A}"),
        Just("{$B:c"),
        Just(","),
        Just("a"),
        Just("a b"),
        Just("\\<"),
        Just("é"),
        Just("\u{feff}"),
        Just("\u{a0}"),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig {
        // Beside this file: proptest finds no lib.rs or main.rs above it, as it does elsewhere.
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("proptest-regressions"))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn parsing_never_panics(text in any::<String>()) {
        tree(&text);
    }

    #[test]
    fn parsing_caddyfiles_never_panics(text in caddyfile()) {
        tree(&text);
    }

    #[test]
    fn formatting_is_stable(text in prop_oneof![any::<String>(), caddyfile()]) {
        if let Ok(once) = format("Caddyfile", &text) {
            prop_assert_eq!(&format("Caddyfile", &once).unwrap(), &once, "of {:?}", text);
        }
    }

    /// Only for texts without mistakes: braces on wrong lines are what the formatter repairs.
    #[test]
    fn formatting_changes_no_meaning(text in caddyfile()) {
        let text = text.replace("{$", "");
        if let Some((before, 0)) = tree(&text) {
            let formatted = format("Caddyfile", &text).unwrap();
            let (after, errors) = tree(&formatted).unwrap();
            prop_assert_eq!(errors, 0, "{:?} became {:?}", text, formatted);
            prop_assert_eq!(all_words(&before), all_words(&after), "{:?} became {:?}", text, formatted);
        }
    }
}
