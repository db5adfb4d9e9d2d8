//! What a route does with a request: one of a closed list.

use crate::context::exchange::Exchange;
use crate::context::flow::Flow;
use crate::context::origin::Origin;
use crate::context::place::Place;
use crate::context::target::Action;
use crate::context::target::Target;
use crate::directives::Context;
use crate::directives::basic_auth::BasicAuth;
use crate::directives::cache::Cache;
use crate::directives::copy_response::{CopiedFields, CopyToRequest};
use crate::directives::error::RaiseError;
use crate::directives::file_server::FileServer;
use crate::directives::intercept::Intercept;
use crate::directives::map::Map;
use crate::directives::mercure::Mercure;
use crate::directives::native::Native;
use crate::directives::php::Php;
use crate::directives::php_server::PhpServer;
use crate::directives::rate_limit::RateLimit;
use crate::directives::redir::Redirect;
use crate::directives::request_body::RequestBody;
use crate::directives::respond::Respond;
use crate::directives::reverse_proxy::ReverseProxy;
use crate::directives::rewrite::Rewrite;
use crate::directives::templates::Templates;
use crate::directives::tracing::Tracing;
use crate::directives::vars::Vars;
use crate::error::BuildError;
use crate::filters::encode::Encode;
use crate::filters::header::HeaderOps;
use crate::routing::responses::Responses;
use crate::routing::route::Routes;
use crate::templates::root_source::RootSource;
use crate::templates::status::Status;
use crate::templates::text::Text;
use http::StatusCode;
use regent_config::{self as config, LaneChoice, LogAppendTime, RetryMethods, TimingFields};
use std::sync::Arc;
use std::time::Duration;

/// A compiled directive.
pub(super) enum Handler {
    Tracing(Arc<Tracing>),
    ServerTiming(TimingFields),
    Root(RootSource),
    Vars(Vars),
    Map(Map),
    LogSkip,
    LogAppend { name: String, value: Arc<Text>, when: LogAppendTime },
    LogName(Vec<Text>),
    Header(Arc<HeaderOps>),
    RequestHeader(HeaderOps),
    Rewrite(Rewrite),
    Redirect(Redirect),
    Respond(Respond),
    Abort,
    BasicAuth(BasicAuth),
    RateLimit(RateLimit),
    Error(RaiseError),
    RequestBody(RequestBody),
    Deadline(Duration),
    Retry(RetryMethods),
    Lane(Arc<LaneChoice>),
    RunDeparted,
    Encode(Arc<Encode>),
    Templates(Arc<Templates>),
    Cache(Cache),
    Mercure(Mercure),
    Metrics,
    Intercept(Arc<Intercept<Routes>>),
    FileServer(FileServer),
    Php(Php),
    PhpServer(Box<PhpServer>),
    Native(Native),
    ReverseProxy(ReverseProxy, Responses),
    CopyResponse(Option<Status>),
    CopyResponseHeaders(Arc<CopiedFields>),
    CopyToRequest(CopyToRequest),
    Subroute(Routes),
}

impl Handler {
    pub(super) fn compile(handler: &config::Handler, context: &Context<'_>) -> Result<Self, BuildError> {
        Ok(match handler {
            config::Handler::Tracing(tracing) => {
                Self::Tracing(Arc::new(Tracing::compile(tracing, context.tracer)))
            }
            config::Handler::ServerTiming(fields) => Self::ServerTiming(*fields),
            config::Handler::Root(root) => Self::Root(RootSource::compile(Some(root))?),
            config::Handler::Vars(vars) => Self::Vars(Vars::compile(vars)),
            config::Handler::Map(map) => Self::Map(Map::compile(map)?),
            config::Handler::LogSkip => Self::LogSkip,
            config::Handler::LogAppend { name, value, when } => {
                Self::LogAppend { name: name.clone(), value: Arc::new(Text::compile(value)), when: *when }
            }
            config::Handler::LogName(names) => Self::LogName(Text::compile_all(names)),
            config::Handler::Header(ops) => Self::Header(Arc::new(HeaderOps::compile(ops)?)),
            config::Handler::HeaderMatch(matcher, ops) => {
                Self::Header(Arc::new(HeaderOps::compile(ops)?.only_of(matcher)?))
            }
            config::Handler::RequestHeader(ops) => Self::RequestHeader(HeaderOps::compile(ops)?),
            config::Handler::Rewrite(rewrite) => Self::Rewrite(Rewrite::compile(rewrite)?),
            config::Handler::Redirect { to, status } => Self::Redirect(Redirect::compile(to, status)?),
            config::Handler::Respond { status, body, close } => {
                Self::Respond(Respond::compile(status, body, *close)?)
            }
            config::Handler::Abort => Self::Abort,
            config::Handler::BasicAuth(auth) => Self::BasicAuth(BasicAuth::compile(auth)?),
            config::Handler::RateLimit(limit) => Self::RateLimit(RateLimit::compile(limit, context)?),
            config::Handler::Error { status, message } => Self::Error(RaiseError::compile(status, message)?),
            config::Handler::RequestBody(body) => Self::RequestBody(RequestBody::compile(body)),
            config::Handler::Deadline(deadline) => Self::Deadline(*deadline),
            config::Handler::Retry(methods) => Self::Retry(*methods),
            config::Handler::Lane(lane) => Self::Lane(Arc::new(lane.clone())),
            config::Handler::RunDeparted => Self::RunDeparted,
            config::Handler::Encode(encode) => {
                Self::Encode(Arc::new(Encode::compile(encode, context.encoders)?))
            }
            config::Handler::Templates(templates) => {
                Self::Templates(Arc::new(Templates::compile(templates)?))
            }
            config::Handler::Cache(caching) => Self::Cache(Cache::compile(caching, context)?),
            config::Handler::Mercure(hub) => Self::Mercure(Mercure::new(*hub)),
            config::Handler::Metrics => Self::Metrics,
            config::Handler::Intercept(rules) => {
                let intercept = Intercept::compile(rules, |routes| Routes::compile(routes, context))?;
                Self::Intercept(Arc::new(intercept))
            }
            config::Handler::FileServer(server) => Self::FileServer(FileServer::compile(server, context)?),
            config::Handler::Php(php) => Self::Php(Php::compile(php, context.workers)?),
            config::Handler::PhpServer(server) => {
                Self::PhpServer(Box::new(PhpServer::compile(server, context)?))
            }
            config::Handler::Native(native) => Self::Native(Native::compile(native)),
            config::Handler::ReverseProxy(id) => {
                let proxy = &context.proxies[usize::from(id.0)];
                let responses = Responses::compile(&proxy.responses, context)?;
                Self::ReverseProxy(ReverseProxy::compile(*id, proxy)?, responses)
            }
            config::Handler::CopyResponse(status) if status.as_text() == Some("") => Self::CopyResponse(None),
            config::Handler::CopyResponse(status) => {
                Self::CopyResponse(Some(Status::compile(status, StatusCode::OK)?))
            }
            config::Handler::CopyResponseHeaders(fields) => {
                Self::CopyResponseHeaders(Arc::new(CopiedFields::compile(fields)?))
            }
            config::Handler::CopyToRequest(fields) => Self::CopyToRequest(CopyToRequest::compile(fields)?),
            config::Handler::Subroute(routes) => Self::Subroute(Routes::compile(routes, context)?),
        })
    }

    pub(super) fn handle(&self, exchange: &mut Exchange) -> Flow {
        match self {
            Self::Tracing(tracing) => tracing.handle(exchange),
            Self::ServerTiming(fields) => exchange.time(*fields),
            Self::Root(source) => match source.resolve(exchange) {
                Some(root) => exchange.set_root(root),
                None => return Flow::error(StatusCode::BAD_REQUEST),
            },
            Self::Vars(vars) => return vars.handle(exchange),
            Self::Map(map) => map.handle(exchange),
            Self::LogSkip => exchange.is_logged = false,
            Self::LogAppend { name, value, when } => {
                let value = match when {
                    LogAppendTime::Late => Arc::clone(value),
                    LogAppendTime::Early => {
                        Arc::new(Text::of_literal(value.render_str(exchange).into_owned()))
                    }
                };
                exchange.set_log_field(name, value);
            }
            Self::LogName(names) => {
                exchange.log_names =
                    names.iter().map(|name| name.render_str(exchange).into_owned()).collect();
            }
            Self::Header(ops) => ops.attach(exchange),
            Self::RequestHeader(ops) => ops.apply_to_request(exchange),
            Self::Rewrite(rewrite) => {
                if let Err(status) = rewrite.apply(exchange) {
                    return Flow::error(status);
                }
            }
            Self::Redirect(redirect) => return Flow::respond(redirect.answer(exchange)),
            Self::Respond(respond) => return Flow::respond(respond.answer(exchange)),
            Self::BasicAuth(auth) => return auth.handle(exchange),
            Self::RateLimit(limit) => return limit.handle(exchange),
            Self::Abort => return Flow::Answer(Action::Abort),
            Self::Error(error) => return error.handle(exchange),
            Self::RequestBody(body) => body.handle(exchange),
            Self::Deadline(deadline) => exchange.set_deadline(*deadline),
            Self::Retry(methods) => exchange.set_retry(*methods),
            Self::Lane(lane) => exchange.set_lane(lane),
            Self::RunDeparted => exchange.runs_departed = true,
            Self::Encode(encode) => {
                let encoding = encode.prepare(exchange);
                exchange.add_filter(Arc::new(encoding));
            }
            Self::Templates(templates) => templates.handle(exchange),
            Self::Cache(cache) => return cache.handle(exchange),
            Self::Mercure(mercure) => return mercure.handle(exchange),
            Self::Metrics => return Flow::Answer(Action::Forward(Target::Metrics)),
            Self::Intercept(intercept) => {
                let interceptor: Arc<Intercept<Routes>> = Arc::clone(intercept);
                exchange.add_interceptor(interceptor);
            }
            Self::FileServer(server) => return server.handle(exchange),
            Self::Php(php) => return forward(php.handle(exchange), exchange, Origin::Engine),
            Self::PhpServer(server) => return forward(server.handle(exchange), exchange, Origin::Engine),
            Self::Native(native) => return forward(native.handle(exchange), exchange, Origin::Engine),
            Self::ReverseProxy(proxy, _) => return forward(proxy.handle(), exchange, Origin::Upstream),
            Self::CopyResponse(status) => {
                return Flow::Relay(status.as_ref().map(|status| status.of(exchange)));
            }
            Self::CopyResponseHeaders(fields) => exchange.add_filter(fields.clone()),
            Self::CopyToRequest(fields) => fields.apply(exchange),
            Self::Subroute(routes) => return routes.run(exchange),
        }
        Flow::Next
    }
}

impl Handler {
    /// Goes on with a request that has left this handler, or one in it, for an upstream.
    pub(super) fn resume(&self, exchange: &mut Exchange, place: Place) -> Flow {
        match self {
            Self::Subroute(routes) => routes.resume(exchange, place),
            Self::ReverseProxy(_, responses) => responses.resume(exchange, place),
            _ => Flow::Next,
        }
    }
}

/// `origin`: who makes the response of a request that is handed on.
fn forward(flow: Flow, exchange: &mut Exchange, origin: Origin) -> Flow {
    if !matches!(flow, Flow::Answer(Action::Forward(_))) {
        return flow;
    }
    if exchange.engines_are_out() {
        return Flow::Next;
    }
    exchange.set_origin(origin);
    flow
}
