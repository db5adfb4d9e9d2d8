//! The addresses of names, looked up off the I/O thread and kept for a while.

use futures_util::FutureExt;
use futures_util::future::{LocalBoxFuture, Shared};
use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;
use tokio::time::Instant;

/// How long addresses are used. The system's resolver does not say how long they are good for.
const FRESH: Duration = Duration::from_secs(10);
/// How long they are used while the name cannot be looked up again.
const USABLE: Duration = Duration::from_secs(300);
/// Names that are kept. Requests may have a say in them.
const MOST_NAMES: usize = 1024;

/// Looks names up, each once at a time.
#[derive(Default)]
pub(crate) struct Resolver {
    names: RefCell<HashMap<String, Name>>,
}

#[derive(Default)]
struct Name {
    known: Option<(Instant, Addresses)>,
    looking: Option<Shared<LocalBoxFuture<'static, Found>>>,
}

type Addresses = Rc<[IpAddr]>;
type Found = Result<Addresses, Rc<io::Error>>;

impl Resolver {
    /// The addresses of a host, at least one. The empty host is this machine.
    pub async fn addresses(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let with_port = |ip: &IpAddr| SocketAddr::new(*ip, port);
        if host.is_empty() {
            let ips = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
            return Ok(ips.iter().map(with_port).collect());
        }
        if let Ok(ip) = host.parse() {
            return Ok(vec![with_port(&ip)]);
        }
        let found = match self.begin(host) {
            Begun::Known(found) => found,
            Begun::Looking(looking) => self.end(host, looking.await)?,
        };
        Ok(found.iter().map(with_port).collect())
    }

    fn begin(&self, host: &str) -> Begun {
        let mut names = self.names.borrow_mut();
        if !names.contains_key(host) && names.len() >= MOST_NAMES {
            make_room(&mut names);
        }
        let name = names.entry(host.to_owned()).or_default();
        if let Some((since, known)) = &name.known
            && since.elapsed() < FRESH
        {
            return Begun::Known(Rc::clone(known));
        }
        let begin = || look_up(host.to_owned()).boxed_local().shared();
        Begun::Looking(name.looking.get_or_insert_with(begin).clone())
    }

    fn end(&self, host: &str, found: Found) -> io::Result<Addresses> {
        let mut names = self.names.borrow_mut();
        let Some(name) = names.get_mut(host) else {
            return found.map_err(|error| io::Error::new(error.kind(), error.to_string()));
        };
        // Of several that waited for it, the first is here before anybody begins anew.
        name.looking.take_if(|looking| looking.peek().is_some());
        match (found, &name.known) {
            (Ok(found), _) => {
                name.known = Some((Instant::now(), Rc::clone(&found)));
                Ok(found)
            }
            (Err(error), Some((since, known))) if since.elapsed() < USABLE => {
                tracing::warn!(host, %error, "a name could not be looked up again: its addresses are used on");
                Ok(Rc::clone(known))
            }
            (Err(error), _) => Err(io::Error::new(error.kind(), error.to_string())),
        }
    }
}

enum Begun {
    Known(Addresses),
    Looking(Shared<LocalBoxFuture<'static, Found>>),
}

/// The runtime does it on a thread that may wait.
async fn look_up(host: String) -> Found {
    let found = tokio::net::lookup_host((host.as_str(), 0)).await.map_err(Rc::new)?;
    let mut ips: Vec<IpAddr> = Vec::new();
    for address in found {
        if !ips.contains(&address.ip()) {
            ips.push(address.ip());
        }
    }
    match ips.is_empty() {
        true => Err(Rc::new(io::Error::new(io::ErrorKind::NotFound, format!("{host} has no address")))),
        false => Ok(ips.into()),
    }
}

/// Forgets what is least likely to be needed.
fn make_room(names: &mut HashMap<String, Name>) {
    names.retain(|_, name| {
        name.looking.is_some() || name.known.as_ref().is_some_and(|(since, _)| since.elapsed() < FRESH)
    });
    if names.len() >= MOST_NAMES {
        names.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn addresses_need_no_look_up() {
        let resolver = Resolver::default();
        let addresses = |found: io::Result<Vec<SocketAddr>>| -> Vec<String> {
            found.unwrap().iter().map(ToString::to_string).collect()
        };
        assert_eq!(addresses(resolver.addresses("", 1).await), ["127.0.0.1:1", "[::1]:1"]);
        assert_eq!(addresses(resolver.addresses("::2", 3).await), ["[::2]:3"]);
        assert!(resolver.names.borrow().is_empty());
    }

    #[tokio::test]
    async fn a_name_is_looked_up_once_for_all_who_wait() {
        let resolver = Resolver::default();
        let (first, second) =
            tokio::join!(resolver.addresses("localhost", 1), resolver.addresses("localhost", 2));
        assert!(!first.unwrap().is_empty() && !second.unwrap().is_empty());
        let names = resolver.names.borrow();
        let name = &names["localhost"];
        assert!(name.known.is_some() && name.looking.is_none());
    }

    #[tokio::test]
    async fn names_do_not_pile_up() {
        let resolver = Resolver::default();
        for number in 0..3 * MOST_NAMES {
            drop(resolver.begin(&format!("name-{number}.invalid")));
        }
        assert!(resolver.names.borrow().len() <= MOST_NAMES);
    }
}
