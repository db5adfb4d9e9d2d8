//! What the routes made of a request: its response, or who is to make that.

use crate::context::exchange::Exchange;
use crate::context::listing::Listing;
use crate::context::rendering::Rendering;
use crate::context::verification::Verification;
use crate::paths::root;
use http::{HeaderMap, Method, Response, StatusCode, Uri};
use regent_config::{
    ClientAddress, HubId, LaneChoice, NativeId, ProxyId, RequestBuffering, RetryMethods, WorkerId,
};
use regent_exchange::ResponseBody;
use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// What the server has to do.
pub enum Action {
    /// Send this.
    Respond(Response<ResponseBody>),
    /// Hand the request on, and send what comes back.
    Forward(Target),
    /// Close the connection without a response.
    Abort,
    /// Check a password, which blocks, and then route the request once more
    /// ([`Exchange::start_over`](crate::Exchange::start_over)).
    Verify(Box<Verification>),
    /// List a directory, which blocks, and send that.
    List(Box<dyn Listing>),
    /// Execute a template, which blocks, and go on with the response that it is.
    Render(Box<Rendering>),
}

/// Who makes the response of a request that is handed on.
#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    Php(PhpTarget),
    /// A native module's handler.
    Native(NativeTarget),
    /// A Mercure hub, which is no engine: the server has it.
    Mercure(HubId),
    /// The server itself, which puts its metrics together elsewhere.
    Metrics,
    /// Another server.
    Proxy(ProxyTarget),
}

/// Where a request goes in PHP.
#[derive(Debug, Clone, PartialEq)]
pub struct PhpTarget {
    /// `None`: the classic pool.
    pub worker: Option<WorkerId>,
    pub delivery: Delivery,
    /// Where the script's updates go; `None`: the site has no hub.
    pub hub: Option<HubId>,
    /// The number of what it may have the cache forget; `None`: nothing.
    pub cache_scope: Option<u64>,
    /// Document root, script name and path info, one behind the other.
    path: Vec<u8>,
    root_len: usize,
    script_end: usize,
    /// Where the script is, if not at root and name: a worker's file.
    file: Option<Vec<u8>>,
}

/// Where a request goes among the native modules. The module sees the path as it stands after rewrites,
/// [`Exchange::path`](crate::Exchange::path).
#[derive(Debug, Clone, PartialEq)]
pub struct NativeTarget {
    pub service: NativeId,
    pub delivery: Delivery,
}

/// Which servers a request may go to.
#[derive(Clone)]
pub struct ProxyTarget {
    pub rules: Arc<dyn ProxyRules>,
}

/// What a `reverse_proxy` directive says that depends on the request.
pub trait ProxyRules: Send + Sync {
    /// The directive in the configuration.
    fn id(&self) -> ProxyId;

    /// The address of the upstream with this index, as the request has it; `None` if it does not depend on that.
    fn computed_address(&self, upstream: usize, exchange: &Exchange) -> Option<String>;

    /// What this source of `dynamic` upstreams is to be asked, as the request has it: a name, and the port, if the name does
    /// not say that itself.
    fn dynamic_name<'a>(
        &'a self,
        source: usize,
        exchange: &'a Exchange,
    ) -> (Cow<'a, str>, Option<Cow<'a, str>>);

    /// Method and URI for the upstream, where they are not those of the request. An error is the status to answer with.
    fn rewritten(&self, exchange: &mut Exchange) -> Option<Result<(Method, Uri), StatusCode>>;

    /// Whether a response is for [`Sites::handle_response`](crate::Sites::handle_response).
    fn handles_responses(&self) -> bool;

    /// Whether the request may be sent once more that an upstream may have seen; `None`: its method says.
    fn may_repeat(&self, exchange: &mut Exchange) -> Option<bool>;

    /// What a FastCGI server is to run for this URI, whose path may be a rewritten one. An error is the status to answer
    /// with.
    fn script(&self, exchange: &Exchange, uri: &Uri) -> Result<PhpTarget, StatusCode>;

    /// `header_up`.
    fn change_request(&self, exchange: &Exchange, fields: &mut HeaderMap);

    /// `header_down`.
    fn change_response(&self, exchange: &Exchange, fields: &mut HeaderMap);
}

/// How a request is handed to a thread of an engine.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Delivery {
    /// Variables of the request, beside those that every request has.
    pub env: Vec<(String, String)>,
    /// Longest silence within the request's body, if the route has a limit of its own.
    pub request_body_timeout: Option<Duration>,
    pub request_buffering: RequestBuffering,
    /// Soft real-time limit of the route, if it has one.
    pub deadline: Option<Duration>,
    /// Longest time that a thread may have it, if the route has a limit of its own; 0: no limit.
    pub request_timeout: Option<Duration>,
    /// Of which methods requests are run once more when their engine dies, if the route says it.
    pub retry: Option<RetryMethods>,
    /// What the configuration says of the lane, if anything.
    pub lane: Option<Arc<LaneChoice>>,
    pub client_address: ClientAddress,
}

impl Target {
    /// `None`: it is handed to no engine.
    pub(crate) fn delivery_mut(&mut self) -> Option<&mut Delivery> {
        match self {
            Self::Php(php) => Some(&mut php.delivery),
            Self::Native(native) => Some(&mut native.delivery),
            Self::Mercure(_) | Self::Metrics | Self::Proxy(_) => None,
        }
    }
}

impl PartialEq for ProxyTarget {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::addr_eq(Arc::as_ptr(&self.rules), Arc::as_ptr(&other.rules))
    }
}

impl fmt::Debug for ProxyTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ProxyTarget").field(&self.rules.id()).finish()
    }
}

impl PhpTarget {
    /// `script`: the document root, of `root_len` bytes, with the script's URL path behind it.
    pub(crate) fn new(worker: Option<WorkerId>, script: Vec<u8>, root_len: usize, path_info: &[u8]) -> Self {
        let script_end = script.len();
        let mut path = script;
        path.extend_from_slice(path_info);
        let delivery = Delivery::default();
        Self { worker, delivery, hub: None, cache_scope: None, path, root_len, script_end, file: None }
    }

    /// Runs this file, an absolute path, whose directory is the document root then.
    pub fn of_file(file: &Path) -> Self {
        let path = file.as_os_str().as_bytes();
        let root_len = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        Self::new(None, path.to_vec(), root_len, &[])
    }

    /// Runs this file instead of the one that root and name say.
    pub(crate) fn with_file(mut self, file: &[u8]) -> Self {
        self.file = (file != self.root_and_script()).then(|| file.to_vec());
        self
    }

    /// Absolute.
    pub fn document_root(&self) -> &Path {
        root::prefix_path(self.root())
    }

    /// Absolute, resolved as configured; of a worker: the worker's file.
    pub fn script_filename(&self) -> &Path {
        Path::new(OsStr::from_bytes(self.file.as_deref().unwrap_or(self.root_and_script())))
    }

    /// URL path of the script, decoded: `/index.php`.
    pub fn script_name(&self) -> &[u8] {
        &self.path[self.root_len..self.script_end]
    }

    /// What follows the script in the path, decoded: empty or `/rest`.
    pub fn path_info(&self) -> &[u8] {
        &self.path[self.script_end..]
    }

    /// Script name and path info.
    pub fn url_path(&self) -> &[u8] {
        &self.path[self.root_len..]
    }

    /// RFC 3875 §4.1.6: the path info as if it were a path of its own.
    pub fn path_translated(&self) -> Vec<u8> {
        [self.root(), self.path_info()].concat()
    }

    /// Without a slash at the end; empty for `/`.
    fn root(&self) -> &[u8] {
        &self.path[..self.root_len]
    }

    fn root_and_script(&self) -> &[u8] {
        &self.path[..self.script_end]
    }
}
