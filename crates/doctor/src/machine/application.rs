//! What lies below the root of a site.

use std::fs;
use std::path::{Path, PathBuf};

/// Entries that are looked at before counting stops.
const MOST_ENTRIES: usize = 200_000;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Application {
    pub root: PathBuf,
    pub exists: bool,
    /// The public directory within the root, where the root is that of a whole project.
    pub public: Option<PathBuf>,
    /// Whether it has the cron of WordPress, which a visitor's request asks for and does not wait for.
    pub has_wp_cron: bool,
    /// Files named `*.php` of the project, `public` directories' parent included; no more than so many are counted.
    pub scripts: u64,
}

/// Looks at no more than 200,000 entries.
pub fn application(root: &Path) -> Application {
    let is_project = |directory: &Path| directory.join("composer.json").is_file();
    let public = ["public", "web", "htdocs"].map(|name| root.join(name));
    let public = public.into_iter().find(|public| is_project(root) && public.join("index.php").is_file());
    let project = root.parent().filter(|parent| is_project(parent)).unwrap_or(root);
    Application {
        root: root.to_owned(),
        exists: root.is_dir(),
        public,
        has_wp_cron: root.join("wp-cron.php").is_file(),
        scripts: count_scripts(project),
    }
}

/// Links are not followed: they could lead in a circle.
fn count_scripts(project: &Path) -> u64 {
    let (mut scripts, mut entries) = (0, 0);
    let mut waiting = vec![project.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            entries += 1;
            if entries > MOST_ENTRIES {
                return scripts;
            }
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => waiting.push(entry.path()),
                Ok(_) => scripts += u64::from(entry.path().extension().is_some_and(|end| end == "php")),
                Err(_) => {}
            }
        }
    }
    scripts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_told_from_its_public_directory() {
        let project = tempfile::tempdir().unwrap();
        let path = |name: &str| project.path().join(name);
        for directory in ["public", "src"] {
            fs::create_dir(path(directory)).unwrap();
        }
        for file in ["composer.json", "public/index.php", "src/a.php", "src/b.txt"] {
            fs::write(path(file), "").unwrap();
        }
        let whole = application(project.path());
        assert_eq!((whole.exists, whole.scripts, &whole.public), (true, 2, &Some(path("public"))));
        let public = application(&path("public"));
        assert_eq!((public.scripts, public.public, public.has_wp_cron), (2, None, false));
        fs::write(path("public/wp-cron.php"), "").unwrap();
        assert!(application(&path("public")).has_wp_cron);
        assert!(!application(&path("none")).exists);
    }
}
