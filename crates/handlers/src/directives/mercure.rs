//! `mercure`: what is for the hub goes there.

use crate::context::exchange::Exchange;
use crate::context::flow::Flow;
use crate::context::origin::Origin;
use crate::context::target::{Action, Target};
use regent_config::HubId;

/// Where a hub is (draft-dunglas-mercure-07, section 2).
const PATH: &[u8] = b"/.well-known/mercure";
/// What it has below.
const SUBSCRIPTIONS: &[u8] = b"/subscriptions";

/// A compiled `mercure` directive.
pub(crate) struct Mercure(HubId);

impl Mercure {
    pub(crate) fn new(hub: HubId) -> Self {
        Self(hub)
    }

    /// Other paths are for the directives that follow.
    pub(crate) fn handle(&self, exchange: &mut Exchange) -> Flow {
        if !is_hub(exchange.path()) {
            return Flow::Next;
        }
        // The response is the hub's: `header` does not take its content type away.
        exchange.set_origin(Origin::Engine);
        Flow::Answer(Action::Forward(Target::Mercure(self.0)))
    }
}

fn is_hub(path: &[u8]) -> bool {
    let Some(below) = path.strip_prefix(PATH) else { return false };
    below.is_empty() || below.strip_prefix(SUBSCRIPTIONS).is_some_and(|rest| matches!(rest, [] | [b'/', ..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::exchange::tests::get;

    #[test]
    fn only_what_is_for_the_hub_goes_there() {
        for (path, is_for_hub) in [
            ("/.well-known/mercure?topic=a", true),
            ("/.well-known/mercure/subscriptions", true),
            ("/.well-known/mercure/subscriptions/a%2Fb/c", true),
            ("/.well-known/mercure/ui/", false),
            ("/.well-known/mercure/", false),
            ("/.well-known/mercurex", false),
            ("/.well-known/mercure/subscriptionsx", false),
            ("/", false),
        ] {
            let flow = Mercure::new(HubId(3)).handle(&mut get(path));
            let target = Action::Forward(Target::Mercure(HubId(3)));
            let is_sent = match (flow, target) {
                (Flow::Answer(Action::Forward(sent)), Action::Forward(target)) => sent == target,
                _ => false,
            };
            assert_eq!(is_sent, is_for_hub, "{path}");
        }
    }
}
