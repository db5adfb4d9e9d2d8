use super::*;
use crate::model::{Config, Handler, Template};
use std::collections::BTreeMap;

fn environment(directory: &Path) -> Environment {
    Environment { variables: BTreeMap::new(), current_dir: directory.to_owned() }
}

fn php(root: &str) -> SiteArguments {
    SiteArguments {
        root: root.into(),
        domain: None,
        listen: None,
        content: Content::Php { workers: Vec::new(), watch: Vec::new(), hub: Hub::Off },
        compression: Compression::On,
        access_log: AccessLog::Off,
        log_level: LogDetail::Usual,
    }
}

fn with_domain(domain: &str, listen: Option<&str>) -> SiteArguments {
    SiteArguments { domain: Some(domain.into()), listen: listen.map(str::to_owned), ..php("/srv") }
}

fn config(site: &SiteArguments) -> Config {
    site_config(site, &environment(Path::new("/srv"))).unwrap_or_else(|errors| panic!("{errors}")).config
}

fn error(site: &SiteArguments) -> String {
    site_config(site, &environment(Path::new("/srv"))).unwrap_err().to_string()
}

/// Scheme, listener and hosts of each server.
fn servers(site: &SiteArguments) -> Vec<String> {
    let show = |server: &crate::model::Server| {
        let scheme = if server.tls.is_some() { "https" } else { "http" };
        let hosts: Vec<_> = server.sites.iter().flat_map(|site| &site.hosts).collect();
        format!("{scheme} {:?} {hosts:?}", server.listen)
    };
    config(site).servers.iter().map(show).collect()
}

#[test]
fn php_with_a_worker() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("my worker.php"), "").unwrap();
    let worker = WorkerArgument { file: "my worker.php".into(), num: Some(3) };
    let site = SiteArguments {
        listen: Some("127.0.0.1:8080".into()),
        content: Content::Php {
            workers: vec![worker],
            watch: vec!["src/**/*.{php,twig}".into()],
            hub: Hub::Off,
        },
        ..php("public dir")
    };
    let config = site_config(&site, &environment(directory.path())).unwrap().config;
    assert_eq!(config.servers[0].listen, Listen::Tcp("127.0.0.1:8080".parse().unwrap()));
    assert_eq!(config.global.php.workers[0].num, Some(3));
    assert_eq!(config.global.php.workers[0].watch, ["src/**/*.{php,twig}"]);
    assert_eq!(config.global.admin, None);
    let [encode, server] = config.servers[0].sites[0].routes.as_slice() else { panic!() };
    assert!(matches!(&encode.handler, Handler::Encode(encode) if encode.formats.len() == 3));
    let Handler::PhpServer(server) = &server.handler else { panic!() };
    let root = directory.path().join("public dir");
    assert_eq!(server.php.root, Some(Template::text(root.to_str().unwrap())));
}

#[test]
fn files_alone() {
    let content = Content::Files { precompressed: vec!["gzip".into(), "br".into()], listings: Listings::On };
    let config = config(&SiteArguments { content, compression: Compression::Off, ..php("/srv/files") });
    let [server] = config.servers[0].sites[0].routes.as_slice() else { panic!() };
    let Handler::FileServer(files) = &server.handler else { panic!() };
    assert_eq!(files.root, Some(Template::text("/srv/files")));
    assert_eq!(files.precompressed, ["gzip", "br"]);
    assert!(files.browse.is_some());

    let content = Content::Files { precompressed: vec!["lz4".into()], listings: Listings::Off };
    assert_eq!(error(&SiteArguments { content, ..php("/srv") }), "unknown encoding `lz4`");
}

#[test]
fn logs_and_compression() {
    let plain = config(&SiteArguments { compression: Compression::Off, ..php("/srv") });
    let [server] = plain.servers[0].sites[0].routes.as_slice() else { panic!() };
    assert!(matches!(server.handler, Handler::PhpServer(_)));
    assert!(plain.servers[0].sites[0].access_logs.is_empty());

    let loud = SiteArguments { access_log: AccessLog::On, log_level: LogDetail::Debug, ..php("/srv") };
    let loud = config(&loud);
    assert_eq!(loud.servers[0].sites[0].access_logs.len(), 1);
    assert_ne!(loud.global.log, plain.global.log);
}

#[test]
fn without_a_domain_every_host_has_plain_http() {
    assert_eq!(servers(&php("/srv")), ["http Tcp([::]:80) []"]);
    let on_https_port = SiteArguments { listen: Some(":443".into()), ..php("/srv") };
    assert_eq!(servers(&on_https_port), ["http Tcp([::]:443) []"]);
}

#[test]
fn a_domain_has_https_and_on_its_usual_port_a_redirect() {
    let usual = ["https Tcp([::]:443) [\"localhost\"]", "http Tcp([::]:80) [\"localhost\"]"];
    assert_eq!(servers(&with_domain("localhost", None)), usual);
    assert_eq!(servers(&with_domain("LocalHost", Some(":443"))), usual);
    assert_eq!(
        servers(&with_domain("app.localhost", Some("127.0.0.1:443"))),
        ["https Tcp(127.0.0.1:443) [\"app.localhost\"]", "http Tcp(127.0.0.1:80) [\"app.localhost\"]"]
    );
    assert_eq!(
        servers(&with_domain("::1", None)),
        ["https Tcp([::1]:443) [\"::1\"]", "http Tcp([::1]:80) [\"::1\"]"]
    );
}

#[test]
fn a_domain_on_another_port_opens_that_port_alone() {
    assert_eq!(servers(&with_domain("localhost", Some(":8443"))), ["https Tcp([::]:8443) [\"localhost\"]"]);
    assert_eq!(
        servers(&with_domain("localhost", Some("0.0.0.0:8443"))),
        ["https Tcp(0.0.0.0:8443) [\"localhost\"]"]
    );
    let socket = servers(&with_domain("localhost", Some("unix//run/a.sock|0660")));
    assert_eq!(socket.len(), 1);
    assert!(socket[0].starts_with("https Unix(") && socket[0].contains("/run/a.sock"), "{socket:?}");
    assert_eq!(servers(&with_domain("localhost", Some(":80"))), ["http Tcp([::]:80) [\"localhost\"]"]);
}

#[test]
fn mistakes() {
    let listen = |listen: &str| SiteArguments { listen: Some(listen.into()), ..php("/srv") };
    assert!(error(&listen("8080")).contains("no address to listen on"));
    assert!(error(&php("a{$HOME}")).contains("cannot stand in a configuration"));
    let workers = vec![WorkerArgument { file: "none.php".into(), num: None }];
    let missing =
        SiteArguments { content: Content::Php { workers, watch: Vec::new(), hub: Hub::Off }, ..php("/srv") };
    let loaded = site_config(&missing, &environment(Path::new("/srv"))).unwrap();
    assert!(
        loaded
            .complete()
            .unwrap_err()
            .to_string()
            .contains("the worker's file does not exist: /srv/none.php")
    );
    for domain in ["https://localhost", "localhost:8443", "", ":80", "*", "a b", "a{$HOME}", "a/b", "a, b"] {
        assert!(error(&with_domain(domain, None)).contains("is no domain"), "{domain}");
    }
}

#[test]
fn a_hub_has_its_keys_from_the_environment() {
    let site = SiteArguments {
        content: Content::Php { workers: Vec::new(), watch: Vec::new(), hub: Hub::On },
        ..php("/srv")
    };
    assert!(error(&site).contains("MERCURE_PUBLISHER_JWT_KEY must be set"), "{}", error(&site));
    let variables = [
        ("MERCURE_PUBLISHER_JWT_KEY", "a } secret"),
        ("MERCURE_PUBLISHER_JWT_ALG", "HS512"),
        ("MERCURE_SUBSCRIBER_JWT_KEY", "another"),
        ("MERCURE_SUBSCRIBER_JWT_ALG", ""),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let environment = Environment { variables: variables.into(), current_dir: "/srv".into() };
    let hub = site_config(&site, &environment).unwrap().config.global.hubs.remove(0);
    let (publisher, subscriber) = (hub.publisher.unwrap(), hub.subscriber.unwrap());
    assert_eq!((&*publisher.key.0, &*publisher.algorithm), ("a } secret", "HS512"));
    assert_eq!((&*subscriber.key.0, &*subscriber.algorithm), ("another", "HS256"));
    assert!(!hub.anonymous);
}
