//! Regent with the tests' tree as its site, and a client of it.

use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;

use regent_tests::{Conn, Server, Setup};

use crate::options::Mode;
use crate::php::Prepared;
use crate::place::Place;
use crate::request::{Answer, Request, comparable};

/// How many connections a shuffled run has, with a PHP thread for each.
pub const CONNECTIONS: usize = 16;

/// Starts Regent. With some tests' settings it does not start: the test harness prints its log then.
pub fn start(mode: Mode, place: &Place, prepared: &Prepared) -> Option<Server> {
    let setup = Setup::new().caddyfile(&caddyfile(mode, &place.tree()));
    let setup = prepared.environment.iter().fold(setup, |setup, (name, value)| setup.env(name, value));
    panic::catch_unwind(AssertUnwindSafe(|| setup.start())).ok()
}

/// Requests wait for a thread as long as they must: tests are slow beside each other.
fn caddyfile(mode: Mode, tree: &Path) -> String {
    let (options, site) = match mode {
        Mode::Classic => ("num_threads 2".to_owned(), "php_server".to_owned()),
        Mode::Shuffled => (format!("num_threads {CONNECTIONS}"), "php_server".to_owned()),
        Mode::Worker => {
            let worker = tree.join(Place::WORKER);
            let block = format!(
                "php_server {{\n\t\tworker {{\n\t\t\tfile {}\n\t\t\tnum 2\n\t\t\tmatch *.php\n\t\t}}\n\t}}",
                worker.display()
            );
            ("num_threads 3\n\t\tmax_requests 1".to_owned(), block)
        }
    };
    format!(
        "{{\n\tadmin off\n\tfrankenphp {{\n\t\tmax_wait_time 10m\n\t\t{options}\n\t}}\n}}\n\
         http://:PORT {{\n\tbind LOOPBACK\n\troot * {}\n\t{site}\n}}\n",
        tree.display()
    )
}

/// One connection, which is kept as long as the server keeps it: a response that is not framed as it should be spoils
/// the next.
pub struct Client<'a> {
    server: Option<&'a Server>,
    conn: Option<Conn>,
}

impl<'a> Client<'a> {
    pub fn new(server: Option<&'a Server>) -> Self {
        Self { server, conn: None }
    }

    /// The answer to a test's request; one that says what went wrong where there is no whole response.
    pub fn ask(&mut self, script: &Path, request: &Request) -> Answer {
        self.try_ask(script, request).unwrap_or_else(|error| {
            self.conn = None;
            Answer { headers: Vec::new(), body: format!("** no whole response: {error} **").into_bytes() }
        })
    }

    fn try_ask(&mut self, script: &Path, request: &Request) -> io::Result<Answer> {
        let server =
            self.server.ok_or_else(|| io::Error::other("Regent does not start with these settings"))?;
        let bytes = request.to_http(&server.address().to_string(), script);
        let mut conn = match self.conn.take() {
            Some(conn) => conn,
            None => Conn::try_open(server.address())?,
        };
        conn.try_send(bytes)?;
        let response = conn.try_response(&request.method)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let closes = response.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        self.conn = (!closes).then_some(conn);
        let mut headers = response.headers;
        if response.status != 200 {
            headers.push(("Status".into(), format!("{} {}", response.status, response.reason)));
        }
        Ok(Answer { headers, body: comparable(&response.body) })
    }
}
