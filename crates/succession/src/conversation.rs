//! What two servers say to each other.

use regent_net::{FileIdentity, Keeper};
use std::time::Duration;

/// What both servers say first. Another number is for a server that says something else afterwards.
pub(crate) const GREETING: &str = "regent handover 1";
/// All sockets have been sent.
pub(crate) const ALL: &str = "all";
/// With a file: where the configuration is from.
pub(crate) const CONFIGURATION: &str = "configuration";
/// The new server could serve.
pub(crate) const READY: &str = "ready";
/// The new server is to serve.
pub(crate) const GO: &str = "go";
/// The new server serves.
pub(crate) const SERVING: &str = "serving";
/// Before the reason why the new server does not start.
pub(crate) const FAILED: &str = "failed ";
/// Before what belongs to a socket.
const SOCKET: &str = "socket ";

/// How long the other server may take to an answer, beside that of a machine that has much to do.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// What a socket is announced with.
pub(crate) fn announcement(keeper: &Keeper) -> String {
    match keeper {
        Keeper::ServiceManager(name) => format!("{SOCKET}kept {name}"),
        Keeper::Server(None) => format!("{SOCKET}own"),
        Keeper::Server(Some(FileIdentity { device, inode })) => format!("{SOCKET}file {device} {inode}"),
    }
}

/// Whose the announced socket is.
pub(crate) fn keeper(announcement: &str) -> Keeper {
    let about = announcement.strip_prefix(SOCKET).unwrap_or_default();
    if let Some(name) = about.strip_prefix("kept ") {
        return Keeper::ServiceManager(name.to_owned());
    }
    let numbers = about.strip_prefix("file ").and_then(|numbers| numbers.split_once(' '));
    let identity = numbers.and_then(|(device, inode)| {
        Some(FileIdentity { device: device.parse().ok()?, inode: inode.parse().ok()? })
    });
    Keeper::Server(identity)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_a_socket_is_goes_with_it() {
        let file = FileIdentity { device: 7, inode: u64::MAX };
        for own in
            [Keeper::Server(None), Keeper::Server(Some(file)), Keeper::ServiceManager("a b.socket".into())]
        {
            assert_eq!(keeper(&announcement(&own)), own);
        }
    }
}
