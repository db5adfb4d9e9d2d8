//! Which upstreams are given requests.

use crate::object::{Object, nanoseconds};
use crate::responses::status_range;
use regent_config::{ActiveHealth, PassiveHealth, Redirects};

pub(super) fn checks(passive: &PassiveHealth, active: Option<&ActiveHealth>) -> Object {
    let mut object = Object::new();
    object.non_empty("passive", self::passive(passive));
    object.set_some("active", active.map(self::active));
    object
}

fn passive(health: &PassiveHealth) -> Object {
    let PassiveHealth {
        fail_duration,
        max_fails,
        unhealthy_status,
        unhealthy_latency,
        unhealthy_request_count,
    } = health;
    let usual = PassiveHealth::default();
    let mut object = Object::new();
    object.set_duration("fail_duration", *fail_duration, usual.fail_duration);
    object.set_unless("max_fails", *max_fails, usual.max_fails);
    object.set_list("unhealthy_status", unhealthy_status.iter().map(|range| status_range(*range)));
    object.set_duration("unhealthy_latency", *unhealthy_latency, usual.unhealthy_latency);
    object.set_some("unhealthy_request_count", *unhealthy_request_count);
    object
}

fn active(health: &ActiveHealth) -> Object {
    let ActiveHealth {
        uri,
        upstream,
        port,
        method,
        request_body,
        redirects,
        headers,
        interval,
        timeout,
        status,
        body,
        passes,
        fails,
    } = health;
    let usual = ActiveHealth::default();
    let mut object = Object::new();
    object.set("uri", uri.as_str());
    object.set_some("upstream", upstream.as_ref().map(ToString::to_string));
    object.set_some("port", *port);
    object.set_unless("method", method.as_str(), &usual.method);
    object.set_unless("body", request_body.as_str(), &usual.request_body);
    object.set_if("follow_redirects", *redirects == Redirects::Followed);
    let mut fields = Object::new();
    for (name, _) in headers {
        let values = headers.iter().filter(|(other, _)| other == name).map(|(_, value)| value.as_str());
        fields.set(name, values.collect::<Vec<_>>());
    }
    object.non_empty("headers", fields);
    if *interval != usual.interval {
        object.set("interval", nanoseconds(*interval));
    }
    object.set_duration("timeout", *timeout, usual.timeout);
    if *status != usual.status {
        object.set("expect_status", status_range(*status));
    }
    object.set_some("expect_body", body.as_deref());
    object.set_unless("passes", *passes, usual.passes);
    object.set_unless("fails", *fails, usual.fails);
    object
}
