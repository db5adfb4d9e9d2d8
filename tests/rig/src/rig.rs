//! The server, and how it is set up.

use crate::call::Call;
use crate::stage::Stage;
use crate::{Admin, Conn, DEADLINE};
use regent_config::{Config, Environment};
use regent_server::{
    ConfigSource, Configuration, Force, Inherited, InheritedSocket, Keeper, Options, Place, Program,
    Reloader, Sockets, Successor,
};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use tempfile::TempDir;
use tokio::sync::oneshot;

/// A site in a fresh directory, to be served.
///
/// By default: one thread of PHP, no bound of waiting, `php_server`, an `index.php`, and the admin API.
pub struct Setup {
    directory: TempDir,
    global: String,
    php: String,
    site: String,
}

/// A server that runs, and the engine that it has.
pub struct Rig {
    addresses: Addresses,
    calls: mpsc::Receiver<Call>,
    directory: TempDir,
    source: Arc<Source>,
    reloader: Reloader,
    runtime: tokio::runtime::Handle,
    /// Stops the server in good order; dropped, it ends it at once.
    end: Option<oneshot::Sender<()>>,
    ended: Option<std::thread::JoinHandle<()>>,
}

impl Default for Setup {
    fn default() -> Self {
        Self::new()
    }
}

impl Setup {
    pub fn new() -> Self {
        let directory = TempDir::with_prefix("regent-rig-").expect("a temporary directory can be made");
        let php = "num_threads 1\n\t\tmax_threads 1\n\t\tmax_wait_time off".to_owned();
        Self { directory, global: String::new(), php, site: "php_server".to_owned() }.file("index.php", "")
    }

    /// More lines of the global options.
    pub fn global(mut self, lines: &str) -> Self {
        self.global = lines.to_owned();
        self
    }

    /// The lines of `frankenphp`, instead of one thread and no bound of waiting.
    pub fn php(mut self, lines: &str) -> Self {
        self.php = lines.to_owned();
        self
    }

    /// So many threads of PHP, and no bound of waiting.
    pub fn threads(self, count: usize) -> Self {
        self.php(&format!("num_threads {count}\n\t\tmax_threads {count}\n\t\tmax_wait_time off"))
    }

    /// The directives of the site, instead of `php_server`.
    pub fn site(mut self, directives: &str) -> Self {
        self.site = directives.to_owned();
        self
    }

    /// A file of the site. Scripts are never read: the test is what runs them.
    pub fn file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        fs::write(self.directory.path().join(path), content).expect("the directory is ours");
        self
    }

    fn text(&self, root: &Path, addresses: Addresses) -> String {
        let Self { global, php, site, .. } = self;
        let (root, Addresses { site: address, admin }) = (root.display(), addresses);
        format!(
            "{{\n\tadmin {admin}\n\tpersist_config off\n\t{global}\n\tfrankenphp {{\n\t\t{php}\n\t}}\n}}\n\
             http://:{} {{\n\tbind {}\n\troot * {root}\n\t{site}\n}}\n",
            address.port(),
            address.ip(),
        )
    }

    /// The server serves, and an engine has started, when this returns.
    ///
    /// # Panics
    /// With the mistakes of the configuration.
    pub fn start(self) -> Rig {
        let (calls, called) = mpsc::channel();
        let listeners = Listeners::bind().expect("ports are free");
        let addresses = listeners.addresses().expect("they are bound");
        let source = Arc::new(Source::new(self.text(self.directory.path(), addresses)));
        let sockets = listeners.into_sockets().expect("they listen");
        let (end, ended) = oneshot::channel();
        let (started, start) = mpsc::channel();
        let served = Arc::clone(&source);
        let thread = std::thread::spawn(move || serve(served, sockets, Stage::new(calls), &started, ended));
        let Started { reloader, runtime } = start.recv_timeout(DEADLINE).expect("the server starts");
        Rig {
            addresses,
            calls: called,
            directory: self.directory,
            source,
            reloader,
            runtime,
            end: Some(end),
            ended: Some(thread),
        }
    }
}

/// Where a rig listens.
#[derive(Clone, Copy)]
struct Addresses {
    site: SocketAddr,
    admin: SocketAddr,
}

/// Sockets of the rig's own, which it has from before the server starts until it ends: nobody else gets their ports.
struct Listeners {
    site: TcpListener,
    admin: TcpListener,
}

impl Listeners {
    fn bind() -> io::Result<Self> {
        let bind = || TcpListener::bind("127.0.0.1:0");
        Ok(Self { site: bind()?, admin: bind()? })
    }

    fn addresses(&self) -> io::Result<Addresses> {
        Ok(Addresses { site: self.site.local_addr()?, admin: self.admin.local_addr()? })
    }

    fn into_sockets(self) -> io::Result<Sockets> {
        let inherited = |listener: TcpListener| InheritedSocket::new(listener.into(), Keeper::Server(None));
        let inherited = vec![inherited(self.site)?, inherited(self.admin)?];
        Ok(Sockets { inherited: Inherited::new(inherited), predecessor: None })
    }
}

/// What a test has of a server that has started.
struct Started {
    reloader: Reloader,
    runtime: tokio::runtime::Handle,
}

/// The server's own thread.
fn serve(
    source: Arc<Source>,
    sockets: Sockets,
    stage: Stage,
    started: &mpsc::Sender<Started>,
    ended: oneshot::Receiver<()>,
) {
    let runtime = regent_server::runtime().build().expect("a runtime can be made");
    let launcher = Arc::new(stage);
    let program = || Program { file: "played".into(), launcher: Arc::clone(&launcher) as _ };
    let options = Options {
        php: program(),
        native: program(),
        source: Arc::clone(&source) as _,
        successor: Arc::new(NoSuccessor),
    };
    runtime.block_on(async {
        let configuration = source.read(&Place::Own).unwrap_or_else(|errors| panic!("{errors}"));
        let running = regent_server::start(configuration, options, sockets).await;
        let running = running.unwrap_or_else(|error| panic!("{error}"));
        let _ = started
            .send(Started { reloader: running.reloader(), runtime: tokio::runtime::Handle::current() });
        if ended.await.is_ok() {
            running.stop().await;
        }
    });
    runtime.shutdown_background();
}

impl Rig {
    pub fn address(&self) -> SocketAddr {
        self.addresses.site
    }

    pub fn admin(&self) -> Admin {
        Admin::new(self.addresses.admin)
    }

    /// The site's root.
    pub fn root(&self) -> &Path {
        self.directory.path()
    }

    /// A connection to the server.
    pub fn connect(&self) -> Conn {
        Conn::open(self.address())
    }

    /// Sends these bytes on a new connection.
    pub fn send(&self, bytes: impl AsRef<[u8]>) -> Conn {
        let mut conn = self.connect();
        conn.send(bytes);
        conn
    }

    /// Asks for `target` on a new connection, from which the response is to be read.
    pub fn ask(&self, target: &str) -> Conn {
        self.send(get(target))
    }

    /// The next request that a thread of the engine takes.
    pub fn call(&self) -> Call {
        self.calls.recv_timeout(DEADLINE).expect("a thread of the engine takes a request")
    }

    /// Waits for a request that a thread takes, and answers with that.
    pub fn answer(&self, body: &str) {
        self.call().answer(200, body);
    }

    /// A request that a thread has taken by now.
    pub fn try_call(&self) -> Option<Call> {
        self.calls.try_recv().ok()
    }

    /// Waits until so many requests wait for a thread.
    pub fn wait_for_queue(&self, length: u64) {
        self.admin().wait_for_queue("classic", length);
    }

    /// Replaces the configuration, as a reload does.
    ///
    /// # Errors
    /// If the server refuses it.
    pub fn reload(&self, setup: &Setup) -> Result<(), String> {
        self.source.replace(setup.text(self.root(), self.addresses));
        let reloader = self.reloader.clone();
        let reloading =
            async move { reloader.reload(Force::No).await.map(drop).map_err(|error| error.to_string()) };
        let (done, result) = mpsc::channel();
        self.runtime.spawn(async move { drop(done.send(reloading.await)) });
        result.recv_timeout(DEADLINE).expect("the reload ends")
    }

    /// Begins to stop the server in good order; [`Self::wait_until_stopped`] waits for the end of that.
    pub fn begin_to_stop(&mut self) {
        // It has ended otherwise.
        let _ = self.end.take().map(|end| end.send(()));
    }

    pub fn wait_until_stopped(mut self) {
        self.begin_to_stop();
        let ended = self.ended.take().expect("invariant: it is taken once");
        ended.join().expect("the server ends well");
    }
}

/// A request without a body, on a connection that stays.
pub fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n")
}

/// What the rig's Caddyfile is at the moment.
struct Source(Mutex<String>);

impl Source {
    fn new(text: String) -> Self {
        Self(Mutex::new(text))
    }

    fn replace(&self, text: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }
}

impl ConfigSource for Source {
    fn read(&self, _place: &Place) -> Result<Configuration, String> {
        let text = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let environment = Environment { variables: BTreeMap::new(), current_dir: "/".into() };
        let loaded = regent_config::parse("Caddyfile", &text, Path::new("/"), &environment);
        let loaded = loaded.map_err(|errors| format!("{errors}\n{text}"))?;
        Ok(Configuration { config: loaded.config, document: Arc::default() })
    }

    fn adapt(&self, _text: &str) -> Result<(serde_json::Value, Vec<String>), String> {
        Err("a rig does not adapt".to_owned())
    }

    fn loaded(&self, _from: Place, _config: &Config) {}

    fn current(&self) -> Option<String> {
        None
    }
}

/// Nothing takes the place of a rig.
struct NoSuccessor;

impl Successor for NoSuccessor {
    fn obstacle(&self) -> Option<String> {
        Some("a rig is not upgraded".to_owned())
    }

    fn start(&self, _socket: OwnedFd) -> io::Result<std::process::Child> {
        Err(io::Error::other("a rig is not upgraded"))
    }

    fn follow(&self, _process: u32) {}
}
