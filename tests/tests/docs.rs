//! What the documents show works as it stands there.
#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};

/// The blocks of one language in a page, in order.
fn blocks(page: &Path, language: &str) -> Vec<String> {
    let text = fs::read_to_string(page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
    let fence = format!("```{language}\n");
    text.split(&fence).skip(1).filter_map(|rest| rest.split("```").next()).map(str::to_owned).collect()
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[test]
fn the_configurations_in_the_documents_are_valid() {
    let mut found = 0;
    for page in ["README.md", "docs/worker.md", "docs/operations.md", "docs/error-pages.md"] {
        for configuration in blocks(&repository().join(page), "caddyfile") {
            found += 1;
            let directory = tempfile::tempdir().unwrap();
            fs::create_dir(directory.path().join("public")).unwrap();
            fs::write(directory.path().join("public/worker.php"), "<?php").unwrap();
            fs::write(directory.path().join("Caddyfile"), &configuration).unwrap();
            let output = regent_tests::regent_command(directory.path())
                .args(["validate", "--config", "Caddyfile"])
                .output()
                .unwrap();
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{page}:\n{configuration}\n{errors}");
        }
    }
    assert!(found >= 3, "only {found} configurations were found");
}
