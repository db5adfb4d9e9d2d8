//! What a Caddyfile means is what its JSON means: a configuration goes to Caddy's JSON and back and is the same.
//!
//! What differs in words only is evened out first; `even` says what. [`DIFFERENT`] has the few places in which something else
//! comes back, with the reasons.

use regent_adapt::adapt;
use regent_config::{Config, Environment, Loaded, parse, parse_json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Files that are there for Caddyfiles to name.
const FILES: &[&str] = &[
    "public/index.php",
    "public/worker.php",
    "public/frankenphp-worker.php",
    "modules/libhello.so",
    "modules/libdb.so.2",
    "a.pem",
    "a.key",
    "b.pem",
    "b.key",
    "ca.pem",
    "leaf.pem",
];

/// Files of which a part comes back as something else, and why that is so.
const DIFFERENT: &[(&str, &str)] = &[
    ("golden/rewrites.caddyfile", TRIED_WITH_QUERIES),
    ("try-files.caddyfile", TRIED_WITH_QUERIES),
    (
        "golden/https.caddyfile",
        "beside a site for any host on demand, a name that shares a wildcard's certificate gets its own",
    ),
    (
        "forward-auth.caddyfile",
        "what `copy_headers` copies is changes of headers with conditions in Caddy's JSON",
    ),
];
const TRIED_WITH_QUERIES: &str = "a file with a query is a rewrite of its own in Caddy's JSON";

#[test]
fn caddyfiles_come_back_as_they_were() {
    let app = app();
    let mut failed = String::new();
    let mut count = 0;
    for path in caddyfiles() {
        let Some(config) = configuration(&path, app.path()) else { continue };
        count += 1;
        let name = path.display().to_string();
        let is_different = DIFFERENT.iter().any(|(file, _)| name.ends_with(file));
        let back = match back(&config, app.path()) {
            Ok(back) => back,
            Err(_) if is_different => continue,
            Err(errors) => {
                failed.push_str(&format!("{name}:\n{errors}\n"));
                continue;
            }
        };
        let (before, after) = (crate::even::config(&sorted(config)), crate::even::config(&sorted(back)));
        if (before == after) == is_different {
            failed.push_str(&format!("{name}:\n{}", crate::even::differences(&before, &after)));
        }
    }
    assert!(failed.is_empty(), "{failed}");
    assert!(count > 40, "{count}");
}

#[test]
fn a_site_with_several_logs_kept_one_of_them() {
    let app = app();
    let logs = [
        "log",
        "log {\noutput stdout\n}",
        "log {\noutput file access.log\n}",
        "log shop {\noutput stderr\nformat console\n}",
        "log shop {\noutput discard\n}",
        "log shop",
    ];
    let mut failed = Vec::new();
    for address in [":80", "http://a.example, http://b.example", ":80 {\nlog\nrespond y\n}\nhttp://a.example"]
    {
        for (first, second) in logs.iter().flat_map(|first| logs.iter().map(move |second| (first, second))) {
            for global in ["", "{\nlog other {\noutput stdout\n}\n}\n"] {
                let text = format!("{global}{address} {{\n{first}\n{second}\nrespond x\n}}");
                let config =
                    parse("Caddyfile", &text, app.path(), &environment("", app.path())).unwrap().config;
                let after = back(&config, app.path()).unwrap();
                if first != second && logs_of(&config) != logs_of(&after) {
                    failed.push(text);
                }
            }
        }
    }
    assert!(failed.is_empty(), "{} lose something:\n{}", failed.len(), failed.join("\n\n"));
}

#[test]
fn a_site_for_any_host_without_a_route_lost_its_log() {
    let app = app();
    for text in [
        "http://a.example {\nrespond x\n}\nhttp:// {\nlog {\noutput file all.log\n}\n}",
        "http://a.example {\n}\nhttp:// {\nlog\nlog other\n}",
        "http:// {\nlog\n}",
    ] {
        let config = parse("Caddyfile", text, app.path(), &environment("", app.path())).unwrap().config;
        assert_eq!(logs_of(&config), logs_of(&back(&config, app.path()).unwrap()), "{text}");
    }
}

#[test]
fn what_is_adapted_on_one_machine_means_on_another_what_it_says() {
    let app = app();
    let of = |home: &str, directory: &str| {
        let variables = BTreeMap::from([("HOME".to_owned(), home.to_owned())]);
        Environment { variables, current_dir: directory.into() }
    };
    let text = "{\nregent {\nuser no-such-user no-such-group\n}\n}\n\
                localhost {\nmercure {\nanonymous\ntransport bolt\npublisher_jwt 0123456789abcdef0123456789abcdef\n}\n}";
    let built = parse("Caddyfile", text, app.path(), &of("/root", "/build")).unwrap().config;
    let json = adapt(&built).to_string();
    for name in ["/root", "/build", "4294967295"] {
        assert!(!json.contains(name), "{name} in {json}");
    }
    let there = of("/var/www", "/app");
    let run = parse_json("caddy.json", &json, app.path(), &there).unwrap().config;
    assert_eq!(run.global.tls.storage, Path::new("/var/www/.local/share/caddy"));
    assert_eq!(run, parse("Caddyfile", text, app.path(), &there).unwrap().config);
    let named = "{\nstorage file_system /data\n}\nlocalhost {\n}";
    let named = parse("Caddyfile", named, app.path(), &of("/root", "/build")).unwrap().config;
    assert_eq!(adapt(&named)["storage"]["root"], "/data");
}

/// By the hosts of sites, which come in another order.
fn logs_of(config: &Config) -> BTreeMap<&[String], &[regent_config::LogConfig]> {
    let sites = config.servers.iter().flat_map(|server| &server.sites);
    sites.map(|site| (&site.hosts[..], &site.access_logs[..])).collect()
}

/// With those of the server's logs that have names in the order of these: members of an object have none.
fn sorted(mut config: Config) -> Config {
    config.global.logs.sort_by(|one, other| one.name.cmp(&other.name));
    config
}

fn app() -> tempfile::TempDir {
    let app = tempfile::tempdir().unwrap();
    ["public", "modules", "pairs"].iter().for_each(|name| fs::create_dir(app.path().join(name)).unwrap());
    FILES.iter().for_each(|file| fs::write(app.path().join(file), "").unwrap());
    app
}

fn caddyfiles() -> Vec<PathBuf> {
    let others = [
        "../../examples/demo/Caddyfile",
        "../../packaging/debian/Caddyfile",
        "../../packaging/image/Caddyfile",
    ];
    let directories = ["../config/tests/golden", "../config/tests/json"];
    let files = directories.iter().flat_map(|directory| fs::read_dir(directory).unwrap());
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "caddyfile"));
    files.sort();
    files.extend(others.map(PathBuf::from));
    files
}

/// `None`: the file is there for its mistakes.
fn configuration(path: &Path, app: &Path) -> Option<Config> {
    let text = fs::read_to_string(path).unwrap();
    let loaded = parse("Caddyfile", &text, path.parent().unwrap(), &environment(&text, app));
    assert!(loaded.is_ok() || path.starts_with("../config"), "{}: {loaded:?}", path.display());
    loaded.ok().map(|loaded| loaded.config)
}

fn back(config: &Config, app: &Path) -> Result<Config, String> {
    let json = serde_json::to_string_pretty(&adapt(config)).unwrap();
    let loaded = parse_json("caddy.json", &json, app, &environment("", app));
    loaded.map(|Loaded { config, .. }| config).map_err(|errors| errors.to_string())
}

/// With the variables that lines `# env NAME=value` set.
fn environment(text: &str, app: &Path) -> Environment {
    let lines = text.lines().filter_map(|line| line.strip_prefix("# env "));
    let pairs = lines.filter_map(|line| line.split_once('='));
    let mut variables: BTreeMap<_, _> =
        pairs.map(|(name, value)| (name.to_owned(), value.replace("\\n", "\n"))).collect();
    variables.insert("APP".into(), app.display().to_string());
    Environment { variables, current_dir: app.to_owned() }
}
