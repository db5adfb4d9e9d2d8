//! `reverse_proxy`: what reaches it is another server's.

use crate::context::exchange::Exchange;
use crate::context::flow::Flow;
use crate::context::target::{Action, PhpTarget, ProxyRules, ProxyTarget, Target};
use crate::directives::fastcgi::FastCgi;
use crate::directives::rewrite::Rewrite;
use crate::error::BuildError;
use crate::filters::header::HeaderOps;
use crate::matchers::matcher::{self, Matcher};
use crate::templates::text::Text;
use http::{HeaderMap, Method, StatusCode, Uri};
use regent_config::{self as config, DynamicRecords, DynamicUpstreams, HeaderOp, ProxyId, Upstream};
use std::borrow::Cow;
use std::sync::Arc;

/// A compiled `reverse_proxy` directive.
pub(crate) struct ReverseProxy(Arc<Rules>);

struct Rules {
    id: ProxyId,
    /// Of each upstream whose address is known only with the request.
    computed: Vec<Option<Text>>,
    /// Of each source of `dynamic` upstreams its name, and the port of those that have one for all.
    dynamic: Vec<(Text, Option<Text>)>,
    fastcgi: Option<FastCgi>,
    retry_match: Vec<Vec<Matcher>>,
    rewrites: Vec<Rewrite>,
    header_up: HeaderOps,
    header_down: HeaderOps,
    handles_responses: bool,
}

impl ReverseProxy {
    pub(crate) fn compile(id: ProxyId, proxy: &config::ReverseProxy) -> Result<Self, BuildError> {
        let computed = |upstream: &Upstream| match upstream {
            Upstream::Fixed(_) => None,
            Upstream::Computed(address) => Some(Text::compile(address)),
        };
        let dynamic = |source: &DynamicUpstreams| match &source.records {
            DynamicRecords::Addresses { name, port, .. } => (Text::compile(name), Some(Text::compile(port))),
            DynamicRecords::Services { name, .. } => (Text::compile(name), None),
        };
        Ok(Self(Arc::new(Rules {
            id,
            dynamic: proxy.dynamic.iter().map(dynamic).collect(),
            computed: proxy.upstreams.iter().map(computed).collect(),
            retry_match: matcher::compile_sets(&proxy.balancing.retry_match)?,
            fastcgi: proxy.transport.fastcgi.as_ref().map(FastCgi::compile).transpose()?,
            rewrites: proxy.rewrites.iter().map(Rewrite::compile).collect::<Result<_, _>>()?,
            header_up: at_once(&proxy.header_up)?,
            header_down: at_once(&proxy.header_down)?,
            handles_responses: !proxy.responses.is_empty(),
        })))
    }

    pub(crate) fn handle(&self) -> Flow {
        let target = ProxyTarget { rules: self.0.clone() };
        Flow::Answer(Action::Forward(Target::Proxy(target)))
    }
}

/// The header is there when they are carried out, so that nothing has to wait.
fn at_once(ops: &[HeaderOp]) -> Result<HeaderOps, BuildError> {
    let at_once = |op: &HeaderOp| HeaderOp { deferred: false, ..op.clone() };
    HeaderOps::compile(&ops.iter().map(at_once).collect::<Vec<_>>())
}

impl ProxyRules for Rules {
    fn id(&self) -> ProxyId {
        self.id
    }

    fn computed_address(&self, upstream: usize, exchange: &Exchange) -> Option<String> {
        let address = self.computed.get(upstream)?.as_ref()?;
        Some(address.render_str(exchange).into_owned())
    }

    fn dynamic_name<'a>(
        &'a self,
        source: usize,
        exchange: &'a Exchange,
    ) -> (Cow<'a, str>, Option<Cow<'a, str>>) {
        let Some((name, port)) = self.dynamic.get(source) else { return (Cow::Borrowed(""), None) };
        (name.render_str(exchange), port.as_ref().map(|port| port.render_str(exchange)))
    }

    fn rewritten(&self, exchange: &mut Exchange) -> Option<Result<(Method, Uri), StatusCode>> {
        if self.rewrites.is_empty() {
            return None;
        }
        let all = |exchange: &mut Exchange| self.rewrites.iter().try_for_each(|one| one.apply(exchange));
        Some(exchange.rewritten(all))
    }

    fn handles_responses(&self) -> bool {
        self.handles_responses
    }

    fn may_repeat(&self, exchange: &mut Exchange) -> Option<bool> {
        // One that cannot be told does not fit.
        let any = |exchange: &mut Exchange| matcher::any_set(&self.retry_match, exchange).unwrap_or(false);
        (!self.retry_match.is_empty()).then(|| any(exchange))
    }

    fn script(&self, exchange: &Exchange, uri: &Uri) -> Result<PhpTarget, StatusCode> {
        self.fastcgi.as_ref().ok_or(StatusCode::INTERNAL_SERVER_ERROR)?.script(exchange, uri)
    }

    fn change_request(&self, exchange: &Exchange, fields: &mut HeaderMap) {
        self.header_up.apply_to(exchange, fields);
    }

    fn change_response(&self, exchange: &Exchange, fields: &mut HeaderMap) {
        self.header_down.apply_to(exchange, fields);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::exchange::tests::get;
    use crate::context::proxied::Proxied;
    use config::{HeaderOpKind, Part, Template};

    fn rules(proxy: config::ReverseProxy) -> Arc<Rules> {
        ReverseProxy::compile(ProxyId(0), &proxy).unwrap().0
    }

    fn proxy() -> config::ReverseProxy {
        config::ReverseProxy {
            upstreams: vec![Upstream::Computed(Template(vec![Part::Placeholder(
                "http.request.host".into(),
            )]))],
            transport: config::ProxyTransport::default(),
            trusted_proxies: Vec::new(),
            header_up: Vec::new(),
            header_down: Vec::new(),
            rewrites: Vec::new(),
            balancing: config::Balancing::default(),
            passive_health: config::PassiveHealth::default(),
            active_health: None,
            dynamic: Vec::new(),
            stream_timeout: std::time::Duration::ZERO,
            stream_buffer_size: 1024,
            stream_close_delay: None,
            request_buffers: 0,
            response_buffers: 0,
            responses: Vec::new(),
        }
    }

    #[test]
    fn a_rewrite_is_for_the_upstream_alone() {
        let rewrites = vec![
            config::Rewrite::Method(Template::text("POST")),
            config::Rewrite::To(Template(vec![
                Part::Text("/auth?of=".into()),
                Part::Placeholder("http.request.uri.path".into()),
            ])),
        ];
        let rules = rules(config::ReverseProxy { rewrites, ..proxy() });
        let mut exchange = get("/a%20b?x=1");
        let (method, uri) = rules.rewritten(&mut exchange).unwrap().unwrap();
        assert_eq!((method, uri.to_string().as_str()), (Method::POST, "/auth?of=%2Fa%20b"));
        assert_eq!((exchange.method.as_str(), exchange.path()), ("GET", &b"/a b"[..]));
        assert_eq!(exchange.uri, "/a%20b?x=1");
    }

    #[test]
    fn operations_know_the_upstream() {
        let value = Template(vec![Part::Placeholder("http.reverse_proxy.upstream.hostport".into())]);
        let op = |kind, name: &str, value: &Template| HeaderOp {
            kind,
            name: Template::text(name),
            value: value.clone(),
            deferred: true,
        };
        let header_up = vec![
            op(HeaderOpKind::Delete, "X-*", &Template::default()),
            op(HeaderOpKind::Set, "Host", &value),
        ];
        let rules = rules(config::ReverseProxy { header_up, ..proxy() });
        let mut exchange = get("/");
        exchange.proxied =
            Some(Box::new(Proxied { address: "app:81".into(), host: "app".into(), ..Proxied::default() }));
        let mut fields = HeaderMap::new();
        fields.insert("x-a", "1".parse().unwrap());
        fields.insert("host", "site".parse().unwrap());
        rules.change_request(&exchange, &mut fields);
        assert_eq!(fields["host"], "app:81");
        assert_eq!(fields.len(), 1);
    }
}
