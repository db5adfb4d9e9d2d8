//! `vulcain`, `push`: accepted, and without effect; `regent validate` says so.
//!
//! Without `vulcain` a client gets whole responses where it would have asked for parts of them, and `push` is obsolete (browsers
//! have given up HTTP/2 pushes).

use super::{Directive, Matchers, Parse};

pub(super) const VULCAIN: Directive =
    ignored("vulcain", "clients that send `Preload` or `Fields` get whole responses");
pub(super) const PUSH: Directive = ignored("push", "no browser takes HTTP/2 pushes any more");

const fn ignored(name: &'static str, why: &'static str) -> Directive {
    Directive { name, sorts_as: name, matchers: Matchers::None, parse: Parse::Ignored(why) }
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{load, routes};

    #[test]
    fn what_has_no_effect_is_a_warning() {
        let loaded = load(":80 {\nvulcain\npush /a /b\n}").unwrap();
        let warnings: Vec<_> = loaded.warnings.iter().map(ToString::to_string).collect();
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert!(warnings[0].starts_with("Caddyfile:2:1: `vulcain` has no effect: "), "{warnings:?}");
        assert!(routes("vulcain").is_empty());
    }
}
