//! What answers the requests that come through a binding.

use http::Request;
use regent_exchange::{Connection, Informational, RequestBody};
use regent_service::counted::Counted;
use regent_service::{Accepted, ResponseFuture, Service};
use regent_tls::ClientAuthClass;
use std::rc::Rc;
use std::time::Duration;

/// The service behind a binding.
#[derive(Clone)]
pub(crate) struct Answers(pub Rc<Service>);

impl regent_connections::Service for Answers {
    type Accepted = Accepted;
    type Body = Counted;
    type ResponseFuture = ResponseFuture;

    fn accept(connection: Connection, client_auth: Option<ClientAuthClass>) -> Accepted {
        Accepted::new(connection, client_auth)
    }

    fn answer(
        &self,
        request: Request<RequestBody>,
        head_time: Duration,
        accepted: &Rc<Accepted>,
        client: Rc<dyn Informational>,
    ) -> ResponseFuture {
        self.0.answer(request, head_time, accepted, client)
    }
}
