//! Whether the addresses can be had, and whether the admin API is for this machine alone.

use crate::machine::{OWN_NAME, PortState};
use crate::{Finding, Machine};
use regent_config::{AdminListen, Config};
use std::net::IpAddr;

pub(super) fn check(config: &Config, machine: &Machine, findings: &mut Vec<Finding>) {
    for port in &machine.ports {
        let address = port.address;
        match &port.state {
            PortState::Free => {}
            // A server that runs, probably this one.
            PortState::Taken(Some(program)) if program == OWN_NAME => {}
            PortState::Taken(program) => findings.push(taken(&address.to_string(), program.as_deref())),
            PortState::Forbidden => findings.push(Finding::problem(
                "port_rights",
                format!("this user may not listen on {address}"),
                "Ports below 1024 are root's, unless the kernel is told otherwise; the server would not start.",
                "Give the server the right (AmbientCapabilities=CAP_NET_BIND_SERVICE in its systemd unit), choose ports \
                 from 1024 on, or set net.ipv4.ip_unprivileged_port_start. If the unit does that already, this is as it \
                 should be.",
            )),
            PortState::Unusable(reason) => findings.push(Finding::problem(
                "address",
                format!("{address} cannot be listened on: {reason}"),
                "The server would not start.",
                "Correct `bind`, or give the machine this address.",
            )),
        }
    }
    if let Some(AdminListen::Tcp { host, port }) = config.global.admin.as_ref().map(|admin| &admin.listen)
        && !is_local(host)
    {
        findings.push(Finding::problem(
            "admin",
            format!("the admin API listens on {host}:{port}, where other machines may reach it"),
            "Whoever reaches it can stop the server and change its configuration.",
            "Write `admin localhost:2019`, or a Unix socket.",
        ));
    }
}

fn taken(address: &str, program: Option<&str>) -> Finding {
    let why = "Two servers cannot have one address: the second would not start.";
    match program {
        Some(program) => Finding::problem(
            "port_taken",
            format!("{program} listens on {address}"),
            why,
            format!("Stop {program}, or choose another address."),
        ),
        // Which is unknown without root.
        None => Finding::advice(
            "port_taken",
            format!("somebody listens on {address}"),
            why,
            "If that is not this Regent, stop it: `ss -ltnp` as root says who it is.",
        ),
    }
}

fn is_local(host: &str) -> bool {
    host == "localhost"
        || host.ends_with(".localhost")
        || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{config, machine, words};
    use super::*;
    use crate::machine::Port;

    fn of(state: PortState) -> String {
        let config = config("http://:8080 {\n\tphp_server\n}\n");
        let ports = vec![Port { address: "0.0.0.0:80".parse().unwrap(), state }];
        words(|found| check(&config, &Machine { ports, ..machine() }, found))
    }

    #[test]
    fn addresses_that_cannot_be_had_are_named() {
        assert_eq!(of(PortState::Free), "");
        assert_eq!(of(PortState::Taken(Some("regent".into()))), "");
        assert!(
            of(PortState::Taken(Some("nginx".into()))).starts_with("Problem: nginx listens on 0.0.0.0:80")
        );
        assert!(of(PortState::Taken(None)).starts_with("Advice: somebody"));
        assert!(of(PortState::Forbidden).contains("CAP_NET_BIND_SERVICE"));
        assert!(of(PortState::Unusable("no such address".into())).contains("no such address"));
    }

    #[test]
    fn an_admin_api_for_all_is_a_problem() {
        for (admin, expected) in
            [("localhost:2019", 0), ("127.0.0.1:2019", 0), ("off", 0), (":2019", 1), ("0.0.0.0:2019", 1)]
        {
            let config = config(&format!("{{\n\tadmin {admin}\n}}\nhttp://:8080 {{\n\tphp_server\n}}\n"));
            let found = words(|found| check(&config, &machine(), found));
            assert_eq!(usize::from(found.contains("admin API")), expected, "{admin}: {found}");
        }
    }
}
