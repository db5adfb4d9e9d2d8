//! Sites made of routes and directories, and requests to them.

use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use regent_config::*;
use regent_exchange::{Connection, ResponseBody};
use regent_handlers::{Action, Exchange, LogOutputs, NativeTarget, PhpTarget, RateZones, Sites, Target};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A fresh directory with files in it; names that end in `/` are directories.
pub fn directory(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = dir.path().join(name);
        if name.ends_with('/') {
            fs::create_dir_all(path).unwrap();
        } else {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
    }
    dir
}

/// A site for every host.
pub fn site(routes: Vec<Route>) -> Sites {
    site_with(routes, &[])
}

pub fn site_with(routes: Vec<Route>, workers: &[Worker]) -> Sites {
    server(vec![Site { routes, ..Site::default() }], workers)
}

pub fn server(sites: Vec<Site>, workers: &[Worker]) -> Sites {
    let listen = Listen::Tcp(([127, 0, 0, 1], 0).into());
    let server =
        Server { listen, tls: None, options: ServerOptions::default(), sites, purpose: Purpose::default() };
    Sites::build(&server, workers, &[], &LogOutputs::default(), &store(), &RateZones::default(), None)
        .unwrap()
}

/// The first server of a Caddyfile.
pub fn caddyfile(text: &str) -> Sites {
    let environment = Environment { variables: Default::default(), current_dir: "/srv".into() };
    let loaded = parse("Caddyfile", text, Path::new("/srv"), &environment);
    let config = loaded.unwrap_or_else(|errors| panic!("{text}: {errors}")).config;
    let (outputs, rates) = (LogOutputs::default(), RateZones::default());
    let sites = Sites::build(&config.servers[0], &[], &config.proxies, &outputs, &store(), &rates, None);
    sites.unwrap_or_else(|error| panic!("{text}: {error}"))
}

pub fn store() -> std::sync::Arc<regent_cache::Store> {
    std::sync::Arc::new(regent_cache::Store::new(regent_cache::Limits { memory: 1 << 20, object: 1 << 20 }))
}

pub fn always(handler: Handler) -> Route {
    Route { group: None, matchers: Vec::new(), handler }
}

pub fn when(matcher: Matcher, handler: Handler) -> Route {
    Route { group: None, matchers: vec![vec![matcher]], handler }
}

pub fn path_is(pattern: &str) -> Matcher {
    Matcher::Path(vec![Template::text(pattern)])
}

pub fn respond(text: &str) -> Handler {
    Handler::Respond { status: Template::default(), body: Template::text(text), close: false }
}

pub fn root(path: &Path) -> Route {
    always(Handler::Root(Template::text(path.to_str().unwrap())))
}

pub fn placeholder(name: &str) -> Part {
    Part::Placeholder(name.to_owned())
}

pub fn request_path() -> Part {
    placeholder("http.request.uri.path")
}

/// What `php_server` means without any options.
pub fn php_server() -> PhpServer {
    PhpServer {
        php: Php::default(),
        index: Some("index.php".into()),
        try_files: vec![
            Template(vec![request_path()]),
            Template(vec![request_path(), Part::Text("/index.php".into())]),
            Template::text("index.php"),
        ],
        file_server: Some(FileServer { hide: vec![Template::text("*.php")], ..FileServer::default() }),
    }
}

pub fn worker(file: PathBuf) -> Worker {
    Worker { name: file.display().to_string(), file, ..Worker::default() }
}

#[derive(Debug, PartialEq)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

pub fn exchange(method: &str, uri: &str, headers: &[(&str, &str)]) -> Exchange {
    let mut request = Request::builder().method(method).uri(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let remote = Some("192.0.2.7:5000".parse().unwrap());
    Exchange::new(request.body(()).unwrap().into_parts().0, Connection { remote, ..Connection::default() })
}

pub fn get(sites: &Sites, uri: &str) -> Answer {
    send(sites, "GET", uri, &[])
}

/// An answer that was made without an engine.
pub fn send(sites: &Sites, method: &str, uri: &str, headers: &[(&str, &str)]) -> Answer {
    let mut exchange = exchange(method, uri, headers);
    match sites.route(&mut exchange) {
        Action::Forward(target) => panic!("{method} {uri} was handed on: {target:?}"),
        Action::Abort | Action::Verify(_) | Action::List(_) | Action::Render(_) => {
            panic!("{method} {uri} was not answered")
        }
        Action::Respond(response) => finish(exchange, response),
    }
}

pub fn php(sites: &Sites, uri: &str) -> PhpTarget {
    match sites.route(&mut exchange("GET", uri, &[])) {
        Action::Forward(Target::Php(target)) => target,
        Action::Forward(target) => panic!("GET {uri} went elsewhere than to PHP: {target:?}"),
        Action::Respond(response) => panic!("GET {uri} was answered with {}", response.status()),
        Action::Abort | Action::Verify(_) | Action::List(_) | Action::Render(_) => {
            panic!("GET {uri} was not answered")
        }
    }
}

/// Where a request goes among the native modules, and the path that the module sees.
pub fn native(sites: &Sites, uri: &str) -> (NativeTarget, String) {
    let mut exchange = exchange("GET", uri, &[]);
    let Action::Forward(Target::Native(target)) = sites.route(&mut exchange) else {
        panic!("GET {uri} went to no module")
    };
    (target, String::from_utf8(exchange.path().to_vec()).unwrap())
}

pub fn finish(exchange: Exchange, response: Response<ResponseBody>) -> Answer {
    let (parts, body) = exchange.finish(response).into_parts();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let body = runtime.block_on(body.collect()).unwrap().to_bytes().to_vec();
    if exchange.original_method() == Method::HEAD {
        assert!(body.is_empty());
    } else if parts.status != StatusCode::NO_CONTENT && parts.status != StatusCode::NOT_MODIFIED {
        assert_eq!(parts.headers[http::header::CONTENT_LENGTH], body.len().to_string());
    }
    Answer { status: parts.status.as_u16(), headers: parts.headers, body }
}
