//! `reverse_proxy`, and what its responses go through.

mod balancing;
mod dynamic;
mod health;
pub(crate) mod transport;

use super::{headers, rewrite};
use crate::Writer;
use crate::object::{Object, nanoseconds};
use crate::responses::response_matcher;
use crate::server::ranges;
use crate::text::{status, text};
use crate::words::Line;
use regent_config::{
    CopiedFields, HeaderOp, ProxyId, ResponseAction, ResponseRule, ReverseProxy, Rewrite, Upstream,
};
use serde_json::Value;
use std::collections::HashSet;

/// Bytes where nothing is said.
const STREAM_BUFFER: u32 = 32 * 1024;

impl Writer<'_> {
    pub(super) fn reverse_proxy(&self, id: ProxyId) -> Object {
        let ReverseProxy {
            upstreams,
            dynamic,
            transport,
            trusted_proxies,
            header_up,
            header_down,
            rewrites,
            balancing,
            passive_health,
            active_health,
            stream_timeout,
            stream_buffer_size,
            stream_close_delay,
            request_buffers,
            response_buffers,
            responses,
        } = &self.config.proxies[usize::from(id.0)];
        let mut handler = Object::handler("reverse_proxy");
        handler.set_list("upstreams", upstreams.iter().map(upstream));
        handler.set_some("dynamic_upstreams", dynamic::sources(dynamic));
        handler.set_some("transport", self.transport(transport));
        handler.set_list("trusted_proxies", ranges(trusted_proxies));
        set_changes(&mut handler, header_up, header_down, rewrites);
        handler.non_empty("load_balancing", self.balancing(balancing));
        handler.non_empty("health_checks", health::checks(passive_health, active_health.as_ref()));
        if !stream_timeout.is_zero() {
            handler.set("stream_timeout", nanoseconds(*stream_timeout));
        }
        handler.set_unless("stream_buffer_size", *stream_buffer_size, STREAM_BUFFER);
        handler.set_some_duration("stream_close_delay", *stream_close_delay);
        handler.set_some("request_buffers", buffers(*request_buffers));
        handler.set_some("response_buffers", buffers(*response_buffers));
        handler.set_list("handle_response", responses.iter().map(|rule| self.response_rule(rule)));
        handler
    }

    fn response_rule(&self, rule: &ResponseRule) -> Object {
        let ResponseRule { matcher, action } = rule;
        let mut object = Object::new();
        object.set_some("match", matcher.as_ref().map(response_matcher));
        match action {
            ResponseAction::ReplaceStatus(code) => object.set_some("status_code", status(code)),
            ResponseAction::Routes(routes) => object.set("routes", self.routes(routes)),
        }
        object
    }
}

fn upstream(upstream: &Upstream) -> Object {
    let mut object = Object::new();
    let dial = match upstream {
        Upstream::Fixed(address) => address.to_string(),
        Upstream::Computed(template) => text(template),
    };
    object.set("dial", dial);
    object
}

/// Changes of which the order counts need the words of a Caddyfile.
fn set_changes(handler: &mut Object, up: &[HeaderOp], down: &[HeaderOp], rewrites: &[Rewrite]) {
    let mut lines = Vec::new();
    let mut fields = Object::new();
    for (option, key, ops) in [("header_up", "request", up), ("header_down", "response", down)] {
        match headers::is_plain(ops) {
            true => fields.non_empty(key, headers::changes(&ops.iter().collect::<Vec<_>>())),
            false => lines.append(&mut headers::lines(option, ops)),
        }
    }
    handler.non_empty("headers", fields);
    let mut changes = Object::new();
    let kinds: HashSet<_> = rewrites.iter().map(std::mem::discriminant).collect();
    match kinds.len() == rewrites.len() {
        true => rewrites.iter().for_each(|change| rewrite::set_keys(&mut changes, change)),
        false => lines.extend(rewrites.iter().filter_map(rewrite::line)),
    }
    handler.non_empty("rewrite", changes);
    handler.set_list("regent", lines.into_iter().map(Line::build));
}

/// Bytes, or -1 for as many as there are.
fn buffers(bytes: u64) -> Option<i64> {
    (bytes > 0).then(|| i64::try_from(bytes).unwrap_or(-1))
}

/// `copy_response_headers`.
pub(super) fn copy_response_headers(fields: &CopiedFields) -> Object {
    let CopiedFields { include, exclude } = fields;
    let mut handler = Object::handler("copy_response_headers");
    handler.set_list("include", include.iter().cloned());
    handler.set_list("exclude", exclude.iter().cloned());
    handler
}

/// What `copy_headers` of `forward_auth` is in Caddy: a field of the request is deleted, and set if the response has it.
pub(crate) fn copied_to_request(fields: &[(String, String)]) -> Vec<Value> {
    let mut routes = vec![route(None, Object::handler("vars"))];
    let mut fields: Vec<_> = fields.iter().collect();
    fields.sort();
    for (from, to) in fields {
        let value = format!("{{http.reverse_proxy.header.{from}}}");
        let (mut vars, mut inner, mut not) = (Object::new(), Object::new(), Object::new());
        vars.set(&value, vec![""]);
        inner.set("vars", vars);
        not.set("not", vec![inner.build()]);
        let (mut set, mut fields) = (Object::new(), Object::new());
        fields.set(to, vec![value]);
        set.set("set", fields);
        let mut delete = Object::new();
        delete.set("delete", vec![to.clone()]);
        routes.push(route(None, of_request(delete)));
        routes.push(route(Some(not), of_request(set)));
    }
    routes
}

fn of_request(changes: Object) -> Object {
    let mut handler = Object::handler("headers");
    handler.set("request", changes);
    handler
}

fn route(matcher: Option<Object>, handler: Object) -> Value {
    let mut route = Object::new();
    route.set_some("match", matcher.map(|set| vec![set.build()]));
    route.set("handle", vec![handler.build()]);
    route.build()
}
