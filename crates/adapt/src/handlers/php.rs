//! `php` and `php_server`.

use super::native;
use crate::Writer;
use crate::object::Object;
use crate::text::{text, texts};
use crate::words::Line;
use regent_config::{Php, PhpServer};

impl Writer<'_> {
    pub(super) fn php(&self, php: &Php) -> Object {
        Line::new(["php"]).block(self.php_lines(php)).handler()
    }

    pub(super) fn php_server(&self, server: &PhpServer) -> Object {
        let PhpServer { php, index, try_files, file_server } = server;
        let mut lines = self.php_lines(php);
        lines.push(Line::new(["index"]).word(index.as_deref().unwrap_or("off")));
        if index.is_some() {
            lines.push(Line::new(["try_files"]).words(texts(try_files)));
        }
        if file_server.is_none() {
            lines.push(Line::new(["file_server", "off"]));
        }
        Line::new(["php_server"]).block(lines).handler()
    }

    fn php_lines(&self, php: &Php) -> Vec<Line> {
        let Php { root, split_path, resolve_root_symlink, workers: _, delivery } = php;
        let mut lines = Vec::new();
        lines.extend(root.as_ref().map(|root| Line::new(["root"]).word(text(root))));
        if *split_path != Php::default().split_path {
            lines.push(Line::new(["split_path"]).words(split_path.iter().cloned()));
        }
        if !resolve_root_symlink {
            lines.push(Line::new(["resolve_root_symlink", "false"]));
        }
        lines.append(&mut native::options(delivery));
        lines
    }
}
