use regent_config::Environment;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const DIRECTORY: &str = "tests/nginx";

fn files() -> Vec<PathBuf> {
    let entries = fs::read_dir(DIRECTORY).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|ending| ending == "conf")).collect();
    files.sort();
    files
}

fn name_of(path: &Path) -> String {
    path.file_stem().unwrap().to_str().unwrap().to_owned()
}

#[test]
fn sites_are_what_they_were() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("nginx");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for path in files() {
            let imported = regent_import::nginx(&path).unwrap_or_else(|error| panic!("{error}"));
            insta::assert_snapshot!(name_of(&path), imported.caddyfile);
        }
    });
}

#[test]
fn every_site_is_a_valid_caddyfile_as_fmt_has_it() {
    let current = tempfile::tempdir().unwrap();
    for path in files() {
        let caddyfile = regent_import::nginx(&path).unwrap().caddyfile;
        let environment = Environment { variables: BTreeMap::new(), current_dir: current.path().to_owned() };
        let loaded = regent_config::parse("Caddyfile", &caddyfile, current.path(), &environment);
        if let Err(errors) = loaded {
            panic!("{}:\n{caddyfile}\n{errors}", path.display());
        }
        let formatted = regent_caddyfile::format("Caddyfile", &caddyfile).unwrap();
        assert_eq!(formatted, caddyfile, "{}", path.display());
    }
}

#[test]
fn what_is_left_out_is_named_with_its_line() {
    let imported = regent_import::nginx(Path::new("tests/nginx/cached.conf")).unwrap();
    let left: Vec<_> =
        imported.left_out.iter().map(|left| (left.place.as_str(), left.text.as_str())).collect();
    assert!(left.contains(&("tests/nginx/cached.conf:16", "stub_status")), "{left:?}");
    for left in &imported.left_out {
        assert!(
            imported.caddyfile.contains(&format!("# not translated, {}: {}", left.place, left.text)),
            "{left:?}"
        );
    }
}

#[test]
fn included_files_are_read_and_a_loop_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("nginx.conf", "http {\ninclude mime.types;\ninclude sites/*.conf;\n}\n");
    write("sites/a.conf", "server {\nserver_name a.example;\ninclude common;\n}\n");
    write("sites/b.conf", "server {\nserver_name b.example;\n}\n");
    write("common", "root /srv/a;\n");
    let imported = regent_import::nginx(&directory.path().join("nginx.conf")).unwrap();
    assert!(
        imported.caddyfile.contains("http://a.example:80")
            || imported.caddyfile.contains("http://a.example {")
    );
    assert!(
        imported.caddyfile.contains("root * /srv/a") && imported.caddyfile.contains("http://b.example {")
    );
    write("common", "include common;\n");
    let error = regent_import::nginx(&directory.path().join("nginx.conf")).unwrap_err();
    assert_eq!(error.message, "files include each other without an end");
}

#[test]
fn mistakes_are_named_with_their_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.conf");
    for (text, line, message) in [
        ("server {\nlisten 80\n}\n", 3, "this `}` closes nothing"),
        ("server {\nlisten 80;\n", 3, "a block has no `}`"),
        ("server {\n}\n}\n", 3, "this `}` closes nothing"),
        ("server {\nroot \"/a;\n}\n", 2, "a text in quotes has no end"),
        ("user www-data;\n", 0, "it has no `server`: name the file of a site, or nginx.conf"),
    ] {
        fs::write(&path, text).unwrap();
        let error = regent_import::nginx(&path).unwrap_err();
        let place = if line == 0 { path.display().to_string() } else { format!("{}:{line}", path.display()) };
        assert_eq!((error.place, error.message.as_str()), (place, message), "{text}");
    }
}

#[test]
fn no_part_of_a_file_is_a_crash() {
    let directory = tempfile::tempdir().unwrap();
    let cut_file = directory.path().join("cut.conf");
    for path in files() {
        let text = fs::read_to_string(&path).unwrap();
        for cut in (0..text.len()).step_by(11).filter(|cut| text.is_char_boundary(*cut)) {
            for part in [&text[..cut], &text[cut..]] {
                fs::write(&cut_file, part).unwrap();
                drop(regent_import::nginx(&cut_file));
            }
        }
    }
}
