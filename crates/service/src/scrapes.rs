//! The directive `metrics`: requests to a site for the metrics of the server.
//!
//! They are put together where the admin API has them, never on an I/O thread.

use crate::refusals::busy;
use bytes::Bytes;
use http::{HeaderValue, Method, Response, header};
use regent_exchange::ResponseBody;
use regent_handlers::Failure;
use regent_metrics::CONTENT_TYPE;
use tokio::sync::{mpsc, oneshot};

/// Requests that wait at once. All of them get the same page, so that there is no more to it than their number.
const MOST_WAITING: usize = 64;

type Asker = oneshot::Sender<Bytes>;

/// Asks for the metrics.
#[derive(Clone)]
pub struct Scrapes(mpsc::Sender<Asker>);

/// Who asks.
pub struct Askers(mpsc::Receiver<Asker>);

pub fn channel() -> (Scrapes, Askers) {
    let (sender, receiver) = mpsc::channel(MOST_WAITING);
    (Scrapes(sender), Askers(receiver))
}

impl Scrapes {
    pub async fn answer(&self, method: &Method) -> Result<Response<ResponseBody>, Failure> {
        let (asker, page) = oneshot::channel();
        self.0.try_send(asker).map_err(|_| busy())?;
        // The server is stopping.
        let page = page.await.map_err(|_| busy())?;
        let length = HeaderValue::from(page.len());
        let body = if method == Method::HEAD { ResponseBody::empty() } else { ResponseBody::full(page) };
        let mut response = Response::new(body);
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE));
        response.headers_mut().insert(header::CONTENT_LENGTH, length);
        Ok(response)
    }
}

impl Askers {
    /// Answers until nobody can ask any more, or `render` has nothing. Who asked before a page was begun gets that one.
    pub async fn serve(mut self, render: impl AsyncFn() -> Option<String>) {
        while let Some(first) = self.0.recv().await {
            let mut askers = vec![first];
            while let Ok(next) = self.0.try_recv() {
                askers.push(next);
            }
            let Some(page) = render().await.map(Bytes::from) else { return };
            // A client that has left gets none.
            askers.into_iter().for_each(|asker| drop(asker.send(page.clone())));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::StatusCode;
    use std::cell::Cell;

    #[tokio::test]
    async fn who_asks_at_once_gets_the_same_page_and_too_many_are_refused() {
        let (scrapes, askers) = channel();
        let pages = Cell::new(0);
        let all = (0..=MOST_WAITING).map(|_| async {
            let answer = scrapes.answer(&Method::GET).await;
            answer.map_or_else(|failure| failure.status(), |response| response.status())
        });
        let serving = askers.serve(async || {
            pages.set(pages.get() + 1);
            Some("page".to_owned())
        });
        let found = tokio::select! {
            found = futures_util::future::join_all(all) => found,
            () = serving => unreachable!("somebody can ask"),
        };
        assert_eq!(found.iter().filter(|status| **status == StatusCode::OK).count(), MOST_WAITING);
        assert_eq!((found[MOST_WAITING], pages.get()), (StatusCode::SERVICE_UNAVAILABLE, 1));
    }

    #[tokio::test]
    async fn a_server_that_stops_has_none() {
        let (scrapes, askers) = channel();
        let (answer, ()) = tokio::join!(scrapes.answer(&Method::GET), askers.serve(async || None));
        assert_eq!(answer.err().map(|failure| failure.status()), Some(StatusCode::SERVICE_UNAVAILABLE));
    }
}
