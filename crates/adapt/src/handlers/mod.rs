//! Handlers of routes.

mod cache;
mod encode;
mod files;
mod headers;
mod map;
mod mercure;
pub(crate) mod native;
mod php;
pub(crate) mod proxy;
mod rate_limit;
pub(crate) mod rewrite;

use crate::Writer;
use crate::object::{Object, nanoseconds};
use crate::responses::response_matcher;
use crate::text::{scalar, status, text};
use crate::words::{self, Line};
use regent_config::{
    BasicAuth, Handler, InterceptAction, InterceptRule, LaneChoice, LogAppendTime, RequestBody, RetryMethods,
    Template, Templates, TimingFields, Tracing,
};
use serde_json::Value;

impl Writer<'_> {
    /// Nearly always one.
    pub(crate) fn handlers(&self, handler: &Handler) -> Vec<Value> {
        let object = match handler {
            Handler::Header(ops) => return headers::response(ops).into_iter().map(Object::build).collect(),
            Handler::RequestHeader(ops) => {
                return headers::request(ops).into_iter().map(Object::build).collect();
            }
            Handler::RequestBody(body) => return request_body(body).into_iter().map(Object::build).collect(),
            Handler::Rewrite(change) => return rewrite::handlers(self, change),
            Handler::Tracing(tracing) => self::tracing(tracing),
            Handler::ServerTiming(fields) => server_timing(*fields),
            Handler::Root(root) => vars([("root", text(root).into())]),
            Handler::Vars(pairs) => variables(pairs),
            Handler::Map(map) => map::handler(map),
            Handler::LogSkip => vars([("log_skip", true.into())]),
            Handler::LogAppend { name, value, when } => log_append(name, value, *when),
            Handler::LogName(names) => vars([("access_logger_names", crate::text::texts(names).into())]),
            Handler::HeaderMatch(matcher, ops) => headers::of_some_responses(matcher, ops),
            Handler::Redirect { to, status } => redirect(to, status),
            Handler::Respond { status, body, close } => respond(status, body, *close),
            Handler::Abort => abort(),
            Handler::Error { status, message } => error(status, message),
            Handler::Deadline(limit) => Line::new(["deadline"]).word(words::duration(*limit)).handler(),
            Handler::Retry(methods) => retry(*methods).handler(),
            Handler::Lane(choice) => lane(choice).handler(),
            Handler::RunDeparted => Line::new(["run_departed"]).handler(),
            Handler::Encode(encode) => encode::handler(encode),
            Handler::Templates(found) => templates(found),
            Handler::Cache(caching) => cache::handler(caching),
            Handler::BasicAuth(auth) => self.basic_auth(auth),
            Handler::RateLimit(limit) => self.rate_limit(limit),
            Handler::Mercure(id) => self.mercure(*id),
            Handler::Metrics => Object::handler("metrics"),
            Handler::Intercept(rules) => self.intercept(rules),
            Handler::FileServer(files) => files::handler(files),
            Handler::Php(php) => self.php(php),
            Handler::PhpServer(server) => self.php_server(server),
            Handler::Native(native) => self.native(native),
            Handler::ReverseProxy(id) => self.reverse_proxy(*id),
            Handler::CopyResponse(status) => copy_response(status),
            Handler::CopyResponseHeaders(fields) => proxy::copy_response_headers(fields),
            Handler::CopyToRequest(fields) => Object::subroute(proxy::copied_to_request(fields)),
            Handler::Subroute(routes) => self.subroute(routes),
        };
        vec![object.build()]
    }

    fn basic_auth(&self, auth: &BasicAuth) -> Object {
        let BasicAuth { realm, users } = auth;
        let mut basic = Object::new();
        let account = |(name, hash): &(String, String)| {
            let mut account = Object::new();
            account.set("username", name.as_str());
            account.set("password", hash.as_str());
            account
        };
        basic.set_list("accounts", users.iter().map(account));
        let is_argon2id = users.iter().any(|(_, hash)| hash.starts_with("$argon2id$"));
        basic.set("hash", Object::of_kind("algorithm", if is_argon2id { "argon2id" } else { "bcrypt" }));
        basic.set("hash_cache", Object::new());
        if realm != "restricted" {
            basic.set("realm", realm.as_str());
        }
        let mut providers = Object::new();
        providers.set("http_basic", basic);
        let mut handler = Object::handler("authentication");
        handler.set("providers", providers);
        handler
    }

    fn intercept(&self, rules: &[InterceptRule]) -> Object {
        let rule = |rule: &InterceptRule| {
            let InterceptRule { matcher, action } = rule;
            let mut object = Object::new();
            object.set_some("match", matcher.as_ref().map(response_matcher));
            match action {
                InterceptAction::Routes(routes) => object.set("routes", self.routes(routes)),
                InterceptAction::Status(code) => object.set_some("status_code", status(code)),
            }
            object
        };
        let mut handler = Object::handler("intercept");
        handler.set_list("handle_response", rules.iter().map(rule));
        handler
    }
}

fn vars<'a>(pairs: impl IntoIterator<Item = (&'a str, Value)>) -> Object {
    let mut handler = Object::handler("vars");
    for (name, value) in pairs {
        handler.set(name, value);
    }
    handler
}

/// Names that mean something else as keys need the words of a Caddyfile.
fn variables(pairs: &[(String, Template)]) -> Object {
    let is_taken = |name: &str| ["access_logger_names", "handler", "log_skip", "root"].contains(&name);
    if pairs.iter().any(|(name, _)| is_taken(name)) {
        let lines = pairs.iter().map(|(name, value)| Line::new([name]).word(text(value)));
        return Line::new(["vars"]).block(lines.collect()).handler();
    }
    vars(pairs.iter().map(|(name, value)| (name.as_str(), scalar(value))))
}

fn tracing(tracing: &Tracing) -> Object {
    let Tracing { span, attributes } = tracing;
    let mut handler = Object::handler("tracing");
    handler.set("span", span.as_ref().map(text).unwrap_or_default());
    let mut pairs = Object::new();
    attributes.iter().for_each(|(name, value)| pairs.set(name, text(value)));
    handler.non_empty("span_attributes", pairs);
    handler
}

fn server_timing(fields: TimingFields) -> Object {
    let line = Line::new(["server_timing"]);
    match fields {
        TimingFields::ServerTiming => line.handler(),
        TimingFields::WithQueueWait => line.block(vec![Line::new(["queue_wait"])]).handler(),
    }
}

fn log_append(name: &str, value: &Template, when: LogAppendTime) -> Object {
    let mut handler = Object::handler("log_append");
    handler.set("key", name);
    handler.set("value", text(value));
    handler.set_if("early", when == LogAppendTime::Early);
    handler
}

fn redirect(to: &Template, code: &Template) -> Object {
    let mut handler = Object::handler("static_response");
    let mut headers = Object::new();
    headers.set("Location", vec![text(to)]);
    handler.set("headers", headers);
    handler.set_some("status_code", status(code));
    handler
}

fn respond(code: &Template, body: &Template, close: bool) -> Object {
    let mut handler = Object::handler("static_response");
    handler.set_some("status_code", status(code));
    handler.set_unless("body", text(body), String::new());
    handler.set_if("close", close);
    handler
}

fn abort() -> Object {
    let mut handler = Object::handler("static_response");
    handler.set("abort", true);
    handler
}

fn error(code: &Template, message: &Template) -> Object {
    let mut handler = Object::handler("error");
    handler.set_some("status_code", status(code));
    handler.set_unless("error", text(message), String::new());
    handler
}

/// What `timeouts` says, and what `request_body` does.
fn request_body(body: &RequestBody) -> Vec<Object> {
    let RequestBody { max_size, read_timeout, silence, min_rate, set } = body;
    let (mut timeouts, mut request_body) = (Object::new(), Object::new());
    timeouts.set_some_duration("read_timeout", *silence);
    timeouts.set_some("read_min_rate", *min_rate);
    request_body.set_some("max_size", *max_size);
    request_body.set_some("read_timeout", read_timeout.map(nanoseconds));
    request_body.set_some("set", set.as_ref().map(text));
    let is_empty = request_body.is_empty();
    let named = |mut object: Object, name: &str| {
        object.set("handler", name);
        object
    };
    let timeouts = (!timeouts.is_empty() || is_empty).then(|| named(timeouts, "timeouts"));
    let request_body = (!is_empty).then(|| named(request_body, "request_body"));
    timeouts.into_iter().chain(request_body).collect()
}

/// `retry` as a directive and as an option.
pub(crate) fn retry(methods: RetryMethods) -> Line {
    let line = Line::new(["retry"]);
    if methods.is_empty() {
        return line.word("off");
    }
    let all = ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"];
    all.into_iter().filter(|method| methods.contains(method)).fold(line, Line::word)
}

/// `lane` as a directive and as an option.
pub(crate) fn lane(choice: &LaneChoice) -> Line {
    let line = Line::new(["lane"]);
    match choice {
        LaneChoice::Named(name) => line.word(name),
        LaneChoice::Off => line.word("off"),
    }
}

fn templates(templates: &Templates) -> Object {
    let Templates { types, between, root } = templates;
    let mut handler = Object::handler("templates");
    if *types != ["text/html", "text/plain", "text/markdown"] {
        handler.set_list("mime_types", types.iter().cloned());
    }
    if (between.0.as_str(), between.1.as_str()) != ("{{", "}}") {
        handler.set("delimiters", vec![between.0.clone(), between.1.clone()]);
    }
    handler.set_some("file_root", root.as_ref().map(text));
    handler
}

fn copy_response(code: &Template) -> Object {
    let mut handler = Object::handler("copy_response");
    handler.set_some("status_code", status(code));
    handler
}
