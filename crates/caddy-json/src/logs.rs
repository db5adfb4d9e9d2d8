//! `logging.logs`, and `logs` of servers: logs of the server and of sites.
//!
//! Caddy's adapter makes two parts of a site's `log`: a name that the server writes its accesses to, and a log that includes
//! `http.log.access.NAME` alone. Here they become one line again.

mod encoder;
mod writer;

use crate::document::{Node, Value};
use crate::reader::{Kind, Reader, block, line, word};
use crate::servers::Site;
use regent_caddyfile::{Line, Token};

/// What access logs with a name are called.
const ACCESS: &str = "http.log.access.";

/// All logs of the document.
#[derive(Default)]
pub(crate) struct Logs<'a> {
    logs: Vec<Log<'a>>,
}

struct Log<'a> {
    name: &'a str,
    node: &'a Node,
    /// The name of the accesses that it has, if it has these alone.
    accesses: Option<&'a str>,
}

impl<'a> Logs<'a> {
    pub fn of(r: &mut Reader, logging: Option<&'a Node>) -> Self {
        let Some(logging) = logging else { return Self::default() };
        let fields = r.object(logging);
        if let Some(sink) = fields.take("sink") {
            r.error(
                sink,
                "`sink` is not built yet in Regent: what libraries print goes to the standard error",
            );
        }
        let node = fields.take("logs");
        fields.finish(r, "`logging`");
        let Some(node) = node else { return Self::default() };
        r.object(node);
        let log = |member: &'a crate::document::Member| {
            let included = member.value.get("include").map(Node::items).unwrap_or_default();
            let accesses = match included {
                [only] => only.as_text().and_then(|name| name.strip_prefix(ACCESS)),
                _ => None,
            };
            Log { name: &member.name, node: &member.value, accesses }
        };
        Self { logs: node.members().iter().map(log).collect() }
    }

    /// The logs of the whole server.
    pub fn options(&self, r: &mut Reader) -> Vec<Line> {
        let mut lines = Vec::new();
        for log in self.logs.iter().filter(|log| log.accesses.is_none()) {
            let mut options = options(r, log.node);
            let is_own = |name: &str| self.logs.iter().any(|log| log.accesses == name.strip_prefix(ACCESS));
            for option in
                options.iter_mut().filter(|option| log.name == "default" && option.name.text == "exclude")
            {
                // Regent's own log has no lines of access logs that go somewhere else.
                option.args.retain(|name| !name.text.starts_with(ACCESS) || !is_own(&name.text));
            }
            options.retain(|option| option.name.text != "exclude" || !option.args.is_empty());
            let name = Some(word(log.node, log.name)).filter(|name| name.text != "default");
            if name.is_some() || !options.is_empty() {
                lines.push(block(log.node, "log", name.into_iter().collect(), options));
            }
        }
        lines
    }

    /// The `log` lines of a site; `logs` is what its server says.
    pub fn of_site(&self, r: &mut Reader, logs: Option<&Node>, site: &Site, sites: &[Site]) -> Vec<Line> {
        let mut lines = Vec::new();
        let Some(node) = logs else { return lines };
        let server = ServerLogs::read(r, node);
        let mut scopes: Vec<(Vec<Token>, Vec<String>)> = Vec::new();
        for (host, names) in server.of(&site.hosts, sites) {
            match scopes.iter_mut().find(|(_, known)| *known == names) {
                Some((hosts, _)) => hosts.push(host),
                None => scopes.push((vec![host], names)),
            }
        }
        let is_one = scopes.len() == 1;
        for (hosts, names) in &scopes {
            for name in names {
                let hosts: Vec<_> = hosts.iter().filter(|host| !host.text.is_empty()).cloned().collect();
                let scope = (!is_one && !hosts.is_empty()).then(|| line(node, "hostnames", hosts));
                lines.extend(self.access_logs(r, node, name, scope));
            }
        }
        let mapped: Vec<_> = scopes.iter().flat_map(|(_, names)| names).cloned().collect();
        for name in named_in(&site.lines).into_iter().filter(|name| !mapped.contains(&name.text)) {
            let scope = line(node, "no_hostname", Vec::new());
            lines.extend(self.access_logs(r, node, &name.text, Some(scope)));
        }
        lines
    }

    /// `log [NAME] { … }` of a site, for each log that has the accesses of this name.
    fn access_logs(&self, r: &mut Reader, node: &Node, name: &str, scope: Option<Line>) -> Vec<Line> {
        let own: Vec<_> = self.logs.iter().filter(|log| log.accesses == Some(name)).map(Some).collect();
        let own = if own.is_empty() { vec![None] } else { own };
        own.into_iter().map(|own| access_log(r, node, name, own, scope.clone())).collect()
    }
}

/// `None`: the accesses go where those of the server go.
fn access_log(r: &mut Reader, node: &Node, name: &str, own: Option<&Log<'_>>, scope: Option<Line>) -> Line {
    let mut options = own.map(|log| options(r, log.node)).unwrap_or_default();
    options.retain(|option| !matches!(option.name.text.as_str(), "include" | "exclude"));
    let is_bare = options.is_empty();
    if let (true, Some(log)) = (is_bare, own) {
        // A log that says nothing of itself goes its own way all the same.
        options.push(line(log.node, "output", vec![word(log.node, "stderr")]));
    }
    options.extend(scope);
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    // Those that Caddy has numbered had no name in their Caddyfile, and those that Regent has were not the first of theirs.
    let is_numbered = name.strip_prefix("log").is_some_and(is_number);
    let name = name.rsplit_once('#').filter(|(_, number)| is_number(number)).map_or(name, |(name, _)| name);
    let name = Some(word(node, name)).filter(|name| !name.text.is_empty() && !is_numbered);
    block(own.map_or(node, |log| log.node), "log", name.into_iter().collect(), options)
}

/// What a server says of its logs.
struct ServerLogs {
    defaults: Vec<String>,
    /// By host, in lower case.
    names: Vec<(String, Vec<String>)>,
    skipped: Vec<Token>,
    skips_others: bool,
}

impl ServerLogs {
    fn read(r: &mut Reader, node: &Node) -> Self {
        let fields = r.object(node);
        let default = fields.take("default_logger_name").and_then(|node| r.text(node)).map(|name| name.text);
        // Regent's own: Caddy has room for one.
        let defaults = fields.take("default_logger_names").map(|node| r.texts(node));
        let defaults = defaults.map(|names| names.into_iter().map(|name| name.text).collect());
        let defaults = defaults.unwrap_or_else(|| vec![default.unwrap_or_default()]);
        let mut names = Vec::new();
        if let Some(node) = fields.take("logger_names") {
            r.object(node);
            for member in node.members() {
                let own = match member.value.value {
                    Value::Text(_) => r.text(&member.value).into_iter().collect(),
                    _ => r.texts(&member.value),
                };
                names.push((member.name.to_lowercase(), own.into_iter().map(|name| name.text).collect()));
            }
        }
        let skipped = fields.take("skip_hosts").map(|node| r.texts(node)).unwrap_or_default();
        let skips_others = fields.take("skip_unmapped_hosts").is_some_and(|node| r.bool(node));
        // These are options of the server.
        for key in ["should_log_credentials", "trace"] {
            fields.take(key);
        }
        fields.finish(r, "`logs`");
        Self { defaults, names, skipped, skips_others }
    }

    /// The names that the accesses of each host go to. A site for any host has those that no other site has, too.
    fn of(&self, hosts: &[Token], sites: &[Site]) -> Vec<(Token, Vec<String>)> {
        let mut found: Vec<_> = hosts.iter().map(|host| (host.clone(), self.of_host(&host.text))).collect();
        if let Some(any) = hosts.iter().find(|host| host.text.is_empty()) {
            let is_elsewhere =
                |name: &str| sites.iter().flat_map(|site| &site.hosts).any(|host| host.text == name);
            for (name, own) in self.names.iter().filter(|(name, _)| !is_elsewhere(name)) {
                found.push((Token { text: name.clone(), ..any.clone() }, own.clone()));
            }
        }
        found
    }

    fn of_host(&self, host: &str) -> Vec<String> {
        // Caddy's adapter writes the port behind the host where it is not a usual one.
        let bare = |name: &str| name.rsplit_once(':').map_or(name, |(name, _)| name).to_lowercase();
        let is_same = |skipped: &Token| {
            skipped.text.eq_ignore_ascii_case(host) || bare(&skipped.text) == host.to_lowercase()
        };
        if self.skipped.iter().any(is_same) {
            return Vec::new();
        }
        let covers = |name: &str| {
            let parent = name.strip_prefix("*.");
            parent.is_some_and(|parent| host.split_once('.').is_some_and(|(_, rest)| rest == parent))
        };
        let exact = self.names.iter().find(|(name, _)| *name == host.to_lowercase());
        match exact.or_else(|| self.names.iter().find(|(name, _)| covers(name))) {
            Some((_, names)) => names.clone(),
            None if self.skips_others => Vec::new(),
            None => self.defaults.clone(),
        }
    }
}

/// The names that `log_name` gives to accesses of a site.
fn named_in(lines: &[Line]) -> Vec<Token> {
    let mut names: Vec<Token> = Vec::new();
    for line in lines {
        let own = if line.name.text == "log_name" { &line.args[1..] } else { &[] };
        let inner = line.block.as_deref().map(named_in).unwrap_or_default();
        for name in own.iter().cloned().chain(inner) {
            if !name.text.is_empty()
                && !name.text.contains('{')
                && !names.iter().any(|known| known.text == name.text)
            {
                names.push(name);
            }
        }
    }
    names
}

/// The options of `log`.
fn options(r: &mut Reader, node: &Node) -> Vec<Line> {
    let fields = r.object(node);
    let mut lines = r.options(
        &fields,
        &[
            ("level", "level", Kind::Text),
            ("include", "include", Kind::Texts),
            ("exclude", "exclude", Kind::Texts),
        ],
    );
    lines.extend(fields.take("writer").and_then(|node| writer::read(r, node)));
    lines.extend(fields.take("encoder").and_then(|node| encoder::read(r, node, "format")));
    lines.extend(fields.take("core").map(|node| line(node, "core", Vec::new())));
    if let Some(node) = fields.take("sampling") {
        let own = r.object(node);
        let table = [
            ("interval", "interval", Kind::Duration),
            ("first", "first", Kind::Number),
            ("thereafter", "thereafter", Kind::Number),
        ];
        let options = r.options(&own, &table);
        own.finish(r, "`sampling`");
        lines.push(block(node, "sampling", Vec::new(), options));
    }
    for key in ["with_caller", "with_caller_skip", "with_stacktrace"] {
        if let Some(node) = fields.take(key).filter(|node| !matches!(node.value, Value::Bool(false))) {
            r.warn(
                node,
                format_args!(
                    "`{key}` has no effect: no line of Regent says where in its source it comes from"
                ),
            );
        }
    }
    fields.finish(r, "a log");
    lines
}
