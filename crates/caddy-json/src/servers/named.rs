//! `named_routes` of servers. In a Caddyfile they are the whole file's; two servers may have different ones of a name.

use crate::document::Node;
use crate::reader::{Reader, word};
use crate::routes;
use regent_caddyfile::{File, Line, NamedRoute};

/// Those of all servers so far, with the names that they have in the tree.
#[derive(Default)]
pub(crate) struct Names {
    routes: Vec<NamedRoute>,
    /// Server, name, and the name in the tree.
    names: Vec<(String, String, String)>,
}

impl Names {
    pub(super) fn declare(&mut self, r: &mut Reader, node: Option<&Node>, server: &str) {
        let Some(node) = node else { return };
        r.object(node);
        for member in node.members() {
            let lines = routes::of_named(r, &member.value);
            // Caddy's adapter gives each server those that it invokes, which are the same if their text is.
            let same = |route: &&NamedRoute| shown(&route.lines) == shown(&lines);
            let of_name = self.names.iter().filter(|(_, name, _)| *name == member.name);
            let known = of_name.map(|(.., own)| own.clone()).find(|own| {
                self.routes.iter().filter(|route| route.name.text == *own).any(|route| same(&route))
            });
            let own = known.unwrap_or_else(|| {
                let taken = self.routes.iter().any(|route| route.name.text == member.name);
                let own = if taken { format!("{server}/{}", member.name) } else { member.name.clone() };
                self.routes.push(NamedRoute { name: word(&member.value, &own), lines });
                own
            });
            self.names.push((server.to_owned(), member.name.clone(), own));
        }
        // Routes may invoke each other.
        let mut routes = std::mem::take(&mut self.routes);
        let own = self
            .names
            .iter()
            .filter(|(of, ..)| of == server)
            .map(|(.., own)| own.clone())
            .collect::<Vec<_>>();
        for route in routes.iter_mut().filter(|route| own.contains(&route.name.text)) {
            self.rename(route.lines.iter_mut(), server);
        }
        self.routes = routes;
    }

    /// Puts the names in the tree in.
    pub(super) fn rename<'l>(&self, lines: impl Iterator<Item = &'l mut Line>, server: &str) {
        for line in lines {
            if line.name.text == "invoke" {
                for word in &mut line.args {
                    let found = self.names.iter().find(|(of, name, _)| of == server && *name == word.text);
                    word.text = found.map_or_else(|| word.text.clone(), |(.., own)| own.clone());
                }
            }
            if let Some(block) = &mut line.block {
                self.rename(block.iter_mut(), server);
            }
        }
    }

    pub(super) fn finish(self, file: &mut File) {
        file.named_routes = self.routes;
    }
}

/// The words of lines, without their places.
fn shown(lines: &[Line]) -> String {
    let mut text = String::new();
    for line in lines {
        let words = std::iter::once(&line.name).chain(&line.args).map(|token| token.text.as_str());
        text.extend(words.map(|word| format!("{word:?} ")));
        text.push_str(&line.block.as_deref().map_or(String::new(), |block| format!("{{{}}}", shown(block))));
        text.push('\n');
    }
    text
}
