//! Requests to sites with files, PHP and rewrites: no target leaves the root or shows what is not to be shown, and what is
//! sent is as long as is said.
//!
//! Lines: which site, method, target, then fields `name: value`.

use crate::corpus::fixtures;
use crate::input::Input;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, StatusCode, header};
use http_body_util::BodyExt;
use regent_config::{Environment, parse};
use regent_exchange::Connection;
use std::sync::Arc;
use regent_cache::{Limits, Store};
use regent_handlers::{Action, Exchange, LogOutputs, PhpTarget, RateZones, Sites, Target};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;
use tokio::runtime::Runtime;

/// In `{$APP}/www` lies what is served; beside it, and in files of PHP, what must never be sent.
const CADDYFILES: [&str; 4] = [
    ":80 {\n\troot {$APP}/www\n\tphp_server\n}\n",
    ":80 {\n\troot {$APP}/www\n\tphp_server {\n\t\ttry_files {path} /a{path} =404\n\t}\n}\n",
    ":80 {\n\troot {$APP}/www\n\thandle_path /static/* {\n\t\tfile_server {\n\t\t\thide *.php .env *.PHP *.php. *.php.gz\n\t\t\tprecompressed gzip\n\t\t}\n\t}\n\tredir /go/* {uri}/\n\trewrite /r/* /a/{file}?{query}&p={path}\n\turi strip_prefix /api\n\ttry_files {path} {path}/ /a/{file} /index.php?{query}\n\tphp\n}\n",
    ":80 {\n\troot {$APP}/www\n\t@a path *.txt /a/* /%61*\n\theader @a X-Path {path}\n\t@q query p=*\n\tredir @q /{query.p}\n\thandle_errors {\n\t\trespond \"{err.status_code} {path}\"\n\t}\n\tfile_server {\n\t\thide *.php .env *.PHP *.php. *.gz\n\t}\n}\n",
];

static SITES: LazyLock<Vec<Sites>> = LazyLock::new(|| CADDYFILES.into_iter().map(sites).collect());

thread_local! {
    static RUNTIME: Runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
}

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let sites = &SITES[usize::from(input.line().first().copied().unwrap_or_default()) % SITES.len()];
    let request = Request::builder().method(input.line()).uri(input.line());
    let Ok(mut request) = request.body(()) else { return };
    while !input.is_empty() {
        let line = input.line();
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(&line[..colon]), value) {
            request.headers_mut().append(name, value);
        }
    }
    let mut exchange = Exchange::new(
        request.into_parts().0,
        Connection { remote: Some(([192, 0, 2, 7], 5000).into()), ..Connection::default() },
    );
    match sites.route(&mut exchange) {
        Action::Forward(Target::Php(target)) => assert_script(&target),
        Action::Forward(target) => panic!("no site has modules: {target:?}"),
        Action::Abort | Action::Verify(_) | Action::List(_) | Action::Render(_) => panic!("no site has these"),
        Action::Respond(response) => {
            let (parts, body) = exchange.finish(response).into_parts();
            let body = RUNTIME.with(|runtime| runtime.block_on(body.collect())).expect("files are there");
            let bytes = body.to_bytes();
            assert_harmless(&bytes);
            assert_length(exchange.original_method(), &parts, &bytes);
            let location = parts.headers.get(header::LOCATION).map_or(&b""[..], HeaderValue::as_bytes);
            assert!(!location.starts_with(b"//") && !location.starts_with(b"/\\"), "an open redirect");
        }
    }
}

fn sites(caddyfile: &str) -> Sites {
    let app = fixtures().to_str().expect("UTF-8").to_owned();
    let environment =
        Environment { variables: BTreeMap::from([("APP".to_owned(), app)]), current_dir: fixtures().to_owned() };
    let loaded = parse("Caddyfile", caddyfile, Path::new(""), &environment).unwrap_or_else(|e| panic!("{e}"));
    Sites::build(&loaded.config.servers[0], &[], &loaded.config.proxies, &LogOutputs::default(), &Arc::new(Store::new(Limits { memory: 1 << 20, object: 1 << 10 })), &RateZones::default(), None).expect("a site")
}

/// What PHP is to run is a `.php` file in the root.
fn assert_script(target: &PhpTarget) {
    let root = fixtures().join("www").canonicalize().expect("it is there");
    let file = target.script_filename().canonicalize().expect("a script that exists");
    assert!(file.is_file() && file.starts_with(&root), "{} is outside", file.display());
    let name = file.to_str().expect("UTF-8").to_ascii_lowercase();
    assert!(name.ends_with(".php"), "{name} is no script");
    assert_eq!(target.document_root(), root);
    assert!(!target.path_info().contains(&0));
}

fn assert_harmless(body: &Bytes) {
    let shows = |secret: &[u8]| body.windows(secret.len()).any(|part| part == secret);
    assert!(!shows(b"SOURCE") && !shows(b"OUTSIDE"), "{}", String::from_utf8_lossy(body));
}

fn assert_length(method: &Method, head: &http::response::Parts, body: &Bytes) {
    if method == Method::HEAD || [StatusCode::NO_CONTENT, StatusCode::NOT_MODIFIED].contains(&head.status) {
        assert!(body.is_empty());
    } else if let Some(length) = head.headers.get(header::CONTENT_LENGTH) {
        assert_eq!(length, &body.len().to_string());
    }
}
