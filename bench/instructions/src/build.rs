//! What the figures depend on beside Regent's own sources: they are comparable only where all of this is the same.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// How the measured programs were built, and what they run on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Build {
    /// The compiler's version: `1.95.0`.
    pub rustc: String,
    /// Cargo's profile, by the name of its directory: `release`.
    pub profile: String,
    /// The architecture, and the vector instructions by which libc chooses its memcpy: `x86_64 avx2`.
    pub cpu: String,
    /// The distribution, which stands for the versions of the C compiler, of libc and of PHP's libraries: `debian 12`.
    pub system: String,
    /// PHP's version: `8.4.1`.
    pub php: String,
}

/// Describes the build of this binary.
pub fn describe(regent: &Path, php: &str) -> Result<Build> {
    let binary = fs::read(regent).with_context(|| format!("reading {}", regent.display()))?;
    let rustc = compiler_version(&binary)
        .with_context(|| format!("{} does not say which rustc made it", regent.display()))?;
    let profile = regent.parent().and_then(Path::file_name).unwrap_or_default();
    Ok(Build {
        rustc,
        profile: profile.to_string_lossy().into_owned(),
        cpu: cpu(),
        system: system(&fs::read_to_string("/etc/os-release").unwrap_or_default()),
        php: php.to_owned(),
    })
}

/// What rustc leaves in the section `.comment`: `rustc version 1.95.0 (59807616e 2026-04-14)`. The compiler on `PATH`
/// may be another.
fn compiler_version(binary: &[u8]) -> Option<String> {
    const MARK: &[u8] = b"rustc version ";
    let start = binary.windows(MARK.len()).position(|window| window == MARK)? + MARK.len();
    let version = binary[start..].split(|byte| !byte.is_ascii_graphic()).next()?;
    String::from_utf8(version.to_vec()).ok()
}

/// Valgrind's processor has what the machine's has, up to AVX2.
fn cpu() -> String {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        return "x86_64 avx2".to_owned();
    }
    std::env::consts::ARCH.to_owned()
}

/// From os-release(5).
fn system(os_release: &str) -> String {
    let value = |key: &str| {
        let line = os_release.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        line.map_or("unknown", |value| value.trim_matches('"'))
    };
    format!("{} {}", value("ID"), value("VERSION_ID"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compiler_is_found_in_the_binary() {
        let binary = b"\x7fELF\0GCC: 12\0rustc version 1.95.0 (59807616e 2026-04-14)\0Linker";
        assert_eq!(compiler_version(binary).as_deref(), Some("1.95.0"));
        assert_eq!(compiler_version(b"\x7fELF"), None);
    }

    #[test]
    fn the_system_is_its_id_and_its_version() {
        assert_eq!(
            system("NAME=\"Debian\"\nVERSION_ID=\"12\"\nVERSION=\"12 (x)\"\nID=debian\n"),
            "debian 12"
        );
        assert_eq!(system(""), "unknown unknown");
    }
}
