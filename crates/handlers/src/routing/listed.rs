//! What becomes of a directory that has been listed.

use crate::context::exchange::Exchange;
use crate::context::listing::Listed;
use crate::context::rendering::Rendering;
use crate::context::target::Action;
use crate::routing::sites::Sites;

impl Sites {
    /// A page that is ready, or one that a template makes.
    pub fn listed(&self, exchange: &mut Exchange, listed: Listed) -> Action {
        match listed.response() {
            (response, None) => self.intercept(exchange, response).0,
            (response, Some((rules, listing))) => {
                Action::Render(Box::new(Rendering::new(rules, exchange, response).with_listing(listing)))
            }
        }
    }
}
