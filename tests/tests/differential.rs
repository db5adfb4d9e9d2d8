//! The same requests to the same directives as Caddy had: see `tests/differential/README.md`.
#![forbid(unsafe_code)]

use regent_tests::{Conn, Response, Setup, until};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

/// What clients act on. Of validators only whether they are there.
const FIELDS: [&str; 11] = [
    "accept-ranges",
    "allow",
    "cache-control",
    "content-encoding",
    "content-length",
    "content-range",
    "content-type",
    "location",
    "set-cookie",
    "vary",
    "www-authenticate",
];
const VALIDATORS: [&str; 2] = ["etag", "last-modified"];

/// The files of all sites.
const FILES: &[(&str, &str)] = &[
    ("hello.txt", "hello file\n"),
    ("dir/index.html", "<p>index</p>\n"),
    ("dir/other.html", "<p>other</p>\n"),
    ("empty/.keep", ""),
    ("style.css", "a { color: red } /* {{1}} */\n"),
    ("data.json", "{}\n"),
    ("image.svg", "<svg/>\n"),
    ("unknown.xyz", "unknown"),
    ("noext", "no ending"),
    ("a b.txt", "a space"),
    (".hidden", "hidden"),
    ("secret.key", "secret"),
    ("app.js", "plain()"),
    ("app.js.gz", "not really gzip"),
    ("app.js.br", "not really brotli"),
    ("a.php", "<?php"),
    ("error.html", "an error\n"),
    (
        "t/req.html",
        "{{.Req.Method}} {{.Req.URL.Path}} {{.Req.URL.RawQuery}} {{.Req.URL.Query.Get \"x\"}} {{.Cookie \"a\"}} \
         {{.Host}} {{.RemoteIP}} {{.ClientIP}} {{.Req.Header.Get \"cookie\"}} {{placeholder \"http.request.uri\"}} \
         {{placeholder \"no.such\"}} {{.OriginalReq.URL.Path}} {{.Req.FormValue \"x\"}} {{index .Req.Header \"Cookie\"}}",
    ),
    (
        "t/funcs.html",
        "{{upper \"a\"}} {{title \"a b\"}} {{trunc 2 \"abc\"}} {{trunc -2 \"abc\"}} {{substr 1 3 \"abcd\"}} \
         {{abbrev 6 \"abcdefgh\"}} {{repeat 3 \"x\"}} {{replace \"a\" \"b\" \"aa\"}} {{indent 2 \"a\"}} {{quote \"a\\\"\" 1}} \
         {{squote \"a\"}} {{cat \"a\" 1 nil}} {{trimAll \"$\" \"$5$\"}} {{trimSuffix \"b\" \"ab\"}} {{snakecase \"FirstName\"}} \
         {{camelcase \"http_server\"}} {{kebabcase \"FirstName\"}} {{swapcase \"aB\"}} {{initials \"A b\"}} {{wrap 5 \"aaa bbb ccc\"}} \
         {{plural \"one\" \"many\" 2}} {{regexMatch \"^a\" \"ab\"}} {{regexReplaceAll \"a(x*)b\" \"-axxb-\" \"${1}W\"}} \
         {{regexFind \"b+\" \"abb\"}} {{regexSplit \"z+\" \"pizza\" -1}} {{printf \"%05d|%-4s|%q|%x|%.2f|%v|%T\" 42 \"a\" \"b\" 255 1.5 true 1}} \
         {{html \"<a>\"}} {{js \"a'b\"}} {{urlquery \"a b&c\"}} {{print 1 2 \"a\" \"b\" 3}} {{b64enc \"hi\"}} {{b64dec \"aGk=\"}} \
         {{toJson (dict \"a\" (list 1 \"<\" nil))}} {{(fromJson \"{\\\"a\\\":[1,\\\"b\\\"]}\").a}} {{base \"/a/b.c\"}} {{dir \"/a/b.c\"}} \
         {{ext \"/a/b.c\"}} {{clean \"/a/../b\"}} {{adler32sum \"hi\"}} {{stripHTML \"a<b>c</b>d\"}} {{humanize \"size\" \"2048000\"}} \
         {{pathEscape \"a b?\"}} {{dateInZone \"2006-01-02 15:04 Mon Jan _2 MST -0700\" 1700000000 \"UTC\"}} \
         {{unixEpoch (toDate \"2006-01-02 MST\" \"2026-05-04 UTC\")}} {{duration \"95\"}} \
         {{date \"2006\" (dateModify \"-8760h\" (toDate \"2006-01-02\" \"2026-05-04\"))}} {{len \"abc\"}} {{toString 1.5}} {{int \"7\"}} \
         {{(toDate \"2006-01-02\" \"2026-05-04\").Format \"Jan 2\"}} {{env \"REGENT_NO_SUCH\"}} {{untitle \"A B\"}} {{nospace \"a b\"}}\n",
    ),
    (
        "t/include.html",
        "[{{include \"/t/part.txt\" \"one\" 2}}] {{readFile \"/t/part.txt\"}} {{fileExists \"t/part.txt\"}} {{fileExists \"x\"}} {{import \"/t/blocks.txt\"}}{{template \"b\" 7}} {{listFiles \"/dir\" | len}} {{(fileStat \"hello.txt\").Size}}",
    ),
    ("t/part.txt", "{{index .Args 0}}/{{index .Args 1}}/{{len .Args}}"),
    ("t/blocks.txt", "{{define \"b\"}}<{{.}}>{{end}}"),
    (
        "t/markdown.html",
        "{{markdown \"# A title\\n\\n- a\\n- b\\n\\n**bold** _em_ `code` ~~del~~ <b>raw</b> [l](/x \\\"t\\\")\\n\\n| a | b |\\n|---|:-:|\\n| 1 | 2 |\\n\\n1. x\\n2. y\\n\\n> q\\n\\n***\\n\\n    code\\n\\n## A title\\n\"}}",
    ),
    (
        "t/front.html",
        "{{$p := splitFrontMatter (readFile \"/t/post.md\")}}{{$p.Meta.title}}|{{$p.Meta.n}}|{{$p.Meta.list}}|{{$p.Meta.deep.a}}|{{$p.Meta.none}}|{{$p.Body}}|{{$q := splitFrontMatter \"+++\\na = 1\\n+++\\nbody\"}}{{$q.Meta.a}}{{$q.Body}}|{{(splitFrontMatter \"none\").Body}}",
    ),
    ("t/post.md", "---\ntitle: \"A post\"\nn: 3\nlist: [a, b]\ndeep:\n  a: true\n---\nThe *body*\n"),
    ("t/error.html", "{{httpError 418}}"),
    ("t/wrong.html", "{{if}}"),
    (
        "t/fields.html",
        "{{.RespHeader.Set \"X-Set\" \"a\"}}{{.RespHeader.Add \"X-Add\" \"b\"}}{{.RespHeader.Add \"X-Add\" \"c\"}}{{.RespHeader.Get \"x-set\"}} {{.RespHeader.Del \"X-Set\"}}ok",
    ),
    (
        "t/lists.html",
        "{{$l := list 3 1 \"a\"}}{{$l}} {{first $l}} {{last $l}} {{rest $l}} {{initial $l}} {{append $l 4}} {{prepend $l 0}} \
         {{concat $l (list 9)}} {{reverse $l}} {{uniq (list 1 1 2)}} {{without $l 1}} {{has 3 $l}} {{compact (list 0 1 \"\")}} \
         {{sortAlpha (list \"b\" \"a\")}} {{join \"-\" $l}} {{splitList \",\" \"a,b\"}} {{(split \"$\" \"a$b\")._1}} {{until 3}} \
         {{untilStep 1 6 2}} {{seq 3}} {{seq 1 2 7}} {{chunk 2 $l}} {{$d := dict \"a\" 1 \"b\" 2}}{{$d}} {{get $d \"a\"}} {{hasKey $d \"c\"}} \
         {{pluck \"a\" $d}} {{dig \"a\" \"x\" $d}} {{dig \"c\" \"x\" $d}} {{keys $d | sortAlpha}} {{pick $d \"a\"}} {{omit $d \"a\"}} {{merge (dict \"a\" 5) $d}} \
         {{default 1 0}} {{empty \"\"}} {{coalesce 0 \"\" 3}} {{ternary 1 2 true}} {{kindOf $l}} {{kindOf $d}} {{kindIs \"int\" 1}} {{add 1 2 3}} {{sub 3 1}} \
         {{mul 2 3}} {{div 7 2}} {{mod 7 2}} {{max 1 5 2}} {{min 4 2}} {{round 1.255 2}} {{ceil 1.1}} {{floor 1.9}} {{add1 1}} {{addf 1.5 1}} {{len $l}} {{index $l 2}} {{slice $l 1 2}}\n",
    ),
    (
        "t/control.html",
        "{{range $i, $v := list \"a\" \"b\"}}{{$i}}{{$v}},{{else}}none{{end}} {{range list}}x{{else}}none{{end}} {{with \"\"}}x{{else}}else{{end}} \
         {{if and true (eq 1 1)}}and{{end}} {{if or false (lt 2 1)}}or{{else}}nor{{end}} {{range until 5}}{{if eq . 3}}{{break}}{{end}}{{if eq . 1}}{{continue}}{{end}}{{.}}{{end}} \
         {{- /* a comment */ -}} {{define \"x\"}}[{{.}}]{{end}}{{template \"x\" \"y\"}} {{block \"z\" 1}}({{.}}){{end}} {{$x := 1}}{{if true}}{{$x = 2}}{{end}}{{$x}} {{not true}} {{ne 1 2}} {{`raw`}} {{'a'}} {{1.5}} {{0x10}}\n",
    ),
    ("t/http.html", "[{{httpInclude \"/t/inner.html\"}}] [{{httpInclude \"/text\"}}]"),
    ("t/inner.html", "inner {{.Req.Method}} {{.Req.URL.Path}}"),
];

struct Case {
    name: String,
    directives: String,
    asked: Vec<Asked>,
}

struct Asked {
    /// As it is written in the case.
    text: String,
    method: String,
    target: String,
    fields: Vec<String>,
    body: String,
    /// Why Regent answers otherwise.
    differs: Option<String>,
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("differential")
}

fn cases() -> Vec<Case> {
    let files = fs::read_dir(directory().join("cases")).unwrap().map(|entry| entry.unwrap().path());
    let mut cases: Vec<_> = files.map(|file| case(&file)).collect();
    cases.sort_by(|left, right| left.name.cmp(&right.name));
    cases
}

fn case(file: &Path) -> Case {
    let mut differs = None;
    let mut case = Case {
        name: file.file_stem().unwrap().to_str().unwrap().into(),
        directives: String::new(),
        asked: Vec::new(),
    };
    for line in fs::read_to_string(file).unwrap().lines() {
        if let Some(reason) = line.strip_prefix("#! ") {
            differs = Some(reason.to_owned());
        } else if let Some(request) = line.strip_prefix("#> ") {
            case.asked.push(asked(request, differs.take()));
        } else {
            case.directives.push_str(&format!("\t{line}\n"));
        }
    }
    case
}

fn asked(text: &str, differs: Option<String>) -> Asked {
    let mut parts = text.split(" | ");
    let (method, target) = parts.next().unwrap().split_once(' ').unwrap();
    let (fields, body): (Vec<_>, Vec<_>) = parts.partition(|part| part.contains(": "));
    Asked {
        text: text.into(),
        method: method.into(),
        target: target.into(),
        fields: fields.into_iter().map(str::to_owned).collect(),
        body: body.concat(),
        differs,
    }
}

/// All cases are sites of one server, told apart by their names.
fn caddyfile(cases: &[Case]) -> String {
    let sites = cases.iter().map(|case| {
        format!("http://{}.test:PORT {{\n\tbind 127.0.0.1\n\troot * ROOT\n{}}}\n", case.name, case.directives)
    });
    let ready = "http://127.0.0.1:PORT {\n\tbind 127.0.0.1\n\troot * ROOT\n\tfile_server\n}\n";
    format!("{{\n\tadmin off\n\tauto_https off\n}}\n{ready}{}", sites.collect::<String>())
}

/// What is said to all requests of a case.
fn answers(address: SocketAddr, case: &Case) -> Vec<Value> {
    case.asked.iter().map(|asked| answer(address, &case.name, asked)).collect()
}

fn answer(address: SocketAddr, site: &str, asked: &Asked) -> Value {
    let mut conn = Conn::open(address);
    let fields: String = asked.fields.iter().map(|field| format!("{field}\r\n")).collect();
    conn.send(format!(
        "{} {} HTTP/1.1\r\nHost: {site}.test:{}\r\nConnection: close\r\n{fields}\r\n{}",
        asked.method,
        asked.target,
        address.port(),
        asked.body
    ));
    match conn.try_response(&asked.method) {
        Ok(Some(response)) => described(&asked.text, &response, address),
        Ok(None) | Err(_) => json!({ "request": asked.text, "closed": true }),
    }
}

fn described(request: &str, response: &Response, address: SocketAddr) -> Value {
    let mut fields = BTreeMap::new();
    for (name, _) in &response.headers {
        let name = name.to_ascii_lowercase();
        if FIELDS.contains(&name.as_str()) || name.starts_with("x-") {
            fields.insert(name.clone(), json!(response.header_all(&name).join(", ")));
        } else if VALIDATORS.contains(&name.as_str()) {
            fields.insert(name, json!(true));
        }
    }
    let coded = fields.contains_key("content-encoding");
    let parts = response.header("content-type").is_some_and(|kind| kind.starts_with("multipart/"));
    if coded || parts {
        // It depends on the encoder, or on a random boundary.
        fields.remove("content-length");
    }
    if parts {
        fields.insert("content-type".into(), json!("multipart/byteranges"));
    }
    let body = if coded || parts { "(not compared)".into() } else { response.text() };
    let port = address.port().to_string();
    let text = json!({ "request": request, "status": response.status, "fields": fields, "body": body });
    serde_json::from_str(&text.to_string().replace(&port, "PORT")).unwrap()
}

/// The files, as old as each other.
fn files() -> Setup {
    let setup = FILES.iter().fold(Setup::new(), |setup, (path, text)| setup.file(path, text));
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_577_836_800);
    for (path, _) in FILES {
        let file = fs::File::options().append(true).open(setup.root().join(path)).unwrap();
        file.set_modified(time).unwrap();
    }
    setup
}

/// What is otherwise everywhere, and said in `docs/frankenphp.md`: `Vary` of files that have no compressed ones beside
/// them, and what Go writes into the body of a redirect.
fn without_habits_of_go(answer: &mut Value, recorded: &mut Value) {
    if recorded["fields"]["vary"] == "Accept-Encoding" && answer["fields"].get("vary").is_none() {
        recorded["fields"].as_object_mut().unwrap().remove("vary");
    }
    if recorded["status"] == 308 && answer["status"] == 308 {
        for side in [answer, recorded] {
            side["body"] = json!("");
            side["fields"]
                .as_object_mut()
                .unwrap()
                .retain(|name, _| name == "location" || name.starts_with("x-"));
        }
    }
}

/// Of an error that nobody has a page for, Caddy has no body.
fn without_plain_page(answer: &mut Value, recorded: &Value) {
    let is_error = recorded["status"].as_u64().is_some_and(|status| status >= 400);
    if is_error && recorded["body"] == "" && answer["status"] == recorded["status"] {
        answer["body"] = json!("");
        for name in ["content-length", "content-type"] {
            let recorded = recorded["fields"].get(name).cloned();
            let fields = answer["fields"].as_object_mut().unwrap();
            match recorded {
                Some(value) => drop(fields.insert(name.into(), value)),
                None => drop(fields.remove(name)),
            }
        }
    }
}

fn recorded(case: &Case) -> Vec<Value> {
    let file = directory().join("answers").join(format!("{}.json", case.name));
    let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    serde_json::from_str(&text).unwrap()
}

#[test]
fn regent_answers_as_caddy_did() {
    let cases = cases();
    let setup = files();
    let server = setup.caddyfile(&caddyfile(&cases)).start();
    let mut differences = Vec::new();
    for case in &cases {
        let recorded = recorded(case);
        assert_eq!(recorded.len(), case.asked.len(), "{}: to be recorded anew", case.name);
        for ((mut answer, mut recorded), asked) in
            answers(server.address(), case).into_iter().zip(recorded).zip(&case.asked)
        {
            without_habits_of_go(&mut answer, &mut recorded);
            without_plain_page(&mut answer, &recorded);
            match (answer == recorded, &asked.differs) {
                (true, None) | (false, Some(_)) => {}
                (true, Some(reason)) => {
                    differences
                        .push(format!("{} {}: it is the same, though: {reason}", case.name, asked.text));
                }
                (false, None) => {
                    differences.push(format!("{}\n  Caddy:  {recorded}\n  Regent: {answer}", case.name));
                }
            }
        }
    }
    server.stop();
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}

/// `CADDY`: the program.
#[test]
#[ignore = "records what Caddy says"]
fn record() {
    let caddy = std::env::var("CADDY").expect("CADDY names the program");
    let cases = cases();
    let setup = files();
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let text = caddyfile(&cases)
        .replace("PORT", &address.port().to_string())
        .replace("ROOT", setup.root().to_str().unwrap());
    let file = setup.directory().join("Caddyfile");
    fs::write(&file, text).unwrap();
    let mut child = Command::new(caddy)
        .args(["run", "--adapter", "caddyfile", "--config"])
        .arg(&file)
        .env("HOME", setup.directory())
        .env("XDG_DATA_HOME", setup.directory())
        .env("XDG_CONFIG_HOME", setup.directory())
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    until("Caddy listens", || Conn::try_open(address).ok());
    fs::create_dir_all(directory().join("answers")).unwrap();
    for case in &cases {
        let text = serde_json::to_string_pretty(&answers(address, case)).unwrap();
        fs::write(directory().join("answers").join(format!("{}.json", case.name)), text + "\n").unwrap();
    }
    child.kill().unwrap();
    child.wait().unwrap();
}
