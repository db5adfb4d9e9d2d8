//! `apps.http`: the servers, and what they share.

use crate::Writer;
use crate::object::{Object, nanoseconds};
use regent_config::{Global, HttpMetrics, Purpose, Server};

impl Writer<'_> {
    pub(crate) fn http(&self) -> Object {
        let global = &self.config.global;
        let mut http = Object::new();
        http.set_unless("http_port", global.http_port, 80);
        http.set_unless("https_port", global.tls.https_port, 443);
        http.set_duration("grace_period", global.grace_period, Global::default().grace_period);
        if !global.shutdown_delay.is_zero() {
            http.set("shutdown_delay", nanoseconds(global.shutdown_delay));
        }
        http.set_some(
            "metrics",
            global.metrics.map(|metrics| self::metrics(metrics, global.metrics_export.is_some())),
        );
        http.non_empty("servers", self.servers());
        http
    }

    fn servers(&self) -> Object {
        let mut servers = Object::new();
        for (number, alike) in self.servers_by_content().into_iter().enumerate() {
            let name = alike[0].options.name.clone().unwrap_or_else(|| format!("srv{number}"));
            servers.set(servers.free_name(&name), self.server(&alike));
        }
        servers
    }

    /// Servers that differ in the address alone are one in Caddy. Those that only redirect to HTTPS follow from the others.
    fn servers_by_content(&self) -> Vec<Vec<&Server>> {
        let mut all: Vec<Vec<&Server>> = Vec::new();
        let written = self.config.servers.iter().filter(|server| server.purpose == Purpose::Sites);
        for server in written {
            match all.iter_mut().find(|alike| is_alike(alike[0], server)) {
                Some(alike) => alike.push(server),
                None => all.push(vec![server]),
            }
        }
        all
    }
}

fn is_alike(one: &Server, other: &Server) -> bool {
    one.tls == other.tls && one.options == other.options && one.sites == other.sites
}

/// `sends`: to a collector, which the environment names.
fn metrics(metrics: HttpMetrics, sends: bool) -> Object {
    let mut object = Object::new();
    object.set_if("per_host", metrics != HttpMetrics::Together);
    object.set_if("observe_catchall_hosts", metrics == HttpMetrics::PerAnyHost);
    object.set_if("otlp", sends);
    object
}
