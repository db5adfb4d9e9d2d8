//! `native`: what reaches it goes to a module's handler.

use crate::context::exchange::Exchange;
use crate::context::flow::Flow;
use crate::context::target::{Action, NativeTarget, Target};
use crate::directives::delivery::DeliveryRules;
use regent_config::{self as config, NativeId};

/// A compiled `native` directive.
pub(crate) struct Native {
    service: NativeId,
    delivery: DeliveryRules,
}

impl Native {
    pub(crate) fn compile(native: &config::Native) -> Self {
        Self { service: native.service, delivery: DeliveryRules::compile(&native.delivery) }
    }

    /// Every request that comes here is the module's: it has its own 404.
    pub(crate) fn handle(&self, exchange: &Exchange) -> Flow {
        let target = NativeTarget { service: self.service, delivery: self.delivery.of(exchange) };
        Flow::Answer(Action::Forward(Target::Native(target)))
    }
}
