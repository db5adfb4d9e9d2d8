//! `reverse_proxy [MATCHER] UPSTREAM… { OPTION… }`: hands requests to another server, and back what it responds, as in Caddy.
//! [The page about it](reverse-proxy.md) says how.
//!
//! An upstream is `host:port`, `tcp/host:port`, `:port` (of this machine), `http://host`, `https://host`, `h2c://host`, or a socket file:
//! `unix//run/app.sock`. `localhost:8001-8003` stands for three of them. Without a scheme it may have placeholders, such
//! as `{vars.backend}`. All upstreams of a directive have the same scheme.
//!
//! | option | what it does |
//! |---|---|
//! | `to UPSTREAM…` | more upstreams |
//! | `dynamic a [NAME [PORT]] { … }` \| `srv [NAME] { … }` \| `multi { … }` | upstreams that DNS knows, see below; those that are written are for when it knows none |
//! | `trusted_proxies RANGE…` | addresses, ranges or `private_ranges` whose `X-Forwarded-*` fields are passed on; those of all others are replaced |
//! | `header_up [+\|-]FIELD [VALUE \| SEARCH REPLACEMENT]` | changes the request's header, as `header` does the response's |
//! | `header_down [+\|-]FIELD [VALUE \| SEARCH REPLACEMENT]` | changes the response's |
//! | `method METHOD`, `rewrite TO` | for the upstream alone; `GET` and `HEAD` send no body |
//! | `lb_policy POLICY` | which upstream gets a request, see below (default: `random`) |
//! | `lb_retries COUNT`, `lb_try_duration DURATION` | how often, or how long, another upstream is tried (default: not at all) |
//! | `lb_retry_match CONDITION`, or a block | which requests that an upstream may have seen go to another one, if they have no body (default: GET, HEAD and others that do no harm twice) |
//! | `lb_try_interval DURATION` | between two tries (default 250ms with `lb_try_duration`, otherwise none) |
//! | `fail_duration DURATION` | how long a failure is remembered (default: not at all) |
//! | `max_fails COUNT` | failures within that time with which an upstream gets no requests (default 1) |
//! | `unhealthy_status STATUS…`, `unhealthy_latency DURATION` | responses that are failures: `5xx`, `429`; that took so long |
//! | `unhealthy_request_count COUNT` | requests at once with which an upstream gets no more |
//! | `health_uri URI` | asks each upstream how it is, and gives those that fail nothing; `health_port PORT` asks at another port (not those with Unix sockets), `health_upstream HOST:PORT` another server, which learns by a field with `{http.reverse_proxy.active.target_upstream}` whom it is about |
//! | `health_interval DURATION`, `health_timeout DURATION` | between two questions (default 30s), for a response (default 5s) |
//! | `health_status STATUS`, `health_body REGEXP` | of a good response (default: 2xx, any body) |
//! | `health_method METHOD`, `health_headers { FIELD VALUE… }`, `health_request_body TEXT` | of the question (default: GET) |
//! | `health_follow_redirects` | judges what a response leads to, at the same server, instead of the redirect |
//! | `health_passes COUNT`, `health_fails COUNT` | good, or bad, responses in a row that change what is thought of it (default 1) |
//! | `@name CONDITION`, or a block of such lines | names responses, as `match` of [encode](#encode) does: `status CODE…`, `header FIELD [VALUE]` |
//! | `replace_status [@name] STATUS` | another status for these responses |
//! | `handle_response [@name] { DIRECTIVE… }` | what becomes of these responses instead. If nothing in the block answers, the request goes on behind `reverse_proxy`. In the block: `{rp.status_code}`, `{rp.header.FIELD}`, and the directives `copy_response [STATUS]` (the upstream's response after all) and `copy_response_headers { include FIELD… }` (or `exclude`) |
//! | `stream_timeout DURATION`, `stream_buffer_size SIZE` | of connections that have left HTTP, such as WebSocket: how long each may last (default: no limit), what may be on its way in each direction (default 32KiB) |
//! | `stream_close_delay DURATION` | how long such a connection goes on when the directive is gone or has changed (default: to its end) |
//! | `request_buffers SIZE \| unlimited` | bytes of a body that are here, in the [spool](#spool), before an upstream is asked (default: none) |
//! | `response_buffers SIZE \| unlimited` | bytes that an upstream may send before the client takes them (default: 256 KiB) |
//! | `flush_interval DURATION \| -1` | taken and not needed: everything is passed on as it comes |
//! | `transport http { … }` | how upstreams are talked to |
//! | `transport fastcgi { … }` | the upstreams speak FastCGI, as php-fpm does; see [php_fastcgi](#php_fastcgi) for the whole of a site |
//!
//! | policy | takes |
//! |---|---|
//! | `random`, `round_robin`, `first` | any, each in turn, the first that is there |
//! | `least_conn` | the one with the least requests |
//! | `random_choose COUNT` | of so many that chance picks, the one with the least requests |
//! | `weighted_round_robin WEIGHT…` | each in turn, as often as its weight says |
//! | `ip_hash`, `client_ip_hash`, `uri_hash` | the same for the same address or URI |
//! | `header FIELD`, `query KEY` | the same for the same value; without one, what `fallback POLICY` in its block says |
//! | `cookie [NAME [SECRET]]` | the same for the same browser (default name `lb`); `max_age DURATION` and `fallback POLICY` in its block |
//!
//! Options of a source of `dynamic` upstreams; `multi` has a block of sources:
//!
//! | option | what it does |
//! |---|---|
//! | `name NAME` | what is asked for, instead of behind `a` or `srv` |
//! | `port PORT` | of `a`: of all addresses (default 80) |
//! | `versions ipv4 \| ipv6` | of `a`: these addresses only |
//! | `service SERVICE`, `proto PROTO` | of `srv`: asks for `_SERVICE._PROTO.NAME` |
//! | `refresh DURATION` | how long an answer is used (default 1m) |
//! | `grace_period DURATION` | of `srv`: how much longer, while there is no other answer, or an empty one (default: 1h, and not if DNS says that there is nothing) |
//! | `resolvers ADDRESS…` | the DNS servers to be asked, as `10.0.0.2` or `127.0.0.1:8600` (default: those of the system) |
//! | `dial_timeout DURATION` | for an answer, before the question is put again (default: as the system says, or 5s) |
//! | `dial_fallback_delay DURATION` | taken and not needed: a DNS server has one address |
//!
//! Options of `transport http`:
//!
//! | option | what it does |
//! |---|---|
//! | `dial_timeout DURATION` | for a connection, from the look-up of the name on (default 3s) |
//! | `dial_fallback_delay DURATION` | how long one address of a name is tried before the next is tried too; less than 0: until it has failed (default 300ms) |
//! | `local_address IP` | where connections come from |
//! | `proxy_protocol v1 \| v2` | tells the upstream the client's address before anything else, in the PROXY protocol; a connection is then used for one request |
//! | `response_header_timeout DURATION` | from the end of the request to the end of the response's head (default: none) |
//! | `read_timeout DURATION`, `write_timeout DURATION` | longest silence of the upstream, longest time in which it takes nothing (default: none) |
//! | `max_response_header SIZE` | of a response's head (default 128KiB) |
//! | `versions VERSION…` | `1.1`, `2` (with TLS; an upstream without it is spoken to by 1.1, but not for WebSocket) or `h2c` (default `1.1 2`) |
//! | `keepalive DURATION \| off` | how long a connection that is not in use is kept (default 2m) |
//! | `keepalive_interval DURATION` | between probes of connections (default 30s) |
//! | `keepalive_idle_conns_per_host COUNT` | connections that each I/O thread keeps of an upstream (default 32) |
//! | `keepalive_idle_conns COUNT` | the same of all upstreams together; those that have waited longest are closed first (default: no limit beside that of each) |
//! | `max_conns_per_host COUNT` | connections by HTTP/1.1 to an upstream, of all I/O threads; a request beyond waits for one as long as its client does (default: no limit) |
//! | `network_proxy url http://[NAME:PASSWORD@]HOST[:PORT]` | a proxy that leads to the upstreams: by `CONNECT` to those with TLS, and otherwise it hands each request on. `none`: none, as if nothing were said. (`forward_proxy_url URL` is the older form) |
//! | `resolvers ADDRESS…` | the DNS servers that know the upstreams' names (default: as the system looks them up) |
//! | `tls` | TLS, as with `https://` |
//! | `tls_server_name NAME` | what certificates have to be for (default: the upstream's host) |
//! | `tls_trust_pool file PATH…` | roots of certificates (default: those of the system) |
//! | `tls_client_auth CERTIFICATE KEY` | files of a certificate for upstreams that ask for one |
//! | `tls_insecure_skip_verify` | believes any certificate: for tests only |
//! | `tls_timeout DURATION` | for a handshake (default 10s) |
//! | `tls_except_ports PORT…` | upstreams at these ports have no TLS |
//! | `tls_curves NAME…` | key exchanges, as in [tls](#tls) |
//! | `compression`, `expect_continue_timeout`, `read_buffer`, `write_buffer`, `tls_renegotiation never` | taken and not needed: nothing is compressed that the client has not asked for, an expectation of the client is met here, buffers grow as needed, and TLS is never negotiated anew |
//!
//! Options of `transport fastcgi`; a connection is used for one request, and a script gets a request when its body is
//! complete, in memory or in a file of the [spool](#spool):
//!
//! | option | what it does |
//! |---|---|
//! | `root PATH` | the document root as the FastCGI server sees it (default: the site's) |
//! | `split TEXT…` | endings of scripts: behind the first segment of the path with one of them, `PATH_INFO` begins (default: the whole path is the script's) |
//! | `env NAME VALUE`, or a block | variables of the request; they go before those that Regent sets |
//! | `resolve_root_symlink` | scripts see the directory that a linked root points to when the request comes |
//! | `capture_stderr` | logs what scripts write to their error stream, at most 16 KiB for each request |
//! | `dial_timeout DURATION`, `read_timeout DURATION`, `write_timeout DURATION` | as above |
//!
//! ```caddyfile
//! reverse_proxy /api/* 127.0.0.1:9000
//! reverse_proxy /ws unix//run/reverb.sock
//! reverse_proxy /app/* {
//!     dynamic a app.internal 9000
//! }
//! ```

mod balancing;
mod dynamic;
pub(super) mod fastcgi;
pub(super) mod fields;
mod health;
mod responses;
mod streams;
pub(super) mod transport;
mod upstream;

use super::Directive;
use crate::call::Call;
use crate::context::{Context, ResponseBlock};
use crate::ip_ranges;
use crate::matchers::Scope;
use crate::model::{Handler, ProxyId, ResponseRule, ReverseProxy, UpstreamTls, UpstreamVersions};
use crate::problems::{error, unknown_option};
use crate::values::duration;
use regent_caddyfile::{Error, Token};
use streams::Streams;
use upstream::{Others, Scheme, Upstreams};

pub(super) const DIRECTIVE: Directive = super::handler("reverse_proxy", parse);

fn parse(cx: &mut Context<'_>, scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    parse_with(cx, scope, call, Preset::default())
}

/// What a directive that is made of this one says itself.
#[derive(Default)]
pub(super) struct Preset {
    pub fields: fields::Written,
    pub responses: Vec<ResponseRule>,
    pub transport: transport::Written,
}

pub(super) fn parse_with(
    cx: &mut Context<'_>,
    scope: &Scope<'_>,
    call: &Call<'_>,
    preset: Preset,
) -> Result<Handler, Error> {
    let mut upstreams = Upstreams::default();
    upstreams.add(cx, call.args);
    let mut transport = preset.transport;
    let mut balancing = balancing::Written::default();
    let mut health = health::Written::default();
    let mut fields = preset.fields;
    let mut responses = responses::Written::of(preset.responses);
    let mut trusted_proxies = Vec::new();
    let mut dynamic = Vec::new();
    let mut streams = Streams::default();
    for option in call.options() {
        let read = match option.name() {
            "to" => option.some("to UPSTREAM…").map(|tokens| upstreams.add(cx, tokens)),
            "dynamic" => dynamic::read(cx, &option, &mut dynamic),
            "transport" => {
                transport.read(cx, &option);
                Ok(())
            }
            "trusted_proxies" => option
                .some("trusted_proxies RANGE… | private_ranges")
                .and_then(|tokens| ip_ranges::parse(cx, tokens))
                .map(|ranges| trusted_proxies.extend(ranges)),
            name if responses::are_meant_by(name) => responses.read(cx, scope, &option),
            name if fields::OPTIONS.contains(&name) => fields.read(&option),
            name if balancing::OPTIONS.contains(&name) => balancing.read(cx, &option),
            name if health::OPTIONS.contains(&name) => health.read(cx, &option),
            // There is nothing to flush: what comes is passed on at once.
            "flush_interval" => flush_interval(&option),
            "verbose_logs" => option.exactly::<0>("verbose_logs").map(|_| {
                cx.warn(
                    option.name,
                    "`verbose_logs` has no effect: `debug` in the global options shows more",
                );
            }),
            name if Streams::OPTIONS.contains(&name) => streams.read(&option),
            _ => Err(unknown_option(option.name, "reverse_proxy", &options(), &["proxy_status_name"])),
        };
        cx.check(read);
    }
    let is_dynamic = call.options().any(|option| option.name() == "dynamic");
    let others = if is_dynamic { Others::Dynamic } else { Others::None };
    let (scheme, upstreams) = upstreams.finish(call, others)?;
    let transport = transport.finish(cx, scheme);
    let balancing = balancing.finish(cx, &upstreams, others);
    let (passive_health, active_health) = health.finish(cx, &upstreams, others);
    if transport.fastcgi.is_some() && active_health.is_some() {
        let message = "FastCGI servers cannot be asked how they are: Regent has `health_uri` for HTTP alone; \
                       use `fail_duration` and `lb_retries`, which need no questions";
        return Err(error(call.name, message));
    }
    let fields::Written { header_up, header_down, rewrites } = fields;
    let responses = responses.finish(cx.notation);
    if !responses.is_empty() && cx.response_block == Some(ResponseBlock::Intercept) {
        let message = format!(
            "`{}` with rules for its responses is not built yet in Regent within `intercept`: write the rules without it",
            call.name()
        );
        return Err(error(call.name, message));
    }
    let proxy = ReverseProxy {
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
        stream_timeout: streams.timeout,
        stream_buffer_size: streams.buffer_size,
        stream_close_delay: streams.close_delay,
        request_buffers: streams.request_buffers,
        response_buffers: streams.response_buffers,
        responses,
    };
    Ok(Handler::ReverseProxy(add(cx, call.name, proxy)?))
}

fn options() -> Vec<&'static str> {
    let own: &[&str] = &["dynamic", "flush_interval", "to", "transport", "trusted_proxies", "verbose_logs"];
    [own, Streams::OPTIONS, balancing::OPTIONS, fields::OPTIONS, health::OPTIONS, responses::OPTIONS].concat()
}

fn flush_interval(option: &Call<'_>) -> Result<(), Error> {
    let token = option.one("flush_interval DURATION | -1")?;
    if token.text == "-1" { Ok(()) } else { duration(token).map(drop) }
}

fn add(cx: &mut Context<'_>, name: &Token, proxy: ReverseProxy) -> Result<ProxyId, Error> {
    let id = u16::try_from(cx.proxies.len()).map_err(|_| error(name, "there are too many of them"))?;
    cx.proxies.push(proxy);
    Ok(ProxyId(id))
}

#[cfg(test)]
mod tests;
