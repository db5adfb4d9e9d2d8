//! Caddyfile in, configuration or messages out: every `golden/*.caddyfile` has its result beside it.
//!
//! Lines at the top of a file such as `# env NAME=value` set environment variables; `APP` is the working directory. To accept changed results, run with
//! `INSTA_UPDATE=always`.

use regent_config::{Environment, Errors, Loaded, parse};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const DIRECTORY: &str = "tests/golden";
const FILES: &[&str] = &[
    "public/index.php",
    "public/worker.php",
    "public/frankenphp-worker.php",
    "modules/libhello.so",
    "modules/libdb.so.2",
];

#[test]
fn golden_files() {
    let app = tempfile::tempdir().unwrap();
    ["public", "modules"].iter().for_each(|name| fs::create_dir(app.path().join(name)).unwrap());
    FILES.iter().for_each(|file| fs::write(app.path().join(file), "").unwrap());

    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("golden");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for name in names() {
            let text = fs::read_to_string(format!("{DIRECTORY}/{name}.caddyfile")).unwrap();
            let mut variables = variables(&text);
            variables.insert("APP".into(), app.path().to_str().unwrap().into());
            let environment = Environment { variables, current_dir: app.path().to_owned() };
            let result = show(parse("Caddyfile", &text, Path::new(DIRECTORY), &environment));
            insta::assert_snapshot!(name.as_str(), portable(&result, app.path()));
        }
    });
}

#[test]
fn no_part_of_a_file_is_a_crash() {
    let environment = Environment { variables: BTreeMap::new(), current_dir: "/app".into() };
    for name in names() {
        let text = fs::read_to_string(format!("{DIRECTORY}/{name}.caddyfile")).unwrap();
        let cuts = (0..text.len()).step_by(7).filter(|cut| text.is_char_boundary(*cut));
        for cut in cuts {
            for part in [&text[..cut], &text[cut..]] {
                if let Err(errors) = parse("Caddyfile", part, Path::new(DIRECTORY), &environment) {
                    assert!(!errors.to_string().is_empty());
                }
            }
        }
    }
}

fn names() -> Vec<String> {
    let entries =
        fs::read_dir(DIRECTORY).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> =
        entries.filter_map(|name| Some(name.strip_suffix(".caddyfile")?.to_owned())).collect();
    names.sort();
    assert!(names.len() > 10, "{names:?}");
    names
}

fn variables(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().map_while(|line| line.strip_prefix("# env "));
    let pairs = lines.filter_map(|line| line.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.replace("\\n", "\n"))).collect()
}

fn show(result: Result<Loaded, Errors>) -> String {
    match result {
        Ok(loaded) => {
            let warnings: String = loaded.warnings.iter().map(|warning| format!("{warning}\n")).collect();
            warnings + &serde_json::to_string_pretty(&loaded.config).unwrap()
        }
        Err(errors) => errors.to_string(),
    }
}

/// Without the directories of this machine.
fn portable(text: &str, app: &Path) -> String {
    let golden = Path::new(DIRECTORY).canonicalize().unwrap();
    text.replace(app.to_str().unwrap(), "/app").replace(golden.to_str().unwrap(), "/golden")
}
