//! Beside Caddy: of every Caddyfile in `crates/config/tests/json` there is the JSON that Caddy's own adapter made of it, and
//! [`adapt`] makes the same of it.
//!
//! What is no difference is evened out first; `plain` says what. [`DIFFERENT`] has the files of which something else is written,
//! with the reasons.

use regent_adapt::adapt;
use regent_config::{Environment, parse};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const DIRECTORY: &str = "../config/tests/json";

/// Files of which Caddy's adapter writes something else, and why.
const DIFFERENT: &[(&str, &str)] = &[
    ("any-and-named", "a site for any host that has names too is two: certificates are made for names"),
    ("binds", "Regent has a server for each address; Caddy one for all sites with the same addresses"),
    ("log-of-any-host", "Caddy skips `b.com:8080`, which is no host"),
    (
        "log-selection",
        "what another log includes, Caddy keeps out of the log `default`, where Regent has it still",
    ),
    ("logs", "`{env.…}` of a log is put in when the file is read, and the standard error is the default"),
    ("named-routes", "named routes are put in where they are invoked"),
    ("path-of-site", "sites by path are one site with conditions"),
    ("php-fastcgi", "a directory without a slash at its end is redirected to its whole path"),
    ("proxy", "of `service`, `proto` and `name` the model has one name"),
    (
        "redirects-off",
        "names of the local CA are made of its `name`, and an issuer for all sites stands at each of them",
    ),
    ("respond", "`redir … html` is a change of the header and a response"),
    ("tls", "names whose certificates are files have a policy of issuers in Caddy too, which nobody asks"),
    ("sites", "a loopback address as a host says where to listen too"),
];

#[test]
fn the_same_is_written_as_by_caddy() {
    let app = tempfile::tempdir().unwrap();
    for name in ["a.pem", "a.key", "b.pem", "b.key", "ca.pem", "leaf.pem"] {
        fs::write(app.path().join(name), "").unwrap();
    }
    fs::create_dir(app.path().join("pairs")).unwrap();
    let mut failed = String::new();
    for name in names() {
        let text = fs::read_to_string(format!("{DIRECTORY}/{name}.caddyfile")).unwrap();
        let loaded = parse("Caddyfile", &text, Path::new(DIRECTORY), &environment(&text, app.path()))
            .unwrap_or_else(|errors| panic!("{name}: {errors}"));
        let recorded = fs::read_to_string(format!("{DIRECTORY}/{name}.json")).unwrap();
        let caddy = crate::plain::document(serde_json::from_str(&recorded).unwrap());
        let ours = crate::plain::document(adapt(&loaded.config));
        let app = format!("{}/", app.path().display());
        let ours = serde_json::from_str(&ours.to_string().replace(&app, "")).unwrap();
        let is_different = DIFFERENT.iter().any(|(file, _)| *file == name);
        if (caddy == ours) == is_different {
            failed.push_str(&format!("{name}:\n{}", crate::even::differences(&caddy, &ours)));
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

fn environment(text: &str, app: &Path) -> Environment {
    let lines = text.lines().filter_map(|line| line.strip_prefix("# env "));
    let pairs = lines.filter_map(|line| line.split_once('='));
    let variables: BTreeMap<_, _> = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    Environment { variables, current_dir: app.to_owned() }
}
