//! Renders a page.

use crate::listing::Listing;
use crate::page::{Failed, Outcome, Page, Supplied};
use crate::run::Run;
use std::sync::Arc;
use std::thread;

/// Bytes for what nests: templates within templates, to the bound of the library, and values within values.
const STACK: usize = 128 << 20;

/// Blocks. On a stack of its own, since what nests in a template nests here.
pub fn render(page: &Arc<Page>, supplied: &Arc<Supplied>) -> Outcome {
    let (page, supplied) = (Arc::clone(page), Arc::clone(supplied));
    let begun = thread::Builder::new()
        .name("template".into())
        .stack_size(STACK)
        .spawn(move || render_here(Run::new(page, supplied)));
    match begun.map(thread::JoinHandle::join) {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(_)) => Outcome::Failed(Failed::Template("it has failed in a way that is not foreseen".into())),
        Err(error) => Outcome::Failed(Failed::Template(format!("no thread can be started: {error}"))),
    }
}

fn render_here(run: Arc<Run>) -> Outcome {
    let page = Arc::clone(&run.page);
    let cost = page.listing.as_ref().map_or(0, Listing::cost);
    let result = run.budget.bytes(cost).and_then(|()| run.execute(&page.name, &page.source, &[]));
    let state = std::mem::take(&mut *run.state());
    if !state.needs.is_empty() {
        // Whatever came of it, it came of values that were not there.
        return Outcome::Needs(state.needs);
    }
    match (state.failed, result) {
        (Some(failed), Err(_)) => Outcome::Failed(failed),
        (_, Err(error)) => Outcome::Failed(Failed::Template(error.to_string())),
        (_, Ok(body)) => Outcome::Done { body, changes: state.changes },
    }
}
