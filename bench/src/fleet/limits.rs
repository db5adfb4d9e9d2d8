//! What does not scale with the number of nodes, and where it ends: arithmetic with measured costs.

use super::shared::Costs;
use crate::report::format;

/// Of a core of Redis: with more, what waits for it waits long.
const USABLE: f64 = 0.7;
/// How often an instance looks at its certificates, and tries a lock that another holds: seconds.
const RENEW_INTERVAL: f64 = 600.0;
const LOCK_POLL: f64 = 0.25;
/// After which an instance gives up waiting for a lock, and how long one order takes.
const LOCK_PATIENCE: f64 = 60.0;
const ORDER: f64 = 5.0;
/// Subscribers of a hub, and how soon an update reached all of them: docs/mercure.md.
const SUBSCRIBERS: f64 = 10_000.0;
const FAN_OUT_MS: f64 = 178.0;

/// CPU time of a request of all processes of a server, as it is published in bench/results.
pub const PAGES: [Page; 7] = [
    Page { what: "hello world, worker, TLS", us: 21.2, source: "front" },
    Page { what: "hello world, a fresh request, TLS", us: 25.8, source: "front" },
    Page { what: "Symfony, worker", us: 300.0, source: "apps" },
    Page { what: "Symfony", us: 1_120.0, source: "apps" },
    Page { what: "Laravel, worker", us: 1_380.0, source: "apps" },
    Page { what: "DokuWiki", us: 3_800.0, source: "apps" },
    Page { what: "WordPress", us: 33_200.0, source: "apps" },
];

pub struct Page {
    pub what: &'static str,
    pub us: f64,
    pub source: &'static str,
}

/// Something that all nodes share.
pub struct Limit {
    pub what: String,
    pub cost: String,
    pub limit: String,
    pub beyond: String,
}

impl Page {
    /// Cores that are busy with so many requests a second.
    pub fn cores(&self, rate: f64) -> f64 {
        rate * self.us / 1e6
    }
}

pub fn of(costs: &Costs, nodes: f64, rate: f64) -> Vec<Limit> {
    let sessions = per_core(costs.session_us);
    let (update, each) = costs.update_line().unwrap_or_default();
    let updates = per_core(update + each * nodes);
    let certificates = RENEW_INTERVAL * per_core(costs.certificate_us) / nodes;
    let waiting = nodes / LOCK_POLL * costs.lock_us / 1e6;
    vec![
        Limit {
            what: "sessions with locks, in one Redis".to_owned(),
            cost: format!("{} µs for a request", format::significant(costs.session_us)),
            limit: format!("{} requests/s with a session", format::count(sessions)),
            beyond: format!(
                "{} Redis for {} requests/s, by key; or sessions that only some requests open",
                format::count((rate / sessions).ceil()),
                format::count(rate),
            ),
        },
        Limit {
            what: "updates of Mercure, to all instances by one stream".to_owned(),
            cost: format!(
                "{} µs, and {} µs for each instance",
                format::significant(update.max(0.0)),
                format::significant(each)
            ),
            limit: format!("{} updates/s with {} instances", format::count(updates), format::count(nodes)),
            beyond: "a stream for each kind of topic, in a Redis of its own; more instances make it less, not more"
                .to_owned(),
        },
        Limit {
            what: "subscribers of Mercure".to_owned(),
            cost: format!("{FAN_OUT_MS} ms of an instance for {} of them", format::count(SUBSCRIBERS)),
            limit: format!(
                "{} updates/s to all of {} subscribers",
                format::significant(1e3 / FAN_OUT_MS),
                format::count(SUBSCRIBERS * nodes)
            ),
            beyond: "scales: each instance tells its own subscribers".to_owned(),
        },
        Limit {
            what: "certificates that instances look at".to_owned(),
            cost: format!("{} µs for a look, every 10 minutes", format::significant(costs.certificate_us)),
            limit: format!("{} certificates at {} instances", format::count(certificates), format::count(nodes)),
            beyond: "a longer `renew_interval`".to_owned(),
        },
        Limit {
            what: "one lock that all want, as for the order of a certificate".to_owned(),
            cost: format!("{} µs for a try, four a second", format::significant(costs.lock_us)),
            limit: format!("{:.1} % of Redis while {} instances wait", waiting * 100.0, format::count(nodes)),
            beyond: format!(
                "one order at a time for a name; who waits longer than {LOCK_PATIENCE} s gives up until the next look. \
                 At {ORDER} s for an order, {} names one after the other",
                format::count(LOCK_PATIENCE / ORDER)
            ),
        },
    ]
}

/// So many a second.
fn per_core(us: f64) -> f64 {
    USABLE * 1e6 / us
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_those_of_a_core_that_is_not_quite_busy() {
        let updates_us = vec![(1, 25.0), (100, 520.0)];
        let costs = Costs {
            session_us: 35.0,
            certificate_us: 7.0,
            lock_us: 14.0,
            updates_us,
            software: String::new(),
        };
        let limits = of(&costs, 100.0, 1e6);
        assert!(limits[0].limit.starts_with("20,000 requests/s"), "{}", limits[0].limit);
        assert!(limits[0].beyond.starts_with("50 Redis"), "{}", limits[0].beyond);
        assert!(limits[1].limit.starts_with("1,346 updates/s"), "{}", limits[1].limit);
        assert!(limits[3].limit.starts_with("600,000 certificates"), "{}", limits[3].limit);
        assert!(limits[4].limit.starts_with("0.6 %"), "{}", limits[4].limit);
    }

    #[test]
    fn a_page_takes_as_many_cores_as_its_time_says() {
        assert!((PAGES[3].cores(1e6) - 1_120.0).abs() < 1e-9);
    }
}
