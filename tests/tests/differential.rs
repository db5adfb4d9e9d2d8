//! The same requests to the same directives as Caddy had: see `tests/differential/README.md`.
#![forbid(unsafe_code)]

use regent_tests::differential::{Asked, Case, Difference, cases, directory};
use regent_tests::fastcgi::responder;
use regent_tests::{Conn, Response, Setup, Upstream, in_parallel, own_address, until};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};
use std::sync::Mutex;
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

/// All cases are sites of one server, told apart by their names. Responses tell of the address, and of how long it is: it is
/// the one that Caddy had, at a port that no other test has.
fn caddyfile(cases: &[Case], fastcgi: SocketAddr) -> String {
    let sites = cases.iter().map(|case| {
        format!("http://{}.test:PORT {{\n\tbind 127.0.0.1\n\troot * ROOT\n{}}}\n", case.name, case.directives)
    });
    let before: String = cases.iter().map(|case| case.before.as_str()).collect();
    let ready = "http://ADDRESS {\n\troot * ROOT\n\tfile_server\n}\n";
    let text = format!("{{\n\tadmin off\n\tauto_https off\n}}\n{before}{ready}{}", sites.collect::<String>());
    text.replace("FASTCGI", &fastcgi.to_string())
}

/// Tells what a script of PHP would see, of what does not depend on the server's name and the connection.
fn mirror() -> Upstream {
    const TOLD: [&str; 12] = [
        "CONTENT_LENGTH",
        "CONTENT_TYPE",
        "DOCUMENT_URI",
        "HTTP_COOKIE",
        "HTTP_X_IN",
        "PATH_INFO",
        "QUERY_STRING",
        "REQUEST_METHOD",
        "REQUEST_SCHEME",
        "REQUEST_URI",
        "SCRIPT_NAME",
        "STAGE",
    ];
    responder(|asked| {
        // Caddy says that a body which is not there has no bytes.
        let told = |name| Some(asked.get(name)).filter(|value| *value != "0").unwrap_or_default();
        let body: String = TOLD.iter().map(|name| format!("{name}={}\n", told(name))).collect();
        let status = if asked.get("QUERY_STRING") == "x=1" { "Status: 418 Teapot\r\n" } else { "" };
        let length = body.len();
        let head = format!("{status}Content-Type: text/plain\r\nContent-Length: {length}\r\nX-Mirror: 1\r\n");
        format!("{head}\r\n{body}").into_bytes()
    })
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
        Ok(Some(response)) => described(&response, address),
        Ok(None) | Err(_) => json!({ "closed": true }),
    }
}

fn described(response: &Response, address: SocketAddr) -> Value {
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
    let text = json!({ "status": response.status, "fields": fields, "body": body });
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

/// What Caddy said to each request.
fn recorded(case: &Case) -> BTreeMap<String, Value> {
    let file = directory().join("answers").join(format!("{}.json", case.name));
    let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let groups: Vec<(Value, Vec<String>)> = serde_json::from_str(&text).unwrap();
    let of = |(answer, requests): (Value, Vec<String>)| {
        requests.into_iter().map(move |request| (request, answer.clone()))
    };
    groups.into_iter().flat_map(of).collect()
}

/// Answers, each with all requests that got it.
fn grouped(case: &Case, answers: Vec<Value>) -> Vec<(Value, Vec<String>)> {
    let mut groups: Vec<(Value, Vec<String>)> = Vec::new();
    for (asked, answer) in case.asked.iter().zip(answers) {
        match groups.iter_mut().find(|(known, _)| *known == answer) {
            Some((_, requests)) => requests.push(asked.text.clone()),
            None => groups.push((answer, vec![asked.text.clone()])),
        }
    }
    groups
}

/// What a case found: differences that nobody has explained, and explanations of what there is not.
fn compare(case: &Case, address: SocketAddr, needed: &Mutex<BTreeSet<String>>) -> Vec<String> {
    let recorded = recorded(case);
    let mut found = Vec::new();
    for (mut answer, asked) in answers(address, case).into_iter().zip(&case.asked) {
        let mut recorded = recorded.get(&asked.text).cloned().unwrap_or_else(|| {
            panic!("{} {}: to be recorded anew", case.name, asked.text);
        });
        without_habits_of_go(&mut answer, &mut recorded);
        without_plain_page(&mut answer, &recorded);
        match (answer == recorded, &asked.difference) {
            (true, Difference::None | Difference::MayBe(_)) | (false, Difference::Is(_)) => {}
            (false, Difference::MayBe(reason)) => {
                needed.lock().unwrap().insert(reason.clone());
            }
            (true, Difference::Is(reason)) => {
                found.push(format!("{} {}: it is the same, though: {reason}", case.name, asked.text));
            }
            (false, Difference::None) => {
                found.push(format!("{} {}\n  Caddy:  {recorded}\n  Regent: {answer}", case.name, asked.text))
            }
        }
    }
    found
}

#[test]
fn regent_answers_as_caddy_did() {
    const CLIENTS: usize = 4;
    let cases = cases();
    let fastcgi = mirror();
    let setup = files();
    let server = setup.caddyfile(&caddyfile(&cases, fastcgi.address())).start();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, server.address().port()));
    let needed = Mutex::default();
    let of = |client| cases.iter().skip(client).step_by(CLIENTS);
    let mut differences = in_parallel(CLIENTS, |client| {
        of(client).flat_map(|case| compare(case, address, &needed)).collect::<Vec<_>>()
    })
    .concat();
    server.stop();
    let needed = needed.into_inner().unwrap();
    let reasons = cases.iter().flat_map(|case| &case.asked).filter_map(|asked| match &asked.difference {
        Difference::MayBe(reason) => Some(reason),
        Difference::None | Difference::Is(_) => None,
    });
    let idle: BTreeSet<_> = reasons.filter(|reason| !needed.contains(*reason)).collect();
    differences.extend(idle.into_iter().map(|reason| format!("nothing differs for this reason: {reason}")));
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}

/// `CADDY`: the program.
#[test]
#[ignore = "records what Caddy says"]
fn record() {
    let caddy = std::env::var("CADDY").expect("CADDY names the program");
    let cases = cases();
    let fastcgi = mirror();
    let setup = files();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, own_address().port()));
    let text = caddyfile(&cases, fastcgi.address())
        .replace("ADDRESS", &address.to_string())
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
        let groups = grouped(case, answers(address, case));
        let lines = groups.iter().map(|group| serde_json::to_string(group).unwrap());
        let text = format!("[\n{}\n]\n", lines.collect::<Vec<_>>().join(",\n"));
        fs::write(directory().join("answers").join(format!("{}.json", case.name)), text).unwrap();
    }
    child.kill().unwrap();
    child.wait().unwrap();
}
