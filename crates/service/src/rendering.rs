//! Responses that are templates: read here, rendered outside of the I/O threads.

use crate::refusals::busy;
use crate::service::{Accepted, Service};
use http_body::Body;
use http_body_util::{BodyExt, Limited};
use regent_exchange::{Informational, RequestBody, Tunnel};
use regent_handlers::{Action, Exchange, Progress, Rendering};
use std::cell::Cell;
use std::error::Error;
use std::rc::Rc;
use std::time::Duration;

impl Service {
    /// The response of a template, and what the routes make of that.
    pub(crate) async fn rendered(
        self: &Rc<Self>,
        mut rendering: Rendering,
        exchange: &mut Exchange,
        accepted: &Rc<Accepted>,
    ) -> Action {
        let Some(body) = rendering.take_body() else {
            return self.sites.intercept(exchange, rendering.head()).0;
        };
        let mut progress = match read(body).await {
            Ok(source) => {
                rendering.set_source(source);
                Progress::Again
            }
            Err(reason) => rendering.failed(&reason),
        };
        loop {
            match progress {
                Progress::Done(response) => return self.sites.intercept(exchange, response).0,
                Progress::Failed(failure) => return self.sites.resume(exchange, failure),
                Progress::Fetch(pages) => {
                    for uri in pages {
                        let page = self.render_include(&rendering, exchange, &uri, accepted).await;
                        rendering.supply(uri, page);
                    }
                }
                Progress::Again => {}
            }
            match self.templates.run(rendering.job()).await {
                None => return self.sites.resume(exchange, busy()),
                Some(outcome) => progress = rendering.advance(exchange, outcome),
            }
        }
    }

    /// A page of these sites, as the client of this request would get it.
    async fn render_include(
        self: &Rc<Self>,
        rendering: &Rendering,
        exchange: &Exchange,
        uri: &str,
        accepted: &Rc<Accepted>,
    ) -> Result<Vec<u8>, String> {
        let head = rendering.request_for(exchange, uri)?;
        let request = http::Request::from_parts(head, RequestBody::empty());
        let client = Rc::new(Inner::default());
        let response = self.answer(request, Duration::ZERO, accepted, client.clone()).await;
        if client.aborted.get() {
            return Err("there is no response".into());
        }
        if response.status().as_u16() >= 400 {
            return Err(format!("http {}", response.status().as_u16()));
        }
        read(response.into_body()).await
    }
}

async fn read<B>(body: B) -> Result<Vec<u8>, String>
where
    B: Body,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    match Limited::new(body, Rendering::MOST_BYTES).collect().await {
        Ok(body) => Ok(body.to_bytes().into()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            Err("a template or a page in it has more than 16 MiB".into())
        }
        Err(error) => Err(format!("its body did not come whole: {error}")),
    }
}

/// The client of a page that goes into another: there is nobody to be told anything.
#[derive(Default)]
struct Inner {
    aborted: Cell<bool>,
}

impl Informational for Inner {
    fn send(&self, _: http::Version, _: http::StatusCode, _: &http::HeaderMap) {}

    fn close_connection(&self) {}

    fn hand_over(&self, _: Tunnel) {}

    fn abort(&self) {
        self.aborted.set(true);
    }
}
