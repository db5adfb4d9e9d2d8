//! `transport fastcgi`: what a FastCGI server is to run for a request.

use crate::context::exchange::Exchange;
use crate::context::target::PhpTarget;
use crate::error::BuildError;
use crate::paths::root;
use crate::paths::script::Split;
use crate::paths::url_path;
use crate::templates::root_source::RootSource;
use crate::templates::text::Text;
use http::{StatusCode, Uri};
use regent_config as config;

/// The compiled transport.
pub(crate) struct FastCgi {
    root: RootSource,
    split: Split,
    env: Vec<(String, Text)>,
    resolve_root_symlink: bool,
}

impl FastCgi {
    pub(crate) fn compile(fastcgi: &config::FastCgi) -> Result<Self, BuildError> {
        Ok(Self {
            root: RootSource::compile(fastcgi.root.as_ref())?,
            split: Split::new(&fastcgi.split),
            env: fastcgi.env.iter().map(|(name, value)| (name.clone(), Text::compile(value))).collect(),
            resolve_root_symlink: fastcgi.resolve_root_symlink,
        })
    }

    /// Whether there is such a file only the FastCGI server knows: it may have another file system.
    pub(crate) fn script(&self, exchange: &Exchange, uri: &Uri) -> Result<PhpTarget, StatusCode> {
        let root = self.root.resolve(exchange).ok_or(StatusCode::BAD_REQUEST)?;
        // The other server has its own idea of what is current, so links are followed for each request, as in Caddy.
        let resolved = if self.resolve_root_symlink { root.resolved_now() } else { None };
        let prefix = resolved.as_deref().unwrap_or(root.prefix());
        let normal = url_path::normalize(uri.path()).map_err(|_| StatusCode::BAD_REQUEST)?;
        let path = normal.as_deref().unwrap_or(uri.path().as_bytes());
        let (script, path_info) = path.split_at(self.split.position(path).unwrap_or(path.len()));
        let path_info = match path_info {
            [] => remainder(exchange, script),
            own => own,
        };
        let mut target = PhpTarget::new(None, root::join(prefix, script), prefix.len(), path_info);
        let rendered =
            |(name, value): &(String, Text)| (name.clone(), value.render_str(exchange).into_owned());
        // A name that was proved (RFC 3875 §4.1.11).
        let user = exchange.user().map(|user| ("REMOTE_USER".to_owned(), user.to_owned()));
        target.delivery.env = user.into_iter().chain(self.env.iter().map(rendered)).collect();
        Ok(target)
    }
}

/// What a rewrite to a file has cut off behind its name, as `php_fastcgi` does.
fn remainder<'a>(exchange: &'a Exchange, script: &[u8]) -> &'a [u8] {
    let found = exchange.file_match().filter(|found| found.relative == script);
    found.map_or(&[], |found| &found.remainder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::exchange::tests::get;
    use crate::context::found::{FileKind, FileMatch};
    use config::Template;

    fn script_of(split: &[&str], exchange: &Exchange) -> Result<PhpTarget, StatusCode> {
        let fastcgi = config::FastCgi {
            root: Some(Template::text("/srv/app/")),
            split: split.iter().map(|ending| (*ending).to_owned()).collect(),
            env: vec![("HOST".into(), Template(vec![config::Part::Placeholder("http.request.host".into())]))],
            ..config::FastCgi::default()
        };
        FastCgi::compile(&fastcgi).unwrap().script(exchange, &exchange.uri)
    }

    /// File, name and path info.
    fn script(uri: &str) -> (String, String, String) {
        let target = script_of(&[".php"], &get(uri)).unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (target.script_filename().display().to_string(), text(target.script_name()), text(target.path_info()))
    }

    #[test]
    fn the_path_is_cut_behind_a_whole_segment_of_its_normal_form() {
        for (uri, file, name, info) in [
            ("/index.php", "/srv/app/index.php", "/index.php", ""),
            ("/a/x.php/rest?q", "/srv/app/a/x.php", "/a/x.php", "/rest"),
            ("/x.php/y.php", "/srv/app/x.php", "/x.php", "/y.php"),
            ("/x.phpfoo", "/srv/app/x.phpfoo", "/x.phpfoo", ""),
            ("/../../etc/passwd", "/srv/app/etc/passwd", "/etc/passwd", ""),
            ("/..%2f..%2fx.php", "/srv/app/x.php", "/x.php", ""),
            ("/x.php%2Fa%20b", "/srv/app/x.php", "/x.php", "/a b"),
            // CVE-2019-11043: a line end must not make the path info vanish.
            ("/index.php/%0a", "/srv/app/index.php", "/index.php", "/\n"),
        ] {
            assert_eq!(script(uri), (file.into(), name.into(), info.into()), "{uri}");
        }
    }

    #[test]
    fn without_endings_the_whole_path_is_a_script() {
        let target = script_of(&[], &get("/x.php/rest")).unwrap();
        assert_eq!((target.script_name(), target.path_info()), (&b"/x.php/rest"[..], &b""[..]));
    }

    #[test]
    fn what_a_rewrite_cut_off_is_the_path_info() {
        let mut exchange = get("/index.php/a");
        exchange.set_file_match(FileMatch {
            relative: b"/index.php".to_vec(),
            absolute: b"/srv/app/index.php".to_vec(),
            kind: FileKind::File,
            remainder: b"/a".to_vec(),
        });
        exchange.rewrite_path(b"/index.php").unwrap();
        assert_eq!(script_of(&[".php"], &exchange).unwrap().path_info(), b"/a");
        exchange.rewrite_path(b"/other.php").unwrap();
        assert_eq!(script_of(&[".php"], &exchange).unwrap().path_info(), b"");
    }

    #[test]
    fn paths_that_mean_something_else_to_c_are_refused_and_variables_are_rendered() {
        let mut exchange = get("/x.php");
        let nul = "/x.php%00.jpg".parse::<Uri>().unwrap();
        let fastcgi = FastCgi::compile(&config::FastCgi::default()).unwrap();
        exchange.set_root(std::sync::Arc::new(root::Root::new("/srv".as_ref()).unwrap()));
        assert_eq!(fastcgi.script(&exchange, &nul), Err(StatusCode::BAD_REQUEST));
        assert_eq!(script_of(&[], &exchange).unwrap().delivery.env[0].0, "HOST");
    }
}
