//! `php_server [MATCHER] { … }`: a whole site of PHP scripts and static files.
//!
//! In order: a worker with `match`; a redirect to the path with `/` when `{path}/INDEX` exists; a rewrite to the first
//! of `try_files` that exists; scripts to PHP; everything else a static file.
//!
//! Files that hold source code by another name, such as `x.php~` or `x.phtml`, count as missing; see
//! [protect folders](protect-folders.md).
//!
//! The options of `php`, and
//!
//! | option | default | meaning |
//! |---|---|---|
//! | `index FILE` \| `off` | index.php | the script of a directory, and of what no file is there for |
//! | `try_files FILE…` | {path} {path}/INDEX INDEX | |
//! | `file_server off` | | no static files |
//!
//! ```caddyfile
//! php_server {
//!     root public/
//!     worker public/index.php 8
//! }
//! ```

use super::{Directive, php};
use crate::call::Call;
use crate::context::Context;
use crate::matchers::Scope;
use crate::model::{FileServer, Handler, PhpServer, Template};
use crate::problems::{error, unknown_option};
use regent_caddyfile::{Error, Token};

pub(super) const DIRECTIVE: Directive = super::handler("php_server", parse);

/// What `php_server` has beside the options of `php`.
#[derive(Default)]
struct Options<'a> {
    index: Option<&'a Token>,
    try_files: Option<&'a [Token]>,
    no_files: bool,
}

fn parse(cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    if let Some(argument) = call.args.first() {
        // As FrankenPHP does (caddy/module.go, parsePhpServer).
        cx.warn(argument, "arguments of `php_server` have no effect; options stand in its block");
    }
    let mut block = php::Block::default();
    let mut options = Options::default();
    for option in call.options() {
        if !block.option(cx, &option) {
            let result = options.apply(&option);
            cx.check(result);
        }
    }
    let index = options
        .index
        .map_or(Some("index.php"), |token| Some(token.text.as_str()).filter(|text| *text != "off"));
    if let (None, Some([first, ..])) = (index, options.try_files) {
        cx.warn(first, "`try_files` does nothing with `index off`");
    }
    let php = block.finish(cx);
    let file_server = FileServer { root: php.root.clone(), hide: cx.hidden.clone(), ..FileServer::default() };
    Ok(Handler::PhpServer(PhpServer {
        try_files: index.map_or(Vec::new(), |index| options.files(index)),
        php,
        index: index.map(str::to_owned),
        file_server: (!options.no_files).then_some(file_server),
    }))
}

impl<'a> Options<'a> {
    fn apply(&mut self, option: &Call<'a>) -> Result<(), Error> {
        match option.name() {
            "index" => self.index = Some(option.one("index FILE | off")?),
            "try_files" => self.try_files = Some(option.some("try_files FILE…")?),
            "file_server" => {
                let token = option.one("file_server off")?;
                if token.text != "off" {
                    return Err(error(
                        token,
                        "in `php_server`, the file server can only be `off`; use `file_server` beside it",
                    ));
                }
                self.no_files = true;
            }
            _ => {
                let options: Vec<_> =
                    ["file_server", "index", "try_files"].iter().chain(php::OPTIONS).copied().collect();
                return Err(unknown_option(option.name, "php_server", &options, &[]));
            }
        }
        Ok(())
    }

    /// As FrankenPHP chooses them; without a file server, a file that exists is no reason to stop at it.
    fn files(&self, index: &str) -> Vec<Template> {
        if let Some(files) = self.try_files {
            return files.iter().map(|token| Template::parse(&token.text)).collect();
        }
        let own = (!self.no_files).then(|| "{path}".to_owned());
        let files = own.into_iter().chain([format!("{{path}}/{index}"), index.to_owned()]);
        files.map(|file| Template::parse(&file)).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{errors, handler, load};
    use crate::model::{Handler, PhpServer, Template};

    fn server(text: &str) -> PhpServer {
        match handler(text) {
            Handler::PhpServer(server) => server,
            other => panic!("{other:?}"),
        }
    }

    fn files(names: &[&str]) -> Vec<Template> {
        names.iter().map(|name| Template::parse(name)).collect()
    }

    #[test]
    fn defaults() {
        let server = server("php_server");
        assert_eq!(server.index.as_deref(), Some("index.php"));
        assert_eq!(server.try_files, files(&["{path}", "{path}/index.php", "index.php"]));
        assert!(server.file_server.is_some());
    }

    #[test]
    fn options() {
        let text = "php_server /app/* {\nroot /srv\nindex app.php\nfile_server off\n}";
        let found = server(text);
        assert_eq!(found.php.root, Some(Template::text("/srv")));
        assert_eq!(found.try_files, files(&["{path}/app.php", "app.php"]));
        assert_eq!(found.file_server, None);
        assert_eq!(
            server("php_server {\ntry_files {path} app.php\n}").try_files,
            files(&["{path}", "app.php"])
        );
        assert_eq!(server("php_server {\nroot /x\n}").file_server.unwrap().root, Some(Template::text("/x")));
    }

    #[test]
    fn index_off() {
        let found = server("php_server {\nindex off\n}");
        assert_eq!((found.index, found.try_files), (None, Vec::new()));
        let warnings = load(":80 {\nphp_server {\nindex off\ntry_files x\n}\n}").unwrap().warnings;
        assert_eq!(warnings[0].to_string(), "Caddyfile:4:11: `try_files` does nothing with `index off`");
    }

    #[test]
    fn arguments_are_ignored() {
        let loaded = load(":80 {\nphp_server frankenphp {\nindex x.php\n}\n}").unwrap();
        assert_eq!(loaded.warnings.len(), 1);
        assert!(loaded.warnings[0].to_string().starts_with("Caddyfile:2:12: arguments of `php_server`"));
        assert_eq!(server("php_server x y").index.as_deref(), Some("index.php"));
    }

    #[test]
    fn mistakes() {
        let found = errors("php_server {\nrot /x\nfile_server on\nindex\ntry_files\nnaem x\n}");
        assert!(found[0].contains("did you mean `root`?"), "{found:?}");
        assert_eq!(found.len(), 5);
    }
}
