use crate::directives::testing::{config, errors, load};
use crate::model::{
    ActiveHealth, AddressFamilies, Balancing, Curve, DnsServers, DynamicRecords, DynamicUpstreams, HashKey,
    LbPolicy, OptionalKey, PassiveHealth, ProxyProtocolVersion, Redirects, ReverseProxy, Rewrite, Template,
    Upstream, UpstreamAddress, UpstreamVerification, UpstreamVersions,
};
use std::time::Duration;

fn proxy(directives: &str) -> ReverseProxy {
    config(&format!(":80 {{\n{directives}\n}}")).proxies.remove(0)
}

/// The upstreams as they are shown.
fn upstreams(text: &str) -> Vec<String> {
    let show = |upstream: &Upstream| match upstream {
        Upstream::Fixed(address) => address.to_string(),
        Upstream::Computed(template) => format!("{template:?}"),
    };
    proxy(text).upstreams.iter().map(show).collect()
}

#[test]
fn upstreams_of_all_kinds() {
    assert_eq!(
        upstreams("reverse_proxy a:1 :2 b {\nto unix//run/a.sock\n}"),
        ["a:1", ":2", "b:80", "unix//run/a.sock"]
    );
    assert_eq!(upstreams("reverse_proxy /x* http://a http://b:81"), ["a:80", "b:81"]);
    assert_eq!(upstreams("reverse_proxy https://a https://[::1]"), ["a:443", "[::1]:443"]);
    assert_eq!(upstreams("reverse_proxy a:8001-8003"), ["a:8001", "a:8002", "a:8003"]);
    assert_eq!(upstreams("reverse_proxy tcp/a:8001-8002"), ["a:8001", "a:8002"]);
    let computed = proxy("reverse_proxy {vars.backend}:81").upstreams.remove(0);
    assert_eq!(computed, Upstream::Computed(Template::parse("{vars.backend}:81")));
}

#[test]
fn the_scheme_says_how_upstreams_are_talked_to() {
    assert_eq!(proxy("reverse_proxy a").transport.tls, None);
    let secure = proxy("reverse_proxy https://a").transport;
    assert!(secure.tls.is_some() && secure.versions == UpstreamVersions::Either);
    assert_eq!(proxy("reverse_proxy h2c://a").transport.versions, UpstreamVersions::H2c);
    let unix = proxy("reverse_proxy unix+h2c//run/a");
    assert_eq!(unix.transport.versions, UpstreamVersions::H2c);
    assert_eq!(unix.upstreams, [Upstream::Fixed(UpstreamAddress::Unix("/run/a".into()))]);
}

#[test]
fn the_transport_has_options() {
    let text = "reverse_proxy a {\ntransport http {\ndial_timeout 1s\nresponse_header_timeout 2s\nread_timeout 3s\n\
                write_timeout 4s\nkeepalive off\nversions 1.1\nmax_response_header 64KiB\ncompression off\n}\n}";
    let transport = proxy(text).transport;
    let times = [
        transport.dial_timeout,
        transport.response_header_timeout,
        transport.read_timeout,
        transport.write_timeout,
    ];
    assert_eq!(times, [1, 2, 3, 4].map(Duration::from_secs));
    assert_eq!((transport.keepalive, transport.max_response_header), (None, 65_536));
    assert_eq!(transport.versions, UpstreamVersions::Http1);
    let text = "reverse_proxy a {\ntransport http {\ntls_server_name b\ntls_trust_pool file x.pem\n\
                tls_client_auth c.pem k.pem\n}\n}";
    let tls = proxy(text).transport.tls.expect("TLS");
    assert_eq!(tls.server_name.as_deref(), Some("b"));
    assert_eq!(tls.verification, UpstreamVerification::Roots(vec!["/srv/x.pem".into()]));
    assert_eq!(tls.client_certificate, Some(("/srv/c.pem".into(), "/srv/k.pem".into())));
}

#[test]
fn connections_are_made_as_the_transport_says() {
    let transport =
        |options: &str| proxy(&format!("reverse_proxy a {{\ntransport http {{\n{options}\n}}\n}}")).transport;
    let found = transport(
        "keepalive_idle_conns 100\ndial_fallback_delay 50ms\nlocal_address 10.0.0.2:0\nproxy_protocol v2\n\
         expect_continue_timeout 1s\nread_buffer 4KiB\nwrite_buffer 65536\nnetwork_proxy none",
    );
    assert_eq!(
        (found.keepalive_idle_conns, found.head_start, found.local_address, found.proxy_protocol),
        (
            100,
            Some(Duration::from_millis(50)),
            Some("10.0.0.2".parse().unwrap()),
            Some(ProxyProtocolVersion::V2)
        )
    );
    assert_eq!((&found.tls, found.max_conns_per_host), (&None, None));
    assert_eq!(transport("max_conns_per_host 4").max_conns_per_host, Some(4));
    assert_eq!(transport("max_conns_per_host 0").max_conns_per_host, None);
    assert_eq!(transport("dial_fallback_delay -1").head_start, None);
    assert_eq!(transport("dial_fallback_delay 0").head_start, transport("").head_start);
    assert_eq!(transport("local_address ::1").local_address, Some("::1".parse().unwrap()));
    let found = transport("tls_except_ports 80 8080\ntls_curves x25519 secp384r1\ntls_renegotiation never");
    let tls = found.tls.as_ref().expect("TLS");
    assert_eq!(
        (&tls.except_ports[..], &tls.curves[..]),
        (&[80, 8080][..], &[Curve::X25519, Curve::Secp384r1][..])
    );
    let at = |port| UpstreamAddress::Tcp { host: "a".into(), port };
    assert!(found.tls_to(&at(80)).is_none() && found.tls_to(&at(81)).is_some());
    assert!(found.tls_to(&UpstreamAddress::Unix("/a".into())).is_some());
}

#[test]
fn mistakes_in_how_connections_are_made() {
    for (option, part) in [
        ("local_address app", "is no IP address of this machine"),
        ("local_address 10.0.0.2:80", "is no IP address of this machine"),
        ("proxy_protocol v3", "unknown version of the PROXY protocol `v3`"),
        ("network_proxy url https://a", "a relay beside Regent"),
        ("max_conns_per_host x", "max_conns_per_host"),
        ("tls_renegotiation once", "write `never`"),
        ("tls_curves p256", "unknown curve `p256`"),
        ("tls_except_ports x", "tls_except_ports"),
        ("read_buffer x", "`x`"),
        ("versions 3", "write `versions 2`"),
        ("tls_crves x25519", "did you mean `tls_curves`?"),
    ] {
        let found = errors(&format!("reverse_proxy a {{\ntransport http {{\n{option}\n}}\n}}"));
        assert!(found.len() == 1 && found[0].contains(part), "{option}: {found:?}");
    }
}

#[test]
fn mistakes() {
    let message = |text: &str| {
        let mut found = errors(text);
        assert_eq!(found.len(), 1, "{found:?}");
        found.remove(0)
    };
    assert!(message("reverse_proxy").contains("`reverse_proxy` needs an upstream"));
    assert!(message("reverse_proxy a:b").contains("`a:b` is no address of an upstream"));
    assert!(message("reverse_proxy http://a/b").contains("an upstream has no path"));
    assert!(message("reverse_proxy ws://a").contains("write `http://`"));
    assert!(message("reverse_proxy ftp://a").contains("`ftp://` is no scheme"));
    assert!(message("reverse_proxy http://a https://b").contains("the same scheme"));
    assert!(message("reverse_proxy http://{path}").contains("can have no scheme"));
    assert!(message("reverse_proxy https://a:80").contains("port 80"));
    assert!(message("reverse_proxy a:9-8").contains("is no address"));
    assert!(message("reverse_proxy a {\ntrnsport http\n}").contains("did you mean `transport`?"));
    assert!(
        message("reverse_proxy a {\ntransport http {\nresolvers x\n}\n}").contains("no address of a DNS")
    );
    assert!(message("reverse_proxy http://a {\ntransport http {\ntls\n}\n}").contains("write `https://`"));
    assert!(message("reverse_proxy a {\ntransport http {\nversions 2\n}\n}").contains("versions h2c"));
    let either = |upstream: &str| {
        proxy(&format!(
            "reverse_proxy {upstream} {{\ntransport http {{\nversions h2c 2\ntls_trust_pool system\n}}\n}}"
        ))
        .transport
    };
    assert_eq!(either("https://a").versions, UpstreamVersions::Http2);
    let clear = proxy("reverse_proxy http://a {\ntransport http {\nversions h2c 2\n}\n}").transport;
    assert_eq!(clear.versions, UpstreamVersions::H2c);
    assert!(message("reverse_proxy a {\ntransport http {\nversions 3\n}\n}").contains("is not built yet"));
    assert!(message("reverse_proxy a {\ntransport http {\nmax_response_header 1\n}\n}").contains("8KiB"));
}

#[test]
fn upstreams_are_chosen_by_a_policy() {
    let balancing = |options: &str| proxy(&format!("reverse_proxy a b {{\n{options}\n}}")).balancing;
    assert_eq!(balancing(""), Balancing::default());
    let policy = |text: &str| balancing(&format!("lb_policy {text}")).policy;
    assert_eq!(policy("round_robin"), LbPolicy::RoundRobin);
    assert_eq!(policy("random_choose 3"), LbPolicy::RandomChoose(3));
    assert_eq!(policy("weighted_round_robin 3 0"), LbPolicy::WeightedRoundRobin(vec![3, 0]));
    assert_eq!(policy("uri_hash"), LbPolicy::Hash(HashKey::Uri));
    let key = OptionalKey::Header("X-User".into());
    assert_eq!(
        policy("header X-User {\nfallback first\n}"),
        LbPolicy::HashOr(key, Box::new(LbPolicy::First))
    );
    let LbPolicy::Cookie(cookie) = policy("cookie sticky secret {\nmax_age 1h\nfallback least_conn\n}")
    else {
        panic!("no cookie")
    };
    assert_eq!((cookie.name.as_str(), cookie.secret.as_str()), ("sticky", "secret"));
    assert_eq!((cookie.max_age, *cookie.fallback), (Some(Duration::from_secs(3600)), LbPolicy::LeastConn));
}

#[test]
fn tries_have_a_bound() {
    let balancing = |options: &str| proxy(&format!("reverse_proxy a {{\n{options}\n}}")).balancing;
    let tries = |options: &str| {
        let Balancing { retries, try_duration, try_interval, .. } = balancing(options);
        (retries, try_duration.as_secs(), try_interval.as_millis())
    };
    assert_eq!(tries(""), (Some(0), 0, 0));
    assert_eq!(tries("lb_retries 2"), (Some(2), 0, 0));
    let conditions =
        balancing("lb_retry_match {\nmethod POST\npath /x\n}\nlb_retry_match method PUT").retry_match;
    assert_eq!(conditions.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(tries("lb_try_duration 5s"), (None, 5, 250));
    assert_eq!(tries("lb_retries 2\nlb_try_duration 5s\nlb_try_interval 10ms"), (Some(2), 5, 10));
}

#[test]
fn what_is_changed_for_the_upstream() {
    let text = "reverse_proxy a {\nheader_up Host {upstream_hostport}\nheader_up -X-A\nheader_down +X-B 1\n\
                header_down Location http:// https://\nmethod GET\nrewrite /x{uri}\nflush_interval -1\n}";
    let proxy = proxy(text);
    assert_eq!((proxy.header_up.len(), proxy.header_down.len()), (2, 2));
    assert_eq!(proxy.header_up[0].value, Template::parse("{upstream_hostport}"));
    let rewrites = [Rewrite::Method(Template::text("GET")), Rewrite::To(Template::parse("/x{uri}"))];
    assert_eq!(proxy.rewrites, rewrites);
}

#[test]
fn failures_are_counted() {
    let text = "reverse_proxy a {\nfail_duration 30s\nmax_fails 3\nunhealthy_status 5xx 429\nunhealthy_latency 2s\n\
                unhealthy_request_count 7\n}";
    let expected = PassiveHealth {
        fail_duration: Duration::from_secs(30),
        max_fails: 3,
        unhealthy_status: vec![(500, 599), (429, 429)],
        unhealthy_latency: Duration::from_secs(2),
        unhealthy_request_count: Some(7),
    };
    assert_eq!(proxy(text).passive_health, expected);
}

#[test]
fn upstreams_are_asked_how_they_are() {
    let text = "reverse_proxy a {\nhealth_uri /up?x=1\nhealth_port 81\nhealth_interval 5s\nhealth_timeout 1s\n\
                health_status 204\nhealth_body ok+\nhealth_method head\nhealth_passes 2\nhealth_fails 3\n\
                health_headers {\nHost b\nX-A 1 2\n}\n}";
    let expected = ActiveHealth {
        uri: "/up?x=1".into(),
        port: Some(81),
        method: "HEAD".into(),
        headers: [("Host", "b"), ("X-A", "1"), ("X-A", "2")]
            .map(|(name, value)| (name.into(), value.into()))
            .into(),
        interval: Duration::from_secs(5),
        timeout: Duration::from_secs(1),
        status: (204, 204),
        body: Some("ok+".into()),
        passes: 2,
        fails: 3,
        ..ActiveHealth::default()
    };
    assert_eq!(proxy(text).active_health, Some(expected));
    assert_eq!(proxy("reverse_proxy a").active_health, None);
    let computed = errors("reverse_proxy {path} {\nhealth_uri /\n}");
    assert!(computed[0].contains("cannot be asked"), "{computed:?}");
}

#[test]
fn mistakes_in_options() {
    let message = |options: &str| {
        let mut found = errors(&format!("reverse_proxy a b {{\n{options}\n}}"));
        assert_eq!(found.len(), 1, "{found:?}");
        found.remove(0)
    };
    assert!(message("lb_policy rond_robin").contains("did you mean `round_robin`?"));
    assert!(message("lb_policy weighted_round_robin 1").contains("1 weights for 2 upstreams"));
    assert!(message("lb_policy weighted_round_robin 0 0").contains("more than 0"));
    assert!(message("lb_policy random_choose 1").contains("from 2 to"));
    assert!(message("lb_policy first\nlb_policy random").contains("already"));
    assert!(message("header_up ?A 1").contains("is for `header` only"));
    assert!(message("max_fails 0").contains("from 1 to"));
    assert!(message("stream_buffer_size 1").contains("from 1KiB"));
    assert!(message("health_interval 5s").contains("health_uri URI"));
    assert!(message("health_uri http://a/").contains("is no path"));
    assert!(message("unhealthy_status x").contains("is no status"));
    assert!(message("lb_retry_match").contains("too few arguments"));
    assert!(message("response_buffers much").contains("`much`"));
}

#[test]
fn another_server_may_be_asked() {
    let active = |options: &str| proxy(&format!("reverse_proxy a {{\n{options}\n}}")).active_health;
    let found = active(
        "health_path /up\nhealth_upstream b:81\nhealth_method POST\nhealth_request_body `{\"deep\": true}`\n\
         health_follow_redirects\nhealth_headers {\nX-Of \"{http.reverse_proxy.active.target_upstream}!\"\n}",
    );
    let expected = ActiveHealth {
        uri: "/up".into(),
        upstream: UpstreamAddress::parse("b:81"),
        method: "POST".into(),
        request_body: "{\"deep\": true}".into(),
        redirects: Redirects::Followed,
        headers: vec![("X-Of".into(), "{http.reverse_proxy.active.target_upstream}!".into())],
        ..ActiveHealth::default()
    };
    assert_eq!(found, Some(expected));
    let message = |options: &str| errors(&format!("reverse_proxy a {{\n{options}\n}}")).remove(0);
    assert!(message("health_uri /\nhealth_upstream b").contains("HOST:PORT"));
    assert!(message("health_uri /\nhealth_request_body {path}").contains("cannot depend on the request"));
    assert!(message("health_follow_redirects").contains("health_uri URI"));
}

#[test]
fn upstreams_are_looked_up() {
    let text = "reverse_proxy b:81 {\ndynamic a {\nname {header.X-App}.test\nport 81\nrefresh 5s\nresolvers 127.0.0.1:8600 [::1]\n\
                dial_timeout 2s\ndial_fallback_delay 300ms\nversions ipv6\n}\n}";
    let found = proxy(text);
    let expected = DynamicUpstreams {
        records: DynamicRecords::Addresses {
            name: Template::parse("{header.X-App}.test"),
            port: Template::text("81"),
            families: AddressFamilies::Ipv6,
        },
        refresh: Duration::from_secs(5),
        dns: DnsServers {
            servers: vec!["127.0.0.1:8600".parse().unwrap(), "[::1]:53".parse().unwrap()],
            timeout: Some(Duration::from_secs(2)),
        },
    };
    assert_eq!((found.dynamic, found.upstreams.len()), (vec![expected], 1));
    let records = |text: &str| {
        let found = proxy(&format!("reverse_proxy {{\ndynamic {text}\n}}")).dynamic;
        found.into_iter().map(|source| source.records).collect::<Vec<_>>()
    };
    let addresses = DynamicRecords::Addresses {
        name: Template::text("app"),
        port: Template::text("80"),
        families: AddressFamilies::Both,
    };
    assert_eq!(records("a app"), std::slice::from_ref(&addresses));
    let services =
        |name: &str, grace_period| DynamicRecords::Services { name: Template::text(name), grace_period };
    let grace = Some(Duration::from_secs(60));
    let multi =
        "multi {\na app\nsrv _http._tcp.app\nsrv {\nname app\nservice api\nproto tcp\ngrace_period 1m\n}\n}";
    let expected = [addresses, services("_http._tcp.app", None), services("_api._tcp.app", grace)];
    assert_eq!(records(multi), expected);
}

#[test]
fn mistakes_in_what_is_looked_up() {
    let message = |options: &str| {
        let mut found = errors(&format!("reverse_proxy {{\n{options}\n}}"));
        assert_eq!(found.len(), 1, "{found:?}");
        found.remove(0)
    };
    assert!(message("dynamic").contains("dynamic a NAME PORT"));
    assert!(message("dynamic dns x").contains("unknown source of upstreams `dns`"));
    assert!(message("dynamic a").contains("`a` needs a name"));
    assert!(message("dynamic a x 0").contains("from 1 to 65535"));
    assert!(message("dynamic a x {\nversions ipv5\n}").contains("did you mean `ipv4`?"));
    assert!(message("dynamic a x {\ngrace_period 1s\n}").contains("unknown option `grace_period`"));
    assert!(message("dynamic a x {\nresolvers dns.example\n}").contains("no address of a DNS server"));
    assert!(message("dynamic srv x {\nservice http\n}").contains("belong together"));
    assert!(message("dynamic multi").contains("needs a source"));
    assert!(message("dynamic a x\ndynamic a y").contains("dynamic multi"));
    assert!(message("dynamic a x\nlb_policy weighted_round_robin 1").contains("write no weights"));
    assert!(message("dynamic a x\nhealth_uri /").contains("`fail_duration`"));
}

#[test]
fn what_waits_here() {
    let found = proxy(
        "reverse_proxy a {\nrequest_buffers 4KiB\nresponse_buffers unlimited\nstream_close_delay 5m\n}",
    );
    assert_eq!((found.request_buffers, found.response_buffers), (4096, u64::MAX));
    assert_eq!(found.stream_close_delay, Some(Duration::from_secs(300)));
    let usual = proxy("reverse_proxy a");
    assert_eq!((usual.request_buffers, usual.response_buffers, usual.stream_close_delay), (0, 0, None));
}

#[test]
fn a_range_of_ports_behind_a_placeholder_is_several_upstreams() {
    let computed = |text: &str| Upstream::Computed(Template::parse(text));
    assert_eq!(
        proxy("reverse_proxy {host}:8001-8002").upstreams,
        [computed("{host}:8001"), computed("{host}:8002")]
    );
    assert_eq!(proxy("reverse_proxy tcp/{vars.a}:1").upstreams, [computed("tcp/{vars.a}:1")]);
    assert_eq!(
        proxy("reverse_proxy unix//run/{vars.a}:1-x/b").upstreams,
        [computed("unix//run/{vars.a}:1-x/b")]
    );
    let found = errors("reverse_proxy {host}:8002-8001");
    assert!(found[0].contains("is no range of ports"), "{found:?}");
}

#[test]
fn an_upstream_whose_variable_is_not_set_is_a_warning() {
    for (text, upstream) in [
        ("reverse_proxy http://{$NOT_SET}", "UpstreamAddress :80"),
        ("reverse_proxy https://{$NOT_SET}", "UpstreamAddress :443"),
        ("reverse_proxy h2c://{env.NOT_SET}", "UpstreamAddress :80"),
        ("forward_auth http://{$NOT_SET} {\nuri /\n}", "UpstreamAddress :80"),
    ] {
        let loaded = load(&format!(":81 {{\n{text}\n}}")).unwrap();
        let shown = loaded.config.proxies[0].upstreams.iter().map(|upstream| match upstream {
            Upstream::Fixed(address) => format!("UpstreamAddress {address}"),
            Upstream::Computed(template) => template.to_string(),
        });
        assert_eq!(shown.collect::<Vec<_>>(), [upstream], "{text}");
        let warnings: Vec<_> = loaded.warnings.iter().map(ToString::to_string).collect();
        assert!(warnings[0].contains("names no host (is a variable not set?)"), "{warnings:?}");
    }
    assert!(errors("reverse_proxy \"\"")[0].contains("is no address of an upstream"));
}
