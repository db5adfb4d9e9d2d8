//! `php` and `php_server`.
//!
//! `php` is FrankenPHP's handler, with Regent's own options beside FrankenPHP's. `php_server` keeps its name: FrankenPHP writes the routes that
//! it stands for, but those would also give out what Regent's directive holds back, such as copies of scripts.

use super::native;
use crate::Writer;
use crate::object::Object;
use crate::text::{text, texts};
use crate::words::Line;
use regent_config::{Delivery, HotReload, Php, PhpServer, Template, WorkerRef, escaped};

/// The variable of scripts that says where pages subscribe, and what its value begins with.
const HOT_RELOAD: &str = "FRANKENPHP_HOT_RELOAD";
const HUB: &str = "/.well-known/mercure?topic=";

impl Writer<'_> {
    pub(super) fn php(&self, php: &Php) -> Object {
        let Php { root, split_path, resolve_root_symlink, workers, delivery } = php;
        let mut handler = Object::handler("php");
        handler.set_some("root", root.as_ref().map(text));
        if *split_path != Php::default().split_path {
            handler.set_list("split_path", split_path.iter().cloned());
        }
        if *resolve_root_symlink != Php::default().resolve_root_symlink {
            handler.set("resolve_root_symlink", *resolve_root_symlink);
        }
        let hot_reload = self.hot_reload(delivery);
        let mut env = Object::new();
        own_variables(delivery, hot_reload).for_each(|(name, value)| env.set(name, text(value)));
        handler.non_empty("env", env);
        let workers = self.own_workers(workers);
        // From the first on that needs other words, all have them, so that their order stays.
        let is_plain =
            workers.iter().position(|worker| self.has_own_options(worker)).unwrap_or(workers.len());
        let (plain, own) = workers.split_at(is_plain);
        handler.set_list("workers", plain.iter().map(|worker| self.worker(worker)));
        handler.set_some(
            "hot_reload",
            hot_reload.map(|HotReload { hub: _, topic, watch }| {
                let mut object = Object::new();
                object.set("topic", escaped(topic));
                object.set_list("watch", watch.iter().map(|pattern| escaped(pattern)));
                object
            }),
        );
        let lines = native::options(&Delivery { env: Vec::new(), ..delivery.clone() }).into_iter();
        handler.set_list(
            "regent",
            lines.chain(own.iter().map(|worker| self.worker_line(worker))).map(Line::build),
        );
        handler
    }

    pub(super) fn php_server(&self, server: &PhpServer) -> Object {
        // The file server is that of the root, with what is hidden everywhere.
        let PhpServer { php, index, try_files, file_server } = server;
        let mut lines = self.php_lines(php);
        let usual = index.as_ref().map(|index| usual_files(index, file_server.is_some())).unwrap_or_default();
        match index.as_deref() {
            Some("index.php") => {}
            other => lines.push(Line::new(["index"]).word(other.unwrap_or("off"))),
        }
        let files = texts(try_files);
        if files != usual {
            lines.push(Line::new(["try_files"]).words(files));
        }
        if file_server.is_none() {
            lines.push(Line::new(["file_server", "off"]));
        }
        Line::new(["php_server"]).block(lines).handler()
    }

    fn php_lines(&self, php: &Php) -> Vec<Line> {
        let Php { root, split_path, resolve_root_symlink, workers, delivery } = php;
        let mut lines = Vec::new();
        lines.extend(root.as_ref().map(|root| Line::new(["root"]).word(text(root))));
        if *split_path != Php::default().split_path {
            lines.push(Line::new(["split_path"]).words(split_path.iter().cloned()));
        }
        if !resolve_root_symlink {
            lines.push(Line::new(["resolve_root_symlink", "false"]));
        }
        let hot_reload = self.hot_reload(delivery);
        let env = own_variables(delivery, hot_reload).cloned().collect();
        lines.append(&mut native::options(&Delivery { env, ..delivery.clone() }));
        lines.extend(self.own_workers(workers).into_iter().map(|worker| self.worker_line(worker)));
        lines.extend(hot_reload.map(|HotReload { hub: _, topic, watch }| {
            let topic = Line::new(["topic"]).word(escaped(topic));
            let watch = Line::new(["watch"]).words(watch.iter().map(|pattern| escaped(pattern)));
            Line::new(["hot_reload"]).block(vec![topic, watch])
        }));
        lines
    }

    /// What tells pages of changed files, by the topic that the variable of scripts has.
    fn hot_reload(&self, delivery: &Delivery) -> Option<&HotReload> {
        let (_, url) = delivery.env.iter().find(|(name, _)| name == HOT_RELOAD)?;
        let topic = url.as_text()?.strip_prefix(HUB)?;
        self.config.global.hot_reloads.iter().find(|reload| query_escaped(&reload.topic) == topic)
    }

    /// Those of this block, and not of the whole server.
    fn own_workers<'w>(&self, workers: &'w [WorkerRef]) -> Vec<&'w WorkerRef> {
        workers.iter().filter(|worker| !self.is_global(worker.id)).collect()
    }
}

/// Without the one that stands for `hot_reload`. Of several with one name, the last counts.
fn own_variables<'d>(
    delivery: &'d Delivery,
    hot_reload: Option<&HotReload>,
) -> impl Iterator<Item = &'d (String, Template)> {
    delivery.env.iter().filter(move |(name, _)| hot_reload.is_none() || name != HOT_RELOAD)
}

fn usual_files(index: &str, has_files: bool) -> Vec<String> {
    const PATH: &str = "{http.request.uri.path}";
    let own = has_files.then(|| PATH.to_owned());
    own.into_iter().chain([format!("{PATH}/{index}"), index.to_owned()]).collect()
}

/// As a value within a query.
fn query_escaped(text: &str) -> String {
    let escaped = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        b' ' => "+".to_owned(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(escaped).collect()
}
