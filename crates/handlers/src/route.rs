//! Routes: a list of conditions and handlers, and a request's way through it.

use crate::encode::Encode;
use crate::error::BuildError;
use crate::exchange::Exchange;
use crate::failure::Failure;
use crate::file_cache::FileCache;
use crate::file_server::FileServer;
use crate::matcher::{self, Matcher};
use crate::native::Native;
use crate::origin::Origin;
use crate::php::{Php, WorkerScripts};
use crate::php_server::PhpServer;
use crate::redir::Redirect;
use crate::respond::Respond;
use crate::response_headers::HeaderOps;
use crate::rewrite::Rewrite;
use crate::root;
use crate::root_source::RootSource;
use crate::script::Split;
use crate::status::Status;
use crate::target::Action;
use crate::text::Text;
use http::{Response, StatusCode};
use regent_config::{self as config, LaneChoice};
use regent_exchange::ResponseBody;
use std::sync::Arc;
use std::time::Duration;

/// A compiled list of routes.
pub(crate) struct Routes(Vec<Route>);

struct Route {
    group: Option<u32>,
    matchers: Vec<Vec<Matcher>>,
    handler: Handler,
}

enum Handler {
    Root(RootSource),
    Vars(Vec<(String, Text)>),
    LogSkip,
    Header(Arc<HeaderOps>),
    RequestHeader(HeaderOps),
    Rewrite(Rewrite),
    Redirect(Redirect),
    Respond(Respond),
    Error { status: Status, message: Text },
    RequestBody { max_size: u64 },
    Deadline(Duration),
    Lane(Arc<LaneChoice>),
    Encode(Arc<Encode>),
    FileServer(FileServer),
    Php(Php),
    PhpServer(Box<PhpServer>),
    Native(Native),
    Subroute(Routes),
}

/// What a handler has done with a request.
pub(crate) enum Flow {
    /// The next route is to look at it.
    Next,
    Answer(Action),
    /// The request ends with an error, which may have a page.
    Fail(Failure),
}

/// What handlers need to know when they are compiled.
pub(crate) struct Context<'a> {
    pub(crate) workers: &'a WorkerScripts,
    pub(crate) files: &'a Arc<FileCache>,
    /// Names that are source code somewhere in this site, and so are not served as files anywhere in it.
    pub(crate) scripts: &'a Split,
}

impl Flow {
    pub(crate) fn respond(response: Response<ResponseBody>) -> Self {
        Self::Answer(Action::Respond(response))
    }

    pub(crate) fn error(status: StatusCode) -> Self {
        Self::Fail(Failure::new(status))
    }
}

impl Routes {
    pub(crate) fn compile(routes: &[config::Route], context: &Context<'_>) -> Result<Self, BuildError> {
        let compile = |route: &config::Route| {
            Ok(Route {
                group: route.group,
                matchers: matcher::compile_sets(&route.matchers)?,
                handler: Handler::compile(&route.handler, context)?,
            })
        };
        routes.iter().map(compile).collect::<Result<_, _>>().map(Self)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes a request through the list until a route answers it.
    pub(crate) fn run(&self, exchange: &mut Exchange) -> Flow {
        let mut groups_taken: Vec<u32> = Vec::new();
        for route in &self.0 {
            if route.group.is_some_and(|group| groups_taken.contains(&group)) {
                continue;
            }
            match matcher::any_set(&route.matchers, exchange) {
                Err(status) => return Flow::error(status),
                Ok(false) => continue,
                Ok(true) => groups_taken.extend(route.group),
            }
            match route.handler.handle(exchange) {
                Flow::Next => {}
                end => return end,
            }
        }
        Flow::Next
    }
}

impl Handler {
    fn compile(handler: &config::Handler, context: &Context<'_>) -> Result<Self, BuildError> {
        Ok(match handler {
            config::Handler::Root(root) => Self::Root(RootSource::compile(Some(root))?),
            config::Handler::Vars(vars) => Self::Vars(compile_vars(vars)),
            config::Handler::LogSkip => Self::LogSkip,
            config::Handler::Header(ops) => Self::Header(Arc::new(HeaderOps::compile(ops)?)),
            config::Handler::RequestHeader(ops) => Self::RequestHeader(HeaderOps::compile(ops)?),
            config::Handler::Rewrite(rewrite) => Self::Rewrite(Rewrite::compile(rewrite)?),
            config::Handler::Redirect { to, status } => Self::Redirect(Redirect::compile(to, status)?),
            config::Handler::Respond { status, body, close } => {
                Self::Respond(Respond::compile(status, body, *close)?)
            }
            config::Handler::Error { status, message } => Self::Error {
                status: Status::compile(status, StatusCode::INTERNAL_SERVER_ERROR)?,
                message: Text::compile(message),
            },
            config::Handler::RequestBody { max_size } => Self::RequestBody { max_size: *max_size },
            config::Handler::Deadline(deadline) => Self::Deadline(*deadline),
            config::Handler::Lane(lane) => Self::Lane(Arc::new(lane.clone())),
            config::Handler::Encode(encode) => Self::Encode(Arc::new(Encode::compile(encode)?)),
            config::Handler::FileServer(server) => Self::FileServer(FileServer::compile(server, context)?),
            config::Handler::Php(php) => Self::Php(Php::compile(php, context.workers)?),
            config::Handler::PhpServer(server) => {
                Self::PhpServer(Box::new(PhpServer::compile(server, context)?))
            }
            config::Handler::Native(native) => Self::Native(Native::compile(native)),
            config::Handler::Subroute(routes) => Self::Subroute(Routes::compile(routes, context)?),
        })
    }

    fn handle(&self, exchange: &mut Exchange) -> Flow {
        match self {
            Self::Root(source) => match source.resolve(exchange) {
                Some(root) => exchange.set_root(root),
                None => return Flow::error(StatusCode::BAD_REQUEST),
            },
            Self::Vars(vars) => return set_vars(vars, exchange),
            Self::LogSkip => exchange.is_logged = false,
            Self::Header(ops) => exchange.add_filter(ops.clone()),
            Self::RequestHeader(ops) => ops.apply_to_request(exchange),
            Self::Rewrite(rewrite) => {
                if let Err(status) = rewrite.apply(exchange) {
                    return Flow::error(status);
                }
            }
            Self::Redirect(redirect) => return Flow::respond(redirect.answer(exchange)),
            Self::Respond(respond) => return Flow::respond(respond.answer(exchange)),
            Self::Error { status, message } => {
                let (status, message) = (status.of(exchange), message.render_str(exchange).into_owned());
                tracing::debug!(uri = %exchange.original_uri, message, "error handler");
                let message = Some(message).filter(|message| !message.is_empty());
                return Flow::Fail(Failure { message, ..Failure::new(status) });
            }
            Self::RequestBody { max_size } => exchange.max_body_size = Some(*max_size),
            Self::Deadline(deadline) => exchange.set_deadline(*deadline),
            Self::Lane(lane) => exchange.set_lane(lane),
            Self::Encode(encode) => {
                let encoding = encode.prepare(exchange);
                exchange.add_filter(Arc::new(encoding));
            }
            Self::FileServer(server) => return server.handle(exchange),
            Self::Php(php) => return to_engine(php.handle(exchange), exchange),
            Self::PhpServer(server) => return to_engine(server.handle(exchange), exchange),
            Self::Native(native) => return to_engine(native.handle(exchange), exchange),
            Self::Subroute(routes) => return routes.run(exchange),
        }
        Flow::Next
    }
}

fn compile_vars(vars: &[(String, config::Template)]) -> Vec<(String, Text)> {
    vars.iter().map(|(name, value)| (name.clone(), Text::compile(value))).collect()
}

/// The variable `root` is the site's root, as in Caddy.
fn set_vars(vars: &[(String, Text)], exchange: &mut Exchange) -> Flow {
    for (name, value) in vars {
        if name == "root" {
            match root::computed(&value.render(exchange)) {
                Some(root) => exchange.set_root(root),
                None => return Flow::error(StatusCode::BAD_REQUEST),
            }
        } else {
            let value = value.render_str(exchange).into_owned();
            exchange.set_var(name, value);
        }
    }
    Flow::Next
}

fn to_engine(flow: Flow, exchange: &mut Exchange) -> Flow {
    if !matches!(flow, Flow::Answer(Action::Forward(_))) {
        return flow;
    }
    if exchange.engines_are_out() {
        return Flow::Next;
    }
    exchange.set_origin(Origin::Engine);
    flow
}
