//! `confine`, with or without a block, or `confine off`, in `frankenphp`: what the kernel keeps PHP, native modules, tasks and
//! all that they start from. Without it they are kept from the system calls by which processes attack others or the kernel,
//! where that costs nothing; with `off` from nothing. See [confine PHP](rights.md#confine-php).
//!
//! | option | default | meaning |
//! |---|---|---|
//! | `write PATH…` | everything | these files and directories may be written to, with what is below them, and the directory of temporary files; several lines add up |
//! | `read PATH…` | everything | these may be read, and what may be written to, what PHP is installed with, and the system's own files |
//! | `exec off` | on | no program can be started, by `exec()`, `mail()` and their like |
//! | `namespaces on` | off | programs may make sandboxes of their own, as browsers do |
//! | `strict` | | an engine that the kernel cannot confine in all of this does not start; otherwise the log says what is missing |
//!
//! Set-user-ID programs have no more rights than others then: `sudo`, and the mailers of Postfix and Exim.
//!
//! ```caddyfile
//! {
//!     regent {
//!         confine {
//!             write /tmp
//!             read /tmp
//!         }
//!     }
//! }
//! ```

use super::GlobalOptions;
use crate::call::Call;
use crate::context::Context;
use crate::model::{CertificateSource, Confine, Confinement, Enforcement, Namespaces, Programs, Server};
use crate::problems::{error, unknown, unknown_option};
use regent_caddyfile::{Error, Token};
use std::fs;
use std::path::{Path, PathBuf};

const SYNTAX: &str =
    "confine, confine off, or confine { read | write PATH…; exec off; namespaces on; strict }";
const OPTIONS: &[&str] = &["exec", "namespaces", "read", "strict", "write"];

/// Settings of php.ini that name a directory which PHP writes to.
const DIRECTORIES_OF_PHP: [&str; 5] =
    ["opcache.file_cache", "session.save_path", "soap.wsdl_cache_dir", "sys_temp_dir", "upload_tmp_dir"];

/// A path of `read` or `write`, where it was written.
pub(crate) struct Opened {
    token: Token,
    path: PathBuf,
    right: Right,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Right {
    Read,
    Write,
}

pub(super) fn parse(
    cx: &mut Context<'_>,
    call: &Call<'_>,
    opened: &mut Vec<Opened>,
) -> Result<Confine, Error> {
    match call.args {
        [] => {}
        [off] if off.text == "off" => return call.without_block(SYNTAX).map(|()| Confine::Off),
        _ => return Err(call.wrong_arguments(0, SYNTAX)),
    }
    let mut confinement = Confinement::default();
    for option in call.options() {
        let result = apply(cx, &option, &mut confinement, opened);
        cx.check(result);
    }
    Ok(Confine::Asked(confinement))
}

fn apply(
    cx: &mut Context<'_>,
    option: &Call<'_>,
    confinement: &mut Confinement,
    opened: &mut Vec<Opened>,
) -> Result<(), Error> {
    match option.name() {
        "read" => open(cx, option, Right::Read, &mut confinement.read, opened)?,
        "write" => open(cx, option, Right::Write, &mut confinement.write, opened)?,
        "exec" => confinement.programs = switched(option, "off", Programs::Refused)?,
        "namespaces" => confinement.namespaces = switched(option, "on", Namespaces::Allowed)?,
        "strict" => {
            option.exactly::<0>("strict")?;
            confinement.enforcement = Enforcement::Strict;
        }
        _ => return Err(unknown_option(option.name, "confine", OPTIONS, &[])),
    }
    Ok(())
}

fn switched<T>(option: &Call<'_>, word: &str, value: T) -> Result<T, Error> {
    let token = option.one(&format!("{} {word}", option.name()))?;
    if token.text == word { Ok(value) } else { Err(unknown(token, &format!("`{}`", option.name()), &[word])) }
}

fn open(
    cx: &mut Context<'_>,
    option: &Call<'_>,
    right: Right,
    paths: &mut Option<Vec<PathBuf>>,
    opened: &mut Vec<Opened>,
) -> Result<(), Error> {
    let tokens = option.some(&format!("{} PATH…", option.name()))?;
    let paths = paths.get_or_insert_default();
    for token in tokens {
        let path = cx.environment.absolute(Path::new(&cx.fixed_text(token)?));
        warn_of(cx, token, &path);
        opened.push(Opened { token: token.clone(), path: path.clone(), right });
        paths.push(path);
    }
    Ok(())
}

/// Rights are to what is there when the engine starts.
fn warn_of(cx: &mut Context<'_>, token: &Token, path: &Path) {
    let shown = path.display();
    if !path.exists() {
        let message =
            format!("{shown} does not exist, and what is not there cannot be opened; make it first");
        cx.warn(token, message.clone());
        cx.missing.push(error(token, message));
    } else if let Ok(target) = fs::read_link(path) {
        let message = format!(
            "{shown} is a link to {}, which alone is opened, until the engine starts anew; name the directory that the link \
             and its targets are in",
            target.display()
        );
        cx.warn(token, message);
    }
}

/// When the whole file is known: what is opened must leave the keys closed, and what has to be read must be open.
pub(crate) fn finish(cx: &mut Context<'_>, options: &mut GlobalOptions, servers: &[Server]) {
    let secrets = secrets(options, servers);
    for opened in &options.confined {
        let path = real(&opened.path);
        let secret = secrets.iter().find(|secret| secret.starts_with(&path) || path.starts_with(secret));
        if let Some(secret) = secret {
            let message = format!(
                "scripts would have the keys of certificates in {}; name the directories that they need, or keep the keys \
                 elsewhere (`storage file_system PATH`)",
                secret.display()
            );
            cx.errors.push(error(&opened.token, message));
        }
    }
    let Confine::Asked(confinement) = &mut options.global.php.confine else { return };
    if let Some(read) = confinement.read.as_ref().and_then(|paths| paths.first()) {
        let open: Vec<PathBuf> = options.confined.iter().map(|opened| real(&opened.path)).collect();
        let first =
            options.confined.iter().find(|opened| opened.right == Right::Read && opened.path == *read);
        let tasks = options.global.php.tasks.iter().map(|task| task.file.as_path());
        for script in cx.workers.files().chain(tasks).map(real) {
            if !open.iter().any(|path| script.starts_with(path))
                && let Some(first) = first
            {
                let message = format!("{} could not be read; name its directory here too", script.display());
                cx.errors.push(error(&first.token, message));
            }
        }
    }
    if let Some(write) = &mut confinement.write {
        let settings = &options.global.php.php_ini;
        let named = settings.iter().filter(|(name, _)| DIRECTORIES_OF_PHP.contains(&name.as_str()));
        // `session.save_path` may begin with numbers: `2;0600;/var/lib/sessions`.
        let paths = named.filter_map(|(_, value)| value.rsplit(';').next()).map(PathBuf::from);
        let added: Vec<_> = paths.filter(|path| path.is_absolute() && !write.contains(path)).collect();
        write.extend(added);
    }
}

/// Where the keys of certificates are, if there are any.
fn secrets(options: &GlobalOptions, servers: &[Server]) -> Vec<PathBuf> {
    let sites = servers.iter().flat_map(|server| &server.sites);
    let sources: Vec<_> = sites.filter_map(|site| Some(&site.tls.as_ref()?.source)).collect();
    let mut secrets = Vec::new();
    if !sources.is_empty() {
        secrets.push(options.global.tls.storage.clone());
    }
    for source in sources {
        if let CertificateSource::Files { pairs, directories } = source {
            secrets.extend(pairs.iter().map(|files| files.key.clone()));
            secrets.extend(directories.iter().cloned());
        }
    }
    secrets.iter().map(|path| real(path)).collect()
}

/// Without links, as far as it is there.
fn real(path: &Path) -> PathBuf {
    let there = path.ancestors().find_map(|ancestor| Some((ancestor, fs::canonicalize(ancestor).ok()?)));
    match there {
        Some((ancestor, real)) => match path.strip_prefix(ancestor) {
            Ok(rest) if !rest.as_os_str().is_empty() => real.join(rest),
            _ => real,
        },
        None => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directives::testing::{config, file_errors, load};

    fn text(arguments: &str, rest: &str) -> String {
        format!("{{\nregent {{\nconfine {arguments}\n{rest}\n}}\n}}\n:80 {{\n}}")
    }

    fn parsed(arguments: &str) -> Confine {
        config(&text(arguments, "")).global.php.confine
    }

    #[test]
    fn options() {
        assert_eq!(config(":80 {\n}").global.php.confine, Confine::Unasked);
        assert_eq!(parsed("off"), Confine::Off);
        assert_eq!(parsed(""), Confine::Asked(Confinement::default()));
        let all = Confinement {
            read: Some(vec!["/usr".into(), "/srv/x".into()]),
            write: Some(vec!["/tmp".into(), "/etc".into()]),
            programs: Programs::Refused,
            namespaces: Namespaces::Allowed,
            enforcement: Enforcement::Strict,
        };
        let block = "{\nread /usr x\nwrite /tmp\nwrite /etc\nexec off\nnamespaces on\nstrict\n}";
        assert_eq!(parsed(block), Confine::Asked(all));
    }

    #[test]
    fn directories_that_php_is_told_to_write_to_are_opened() {
        let settings = "php_ini {\nsession.save_path 1;/usr\nupload_tmp_dir /etc\nerror_log /x\n}";
        let Confine::Asked(confinement) = config(&text("{\nwrite /tmp\n}", settings)).global.php.confine
        else {
            panic!()
        };
        assert_eq!(confinement.write, Some(vec!["/tmp".into(), "/usr".into(), "/etc".into()]));
    }

    #[test]
    fn a_path_that_is_not_there_is_named() {
        let loaded = load(&text("{\nwrite /no/such\n}", "")).unwrap();
        assert!(loaded.warnings[0].to_string().starts_with("Caddyfile:4:7: /no/such does not exist"));
        assert!(loaded.complete().is_err());
        let base = tempfile::tempdir().unwrap();
        let link = base.path().join("current");
        std::os::unix::fs::symlink("/usr", &link).unwrap();
        let loaded = load(&text(&format!("{{\nread {}\n}}", link.display()), "")).unwrap();
        assert!(loaded.warnings[0].message.contains("is a link to /usr"), "{:?}", loaded.warnings);
    }

    #[test]
    fn keys_of_certificates_stay_closed() {
        let site = |options: &str| {
            format!("{{\nstorage file_system /usr/share\n{options}\n}}\nlocalhost {{\ntls internal\n}}")
        };
        for (option, errors) in [("read /usr", 1), ("write /usr/share/doc", 1), ("read /etc", 0)] {
            let found = file_errors(&site(&format!("regent {{\nconfine {{\n{option}\n}}\n}}")));
            assert_eq!(found.len(), errors, "{option}: {found:?}");
        }
    }

    #[test]
    fn a_worker_has_to_be_open() {
        let worker = |read: &str| file_errors(&text(&format!("{{\nread {read}\n}}"), "worker /etc/passwd 1"));
        assert_eq!(worker("/etc").len(), 0);
        assert_eq!(worker("/usr"), ["/etc/passwd could not be read; name its directory here too"]);
    }

    #[test]
    fn mistakes() {
        for arguments in [
            "on",
            "off {\nstrict\n}",
            "{\nread\n}",
            "{\nexec on\n}",
            "{\nnamespaces off\n}",
            "{\nstrict x\n}",
            "{\nwrite {path}\n}",
        ] {
            assert_eq!(file_errors(&text(arguments, "")).len(), 1, "{arguments}");
        }
        assert!(file_errors(&text("{\nwrit /tmp\n}", ""))[0].contains("did you mean `write`?"));
    }
}
