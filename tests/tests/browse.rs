//! `file_server browse`: pages that list directories.
#![forbid(unsafe_code)]

use regent_tests::Setup;
use std::os::unix::fs::symlink;

#[test]
fn a_directory_is_listed_with_what_may_be_seen_of_it() {
    let setup = Setup::new()
        .site("encode gzip\nfile_server browse {\nhide *.bak {vars.kept}\n}\nvars kept private")
        .php_options("num_threads 1")
        .file("docs/a & b.txt", "12345")
        .file("docs/sub/x.txt", "")
        .file("docs/old.bak", "")
        .file("docs/private/x.txt", "")
        .file("docs/.env", "")
        .file("with-index/index.html", "the index")
        .file("with-index/x.txt", "");
    symlink("/etc", setup.root().join("docs/etc")).expect("the site is ours");
    symlink("/etc", setup.root().join("etc")).expect("the site is ours");
    let server = setup.start();
    let page = server.get("/docs/?sort=size&order=desc").expect(200);
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    let text = page.text();
    for part in [
        "<h1>/docs/</h1>",
        "<a href=\"../\">",
        "<a href=\"./a%20&amp;%20b.txt\">a &amp; b.txt</a>",
        "5 B",
        "./sub/",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    for name in ["old.bak", "private", ".env", "etc"] {
        assert!(!text.contains(name), "{name} in\n{text}");
    }
    let json = server.request("GET", "/docs/").header("Accept", "application/json").send().expect(200).json();
    assert_eq!((json[0]["name"].as_str(), json[0]["is_dir"].as_bool()), (Some("sub/"), Some(true)));
    assert_eq!((json[1]["url"].as_str(), json[1]["size"].as_u64()), (Some("./a%20&%20b.txt"), Some(5)));
    assert_eq!(json.as_array().map(Vec::len), Some(2));
    assert_eq!(server.get("/docs/a%20&%20b.txt").expect(200).text(), "12345");
    assert_eq!(server.get("/docs?x=1").expect(308).header("location"), Some("/docs/?x=1"));
    assert_eq!(server.get("/with-index/").expect(200).text(), "the index");
    let head = server.request("HEAD", "/docs/").send().expect(200);
    assert!(head.body.is_empty() && head.header("content-type").is_some());
    for (method, target, status) in [
        ("GET", "/etc/", 404),
        ("GET", "/none/", 404),
        ("GET", "/docs/private/", 404),
        ("POST", "/docs/", 405),
    ] {
        server.request(method, target).send().expect(status);
    }
    server.stop();
}

#[test]
fn without_browse_a_directory_is_missing() {
    let server = Setup::new().site("file_server").php_options("num_threads 1").file("docs/a.txt", "").start();
    server.get("/docs/").expect(404);
    server.stop();
}

#[test]
fn a_page_of_the_site_s_own_takes_the_place_of_a_listing_that_fails() {
    let site = "file_server browse\nhandle_errors {\nrespond \"sorry {err.status_code}\"\n}";
    let setup = Setup::new().site(site).php_options("num_threads 1");
    symlink("/etc", setup.root().join("etc")).expect("the site is ours");
    let server = setup.start();
    assert_eq!(server.get("/etc/").expect(404).text(), "sorry 404");
    server.stop();
}

#[test]
fn pages_are_made_by_a_template_of_the_site() {
    let site = "file_server {\nbrowse DIRECTORY/page.html {\nplain_time_format 2006\n}\n}";
    let setup = Setup::new()
        .site(site)
        .php_options("num_threads 1")
        .file("docs/a & b.txt", "12345")
        .file("docs/part.html", "<p>{{.Path}}</p>")
        .file("docs/sub/x.txt", "");
    let template = setup.directory().join("page.html");
    let page = "{{define \"row\"}}<a href=\"{{html .URL}}\">{{html .Name}}</a> {{.HumanSize}} {{.Tpl.Sort}}\n{{end}}\
                {{.Host}} {{.NumFiles}} files of {{.Name}}{{range .Breadcrumbs}} [{{.Text}}]{{end}}\n\
                {{range .Items}}{{template \"row\" .}}{{end}}{{placeholder \"http.request.method\"}}\n";
    std::fs::write(&template, page).expect("the directory is ours");
    let server = setup.start();
    let listed = server.get("/docs/?sort=name").expect(200);
    assert_eq!(listed.header("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(listed.header("content-security-policy"), None);
    let expected = format!(
        "{} 2 files of docs [/] [docs]\n<a href=\"./a%20&amp;%20b.txt\">a &amp; b.txt</a> 5 B name\n",
        server.address().ip()
    );
    assert!(listed.text().starts_with(&expected), "{}", listed.text());
    assert!(listed.text().ends_with("\nGET\n"), "{}", listed.text());
    let head = server.request("HEAD", "/docs/").send().expect(200);
    assert!(head.body.is_empty());
    let text = server.request("GET", "/docs/").header("Accept", "text/plain").send().expect(200);
    assert_eq!(text.header("content-type"), Some("text/plain; charset=utf-8"));
    assert!(text.text().starts_with("Name\t\tSize\tModified\n----\t\t----\t--------\n"), "{}", text.text());
    std::fs::write(&template, "changed").expect("the directory is ours");
    assert_eq!(server.get("/docs/").expect(200).text(), "changed");
    std::fs::write(&template, "{{.Nothing.At.All").expect("the directory is ours");
    server.get("/docs/").expect(500);
    server.stop();
}
