//! Access logs: a server has names for those of its sites, and each that goes its own way is a log with that name.

use super::ACCESS;
use crate::Writer;
use crate::object::Object;
use regent_config::{LogConfig, LogScope, LogSelection, Site};
use std::collections::HashSet;

/// Access logs that go their own way, of all servers so far.
#[derive(Default)]
pub(crate) struct AccessLogs {
    logs: Vec<(String, LogConfig)>,
    /// Names of accesses that go where those of the server go.
    bare: Vec<String>,
    /// The next number of one without a name.
    next: usize,
}

/// One `log` of a site.
struct Log {
    /// Empty: the lines go where those of the server go.
    name: String,
    scope: LogScope,
}

impl AccessLogs {
    pub fn all(&self) -> impl Iterator<Item = (&str, &LogConfig)> {
        self.logs.iter().map(|(name, config)| (name.as_str(), config))
    }

    /// Each once.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let is_first = |(at, (name, _)): &(usize, &(String, LogConfig))| {
            self.logs.iter().position(|(known, _)| known == name) == Some(*at)
        };
        self.logs.iter().enumerate().filter(is_first).map(|(_, (name, _))| name.as_str())
    }

    /// The name that the log gets, which may be that of an equal one.
    fn add(&mut self, config: &LogConfig) -> String {
        let config = LogConfig { scope: LogScope::All, ..config.clone() };
        if let Some((name, _)) = self.logs.iter().find(|(_, known)| *known == config) {
            return name.clone();
        }
        let name = match &config.name {
            Some(name) => {
                free(name, |name| !self.bare.contains(name) && !self.names().any(|known| known == name))
            }
            None => {
                self.next += 1;
                format!("log{}", self.next - 1)
            }
        };
        self.logs.push((name.clone(), config));
        name
    }

    /// The name that a log gets which says nothing of itself.
    fn add_bare(&mut self, name: Option<&str>) -> String {
        let Some(name) = name else { return String::new() };
        let name = free(name, |name| !self.names().any(|known| known == name));
        if !self.bare.contains(&name) {
            self.bare.push(name.clone());
        }
        name
    }
}

/// The name, or with a number behind it that is taken away when the document is read.
fn free(name: &str, is_free: impl Fn(&String) -> bool) -> String {
    let numbered = (2_u32..).map(|number| format!("{name}#{number}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    names.find(|name| is_free(name)).unwrap_or_default()
}

impl Writer<'_> {
    pub(crate) fn set_logs(&self, server: &mut Object, sites: &[&Site], shows_credentials: bool) {
        let mut logs = Object::new();
        let has_any = sites.iter().any(|site| !site.access_logs.is_empty());
        if has_any {
            self.set_names(&mut logs, sites);
        }
        logs.set_if("should_log_credentials", shows_credentials);
        if has_any || shows_credentials {
            server.set("logs", logs);
        }
    }

    fn set_names(&self, object: &mut Object, sites: &[&Site]) {
        let mut by_host: Vec<(String, Vec<String>)> = Vec::new();
        let (mut skipped, mut others) = (Vec::new(), Vec::new());
        for site in sites {
            let logs = self.logs_of(site);
            for host in &site.hosts {
                match logs.iter().any(|log| log.scope == LogScope::All) {
                    true => by_host.push((host.clone(), Vec::new())),
                    false => skipped.push(host.clone()),
                }
            }
            for Log { name, scope } in logs {
                let hosts = match (scope, site.hosts.is_empty()) {
                    (LogScope::Named, _) => continue,
                    (LogScope::All, true) => {
                        others.push(name);
                        continue;
                    }
                    (LogScope::All, false) => site.hosts.clone(),
                    (LogScope::Hosts(hosts), _) => hosts,
                };
                for host in hosts {
                    match by_host.iter_mut().find(|(known, _)| *known == host) {
                        Some((_, names)) => names.push(name.clone()),
                        None => by_host.push((host, vec![name.clone()])),
                    }
                }
            }
        }
        skipped.retain(|host| !by_host.iter().any(|(known, _)| known == host));
        let mut names = Object::new();
        by_host.into_iter().for_each(|(host, own)| names.set(host, own));
        object.non_empty("logger_names", names);
        object.set_list("skip_hosts", skipped);
        let mut known = HashSet::new();
        others.retain(|name: &String| known.insert(name.clone()));
        match others.as_slice() {
            [name] if !name.is_empty() => object.set("default_logger_name", name.as_str()),
            [_] => {}
            [] => object.set_if("skip_unmapped_hosts", sites.iter().any(|site| site.hosts.is_empty())),
            // Caddy has room for one.
            _ => object.set_list("default_logger_names", others),
        }
    }

    /// The `log`s of a site. What each is in the model depends on the logs of the server: one that says nothing of itself is each
    /// of these, and others are in these too.
    fn logs_of(&self, site: &Site) -> Vec<Log> {
        let mut found = Vec::new();
        // The server has one name for accesses that are for no host in particular, so that all of these have it.
        let mut shared: Option<String> = None;
        let mut rest = &site.access_logs[..];
        while let Some(first) = rest.first() {
            let bare = self.server_logs_of(first, 0);
            if !bare.is_empty() && rest.starts_with(&bare) {
                rest = &rest[bare.len()..];
                let name = self.access_logs.borrow_mut().add_bare(first.name.as_deref());
                found.push(Log { name, scope: first.scope.clone() });
                continue;
            }
            let copies = self.server_logs_of(first, 1);
            rest = &rest[1..];
            rest = rest.strip_prefix(&copies[..]).unwrap_or(rest);
            let is_default = site.hosts.is_empty() && first.scope == LogScope::All && first.name.is_none();
            let mut logs = self.access_logs.borrow_mut();
            let name = match shared.clone().filter(|_| is_default) {
                Some(name) => {
                    logs.logs.push((name.clone(), LogConfig { scope: LogScope::All, ..first.clone() }));
                    name
                }
                None => logs.add(first),
            };
            if is_default {
                shared = Some(name.clone());
            }
            found.push(Log { name, scope: first.scope.clone() });
        }
        found
    }

    /// What an access log of this name and scope is in the logs of the server, but for so many of them.
    fn server_logs_of(&self, log: &LogConfig, but: usize) -> Vec<LogConfig> {
        let logger = log.name.as_ref().map_or("http.log.access".to_owned(), |name| format!("{ACCESS}{name}"));
        let fits = |selection: &LogSelection| selection.allows(&logger);
        let logs = self.config.global.server_logs().into_iter().skip(but).filter(|log| fits(&log.selection));
        logs.map(|server| LogConfig { name: log.name.clone(), scope: log.scope.clone(), ..server.config })
            .collect()
    }
}
