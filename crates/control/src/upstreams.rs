//! Upstreams, in the words of the admin API and of the metrics.

use regent_admin::Upstream;
use regent_metrics::UpstreamGauge;
use regent_proxy::UpstreamStatus;

pub(crate) fn listed(status: UpstreamStatus) -> Upstream {
    Upstream { address: status.address, num_requests: status.requests, fails: status.fails }
}

pub(crate) fn gauge(status: UpstreamStatus) -> UpstreamGauge {
    UpstreamGauge {
        address: status.address,
        is_healthy: status.is_healthy,
        requests: status.requests,
        requests_total: status.requests_total,
        failures_total: status.failures_total,
    }
}
