//! The typed configuration: what a Caddyfile means, as plain data. No parsing here, no behaviour.
//!
//! `parse` fills it, `regent-adapt` writes it as the JSON of Caddy, `handlers` and `server` carry it out.

mod browse;
mod cache;
mod circuit;
mod delivery;
mod encode;
mod expression;
mod global;
mod header;
mod intercept;
mod log;
mod log_filter;
mod log_template;
mod map;
mod mercure;
mod native;
mod otlp;
mod rate_limit;
mod request_body;
mod retry;
mod reverse_proxy;
mod rewrite;
mod server;
mod storage;
mod task;
mod template;
mod templates;
mod tls;
mod tracing;

pub use browse::*;
pub use cache::*;
pub use circuit::*;
pub use delivery::*;
pub use encode::*;
pub use expression::*;
pub use global::*;
pub use header::*;
pub use intercept::*;
pub use log::*;
pub use log_filter::*;
pub use log_template::*;
pub use map::*;
pub use mercure::*;
pub use native::*;
pub use otlp::*;
pub use rate_limit::*;
pub use request_body::*;
pub use retry::*;
pub use reverse_proxy::*;
pub use rewrite::*;
pub use server::*;
pub use storage::*;
pub use task::*;
pub use template::*;
pub use templates::*;
pub use tls::*;
pub use tracing::*;

use serde::Serialize;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// A whole configuration: what `build(Config)` turns into a running server.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Config {
    pub global: Global,
    /// One per listening address, in the order of the file.
    pub servers: Vec<Server>,
    /// One for each `reverse_proxy`; a [`ProxyId`] is an index into it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub proxies: Vec<ReverseProxy>,
}

/// The lane of a route that does not leave the choice to the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum LaneChoice {
    /// The lane of this name, declared in [`PhpGlobal::lanes`] or not.
    Named(String),
    /// No lane: no bound on the threads that the route holds.
    Off,
}

/// An address to listen on.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub enum Listen {
    Tcp(SocketAddr),
    Unix(UnixSocket),
    /// What the service manager has passed as this descriptor, wherever it is bound (sd_listen_fds(3)).
    Descriptor(u16),
}

/// A Unix socket to listen on.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct UnixSocket {
    /// Absolute.
    #[serde(serialize_with = "as_text")]
    pub path: PathBuf,
    /// Permissions of the file, up to 0777: who may write may connect. Default: 0200.
    #[serde(serialize_with = "as_octal")]
    pub mode: u32,
}

/// Everything that one listening address serves.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Server {
    pub listen: Listen,
    /// `None`: plain HTTP. Otherwise every site has a [`Site::tls`].
    pub tls: Option<ServerTls>,
    #[serde(flatten)]
    pub options: ServerOptions,
    /// Tried in order: most specific host first, as Caddy sorts them.
    pub sites: Vec<Site>,
    #[serde(skip_serializing_if = "Purpose::is_sites")]
    pub purpose: Purpose,
}

/// What an address is there for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// Sites of the file.
    #[default]
    Sites,
    /// Nothing but redirects to HTTPS, which the file says nothing of.
    Redirects,
}

impl Purpose {
    fn is_sites(&self) -> bool {
        *self == Self::Sites
    }
}

/// One site block, as far as it concerns one listening address.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Site {
    /// Lower-case host names, `*.example.com` for any one label; empty: every host.
    pub hosts: Vec<String>,
    /// `None`: on a server of plain HTTP.
    pub tls: Option<SiteTls>,
    pub routes: Vec<Route>,
    /// What an error goes through, whoever it came from: one route per `handle_errors`, those for certain statuses first.
    pub error_routes: Vec<Route>,
    /// The site's `log` directives; empty: no access log.
    pub access_logs: Vec<LogConfig>,
}

/// A handler with its condition. Routes are tried in order; a request goes through all that match until one answers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Route {
    /// Of the routes with the same group number within one list, only the first that matches is taken (`handle`).
    pub group: Option<u32>,
    /// Alternatives: one must match. Empty: always matches.
    pub matchers: Vec<MatcherSet>,
    pub handler: Handler,
}

/// All of these must match.
pub type MatcherSet = Vec<Matcher>;

/// One condition on a request. Several values of one matcher are alternatives.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Matcher {
    /// Path globs as Caddy has them: exact, `/prefix*`, `*suffix`, `*contains*`, or `*` within a segment; not
    /// sensitive to case; on the decoded and cleaned path.
    Path(Vec<Template>),
    /// A regular expression on the path; with a name its groups become `{re.NAME.1}`.
    PathRegexp {
        name: Option<String>,
        pattern: String,
    },
    Host(Vec<Template>),
    Method(Vec<String>),
    /// Field name and value pattern (`*` at either end). A `None` value asks that the field be there; `absent`
    /// (written `!Name`) that it not be.
    Header {
        name: String,
        value: Option<Template>,
        absent: bool,
    },
    HeaderRegexp {
        name: Option<String>,
        field: String,
        pattern: String,
    },
    /// Key and value; `*` as the value: the key is there.
    Query(Vec<(String, Template)>),
    /// Of the connection (`private_ranges` is expanded by the parser).
    RemoteIp(Vec<IpRange>),
    /// Of the client, as a trusted proxy may tell it.
    ClientIp(Vec<IpRange>),
    /// `http` or `https`, or a version such as `http/1.1`.
    Protocol(String),
    File(FileMatcher),
    Not(Vec<MatcherSet>),
    /// Values, each of which may be any of several; one of them must be.
    Vars(Vec<(Template, Vec<Template>)>),
    VarsRegexp {
        name: Option<String>,
        value: Template,
        pattern: String,
    },
    Expression(Box<Expression>),
    /// The status of the error that is being handled: ranges with both ends in them.
    ErrorStatus(Vec<(u16, u16)>),
}

/// `file`: the first of `try_files` that exists; sets `{file_match.relative}` (`{http.matchers.file.relative}`),
/// `.absolute`, `.type` and `.remainder`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct FileMatcher {
    /// `None`: the site's root.
    pub root: Option<Template>,
    /// Patterns tried in order; one that ends in `/` wants a directory, `=404` answers with that error.
    pub try_files: Vec<Template>,
    pub split_path: Vec<String>,
    pub policy: TryPolicy,
}

/// Which of several files is taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub enum TryPolicy {
    /// The first that exists.
    #[default]
    FirstExist,
    /// The same; if none does, the last of the list.
    FirstExistFallback,
    SmallestSize,
    LargestSize,
    MostRecentlyModified,
}

/// What a route does.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Handler {
    Tracing(Tracing),
    ServerTiming(TimingFields),
    /// Sets the site's root for what follows.
    Root(Template),
    /// `vars`: sets `{vars.NAME}`.
    Vars(Vec<(String, Template)>),
    Map(Map),
    /// Keeps the request out of the site's access logs.
    LogSkip,
    /// Adds a field to what access logs have of the request.
    LogAppend {
        name: String,
        value: Template,
        when: LogAppendTime,
    },
    /// Only these access logs of the address have the request.
    LogName(Vec<Template>),
    /// Changes the response's header.
    Header(Vec<HeaderOp>),
    /// The same, of responses that fit.
    HeaderMatch(ResponseMatcher, Vec<HeaderOp>),
    /// Changes the request's header.
    RequestHeader(Vec<HeaderOp>),
    Rewrite(Rewrite),
    Redirect {
        to: Template,
        status: Template,
    },
    Respond {
        /// Empty: 200, or the status of the error that is being handled.
        status: Template,
        body: Template,
        close: bool,
    },
    /// Ends the connection without a response.
    Abort,
    /// Ends the chain with an error status; answered by `handle_errors` or a plain page.
    Error {
        status: Template,
        message: Template,
    },
    RequestBody(RequestBody),
    /// `deadline`: soft real-time limit of what follows; longer than 0.
    Deadline(Duration),
    /// `retry`: which of what follows is run once more when its engine dies.
    Retry(RetryMethods),
    /// `lane`: the lane of what follows.
    Lane(LaneChoice),
    Encode(Encode),
    Templates(Templates),
    Cache(Caching),
    BasicAuth(BasicAuth),
    RateLimit(RateLimit),
    Mercure(HubId),
    Metrics,
    /// Of these rules, the first that fits a response is carried out.
    Intercept(Vec<InterceptRule>),
    FileServer(FileServer),
    Php(Php),
    PhpServer(PhpServer),
    Native(Native),
    ReverseProxy(ProxyId),
    /// The upstream's response, with this status; empty: its own. Only in [`ResponseAction::Routes`], as the two below.
    CopyResponse(Template),
    CopyResponseHeaders(CopiedFields),
    /// Fields of the upstream's response, and what the request has them as from then on.
    CopyToRequest(Vec<(String, String)>),
    /// `handle`, `handle_path`, `route`: a list of its own.
    Subroute(Vec<Route>),
}

/// `basic_auth`: a name and a password are asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BasicAuth {
    /// Without quotes and backslashes.
    pub realm: String,
    /// Names, each once, and hashes: all of bcrypt, or all of argon2id.
    #[serde(skip)]
    pub users: Vec<(String, String)>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FileServer {
    /// `None`: the site's root.
    pub root: Option<Template>,
    /// Files that are never served, as globs on the path or a part of it. Dot-files are hidden in any case.
    pub hide: Vec<Template>,
    /// Index file names. Default: index.html, index.txt.
    pub index: Vec<Template>,
    /// A directory without an index has a page that lists it. `None`: it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub browse: Option<Box<Browse>>,
    /// A missing file goes to the next route instead of 404.
    pub pass_thru: bool,
    /// Redirect `/dir` to `/dir/` and `/file/` to `/file`. Default: true.
    pub canonical_uris: bool,
    pub status: Option<Box<Template>>,
    /// Encodings whose `.gz`, `.br`, `.zst` sidecar files are served, in order of preference.
    pub precompressed: Vec<String>,
    /// Endings of files beside a file that hold its validator.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub etag_endings: Vec<String>,
}

/// `php`: what reaches it goes to PHP.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Php {
    pub root: Option<Template>,
    /// Default: `.php`.
    pub split_path: Vec<String>,
    pub resolve_root_symlink: bool,
    /// Workers of this block (with its inherited global ones): served by one when the script is its file or its
    /// `match` fits.
    pub workers: Vec<WorkerRef>,
    #[serde(flatten)]
    pub delivery: Delivery,
}

/// A worker as a site uses it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorkerRef {
    pub id: WorkerId,
    /// Path globs that go to it whatever the file; empty: only requests that resolve to the worker's file.
    pub matches: Vec<Template>,
}

/// `php_server`, in order: a worker with `match`; 308 to the path with `/` when `{path}/INDEX` exists; rewrite to
/// the first of `try_files` that exists; `*.php` and `*.php/*` to PHP; everything else a static file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PhpServer {
    pub php: Php,
    /// Default: index.php. `None` with `index off`.
    pub index: Option<String>,
    /// Default: `{path} {path}/INDEX INDEX`.
    pub try_files: Vec<Template>,
    /// `None` with `file_server off`.
    pub file_server: Option<FileServer>,
}

impl Default for FileServer {
    fn default() -> Self {
        Self {
            root: None,
            hide: Vec::new(),
            index: vec![Template::text("index.html"), Template::text("index.txt")],
            browse: None,
            pass_thru: false,
            canonical_uris: true,
            status: None,
            precompressed: Vec::new(),
            etag_endings: Vec::new(),
        }
    }
}

impl Default for Php {
    fn default() -> Self {
        Self {
            root: None,
            split_path: vec![".php".into()],
            resolve_root_symlink: true,
            workers: Vec::new(),
            delivery: Delivery::default(),
        }
    }
}

/// For people to read: what is not Unicode in a path is replaced, where serde's own way is to fail.
fn as_text<S: serde::Serializer>(path: &std::path::Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

fn as_octal<S: serde::Serializer>(mode: &u32, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{mode:04o}"))
}
