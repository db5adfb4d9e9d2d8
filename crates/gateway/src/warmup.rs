//! The requests that a worker's threads run before they take those of clients: each is as if a client on this machine
//! had asked the site `http://localhost` for the path.

use crate::cgi::{Peer, Variables};
use http::{Request, header};
use regent_config::Worker;
use regent_exchange::Connection;
use regent_handlers::{Exchange, PhpTarget};
use regent_wire::{Head, HeadBuilder};
use std::net::{Ipv4Addr, SocketAddr};

const HOST: &str = "localhost";
/// By which a script can tell; no client can send it.
const MARK: (&[u8], &[u8]) = (b"REGENT_WARMUP", b"1");

/// The variables of each request, in the order of the configuration.
pub fn requests(worker: &Worker) -> Vec<Vec<(String, String)>> {
    let target = PhpTarget::of_file(&worker.file);
    worker.warmup.iter().map(|path| variables(path, &target)).collect()
}

fn variables(path: &str, target: &PhpTarget) -> Vec<(String, String)> {
    let request = Request::get(path).header(header::HOST, HOST).body(());
    let (parts, ()) = request.expect("invariant: the configuration has paths of requests only").into_parts();
    let [remote, local] = [0, 80].map(|port| Some(SocketAddr::from((Ipv4Addr::LOCALHOST, port))));
    let mut head = HeadBuilder::new();
    let connection = Connection { remote, local, tls: None };
    let exchange = Exchange::new(parts, connection.clone());
    Variables::new(&[]).write(&mut head, &exchange, target, &Peer::new(&connection), Some(0), None);
    head.named(MARK.0, MARK.1);
    let head = Head::parse(head.build(Some(0))).expect("invariant: it was built just now");
    head.map(|variable| (text(variable.full_name()), text(variable.value))).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_a_get_of_the_path_from_this_machine() {
        let worker = Worker {
            file: "/app/public/index.php".into(),
            warmup: vec!["/up?deep=1".into(), "/".into()],
            ..Worker::default()
        };
        let [up, root] = requests(&worker).try_into().unwrap();
        let value = |name: &str| up.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str());
        for (name, expected) in [
            ("REQUEST_METHOD", "GET"),
            ("REQUEST_URI", "/up?deep=1"),
            ("QUERY_STRING", "deep=1"),
            ("HTTP_HOST", "localhost"),
            ("SERVER_NAME", "localhost"),
            ("SERVER_PORT", "80"),
            ("REMOTE_ADDR", "127.0.0.1"),
            ("DOCUMENT_ROOT", "/app/public"),
            ("SCRIPT_FILENAME", "/app/public/index.php"),
            ("SCRIPT_NAME", "/index.php"),
            ("REGENT_WARMUP", "1"),
        ] {
            assert_eq!(value(name), Some(expected), "{name}");
        }
        assert_eq!(value("HTTPS"), None);
        assert!(root.contains(&("REQUEST_URI".into(), "/".into())));
    }
}
