//! Why an address cannot be listened on, and what to do.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why an address cannot be listened on.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    #[error("listening on {address}: {cause}{hint}", hint = hint(.cause))]
    Tcp { address: String, cause: io::Error },
    #[error("listening on the Unix socket {path}: {cause}{hint}", path = .path.display(), hint = unix_hint(.cause))]
    Unix { path: PathBuf, cause: io::Error },
    #[error(
        "HTTP/3 on UDP {address}: {cause}{hint}; without `h3` in `servers {{ protocols }}` the server starts without it",
        hint = hint(.cause)
    )]
    Udp { address: SocketAddr, cause: io::Error },
    #[error(
        "`bind fd/{number}`: no socket has been passed as this descriptor; start Regent by a socket unit of systemd, whose \
         first ListenStream= is fd/3, or write an address"
    )]
    NotPassed { number: u16 },
    #[error(
        "`bind fd/{number}`: the socket is one for datagrams; write the number of a ListenStream=, beside which HTTP/3 is spoken"
    )]
    Datagrams { number: u16 },
    #[error("`{one}` and `{other}` are the same socket; write one of them in all sites")]
    Twice { one: String, other: String },
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "; something listens there, another program or the admin API of this server: stop it, or choose another port"
        }
        io::ErrorKind::PermissionDenied => {
            "; ports below 1024 are for root: choose a higher one (`--listen :8443`; in a Caddyfile the address of the site, \
             or `http_port` and `https_port`), or allow it with `setcap cap_net_bind_service=+ep` on the program, in systemd \
             with `AmbientCapabilities=CAP_NET_BIND_SERVICE`"
        }
        io::ErrorKind::AddrNotAvailable => "; this machine has no such address",
        _ => "",
    }
}

fn unix_hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "; another program listens there: stop it, or choose another path",
        io::ErrorKind::AlreadyExists => "; remove it, or choose another path",
        io::ErrorKind::NotFound => "; make its directory first",
        io::ErrorKind::PermissionDenied => "; the server's user must be able to write to its directory",
        _ => "",
    }
}
