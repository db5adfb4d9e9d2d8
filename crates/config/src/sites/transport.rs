//! Which listeners have TLS. A listener has it for all of its sites or for none.

use super::Opened;
use crate::address::Security;
use crate::context::Context;
use crate::model::Listen;
use crate::problems::error;
use regent_caddyfile::Token;
use std::collections::HashMap;

/// What a listener speaks, and the address that said so.
struct Decision<'a> {
    security: Security,
    token: &'a Token,
}

/// Decides for every way to a site. A listener that is asked for both is an error.
pub(super) fn settle<'a>(cx: &mut Context<'_>, opened: &mut [Opened<'a>]) {
    follow_directive(opened);
    let mut decisions: HashMap<Listen, Decision<'a>> = HashMap::new();
    for way in opened.iter().flat_map(|block| &block.ways) {
        if way.security == Security::Follows {
            continue;
        }
        let decision = Decision { security: way.security, token: way.token };
        let first = decisions.entry(way.door.listen.clone()).or_insert(decision);
        if first.security != way.security {
            let message = conflict(way.token, way.security, first);
            cx.errors.push(error(way.token, message));
        }
    }
    for way in opened.iter_mut().flat_map(|block| &mut block.ways) {
        if way.security == Security::Follows {
            way.security = decisions.get(&way.door.listen).map_or(Security::Plain, |first| first.security);
        }
    }
    warn_of_tls_without_effect(cx, opened);
}

/// A `tls` directive decides for addresses that leave it open.
fn follow_directive(opened: &mut [Opened<'_>]) {
    for block in opened.iter_mut().filter(|block| block.tls.is_some()) {
        for way in block.ways.iter_mut().filter(|way| way.security == Security::Follows) {
            way.security = Security::Tls;
        }
    }
}

fn conflict(token: &Token, security: Security, first: &Decision<'_>) -> String {
    let is = |security| if security == Security::Tls { "has TLS" } else { "is plain HTTP" };
    format!(
        "`{}` {}, but `{}` ({}) on the same port {}; give one of them another port or the other scheme",
        token.text,
        is(security),
        first.token.text,
        first.token.span,
        is(first.security)
    )
}

/// Files whose address comes from a variable often have a `tls` that is meant for some of its values only.
fn warn_of_tls_without_effect(cx: &mut Context<'_>, opened: &[Opened<'_>]) {
    for block in opened {
        let is_plain = block.ways.iter().all(|way| way.security == Security::Plain);
        if let Some(tls) = block.tls.as_ref().filter(|_| is_plain && !block.ways.is_empty()) {
            cx.warn(tls.name, "`tls` has no effect: every address of this site is plain HTTP");
        }
    }
}
