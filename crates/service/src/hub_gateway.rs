//! A request's way to a Mercure hub.

use crate::hubs::OpenHubs;
use http::Response;
use regent_config::HubId;
use regent_exchange::BodyLimits;
use regent_exchange::{RequestBody, ResponseBody};
use regent_handlers::Exchange;
use regent_mercure::{Asked, Bounds};
use std::sync::Arc;

/// Bytes of an update, where nothing else is configured.
const UPDATE: u64 = 1 << 20;

/// The hubs of a configuration, and what a publisher may send.
pub struct HubGateway {
    pub hubs: Arc<OpenHubs>,
}

impl HubGateway {
    pub async fn answer(
        &self,
        exchange: &Exchange,
        hub: HubId,
        body: RequestBody,
        limits: BodyLimits,
    ) -> Response<ResponseBody> {
        let asked = Asked {
            method: &exchange.method,
            path: exchange.uri.path(),
            query: exchange.uri.query().unwrap_or_default(),
            headers: &exchange.headers,
        };
        let bytes = limits.size.unwrap_or(UPDATE);
        let bounds = Bounds { bytes, silence: limits.patience.silence };
        self.hubs.hubs[usize::from(hub.0)].answer(asked, body, bounds).await
    }
}
