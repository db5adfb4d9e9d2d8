//! `native [MATCHER] LIBRARY { … }`: what reaches it is answered by a compiled module.
//!
//! The module's routes see the path as it stands after rewrites, so within `handle_path /api/*` they see it without
//! `/api`. Every directive is a service: the library with a configuration, routes and threads of its own. Of several that
//! fit a request, the one with the most specific path counts; `php` and `php_server` come after all of them.
//!
//! | option | default | meaning |
//! |---|---|---|
//! | `threads N` | one per core, at most `max_threads` | threads at start |
//! | `max_threads N` | `threads`, or without it as many as the memory allows | threads that scaling may reach |
//! | `max_connections N` | no bound | requests that may be with the service at once, waiting ones among them; more get 503 |
//! | `inline` | | handlers that declare that they never block run in the server, without a hand-off; a crash or a hang of theirs is then the server's |
//! | `name TEXT` | the file's name without `lib` and `.so` | in lists and metrics; no two services or workers share one |
//! | `config NAME VALUE…`, or a block | | for the module to read, once for each value |
//! | `env NAME VALUE`, or a block | | variables of the request |
//! | `request_body_timeout DURATION` | the server's `read_body` | longest silence within a request body; 0: no limit |
//! | `request_buffering on` \| `off` | on | a thread gets the request when its body is complete, in memory or a file; see `spool.rs` |
//! | `deadline DURATION` | that of the [directive](#deadline) | soft real-time limit |
//! | `retry [METHOD…]` \| `off` | that of the [directive](#retry) | which requests are run once more when their engine dies |
//! | `lane NAME` \| `off` | that of the [directive](#lane) | lane |
//! | `trust_client_address` | off | REMOTE_ADDR, HTTPS and others say what a trusted proxy says of its client; see `servers.rs` |
//!
//! The library's path is relative to the file that names it. A single argument is always the library, so that
//! `native /srv/libhello.so` takes all requests.
//!
//! ```caddyfile
//! native /api/* modules/libhello.so {
//!     threads 4
//!     max_threads 64
//!     config greeting "Good day"
//! }
//! ```

use super::{Directive, Matchers, Parse};
use crate::call::Call;
use crate::context::Context;
use crate::matchers::Scope;
use crate::model::{Delivery, Handler, Inline, Native, NativeService};
use crate::problems::{error, unknown_option};
use crate::{delivery, native, values};
use regent_caddyfile::{Error, Token};
use std::path::PathBuf;

pub(super) const DIRECTIVE: Directive = Directive {
    name: "native",
    sorts_as: "native",
    matchers: Matchers::FirstOfTwo,
    parse: Parse::Handler(parse),
};

const SYNTAX: &str = "native [MATCHER] LIBRARY { OPTION… }";
const OPTIONS: &[&str] = &[
    "config",
    "deadline",
    "env",
    "inline",
    "lane",
    "max_connections",
    "max_threads",
    "name",
    "request_body_timeout",
    "request_buffering",
    "threads",
    "trust_client_address",
];

/// A block as written.
#[derive(Default)]
struct Options<'a> {
    name: Option<&'a Token>,
    threads: Option<u16>,
    /// With its place.
    max_threads: Option<(&'a Token, u16)>,
    max_connections: Option<u32>,
    inline: Inline,
    config: Vec<(String, String)>,
    delivery: Delivery,
}

fn parse(cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    let mut options = Options::default();
    for option in call.options() {
        options.take(cx, &option);
    }
    cx.check(options.check_max_threads());
    let [library] = call.args else { return Err(call.wrong_arguments(1, SYNTAX)) };
    let file = native::library(cx, library)?;
    let name = options.name;
    let (service, delivery) = options.finish(file);
    let service = cx.native.add(service, name);
    let service = service.ok_or_else(|| error(call.name, "there are too many native services"))?;
    Ok(Handler::Native(Native { service, delivery }))
}

impl<'a> Options<'a> {
    /// Takes a line in, and notes its mistakes.
    fn take(&mut self, cx: &mut Context<'_>, option: &Call<'a>) {
        match option.name() {
            "config" => native::settings(cx, option, &mut self.config),
            _ if delivery::option(cx, option, &mut self.delivery) => {}
            _ => {
                let result = self.apply(option);
                cx.check(result);
            }
        }
    }

    fn apply(&mut self, option: &Call<'a>) -> Result<(), Error> {
        match option.name() {
            "threads" => self.threads = Some(threads(option.one("threads N")?, "threads")?),
            "max_threads" => {
                let token = option.one("max_threads N")?;
                self.max_threads = Some((token, threads(token, "max_threads")?));
            }
            "max_connections" => {
                let token = option.one("max_connections N")?;
                self.max_connections = Some(values::integer(token, 1..=u32::MAX, "max_connections")?);
            }
            "inline" => {
                option.exactly::<0>("inline")?;
                self.inline = Inline::Allowed;
            }
            "name" => self.name = Some(given_name(option.one("name TEXT")?)?),
            _ => return Err(unknown_option(option.name, "native", OPTIONS, &[])),
        }
        Ok(())
    }

    /// The service, without its name.
    fn finish(self, file: PathBuf) -> (NativeService, Delivery) {
        let service = NativeService {
            name: String::new(),
            file,
            config: self.config,
            threads: self.threads,
            max_threads: self.max_threads.map(|(_, most)| most),
            max_connections: self.max_connections,
            inline: self.inline,
        };
        (service, self.delivery)
    }

    fn check_max_threads(&self) -> Result<(), Error> {
        match (self.max_threads, self.threads) {
            (Some((token, most)), Some(threads)) if most < threads => {
                Err(error(token, format!("`max_threads` is {most}, less than `threads`, which is {threads}")))
            }
            _ => Ok(()),
        }
    }
}

fn threads(token: &Token, option: &str) -> Result<u16, Error> {
    values::integer(token, 1..=u16::MAX, option)
}

fn given_name(token: &Token) -> Result<&Token, Error> {
    if token.text.is_empty() { Err(error(token, "a service's name cannot be empty")) } else { Ok(token) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{
        ClientAddress, LaneChoice, NativeGlobal, NativeId, NativeModule, RequestBuffering, Template,
    };
    use crate::{Config, Environment, Errors, Loaded};
    use std::collections::BTreeMap;
    use std::path::Path;
    use std::time::Duration;

    const FILES: &[&str] = &["libhello.so", "modules/libdb.so.2", "modules/other.so", "worker.php"];

    /// Loads a Caddyfile that stands beside some libraries, with a working directory elsewhere.
    fn load(text: &str) -> (Result<Loaded, Errors>, tempfile::TempDir) {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("modules")).unwrap();
        FILES.iter().for_each(|file| std::fs::write(directory.path().join(file), "").unwrap());
        let variables = BTreeMap::from([("HERE".to_owned(), directory.path().display().to_string())]);
        let environment = Environment { variables, current_dir: "/elsewhere".into() };
        (crate::parse("Caddyfile", text, directory.path(), &environment), directory)
    }

    fn config(text: &str) -> (Config, tempfile::TempDir) {
        let (loaded, directory) = load(text);
        (loaded.unwrap_or_else(|errors| panic!("{errors}")).config, directory)
    }

    fn names(directives: &str) -> Vec<String> {
        let services = config(&format!(":80 {{\n{directives}\n}}")).0.global.native.services;
        services.into_iter().map(|service| service.name).collect()
    }

    fn errors(text: &str) -> Vec<String> {
        let errors = load(text).0.err().map_or(Vec::new(), |errors| errors.0);
        errors.into_iter().map(|error| error.message).collect()
    }

    fn site_errors(directives: &str) -> Vec<String> {
        errors(&format!(":80 {{\n{directives}\n}}"))
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn options() {
        let (config, directory) = config(
            "{\nregent {\nmodule modules/libdb.so.2 {\nconfig size 4\n}\n}\n}\n:80 {\nnative /api/* libhello.so {\n\
             threads 2\nmax_threads 9\nmax_connections 100\ninline\nname api\nconfig word hi\nconfig {\nallow a b\n\
             home {env.HERE}\n}\nenv HOST {host}\nrequest_body_timeout 3s\nrequest_buffering off\ndeadline 2s\n\
             lane slow\n}\n}",
        );
        let here = directory.path();
        let home = here.to_str().unwrap();
        let service = NativeService {
            name: "api".into(),
            file: here.join("libhello.so"),
            config: pairs(&[("word", "hi"), ("allow", "a"), ("allow", "b"), ("home", home)]),
            threads: Some(2),
            max_threads: Some(9),
            max_connections: Some(100),
            inline: Inline::Allowed,
        };
        let module = NativeModule { file: here.join("modules/libdb.so.2"), config: pairs(&[("size", "4")]) };
        assert_eq!(config.global.native, NativeGlobal { modules: vec![module], services: vec![service] });
        let route = &config.servers[0].sites[0].routes[0];
        assert_eq!(route.matchers.len(), 1);
        let delivery = Delivery {
            env: vec![("HOST".into(), Template::parse("{host}"))],
            request_body_timeout: Some(Duration::from_secs(3)),
            request_buffering: RequestBuffering::Streaming,
            deadline: Some(Duration::from_secs(2)),
            request_timeout: None,
            retry: None,
            lane: Some(LaneChoice::Named("slow".into())),
            client_address: ClientAddress::default(),
        };
        assert_eq!(route.handler, Handler::Native(Native { service: NativeId(0), delivery }));
    }

    #[test]
    fn a_single_argument_is_the_library() {
        let (config, directory) = config(":80 {\nnative {$HERE}/libhello.so\n}");
        assert_eq!(config.global.native.services[0].file, directory.path().join("libhello.so"));
        assert!(config.servers[0].sites[0].routes[0].matchers.is_empty());
    }

    #[test]
    fn libraries_are_relative_to_the_file_that_names_them() {
        let (loaded, directory) = load(":80 {\nimport modules/site\n}");
        assert!(loaded.is_err(), "the file to be imported is not there yet");
        let site = directory.path().join("modules/site");
        std::fs::write(&site, "native other.so\n").unwrap();
        let text = format!(":80 {{\nimport {}\n}}", site.display());
        let environment = Environment { variables: BTreeMap::new(), current_dir: "/elsewhere".into() };
        let loaded = crate::parse("Caddyfile", &text, Path::new("/elsewhere"), &environment).unwrap();
        let file = &loaded.config.global.native.services[0].file;
        assert_eq!(*file, directory.path().join("modules/other.so"));
    }

    #[test]
    fn names_come_from_the_files_and_give_way_to_those_that_were_given() {
        let found = names(
            "native /a libhello.so\nnative /b libhello.so\nnative /c modules/libdb.so.2\n\
             native /d modules/other.so\nnative /e modules/other.so {\nname hello\n}",
        );
        assert_eq!(found, ["hello-2", "hello-3", "db", "other", "hello"]);
    }

    #[test]
    fn pools_share_one_name_space() {
        let named = |name: &str| format!("native libhello.so {{\nname {name}\n}}\n");
        let worker = "php_server {\nworker {\nfile {$HERE}/worker.php\nname w\n}\n}\n";
        let text = named("classic") + &named("a") + &named("a") + &named("w") + &named("\"\"") + worker;
        let taken = |name: &str| format!("another pool has the name `{name}` already");
        assert_eq!(
            site_errors(&text),
            [&taken("classic"), &taken("a"), &taken("w"), "a service's name cannot be empty"]
        );
    }

    #[test]
    fn goes_before_php() {
        let (config, _directory) = config(":80 {\nphp_server\nphp\nnative libhello.so\nrespond /x y\n}");
        let routes = &config.servers[0].sites[0].routes;
        assert!(matches!(routes[0].handler, Handler::Respond { .. }));
        assert!(matches!(routes[1].handler, Handler::Native(_)));
    }

    #[test]
    fn mistakes() {
        let found = site_errors(
            "native\nnative /api/* none.so\nnative /a libhello.so b\nnative modules\nnative {path}\n\
             native libhello.so {\nthreads 0\nmax_threads 70000\nmax_connections 0\ninline yes\n\
             max_conections 1\nconfig a\nconfig a {path}\nconfig {\nb\n}\nname\n}\n\
             native libhello.so {\nthreads 4\nmax_threads 3\n}",
        );
        assert!(found[0].starts_with("too few arguments for `native`; write: native"), "{found:?}");
        assert!(found[1].starts_with("the library does not exist: /"), "{found:?}");
        assert!(found[1].ends_with("/none.so"), "{found:?}");
        assert!(found[2].starts_with("too many arguments for `native`"), "{found:?}");
        assert!(found[3].starts_with("the library is no file: "), "{found:?}");
        assert!(found[4].contains("cannot depend on the request"), "{found:?}");
        assert_eq!(found[5], "`threads` must be a whole number from 1 to 65535, not `0`");
        assert!(found[9].contains("did you mean `max_connections`?"), "{found:?}");
        assert_eq!(found[14], "`max_threads` is 3, less than `threads`, which is 4");
        assert_eq!(found.len(), 15, "{found:?}");
    }

    #[test]
    fn mistakes_of_modules() {
        let found = errors(
            "{\nfrankenphp {\nmodule\nmodule none.so\nmodule libhello.so\nmodule ./libhello.so\n\
             module modules/other.so {\nthreads 1\nconfig\n}\n}\n}",
        );
        assert!(found[0].contains("too few arguments for `module`"), "{found:?}");
        assert!(found[1].starts_with("the library does not exist: /"), "{found:?}");
        assert!(found[2].ends_with("libhello.so is declared twice"), "{found:?}");
        assert_eq!(found[3], "unknown option `threads` of `module` (its options: config)");
        assert_eq!(found.len(), 5, "{found:?}");
    }
}
