//! Pages as Caddy renders them.

use regent_templates::{Failed, FieldChange, Item, Listing, Outcome, Page, Request, Supplied, render};
use std::fs;
use std::path::Path;
use std::sync::Arc;

fn page(source: &str, root: &Path) -> Page {
    Page {
        name: "/page".into(),
        source: source.into(),
        delimiters: ("{{".into(), "}}".into()),
        root: root.into(),
        request: Request {
            method: "GET".into(),
            uri: "/a%20b?x=1&x=2".into(),
            path: "/a b".into(),
            original_method: "POST".into(),
            original_uri: "/first".into(),
            original_path: "/first".into(),
            host: "example.com:8080".into(),
            protocol: "HTTP/1.1".into(),
            remote: "192.0.2.1:4711".into(),
            remote_ip: "192.0.2.1".into(),
            client_ip: "192.0.2.9".into(),
            headers: vec![("accept".into(), "text/html".into()), ("cookie".into(), "a=1; b=two".into())],
        },
        fields: vec![("content-type".into(), "text/html".into())],
        now: "2026-05-04T15:02:01Z".parse().unwrap(),
        listing: None,
    }
}

fn outcome_in(root: &Path, source: &str) -> Outcome {
    render(&Arc::new(page(source, root)), &Arc::default())
}

fn outcome(source: &str) -> Outcome {
    outcome_in(Path::new("/nowhere"), source)
}

#[track_caller]
fn body(outcome: Outcome) -> String {
    match outcome {
        Outcome::Done { body, .. } => body,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn reason(outcome: Outcome) -> String {
    match outcome {
        Outcome::Failed(Failed::Template(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_request_is_known() {
    for (source, text) in [
        ("{{.Req.Method}} {{.Req.URL.Path}} {{.Req.URL.RawQuery}}", "GET /a b x=1&x=2"),
        ("{{.OriginalReq.Method}} {{.OriginalReq.URL.Path}}", "POST /first"),
        (r#"{{.Req.Header.Get "accept"}} {{index .Req.Header "Accept" 0}}"#, "text/html text/html"),
        (r#"{{.Cookie "b"}}|{{.Cookie "none"}}|{{.Req.URL.Query.Get "x"}}"#, "two||1"),
        (r#"{{"b" | .Cookie}} {{$r := .Req}}{{$r.Header.Get "Accept"}}"#, "two text/html"),
        (
            "{{.Host}} {{.RemoteIP}} {{.ClientIP}} {{.Req.Host}}",
            "example.com 192.0.2.1 192.0.2.9 example.com:8080",
        ),
        (
            r#"{{with .Req}}{{.Header.Get "Accept"}}{{end}} {{range .Req.Header.Values "Accept"}}{{.}}{{end}}"#,
            "text/html text/html",
        ),
        (r#"{{.Req.FormValue "x"}} {{.RespHeader.Get "Content-Type"}}"#, "1 text/html"),
    ] {
        assert_eq!(body(outcome(source)), text, "{source}");
    }
}

#[test]
fn fields_of_the_response_are_changed() {
    let source = r#"{{.RespHeader.Set "X-A" "1"}}{{.RespHeader.Add "X-A" "2"}}{{.RespHeader.Del "Vary"}}{{.RespHeader.Values "x-a"}}"#;
    let Outcome::Done { body, changes } = outcome(source) else { panic!("no page") };
    assert_eq!(body, "[1 2]");
    let set = FieldChange::Set("X-A".into(), "1".into());
    assert_eq!(
        changes,
        [set, FieldChange::Add("X-A".into(), "2".into()), FieldChange::Remove("Vary".into())]
    );
}

#[test]
fn files_are_included_read_and_imported() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("part.html"), "<{{index .Args 0}} {{.Req.Method}}>").unwrap();
    fs::write(dir.path().join("blocks.html"), "{{define \"b\"}}[{{.}}]{{end}}").unwrap();
    fs::write(dir.path().join("loop.html"), "{{include \"loop.html\"}}").unwrap();
    fs::write(dir.path().join("post.md"), "---\ntitle: A\n---\n# Hi *there*\n").unwrap();
    for (source, text) in [
        (
            r#"{{include "part.html" "x"}}{{readFile "/../part.html"}}"#,
            "<x GET><{{index .Args 0}} {{.Req.Method}}>",
        ),
        (
            r#"{{.RespHeader.Add "A" "1"}}{{import "blocks.html"}}{{template "b" 1}}{{template "b" "x"}}"#,
            "[1][x]",
        ),
        (
            r#"{{$p := splitFrontMatter (readFile "post.md")}}{{$p.Meta.title}}: {{markdown $p.Body}}"#,
            "A: <h1 id=\"hi-there\">Hi <em>there</em></h1>\n",
        ),
        (
            r#"{{fileExists "part.html"}} {{fileExists "none"}} {{(fileStat "part.html").Size}} {{listFiles "/" | len}}"#,
            "true false 35 4",
        ),
    ] {
        assert_eq!(body(outcome_in(dir.path(), source)), text, "{source}");
    }
    let Outcome::Done { changes, .. } =
        outcome_in(dir.path(), r#"{{.RespHeader.Add "A" "1"}}{{import "blocks.html"}}"#)
    else {
        panic!("no page")
    };
    assert_eq!(changes.len(), 1, "a page that starts over changes nothing twice");
    assert!(reason(outcome_in(dir.path(), r#"{{include "loop.html"}}"#)).contains("deep"));
    assert!(reason(outcome_in(dir.path(), r#"{{include "none"}}"#)).contains("none"));
}

#[test]
fn what_only_the_server_knows_is_asked_for() {
    let source = r#"{{if eq (placeholder "http.request.host") "h"}}yes{{else}}{{fail "wrong"}}{{end}} {{httpInclude "/x"}}"#;
    let page = Arc::new(page(source, Path::new("/nowhere")));
    let Outcome::Needs(needs) = render(&page, &Arc::default()) else { panic!("it needs nothing") };
    assert!(needs.placeholders.contains("http.request.host") && needs.pages.is_empty());
    let mut supplied = Supplied::default();
    supplied.placeholders.insert("http.request.host".into(), "h".into());
    let Outcome::Needs(needs) = render(&page, &Arc::new(supplied.clone())) else {
        panic!("it needs nothing")
    };
    assert!(needs.placeholders.is_empty() && needs.pages.contains("/x"));
    supplied.pages.insert("/x".into(), Ok("<{{.Req.Method}}>".into()));
    assert_eq!(body(render(&page, &Arc::new(supplied.clone()))), "yes <GET>");
    supplied.pages.insert("/x".into(), Err("http 404".into()));
    assert!(reason(render(&page, &Arc::new(supplied))).contains("http 404"));
}

#[test]
fn a_template_can_ask_for_an_error() {
    assert_eq!(outcome("{{httpError 404}}"), Outcome::Failed(Failed::Status(404)));
}

#[test]
fn mistakes_are_told_with_their_place() {
    let reason = reason(outcome("a\nb {{if}}"));
    assert!(reason.contains("/page:2"), "{reason}");
}

#[test]
fn other_delimiters() {
    let page = Page { delimiters: ("[[".into(), "]]".into()), ..page("[[1]]{{2}}", Path::new("/")) };
    assert_eq!(body(render(&Arc::new(page), &Arc::default())), "1{{2}}");
}

/// Each would take all memory, all stack, or for ever.
#[test]
fn what_a_page_costs_has_bounds() {
    let double = r#"{{$x := "0123456789abcdef"}}{{range until 60}}{{$x = print $x $x}}{{end}}"#;
    let nested = "{{$l := list}}{{range until 100000}}{{$l = list $l}}{{end}}{{$l}}";
    let shared = "{{$l := list 1}}{{range until 60}}{{$l = list $l $l}}{{end}}{{$l}}";
    for source in [
        double,
        nested,
        shared,
        r#"{{repeat 1000000000000 "x"}}"#,
        "{{until 1000000000000}}",
        r#"{{$x := repeat 1000000 "x"}}{{range until 1000000}}{{$x}}{{end}}"#,
        r#"{{define "a"}}{{template "a"}}{{template "a"}}{{end}}{{template "a"}}"#,
        r#"{{define "a"}}{{if true}}{{template "b"}}{{template "b"}}{{end}}{{end}}{{define "b"}}{{template "a"}}{{end}}{{template "a"}}"#,
        "{{range 10000000}}{{range 10000000}}{{end}}{{end}}",
        r#"{{$x := repeat 1000000 "x"}}{{replace "x" $x $x}}"#,
        r#"{{indent 100000000000 "x"}}"#,
        r#"{{printf "%[1]s%[1]s" (repeat 200000000 "x")}}"#,
        "{{$l := list 1}}{{range until 60}}{{$l = concat $l $l}}{{end}}",
        "{{$l := list 1}}{{range until 60}}{{$l = list $l $l}}{{end}}{{toJson $l}}",
    ] {
        assert!(matches!(outcome(source), Outcome::Failed(Failed::Template(_))), "{source}");
    }
}

#[test]
fn nesting_to_the_bounds_is_no_overflow() {
    let parens = format!("{{{{{}1{}}}}}", "(".repeat(10_000), ")".repeat(10_000));
    let ifs = format!("{}{}", "{{if true}}".repeat(10_000), "{{end}}".repeat(10_000));
    for source in [parens, ifs] {
        reason(outcome(&source));
    }
    let dir = tempfile::tempdir().unwrap();
    // As deep as templates go, in a page that includes itself as deep as pages go.
    let source = r#"{{define "a"}}{{if gt . 0}}{{template "a" (sub . 1)}}{{else}}{{include "p"}}{{end}}{{end}}{{template "a" 95}}"#;
    fs::write(dir.path().join("p"), source).unwrap();
    assert!(reason(outcome_in(dir.path(), source)).contains("deep"));
}

#[test]
fn a_directory_is_listed() {
    let item = |name: &str, is_directory| Item {
        name: name.into(),
        size: 2048,
        url: format!("./{name}"),
        modified: 1_777_863_721,
        mode: 0o750,
        is_directory,
        ..Item::default()
    };
    let listing = Listing {
        path: "/a%20b/c".into(),
        items: vec![
            item("sub/", true),
            Item { is_link: true, target: "../x".into(), ..item("p.JPG", false) },
        ],
        limit: 2,
        directories: 1,
        files: 3,
        size: 1_572_864,
        size_with_targets: 2 << 20,
        sort: "name".into(),
        order: "asc".into(),
        layout: "grid".into(),
        ..Listing::default()
    };
    let shown = |source: &str| {
        let page = Page { listing: Some(listing.clone()), ..page(source, Path::new("/nowhere")) };
        body(render(&Arc::new(page), &Arc::default()))
    };
    for (source, text) in [
        ("{{.Name}} {{.Path}} {{.CanGoUp}} {{.Limit}} {{.Sort}} {{.Order}}", "c /a%20b/c true 2 name asc"),
        (
            "{{.NumDirs}} {{.NumFiles}} {{.HumanTotalFileSize}} {{.HumanTotalFileSizeFollowingSymlinks}}",
            "1 3 1.5 MiB 2.0 MiB",
        ),
        (
            "{{range .Items}}{{.Name}}|{{.URL}}|{{.HumanSize}}|{{.IsDir}};{{end}}",
            "sub/|./sub/|2.0 KiB|true;p.JPG|./p.JPG|2.0 KiB|false;",
        ),
        ("{{range .Items}}{{.Mode}} {{end}}", "drwxr-x--- Lrwxrwxrwx "),
        ("{{range .Items}}{{.Tpl.Layout}}{{.HasExt \".png\" \".jpg\"}} {{end}}", "gridfalse gridtrue "),
        ("{{range .Items}}{{if .IsSymlink}}{{.SymlinkPath}}{{end}}{{end}}", "../x"),
        (
            "{{with index .Items 0}}{{.HumanModTime \"2006-01-02 15:04\"}} {{.ModTime.Format \"Jan\"}}{{end}}",
            "2026-05-04 03:02 May",
        ),
        (
            "{{range $i, $crumb := .Breadcrumbs}}{{$crumb.Link}}={{$crumb.Text}};{{end}}",
            "../../=/;../=a b;=c;",
        ),
        ("{{.Req.Method}} {{.Host}}", "GET example.com"),
    ] {
        assert_eq!(shown(source), text, "{source}");
    }
}
