//! `native`, which Caddy has no JSON for.

use crate::Writer;
use crate::object::Object;
use crate::words::{self, Line};
use regent_config::{ClientAddress, Delivery, Inline, Native, NativeService, RequestBuffering, escaped};

impl Writer<'_> {
    pub(super) fn native(&self, native: &Native) -> Object {
        let Native { service, delivery } = native;
        let NativeService { name, file, config, threads, max_threads, max_connections, inline } =
            &self.config.global.native.services[usize::from(service.0)];
        let number = |name: &str, value: Option<String>| value.map(|value| Line::new([name]).word(value));
        let mut lines = vec![Line::new(["name", name])];
        lines.extend(number("threads", threads.map(|count| count.to_string())));
        lines.extend(number("max_threads", max_threads.map(|count| count.to_string())));
        lines.extend(number("max_connections", max_connections.map(|count| count.to_string())));
        lines.extend((*inline == Inline::Allowed).then(|| Line::new(["inline"])));
        lines.extend(config.iter().map(|(name, value)| setting(name, value)));
        lines.append(&mut options(delivery));
        // A path alone could be taken for a condition.
        let file = escaped(&file.display().to_string());
        Line::new(["native", "*"]).word(file).block(lines).handler()
    }
}

/// `config NAME VALUE`.
pub(crate) fn setting(name: &str, value: &str) -> Line {
    Line::new(["config", name]).word(escaped(value))
}

/// How requests get to an engine, as the options of `php`, `php_server` and `native` say it.
pub(crate) fn options(delivery: &Delivery) -> Vec<Line> {
    let Delivery {
        env,
        request_body_timeout,
        request_buffering,
        deadline,
        request_timeout,
        retry,
        lane,
        client_address,
    } = delivery;
    let env = env.iter().map(|(name, value)| Line::new(["env", name]).word(crate::text::text(value)));
    let time =
        |name: &str, value: &Option<_>| value.map(|value| Line::new([name]).word(words::duration(value)));
    let others = [
        time("request_body_timeout", request_body_timeout),
        (*request_buffering == RequestBuffering::Streaming).then(|| Line::new(["request_buffering", "off"])),
        time("deadline", deadline),
        time("request_timeout", request_timeout),
        retry.map(super::retry),
        lane.as_ref().map(super::lane),
        (*client_address == ClientAddress::Forwarded).then(|| Line::new(["trust_client_address"])),
    ];
    env.chain(others.into_iter().flatten()).collect()
}
