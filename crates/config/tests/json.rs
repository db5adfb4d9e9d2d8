//! Caddy's JSON against its Caddyfile: of every `json/*.caddyfile` there is the JSON beside it that Caddy's own adapter made,
//! and both mean the same.
//!
//! What differs in words only is evened out first; `even` says what. A file that begins with `# differs:` means the same in other
//! handlers, for the reason behind it: its JSON has to be taken without a mistake, and no more is compared.
//! `# env NAME=value` sets a variable.

use regent_config::{Environment, parse, parse_json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const DIRECTORY: &str = "tests/json";

#[test]
fn adapted_files_mean_the_same() {
    let app = tempfile::tempdir().unwrap();
    for name in ["a.pem", "a.key", "b.pem", "b.key", "ca.pem", "leaf.pem"] {
        fs::write(app.path().join(name), "").unwrap();
    }
    fs::create_dir(app.path().join("pairs")).unwrap();
    let mut failed = String::new();
    for name in names() {
        let text = read(&name, "caddyfile");
        let environment = environment(&text, app.path());
        let caddyfile = parse("Caddyfile", &text, Path::new(DIRECTORY), &environment);
        let Ok(caddyfile) =
            caddyfile.map_err(|errors| failed.push_str(&format!("{name}.caddyfile:\n{errors}\n")))
        else {
            continue;
        };
        let json = match parse_json("caddy.json", &read(&name, "json"), Path::new(DIRECTORY), &environment) {
            Ok(json) => json,
            Err(errors) => {
                failed.push_str(&format!("{name}.json:\n{errors}\n"));
                continue;
            }
        };
        if text.starts_with("# differs:") {
            continue;
        }
        let (caddyfile, json) = (crate::even::config(&caddyfile.config), crate::even::config(&json.config));
        if caddyfile != json {
            failed.push_str(&format!("{name}:\n{}", crate::even::differences(&caddyfile, &json)));
        }
    }
    assert!(failed.is_empty(), "{failed}");
}

fn names() -> Vec<String> {
    let files =
        fs::read_dir(DIRECTORY).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> =
        files.filter_map(|name| Some(name.strip_suffix(".caddyfile")?.to_owned())).collect();
    names.sort();
    assert!(names.len() > 20, "{names:?}");
    names
}

fn read(name: &str, ending: &str) -> String {
    fs::read_to_string(format!("{DIRECTORY}/{name}.{ending}"))
        .unwrap_or_else(|error| panic!("{name}.{ending}: {error}"))
}

fn environment(text: &str, app: &Path) -> Environment {
    let lines = text.lines().filter_map(|line| line.strip_prefix("# env "));
    let pairs = lines.filter_map(|line| line.split_once('='));
    let variables: BTreeMap<_, _> = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    Environment { variables, current_dir: app.to_owned() }
}
