//! Files by which other servers are configured, and which Regent does not read: who moves here is told that they are there.

use crate::environment::Environment;
use crate::model::{Config, Handler, Php};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Settings of PHP beside a project, as FrankenPHP and PHP's own programs find them in their working directory.
const INI_FILES: [&str; 3] = ["php.ini", "frankenphp.ini", "php-frankenphp.ini"];
/// What an `.htaccess` says that a site does not do by itself: access, fields and settings of PHP. Rewrites to a front controller
/// are what `php_server` does.
const MEANT: [&str; 14] = [
    "<files",
    "allow ",
    "auth",
    "deny ",
    "errordocument",
    "expires",
    "header ",
    "order ",
    "php_",
    "redirect",
    "require",
    "satisfy",
    "setenv ",
    "sethandler",
];
/// Bytes of an `.htaccess` that are looked at.
const LONGEST: u64 = 1 << 20;

/// A file that is there and is not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassedOver {
    pub file: PathBuf,
    /// What to do about it.
    pub advice: String,
}

/// Looks into the working directory, into the roots of sites that are known without a request, and beside them.
pub fn passed_over(config: &Config, environment: &Environment) -> Vec<PassedOver> {
    let roots: BTreeSet<_> = roots(config).iter().map(|root| environment.absolute(root)).collect();
    if roots.is_empty() {
        return Vec::new();
    }
    let parents = roots.iter().filter_map(|root| root.parent());
    let beside: BTreeSet<&Path> = roots
        .iter()
        .map(PathBuf::as_path)
        .chain(parents)
        .chain([environment.current_dir.as_path()])
        .collect();
    let inis = beside.into_iter().flat_map(|directory| INI_FILES.map(|name| directory.join(name)));
    let mut found: Vec<_> =
        inis.filter(|file| file.is_file() && !is_named(file, environment)).map(of_ini).collect();
    for root in &roots {
        found.extend(Some(root.join(".user.ini")).filter(|file| file.is_file()).map(of_user));
        found.extend(Some(root.join(".htaccess")).filter(|file| is_meant(file)).map(of_apache));
    }
    found
}

/// The roots of sites that are known without a request, as they are written.
pub fn roots(config: &Config) -> BTreeSet<PathBuf> {
    let roots = config.handlers().filter_map(|handler| match handler {
        Handler::Root(root) => root.as_text().map(PathBuf::from),
        Handler::Php(php) => own_root(php),
        Handler::PhpServer(server) => own_root(&server.php),
        _ => None,
    });
    roots.collect()
}

fn own_root(php: &Php) -> Option<PathBuf> {
    php.root.as_ref()?.as_text().map(PathBuf::from)
}

/// Whether PHP reads it, as it is told to by the environment (php_init_config() in PHP's main/php_ini.c).
fn is_named(file: &Path, environment: &Environment) -> bool {
    let named = |name: &str| environment.variable(name).unwrap_or_default();
    let is_in = |path: &str| !path.is_empty() && file.parent() == Some(Path::new(path));
    let own = named("PHPRC");
    file == Path::new(&own)
        || (is_in(&own) && file.ends_with("php.ini"))
        || named("PHP_INI_SCAN_DIR").split(':').any(is_in)
}

/// Whether it says something that is missed.
fn is_meant(file: &Path) -> bool {
    let is_short = fs::metadata(file).is_ok_and(|metadata| metadata.is_file() && metadata.len() <= LONGEST);
    let text = if is_short { fs::read(file).unwrap_or_default() } else { Vec::new() };
    let text = String::from_utf8_lossy(&text).to_ascii_lowercase();
    text.lines().any(|line| MEANT.iter().any(|word| line.trim_start().starts_with(word)))
}

fn of_ini(file: PathBuf) -> PassedOver {
    let directory = file.parent().unwrap_or(Path::new("/"));
    let is_php_ini = file.file_name().is_some_and(|name| name == "php.ini");
    let first = match is_php_ini {
        true => format!("start Regent with PHPRC={}, or ", directory.display()),
        false => String::new(),
    };
    let advice = format!("{first}write its settings as `php_ini KEY VALUE` in the `frankenphp` block");
    PassedOver { file, advice }
}

fn of_user(file: PathBuf) -> PassedOver {
    let advice = "write its settings as `php_ini KEY VALUE` in the `frankenphp` block, for all sites";
    PassedOver { file, advice: advice.to_owned() }
}

fn of_apache(file: PathBuf) -> PassedOver {
    let advice = "write what it protects and sets into the configuration (docs/protect-folders.md says how)";
    PassedOver { file, advice: advice.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn found(project: &Path, variables: &[(&str, &Path)]) -> Vec<String> {
        let variables =
            variables.iter().map(|(name, value)| ((*name).to_owned(), value.display().to_string())).collect();
        let environment = Environment { variables, current_dir: project.to_owned() };
        let loaded =
            crate::parse("Caddyfile", ":80 {\nroot public\nphp_server\n}", project, &environment).unwrap();
        let warnings = loaded.warnings.iter().map(ToString::to_string);
        warnings
            .filter_map(|text| Some(text.strip_prefix(&*project.display().to_string())?.to_owned()))
            .collect()
    }

    #[test]
    fn files_of_other_servers_were_passed_over_in_silence() {
        let project = tempfile::tempdir().unwrap();
        let project = project.path();
        fs::create_dir(project.join("public")).unwrap();
        assert_eq!(found(project, &[]), [""; 0]);
        let front_controller = "<IfModule mod_rewrite.c>\nOptions -Indexes\nRewriteEngine On\nRewriteRule ^ index.php [L]\n</IfModule>";
        for (name, text) in [
            ("php.ini", "memory_limit = 1G"),
            ("public/frankenphp.ini", ""),
            ("public/.user.ini", ""),
            ("public/.htaccess", front_controller),
            ("other.ini", ""),
        ] {
            fs::write(project.join(name), text).unwrap();
        }
        let begins = |warnings: Vec<String>| {
            warnings.iter().map(|text| text.split(' ').next().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let all = found(project, &[]);
        assert!(all[0].contains(&format!("PHPRC={}", project.display())), "{all:?}");
        assert_eq!(begins(all), ["/php.ini", "/public/frankenphp.ini", "/public/.user.ini"]);
        assert_eq!(
            begins(found(project, &[("PHPRC", project)])),
            ["/public/frankenphp.ini", "/public/.user.ini"]
        );
        fs::write(project.join("public/.htaccess"), format!("{front_controller}\n  Deny from all")).unwrap();
        assert_eq!(begins(found(project, &[])).last().unwrap(), "/public/.htaccess");
    }

    #[test]
    fn without_a_root_nothing_is_looked_for() {
        let environment = Environment { variables: BTreeMap::new(), current_dir: "/".into() };
        let config =
            crate::parse("Caddyfile", ":80 {\nrespond x\n}", Path::new("/"), &environment).unwrap().config;
        assert_eq!(passed_over(&config, &environment), []);
    }
}
