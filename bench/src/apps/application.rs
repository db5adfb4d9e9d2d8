//! The applications: where they are from, how they are laid out, and what is asked of them.

use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;

use super::checkout::{Checkout, copy, replace_in_php_files};
use super::database::{self, Database};
use crate::interrupt::Interrupt;
use crate::site::Site;
use crate::supervise::run_to_end;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Application {
    /// WordPress with MariaDB
    Wordpress,
    /// A small Symfony application, which runs in a worker too
    Symfony,
    /// A small Laravel application with MariaDB, which runs in a worker too
    Laravel,
    /// DokuWiki, whose pages are files
    Dokuwiki,
}

/// One thing that is asked for, and what a right answer has in it.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    pub path: &'static str,
    mark: &'static str,
}

/// Time that one page may take in the checks, when nothing is cached yet.
const PATIENCE: Duration = Duration::from_secs(60);

const WORDPRESS: [Page; 5] = [
    Page { path: "/", mark: "Hello world!" },
    Page { path: "/?p=1", mark: "Welcome to WordPress." },
    Page { path: "/?s=welcome", mark: "Search results for" },
    Page { path: "/?feed=rss2", mark: "</rss>" },
    Page { path: "/?rest_route=/wp/v2/posts", mark: "\"Hello world!\"" },
];
const SYMFONY: [Page; 3] = [
    Page { path: "/?name=Ada", mark: "<h1>Hello, Ada</h1>" },
    Page { path: "/notes/12", mark: "lookups: 1" },
    Page { path: "/probe", mark: "scheme_and_host" },
];
const LARAVEL: [Page; 2] =
    [Page { path: "/?name=Ada", mark: "<h1>Hello, Ada</h1>" }, Page { path: "/notes/1", mark: "A note" }];
const DOKUWIKI: [Page; 5] = [
    Page { path: "/doku.php?id=wiki:syntax", mark: "Formatting Syntax" },
    Page { path: "/doku.php?id=wiki:dokuwiki", mark: "versatile" },
    Page { path: "/doku.php?id=wiki:syntax&do=edit", mark: "wiki__text" },
    Page { path: "/doku.php?id=playground:playground&do=index", mark: "playground" },
    Page { path: "/doku.php?id=wiki:welcome&do=search&q=wiki", mark: "</html>" },
];

/// An application that is ready to be laid out for servers, and what they share of it.
#[derive(Debug)]
pub struct Prepared {
    /// To be copied for each server: some of them run as another user, and write into it.
    directory: PathBuf,
    _database: Option<Database>,
}

impl Application {
    pub fn pages(self) -> &'static [Page] {
        match self {
            Self::Wordpress => &WORDPRESS,
            Self::Symfony => &SYMFONY,
            Self::Laravel => &LARAVEL,
            Self::Dokuwiki => &DOKUWIKI,
        }
    }

    /// What runs for paths that are no files.
    pub fn front_controller(self) -> &'static str {
        match self {
            Self::Wordpress | Self::Symfony | Self::Laravel => "index.php",
            Self::Dokuwiki => "doku.php",
        }
    }

    /// The worker script below the document root.
    pub fn worker(self) -> Option<&'static str> {
        matches!(self, Self::Symfony | Self::Laravel).then_some("worker.php")
    }

    /// Below the directory of a copy.
    pub fn document_root(self, copy: &Path) -> PathBuf {
        match self {
            Self::Symfony | Self::Laravel => copy.join("public"),
            Self::Wordpress | Self::Dokuwiki => copy.to_owned(),
        }
    }

    pub fn prepare(self, checkout: &Checkout, site: &Site, interrupt: &Interrupt) -> Result<Prepared> {
        let directory = site.server_directory(&format!("{self:?}").to_lowercase())?;
        let database = match self {
            Self::Wordpress => Some(lay_out_wordpress(checkout, site, &directory, interrupt)?),
            Self::Laravel => Some(lay_out_laravel(checkout, site, &directory, interrupt)?),
            Self::Symfony => lay_out_symfony(checkout, site, &directory).map(|()| None)?,
            Self::Dokuwiki => lay_out_dokuwiki(checkout, site, &directory).map(|()| None)?,
        };
        Ok(Prepared { directory, _database: database })
    }

    /// What is done in the browser once, on whatever server is there first.
    pub fn install(self, port: u16, site: &Site, interrupt: &Interrupt) -> Result<()> {
        if self != Self::Wordpress {
            return Ok(());
        }
        let form = "weblog_title=The+blog+of+the+benchmark&user_name=admin&admin_password=secret-1\
                    &admin_password2=secret-1&pw_weak=1&admin_email=admin%40example.org&blog_public=0";
        let (status, answer) = ask(port, "/wp-admin/install.php?step=2", Some(form), site, interrupt)?;
        ensure!(
            status == "200" && answer.contains("<h1>Success!</h1>"),
            "its installer answered with {status}:\n{answer}"
        );
        Ok(())
    }

    /// That each page is answered as it should be.
    pub fn check(self, port: u16, site: &Site, interrupt: &Interrupt) -> Result<()> {
        for Page { path, mark } in self.pages() {
            let (status, answer) = ask(port, path, None, site, interrupt)?;
            ensure!(
                status == "200" && answer.contains(mark),
                "{path} is answered with {status}, and it should have {mark:?} in it:\n{answer}"
            );
        }
        Ok(())
    }
}

impl Prepared {
    /// A copy that every user may write.
    pub fn copy_to(&self, directory: &Path) -> Result<()> {
        copy(&self.directory, &self.directory, directory)?;
        make_writable(directory)
    }
}

impl fmt::Display for Application {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Wordpress => "WordPress",
            Self::Symfony => "Symfony",
            Self::Laravel => "Laravel",
            Self::Dokuwiki => "DokuWiki",
        })
    }
}

/// A part of an application that is only read: one copy for all servers. The packages themselves may lie where the users that
/// php-fpm runs as cannot go, as root's home.
fn library(checkout: &Checkout, site: &Site, application: &str, part: &str) -> Result<PathBuf> {
    let packages = checkout.packages_of(application)?;
    let library = site.server_directory(&format!("{application}-library"))?;
    copy(&packages, &packages.join(part), &library)?;
    Ok(library)
}

fn lay_out_wordpress(
    checkout: &Checkout,
    site: &Site,
    directory: &Path,
    interrupt: &Interrupt,
) -> Result<Database> {
    let packages = checkout.packages_of("wordpress")?;
    copy(&packages, &packages.join("usr/share/wordpress"), directory)?;
    let database = database::start(checkout, site, "create database wordpress;", interrupt)?;
    let config = include_str!("wp-config.php").replace("SOCKET", &database.socket.display().to_string());
    fs::write(directory.join("wp-config.php"), config)?;
    let plugins = directory.join("wp-content/mu-plugins");
    fs::create_dir_all(&plugins)?;
    fs::write(plugins.join("benchmark.php"), include_str!("wp-plugin.php"))?;
    Ok(database)
}

fn lay_out_symfony(checkout: &Checkout, site: &Site, directory: &Path) -> Result<()> {
    let library = library(checkout, site, "symfony", "usr/share/php")?;
    let fixture = checkout.fixture("symfony");
    copy(&fixture, &fixture, directory)?;
    let from_environment = "$_SERVER['SYMFONY_LIBRARY'] ?? getenv('SYMFONY_LIBRARY')";
    replace(&directory.join("autoload.php"), from_environment, &format!("'{}'", library.display()))
}

fn lay_out_laravel(
    checkout: &Checkout,
    site: &Site,
    directory: &Path,
    interrupt: &Interrupt,
) -> Result<Database> {
    let library = library(checkout, site, "laravel", "usr/share/php")?;
    replace_in_php_files(&library, "'/usr/share/php/", &format!("'{}/", library.display()))?;
    let fixture = checkout.fixture("laravel");
    copy(&fixture, &fixture, directory)?;
    let bootstrap = directory.join("bootstrap/app.php");
    replace(&bootstrap, "__DIR__.'/../vendor/", &format!("'{}/", library.display()))?;
    let from_environment = "$_SERVER['LARAVEL_STORAGE'] ?? getenv('LARAVEL_STORAGE')";
    replace(&bootstrap, from_environment, "dirname(__DIR__).'/storage'")?;
    for name in ["storage/framework/sessions", "storage/framework/views", "storage/app", "bootstrap/cache"] {
        fs::create_dir_all(directory.join(name))?;
    }
    let database = database::start(checkout, site, LARAVEL_TABLES, interrupt)?;
    let config =
        include_str!("laravel-database.php").replace("SOCKET", &database.socket.display().to_string());
    fs::write(directory.join("config/database.php"), config)?;
    Ok(database)
}

const LARAVEL_TABLES: &str = "create database laravel;
create table laravel.notes (id int primary key, title varchar(20), created_at timestamp null, updated_at timestamp null);
insert into laravel.notes (id, title) values (1, 'A note'), (2, 'Another one'), (3, 'The third');";

/// In a file of an application that is laid out.
fn replace(file: &Path, from: &str, to: &str) -> Result<()> {
    let text = fs::read_to_string(file)?;
    ensure!(text.contains(from), "{} has changed: there is no {from} in it", file.display());
    fs::write(file, text.replace(from, to))?;
    Ok(())
}

/// Puts the package's parts together as the project itself ships them: one directory with `conf` and `data` in it. Debian
/// spreads them, and names those paths in the sources.
fn lay_out_dokuwiki(checkout: &Checkout, site: &Site, directory: &Path) -> Result<()> {
    let packages = checkout.packages_of("dokuwiki")?;
    let state = packages.join("var/lib/dokuwiki");
    copy(&packages, &packages.join("usr/share/dokuwiki"), directory)?;
    copy(&packages, &state.join("data"), &directory.join("data"))?;
    copy(&packages, &packages.join("etc/dokuwiki"), &directory.join("conf"))?;
    let preload = directory.join("inc/preload.php");
    if preload.exists() {
        fs::remove_file(preload)?;
    }
    let elsewhere = format!("'{}/", library(checkout, site, "dokuwiki", "usr/share")?.display());
    replace_in_php_files(directory, "'/usr/share/", &elsewhere)?;
    replace_in_php_files(&directory.join("conf"), "'/var/lib/dokuwiki/data'", "'./data'")?;
    let settings = "<?php\n$conf['title'] = 'The wiki of the benchmark';\n$conf['useacl'] = 0;\n$conf['savedir'] = './data';\n";
    fs::write(directory.join("conf/local.php"), settings)?;
    Ok(())
}

/// The status and the body of an answer.
fn ask(
    port: u16,
    path: &str,
    form: Option<&str>,
    site: &Site,
    interrupt: &Interrupt,
) -> Result<(String, String)> {
    let body = site.path().join("answer");
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--max-time", &PATIENCE.as_secs().to_string()]);
    curl.args(["--write-out", "%{http_code}", "--output"]).arg(&body);
    if let Some(form) = form {
        curl.args(["--data", form]);
    }
    curl.arg(format!("http://127.0.0.1:{port}{path}"));
    let (status, code) = run_to_end(curl, PATIENCE + Duration::from_secs(5), interrupt)?;
    ensure!(status.success(), "curl failed ({status}) at {path}");
    let answer = fs::read(&body).with_context(|| format!("{path} has no answer"))?;
    Ok((code, String::from_utf8_lossy(&answer).into_owned()))
}

fn make_writable(directory: &Path) -> Result<()> {
    fs::set_permissions(directory, fs::Permissions::from_mode(0o777))?;
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            make_writable(&path)?;
        } else {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o666))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_can_be_told_from_errors() {
        for application in Application::value_variants() {
            for Page { path, mark } in application.pages() {
                assert!(path.starts_with('/') && !mark.is_empty(), "{application}: {path}");
            }
        }
    }

    #[test]
    fn a_copy_can_be_written_by_all() {
        let directory = tempfile::tempdir().expect("a directory");
        let original = directory.path().join("original");
        fs::create_dir_all(original.join("data")).expect("made");
        fs::write(original.join("data/page.txt"), "text").expect("written");
        let prepared = Prepared { directory: original, _database: None };
        let copy = directory.path().join("copy");
        prepared.copy_to(&copy).expect("copied");
        let mode = |path: &str| fs::metadata(copy.join(path)).expect("there").permissions().mode() & 0o777;
        assert_eq!((mode("data"), mode("data/page.txt")), (0o777, 0o666));
    }

    #[test]
    fn symfonys_document_root_holds_no_sources() {
        let copy = Path::new("/srv/copy");
        assert_eq!(Application::Symfony.document_root(copy), copy.join("public"));
        assert_eq!(Application::Dokuwiki.document_root(copy), copy);
    }
}
