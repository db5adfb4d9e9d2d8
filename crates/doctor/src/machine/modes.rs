//! What the mode of a file permits a user: access control lists are not looked at.

use regent_config::EngineUser;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

pub const READ: u32 = 0o4;
pub const WRITE: u32 = 0o2;
/// To go through a directory.
pub const SEARCH: u32 = 0o1;

/// Whether this user, who is in no other group, has all of these rights to the file itself.
pub fn permits(path: &Path, user: &EngineUser, rights: u32) -> bool {
    let Ok(found) = path.metadata() else { return false };
    let bits = match (found.uid() == user.uid, found.gid() == user.gid) {
        (true, _) => found.mode() >> 6,
        (false, true) => found.mode() >> 3,
        (false, false) => found.mode(),
    };
    user.uid == 0 || bits & rights == rights
}
