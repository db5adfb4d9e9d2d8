//! What is in a listing, and in which order.

use super::*;
use crate::context::exchange::tests::request;
use crate::files::hide::Sources;
use crate::paths::script::Split;
use regent_config::Template;
use std::os::unix::fs::symlink;

/// A root with files, and beside it a directory that is no part of it.
fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let (root, outside) = (directory.path().join("root"), directory.path().join("outside"));
    for path in [&root, &outside, &root.join("sub"), &root.join("B")] {
        fs::create_dir(path).unwrap();
    }
    for (name, content) in
        [("b.txt", "12345"), ("a.txt", "1"), ("x.php", "<?php"), (".env", ""), ("old.bak", ""), ("C", "123")]
    {
        fs::write(root.join(name), content).unwrap();
    }
    fs::write(outside.join("secret"), "").unwrap();
    for (target, link) in
        [("../outside/secret", "out"), ("../outside", "outdir"), ("a.txt", "link"), ("nowhere", "broken")]
    {
        symlink(target, root.join(link)).unwrap();
    }
    directory
}

fn listed(directory: &Path, target: &str, fields: &[(&str, &str)], limit: u32) -> Result<String, StatusCode> {
    listed_as(&Browse { file_limit: limit, ..Browse::default() }, directory, target, fields)
}

fn listed_as(
    browse: &Browse,
    directory: &Path,
    target: &str,
    fields: &[(&str, &str)],
) -> Result<String, StatusCode> {
    let prefix = directory.join("root");
    let prefix = prefix.as_os_str().as_bytes();
    let exchange = request("GET", target, fields);
    let hide = Hide::compile(&[Template::text("*.bak")], Sources::Scripts(Split::new(&[".php".into()])));
    let rules = Rules {
        delimiters: ("{{".into(), "}}".into()),
        root: PathBuf::new(),
        protocol: "HTTP/1.1",
        placeholder: |_, _| String::new(),
    };
    let listing = DirectoryListing::new(browse, &exchange, prefix, exchange.path(), &hide.unwrap(), rules);
    Box::new(listing).run().map(|listed| String::from_utf8(listed.text).unwrap())
}

/// The names in a page in JSON.
fn names(query: &str) -> Vec<String> {
    let directory = directory();
    let text =
        listed(directory.path(), &format!("/{query}"), &[("accept", "Application/JSON")], 100).unwrap();
    let items: serde_json::Value = serde_json::from_str(&text).unwrap();
    items.as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn what_is_hidden_or_elsewhere_is_not_listed_and_the_rest_is_sorted() {
    assert_eq!(names(""), ["B/", "sub/", "a.txt", "b.txt", "C", "link"]);
    assert_eq!(names("?sort=name"), ["a.txt", "B/", "b.txt", "C", "link", "sub/"]);
    assert_eq!(names("?sort=name&order=desc&limit=2&offset=1"), ["link", "C"]);
    assert_eq!(names("?sort=size&order=desc"), ["sub/", "B/", "b.txt", "C", "link", "a.txt"]);
    assert_eq!(names("?sort=nonsense&limit=-1&offset=x").len(), 6);
    assert_eq!(names("?offset=99"), [""; 0]);
}

#[test]
fn directories_out_of_the_root_are_not_listed() {
    let directory = directory();
    for path in ["/outdir/", "/none/", "/broken/", "/a.txt/"] {
        assert_eq!(listed(directory.path(), path, &[], 100), Err(StatusCode::NOT_FOUND), "{path}");
    }
    assert!(listed(directory.path(), "/sub/", &[], 100).unwrap().contains("<h1>/sub/</h1>"));
}

#[test]
fn links_say_where_they_lead_if_that_is_asked_for() {
    let directory = directory();
    let revealing = Browse { reveal_links: true, ..Browse::default() };
    let page = listed_as(&revealing, directory.path(), "/", &[]).unwrap();
    assert!(page.contains("link</a> \u{2192} a.txt<"), "{page}");
    assert!(!page.contains("outside"), "what leads out is not there at all: {page}");
    let json = listed_as(&revealing, directory.path(), "/", &[("accept", "application/json")]).unwrap();
    assert_eq!(json.matches("\"symlink_path\":\"a.txt\"").count(), 1, "{json}");
    assert!(!listed(directory.path(), "/", &[], 100).unwrap().contains('\u{2192}'));
}

#[test]
fn a_directory_of_many_is_cut() {
    let directory = directory();
    let page = listed(directory.path(), "/", &[], 3).unwrap();
    assert!(page.contains("too many"), "{page}");
    assert!(page.matches("<tr><td>").count() <= 3, "{page}");
}

#[test]
fn names_are_no_markup() {
    let directory = directory();
    let root = directory.path().join("root");
    for name in ["<script>alert(1)<", "a\"onclick='x", "java:x", "100%?#.txt"] {
        fs::write(root.join(name), "").unwrap();
    }
    fs::write(root.join(OsStr::from_bytes(b"latin\xe9")), "").unwrap();
    let page = listed(directory.path(), "/?sort=%22%3E%3Cb%3E", &[], 100).unwrap();
    for part in [
        "<a href=\"./%3Cscript%3Ealert(1)%3C\">&lt;script&gt;alert(1)&lt;</a>",
        "<a href=\"./a%22onclick=&#39;x\">a&quot;onclick=&#39;x</a>",
        "<a href=\"./java:x\">java:x</a>",
        "<a href=\"./100%25%3F%23.txt\">100%?#.txt</a>",
        "<a href=\"./latin%E9\">",
    ] {
        assert!(page.contains(part), "{part} in\n{page}");
    }
    assert!(!page.contains("<script") && !page.contains("<b>"));
}

#[test]
fn columns_of_text_end_at_tabs() {
    let directory = directory();
    let browse = Browse { plain_time_format: "2006".into(), ..Browse::default() };
    let text = listed_as(&browse, directory.path(), "/", &[("accept", "text/plain")]).unwrap();
    let lines: Vec<_> = text.lines().map(|line| line.rsplit_once('\t').unwrap().0).collect();
    assert_eq!(lines[..2], ["Name\tSize", "----\t----"]);
    assert!(lines.contains(&"a.txt\t1 B"), "{text}");
    assert!(text.lines().skip(2).all(|line| line.ends_with(|c: char| c.is_ascii_digit())), "{text}");
}

#[test]
fn a_template_has_what_is_listed() {
    let directory = directory();
    let template = directory.path().join("page.html");
    let browse = Browse { template: Some(template.clone()), ..Browse::default() };
    let listed = || listed_as(&browse, directory.path(), "/?limit=2&offset=1", &[]);
    assert_eq!(listed(), Err(StatusCode::INTERNAL_SERVER_ERROR));
    fs::write(&template, "{{.Name}}").unwrap();
    assert_eq!(listed().as_deref(), Ok("{{.Name}}"), "it is rendered elsewhere");
}
