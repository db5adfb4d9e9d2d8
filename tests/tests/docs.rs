//! What the documents show works as it stands there, and so does the demo.
#![forbid(unsafe_code)]

use regent_tests::docs::{blocks, read};
use regent_tests::{Setup, regent_command};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

/// Its examples are parts of a configuration; the tests of `regent-config` are about those.
const FRAGMENTS: &str = "docs/configuration.md";
/// All pages, in the order in which they are needed.
const CONTENTS: &str = "docs/SUMMARY.md";
/// One decision a page, for those who change the server.
const DESIGN: &str = "docs/design/";

#[test]
fn the_configurations_in_the_documents_are_valid() {
    let mut found = 0;
    for page in pages().iter().filter(|page| *page != FRAGMENTS) {
        for configuration in blocks(page, "caddyfile") {
            found += 1;
            let directory = tempfile::tempdir().unwrap();
            fs::create_dir(directory.path().join("public")).unwrap();
            fs::write(directory.path().join("public/worker.php"), "<?php").unwrap();
            libraries(&configuration)
                .for_each(|library| fs::write(directory.path().join(library), "").unwrap());
            fs::write(directory.path().join("Caddyfile"), &configuration).unwrap();
            let output = validate(directory.path());
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{page}:\n{configuration}\n{errors}");
        }
    }
    assert!(found >= 9, "only {found} configurations were found");
}

#[test]
fn the_json_in_the_documents_is_json() {
    let mut found = 0;
    for page in pages() {
        for text in blocks(&page, "json") {
            found += 1;
            let values = serde_json::Deserializer::from_str(&text).into_iter::<serde_json::Value>();
            values.for_each(|value| drop(value.unwrap_or_else(|error| panic!("{page}: {error}\n{text}"))));
        }
    }
    assert!(found >= 3, "only {found} answers were found");
}

#[test]
fn links_between_the_documents_lead_somewhere() {
    let mut found = 0;
    for page in pages() {
        for link in links(&read(&page)) {
            found += 1;
            assert!(leads_somewhere(&page, &link), "{page} links to {link}, which is not there");
        }
    }
    assert!(found >= 40, "only {found} links were found");
}

#[test]
fn every_page_is_linked_from_the_table_of_contents_and_that_from_the_first() {
    assert!(
        links(&read("README.md")).iter().any(|link| link == CONTENTS),
        "README.md does not link to {CONTENTS}"
    );
    let links = links(&read(CONTENTS));
    for page in pages_in("docs/").filter(|page| page != CONTENTS) {
        let name = page.trim_start_matches("docs/");
        assert!(links.iter().any(|link| link == name), "{CONTENTS} does not link to {page}");
    }
}

#[test]
fn every_decision_is_linked_from_their_index_and_that_from_the_architecture() {
    let index = format!("{DESIGN}README.md");
    assert!(links(&read("ARCHITECTURE.md")).contains(&index), "ARCHITECTURE.md does not link to {index}");
    let links = links(&read(&index));
    let decisions: Vec<String> = pages().into_iter().filter(|page| page.starts_with(DESIGN)).collect();
    assert!(decisions.len() >= 20, "only {decisions:?} were found");
    for page in decisions.iter().filter(|page| **page != index) {
        let name = &page[DESIGN.len()..];
        assert!(links.iter().any(|link| link == name), "{index} does not link to {page}");
        let text = read(page);
        for part in ["**Context.**", "**Choice.**", "**Measured", "**Revisit when**"] {
            assert!(text.contains(part), "{page} has no {part}");
        }
    }
}

#[test]
fn the_folders_that_a_page_protects_are_protected() {
    let [downloads, private, strangers] = blocks("docs/protect-folders.md", "caddyfile").try_into().unwrap();
    check_statuses(
        &downloads,
        &[("/downloads/tool.phar", 200), ("/tool.phar", 404), ("/config.php.bak", 404), ("/a.css", 200)],
    );
    let hidden = ["/data/db.sqlite", "/DATA/x.txt", "/a/../data/x.txt", "/dump.SQL", "/composer.json"];
    let scripts = [
        "/uploads/shell.php",
        "/uploads/a/x.phtml",
        "/uploads/shell.php/info",
        "/uploads/a/",
        "/uploads/a/?x",
    ];
    let refused = hidden.into_iter().chain(scripts).map(|path| (path, 404));
    let shown = ["/", "/uploads/photo.jpg", "/a.css", "/any/page"].map(|path| (path, 200));
    check_statuses(&private, &refused.chain(shown).collect::<Vec<_>>());
    check_statuses(&strangers, &[("/admin/", 200), ("/admin/a.css", 200), ("/", 200)]);
    // Of all others we are one.
    let elsewhere = strangers.replace("127.0.0.1 ::1 ", "");
    assert_ne!(elsewhere, strangers);
    check_statuses(&elsewhere, &[("/admin/", 403), ("/admin/a.css", 403), ("/", 200)]);
}

#[test]
fn the_demo_shows_what_it_promises() {
    let server = demo().start();
    let page = server.get("/").expect(200).text().to_owned();
    assert!(
        page.contains("Threads as needed") && page.contains(r#"href="http://localhost:2019/""#),
        "{page}"
    );
    for link in ["/assets/app.js", "/assets/style.css", "/worker/", "/api.php"] {
        server.get(link).expect(200);
    }
    let burst = server.get("/playground.php?run=burst&count=20").expect(200).text().to_owned();
    assert_eq!(burst.matches(r#""kind":"slow""#).count(), 20, "{burst}");
    assert_eq!(burst.matches(r#""status":200"#).count(), 20, "{burst}");
    server.stop();
}

/// What a site of a page answers, at another address and with the files that are asked for.
fn check_statuses(configuration: &str, expected: &[(&str, u16)]) {
    const FILES: [&str; 14] = [
        "downloads/tool.phar",
        "tool.phar",
        "config.php.bak",
        "a.css",
        "data/db.sqlite",
        "data/x.txt",
        "dump.SQL",
        "composer.json",
        "uploads/shell.php",
        "uploads/a/index.php",
        "uploads/a/x.phtml",
        "uploads/photo.jpg",
        "admin/index.php",
        "admin/a.css",
    ];
    let site = configuration.replace("http://:8080", "http://ADDRESS").replace("root public", "root ROOT");
    let setup = Setup::new()
        .caddyfile(&format!("{{\nadmin off\nfrankenphp {{\nnum_threads 2\n}}\n}}\n{site}"))
        .file("index.php", "<?php echo 'front';");
    let server = FILES.iter().fold(setup, |setup, name| setup.file(name, "<?php echo 'a file';")).start();
    for (path, status) in expected {
        assert_eq!(server.get(path).status, *status, "{path} of {configuration}");
    }
    server.stop();
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Of the repository, relative to its top.
fn pages() -> Vec<String> {
    let mut pages: Vec<String> = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md"]
        .map(str::to_owned)
        .into_iter()
        .chain(["docs/", DESIGN].into_iter().flat_map(pages_in))
        .collect();
    pages.sort();
    pages
}

fn pages_in(folder: &str) -> impl Iterator<Item = String> {
    let names = fs::read_dir(repository().join(folder)).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(".md")).map(move |name| format!("{folder}{name}"))
}

/// Of the native modules that a configuration names.
fn libraries(configuration: &str) -> impl Iterator<Item = &str> {
    configuration.split_whitespace().filter(|word| word.ends_with(".so"))
}

fn validate(directory: &Path) -> Output {
    regent_command(directory).args(["validate", "--config", "Caddyfile"]).output().unwrap()
}

/// Targets of the links that lead into the repository. Blocks of code have none, whatever their brackets look like.
fn links(text: &str) -> Vec<String> {
    let prose: String = text.split("```").step_by(2).collect();
    let targets = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.contains("://")).map(str::to_owned).collect()
}

fn leads_somewhere(page: &str, link: &str) -> bool {
    let (path, heading) = link.split_once('#').map_or((link, None), |(path, heading)| (path, Some(heading)));
    let page = repository().join(page);
    let target = if path.is_empty() { page } else { page.parent().unwrap().join(path) };
    match heading {
        None => target.exists(),
        Some(heading) => {
            fs::read_to_string(target).is_ok_and(|text| headings(&text).any(|own| own == heading))
        }
    }
}

/// As a link names them.
fn headings(text: &str) -> impl Iterator<Item = String> {
    let titles = text.lines().filter_map(|line| Some(line.strip_prefix('#')?.trim_start_matches('#').trim()));
    titles.map(|title| {
        let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.collect::<String>().to_lowercase().replace(' ', "-")
    })
}

/// The demo, where it is in nobody's way: the port is the harness's, at 127.0.0.1, where its scripts call it, and at the harness's
/// address, and the admin API is on a socket.
fn demo() -> Setup {
    const ADMIN: &str = "admin localhost:{$ADMIN_PORT:2019}";
    const BIND: &str = "bind 127.0.0.1";
    const THREADS: &str = "max_threads 64";
    let setup = Setup::new().arguments(&["run", "--config", "demo.caddyfile"]);
    let setup = setup.env("PORT", "PORT").env("LOOPBACK", "LOOPBACK");
    let directory = setup.directory();
    copy(&repository().join("examples/demo"), directory);
    let configuration = read("examples/demo/Caddyfile");
    assert!([ADMIN, BIND, THREADS].iter().all(|line| configuration.contains(line)), "{configuration}");
    let elsewhere = format!("admin unix/{}", directory.join("admin.sock").display());
    // On a slow machine the burst waits for longer than visitors of a site would.
    let patient = format!("{THREADS}\n\t\tmax_wait_time off");
    let bind = format!("{BIND} {{$LOOPBACK}}");
    let configuration =
        configuration.replace(ADMIN, &elsewhere).replace(BIND, &bind).replace(THREADS, &patient);
    fs::write(directory.join("demo.caddyfile"), configuration).unwrap();
    setup
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            fs::create_dir_all(&target).unwrap();
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).unwrap();
        }
    }
}
