//! What the kernel can confine.

use std::fs;

/// Whether this kernel has Landlock, with all that the tests ask of it.
pub fn has_landlock() -> bool {
    let here = fs::read_to_string("/proc/sys/kernel/osrelease").expect("Linux says which it is");
    let mut numbers = here.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
    let is_new = (numbers.next(), numbers.next()) >= (Some(6), Some(12));
    let is_on = fs::read_to_string("/sys/kernel/security/lsm").map_or(true, |on| on.contains("landlock"));
    if !is_new || !is_on {
        println!("SKIPPED: this kernel has no Landlock of Linux 6.12 or later");
    }
    is_new && is_on
}
