//! The app `tls`, and what connection policies of servers say: `tls` lines of sites, and global options.

mod app;
mod connection;
mod issuer;

pub(crate) use app::{options, pki};

use crate::document::Node;
use crate::reader::{Kind, Reader, block, line, word};
use regent_caddyfile::{Line, Token};

/// What is known of certificates before servers are read.
#[derive(Default)]
pub(crate) struct Tls<'a> {
    /// `certificates.load_files`.
    files: &'a [Node],
    folders: &'a [Node],
    /// Names that have certificates of their own, whatever wildcards there are.
    automated: &'a [Node],
    /// `automation.policies`.
    policies: &'a [Node],
}

impl<'a> Tls<'a> {
    /// Mistakes in it are told by [`options`].
    pub fn of(app: Option<&'a Node>) -> Self {
        let certificates = app.and_then(|app| app.get("certificates"));
        let items = |node: Option<&'a Node>, key: &str| {
            node.and_then(|node| node.get(key)).map(Node::items).unwrap_or_default()
        };
        Self {
            files: items(certificates, "load_files"),
            folders: items(certificates, "load_folders"),
            automated: items(certificates, "automate"),
            policies: items(app.and_then(|app| app.get("automation")), "policies"),
        }
    }

    /// The `tls` lines of a host; an empty one stands for any.
    pub fn of_host(&self, r: &mut Reader, connection_policies: &[Node], host: &Token) -> Vec<Line> {
        let connection = connection_policies.iter().find(|policy| connection::is_for(policy, &host.text));
        let mut options = connection.map(|policy| connection::options(r, policy)).unwrap_or_default();
        let policy = self.policy(&host.text);
        let is_own = policy.is_some_and(|policy| policy.get("subjects").is_some());
        let mut lines = self.files(r, connection, is_own);
        if lines.is_empty() {
            options.extend(policy.map(|policy| automation(r, policy)).unwrap_or_default());
        }
        if let Some(node) = self.automated.iter().find(|node| node.as_text() == Some(host.text.as_str())) {
            options.push(line(node, "force_automate", Vec::new()));
        }
        if let Some(first) = options.first() {
            let name = Token { text: "tls".to_owned(), ..first.name.clone() };
            lines.push(Line { name, args: Vec::new(), block: Some(options) });
        }
        lines
    }

    /// The names of `certificates.automate` that are no hosts.
    pub fn automated_but(&self, is_host: &dyn Fn(&str) -> bool) -> Vec<Token> {
        let names = self.automated.iter().filter_map(|node| Some((node, node.as_text()?)));
        names.filter(|(_, name)| !is_host(name)).map(|(node, name)| word(node, name)).collect()
    }

    /// Reports names that have a certificate without a site, which Regent makes none for.
    pub fn check_names(&self, r: &mut Reader, is_host: impl Fn(&str) -> bool) {
        for name in self.automated.iter().filter(|name| name.as_text().is_some_and(|name| !is_host(name))) {
            r.error(name, "Regent makes certificates for the names of its sites: write a route with this host, or leave the name out");
        }
    }

    /// The first that is for the name (modules/caddytls/tls.go, getAutomationPolicyForName).
    fn policy(&self, host: &str) -> Option<&'a Node> {
        self.policies.iter().find(|policy| match policy.get("subjects").map(Node::items) {
            None | Some([]) => true,
            Some(subjects) => {
                subjects.iter().filter_map(Node::as_text).any(|subject| is_matched(host, subject))
            }
        })
    }

    /// The files that a connection policy chooses; without a choice, those that nobody else's choice is about.
    fn files(&self, r: &mut Reader, connection: Option<&Node>, has_policy: bool) -> Vec<Line> {
        let chosen = connection
            .and_then(|policy| policy.get("certificate_selection"))
            .map(|node| connection::tags(r, node));
        let fits = |file: &&Node| match &chosen {
            Some(tags) => tags.iter().any(|tag| has_tag(file, &tag.text)),
            None => !has_policy && file.get("tags").is_none_or(|tags| tags.items().is_empty()),
        };
        let mut lines: Vec<_> = self.files.iter().filter(fits).filter_map(|file| pair(r, file)).collect();
        if let (true, [first, ..]) = (chosen.is_none() && !has_policy, self.folders) {
            let folders = self.folders.iter().filter_map(|folder| r.text(folder)).collect();
            lines.push(block(first, "tls", Vec::new(), vec![line(first, "load", folders)]));
        }
        lines
    }
}

/// As certmagic's MatchWildcard: an asterisk stands for one label. Either may be written in Unicode.
fn is_matched(host: &str, subject: &str) -> bool {
    if !(host.is_ascii() && subject.is_ascii()) {
        let ascii = |name: &str| idna::domain_to_ascii(name).ok();
        return ascii(host).zip(ascii(subject)).is_some_and(|(host, subject)| is_matched(&host, &subject));
    }
    if host.eq_ignore_ascii_case(subject) {
        return true;
    }
    let parent = subject.strip_prefix("*.");
    parent
        .is_some_and(|parent| host.split_once('.').is_some_and(|(_, rest)| rest.eq_ignore_ascii_case(parent)))
}

fn has_tag(file: &Node, tag: &str) -> bool {
    file.get("tags").map(Node::items).unwrap_or_default().iter().any(|own| own.as_text() == Some(tag))
}

/// `tls CERT KEY`.
fn pair(r: &mut Reader, file: &Node) -> Option<Line> {
    let fields = r.object(file);
    let certificate = fields.take("certificate").and_then(|node| r.text(node));
    let key = fields.take("key").and_then(|node| r.text(node));
    Some(line(file, "tls", vec![certificate?, key?]))
}

/// What a policy says of how certificates are made.
fn automation(r: &mut Reader, policy: &Node) -> Vec<Line> {
    let fields = r.object(policy);
    let mut lines =
        r.options(&fields, &[("key_type", "key_type", Kind::Text), ("on_demand", "on_demand", Kind::Flag)]);
    lines.append(&mut issuer::all(r, fields.take("issuers")));
    lines
}
