//! Listening Unix sockets, and the files that stand for them.

use crate::listen::BACKLOG;
use socket2::{Domain, SockAddr, Socket, Type};
use std::fs::{self, Metadata};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// The file of a listening socket. Dropped, it is removed, unless another server's has taken its place.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    identity: FileIdentity,
    /// As long as it is open no other file has the same identity; and nobody takes this one's for stale.
    _socket: Socket,
}

/// Which file a path leads to: its device and its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileIdentity {
    pub device: u64,
    pub inode: u64,
}

/// Listens on a Unix socket, non-blocking. Its file gets the permissions `mode`: to connect takes the one to write. A
/// socket that no process listens on any more is replaced. It listens until both are dropped.
///
/// # Errors
/// `AddrInUse` when a process listens there, `AlreadyExists` when something else than a socket is in the way; and when the
/// file cannot be made, as for want of its directory.
pub fn listen_unix(path: &Path, mode: u32) -> io::Result<(UnixListener, SocketFile)> {
    remove_stale(path)?;
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SockAddr::unix(path)?)?;
    let file = SocketFile::new(path, &socket)?;
    // Until it listens nobody can connect, so that at no time the wrong ones may.
    fs::set_permissions(path, PermissionsExt::from_mode(mode))?;
    socket.listen(BACKLOG)?;
    Ok((socket.into(), file))
}

impl SocketFile {
    fn new(path: &Path, socket: &Socket) -> io::Result<Self> {
        let identity = identity(&fs::symlink_metadata(path)?);
        Ok(Self { path: path.to_owned(), identity, _socket: socket.try_clone()? })
    }

    /// The file of this socket that another server has made; `None`: it has gone. It is removed with what is returned.
    pub(crate) fn take_over(path: &Path, identity: FileIdentity, socket: OwnedFd) -> Option<Self> {
        let found = fs::symlink_metadata(path).ok()?;
        let is_same = self::identity(&found) == identity;
        is_same.then(|| Self { path: path.to_owned(), identity, _socket: socket.into() })
    }

    pub fn identity(&self) -> FileIdentity {
        self.identity
    }

    /// Does not remove it: another server has taken it over.
    pub fn leave(mut self) {
        // Leads to no file.
        self.path = PathBuf::new();
    }
    /// Changes who may connect.
    pub fn set_mode(&self, mode: u32) -> io::Result<()> {
        fs::set_permissions(&self.path, PermissionsExt::from_mode(mode))
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let is_own = fs::symlink_metadata(&self.path).is_ok_and(|found| identity(&found) == self.identity);
        if is_own {
            // Gone already: what was wanted.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(metadata: &Metadata) -> FileIdentity {
    FileIdentity { device: metadata.dev(), inode: metadata.ino() }
}

/// Removes a socket that nobody listens on; anything else in the way is an error.
fn remove_stale(path: &Path) -> io::Result<()> {
    let file_type = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata.file_type(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !file_type.is_socket() {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the file exists, and is no socket"));
    }
    match connect(path) {
        // A full backlog is a live server's too.
        Ok(()) => Err(io::ErrorKind::AddrInUse.into()),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(io::ErrorKind::AddrInUse.into()),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) => Err(error),
    }
}

fn connect(path: &Path) -> io::Result<()> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    // Else it would wait for a place in the backlog.
    socket.set_nonblocking(true)?;
    socket.connect(&SockAddr::unix(path)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;
    use tempfile::TempDir;

    fn place() -> (TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.sock");
        (directory, path)
    }

    #[test]
    fn the_file_has_its_mode_and_goes_with_the_socket() {
        let (directory, path) = place();
        let (listener, file) = listen_unix(&path, 0o640).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        UnixStream::connect(&path).unwrap();
        listener.accept().unwrap();
        drop(file);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_stale_socket_is_replaced_and_a_live_one_is_not() {
        let (_directory, path) = place();
        // The standard library's listener leaves its file behind, as a killed server does.
        drop(UnixListener::bind(&path).unwrap());
        let _live = listen_unix(&path, 0o600).unwrap();
        let error = listen_unix(&path, 0o600).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        UnixStream::connect(&path).unwrap();
    }

    #[test]
    fn a_server_that_is_too_busy_to_accept_is_alive() {
        let (_directory, path) = place();
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
        socket.bind(&SockAddr::unix(&path).unwrap()).unwrap();
        socket.listen(0).unwrap();
        let _waiting = UnixStream::connect(&path).unwrap();
        let error = listen_unix(&path, 0o600).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn the_file_of_a_successor_is_left_alone() {
        let (_directory, path) = place();
        let first = listen_unix(&path, 0o600).unwrap();
        fs::remove_file(&path).unwrap();
        let _successor = listen_unix(&path, 0o600).unwrap();
        drop(first);
        UnixStream::connect(&path).unwrap();
    }

    #[test]
    fn a_file_in_the_way_is_kept() {
        let (_directory, path) = place();
        fs::write(&path, "data").unwrap();
        let error = listen_unix(&path, 0o600).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).unwrap(), "data");
    }

    #[test]
    fn a_path_that_is_too_long_is_an_error() {
        let (directory, _) = place();
        assert!(listen_unix(&directory.path().join("x".repeat(200)), 0o600).is_err());
    }
}
