//! `regent embed`: one executable with PHP and an application, which needs nothing of the machine that made it.
#![forbid(unsafe_code)]

use regent_tests::process::copy_program;
use regent_tests::{Setup, php, regent_command};
use std::fs::{self, File, OpenOptions, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

const PAGE: &str = "<?php echo json_encode(['memory' => ini_get('memory_limit'), 'cached' => function_exists('opcache_get_status'),
    'file' => __FILE__, 'app' => getenv('REGENT_APP')]);";
const WORKER: &str = "<?php $boots = 'booted'; while (frankenphp_handle_request(function () use ($boots) { echo $boots, ' in ', getcwd(); }));";
const CONSOLE: &str =
    "<?php echo implode(' ', array_slice($argv, 1)), ' in ', getcwd(), ' with ', ini_get('memory_limit');";
const CADDYFILE: &str = "{\n\tadmin off\n}\nhttp://{$SITE} {\n\troot * public\n\tphp_server {\n\t\tworker public/worker.php 1\n\
                         \t\ttry_files {path} worker.php\n\t}\n}\n";

/// An application, and its executable.
struct Made {
    directory: TempDir,
}

impl Made {
    fn new() -> Self {
        let made = Self { directory: TempDir::with_prefix("regent-embed-").unwrap() };
        for (path, content) in [
            ("public/index.php", PAGE),
            ("public/worker.php", WORKER),
            ("bin/console.php", CONSOLE),
            ("php.ini", "memory_limit = 77M\n"),
            ("Caddyfile", CADDYFILE),
            (".git/HEAD", "secret"),
        ] {
            let path = made.app().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let output = made.embed(&[]);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        assert!(said.contains("5 files of the application, PHP 8."), "{said}");
        made
    }

    fn app(&self) -> PathBuf {
        self.directory.path().join("app")
    }

    fn program(&self) -> PathBuf {
        self.app().join("my-app")
    }

    fn cache(&self) -> PathBuf {
        self.directory.path().join("cache")
    }

    /// The executable lies in the application's directory, and is no part of it.
    fn embed(&self, more: &[&str]) -> Output {
        let mut command = regent_command(self.directory.path());
        command.args(["embed", "app", "-o", "app/my-app", "--exclude", ".git"]).args(more);
        command.env("REGENT_OLD_PHP", "yes");
        command.output().expect("regent can be run")
    }

    fn run(&self, program: &Path, cache: &Path, arguments: &[&str]) -> Output {
        let mut command = Command::new(program);
        command.env_clear().env("XDG_CACHE_HOME", cache).current_dir(self.directory.path());
        command.args(arguments).output().expect("the executable can be started")
    }

    /// A server by the executable instead of the program under test, which is the first argument.
    fn setup(&self, arguments: &[&str]) -> Setup {
        let program = self.program().display().to_string();
        let setup = Setup::new().launcher(&["sh", "-c", "shift; exec \"$0\" \"$@\"", &program]);
        setup.env("XDG_CACHE_HOME", &self.cache().display().to_string()).arguments(arguments)
    }

    fn unpacked(&self) -> PathBuf {
        let entries = fs::read_dir(self.cache().join("regent")).unwrap();
        let all: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        assert_eq!(all.len(), 1, "{all:?}");
        all.into_iter().next().unwrap()
    }
}

fn complaint(output: &Output) -> String {
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// One for both: in a debug build it has half a gigabyte.
#[test]
fn one_executable_serves_the_application_by_itself_and_refuses_what_is_not_safe() {
    let made = Made::new();
    refuses_what_is_not_whole_or_has_no_safe_place(&made);
    serves_the_application_by_itself(&made);
    // Libraries of the system are not carried.
    assert_eq!(
        made.unpacked().join("php/FOR-TESTS-ALONE").is_file(),
        php::has_known_holes() && !php::is_in_processes()
    );
}

#[test]
fn a_php_with_known_holes_goes_into_no_executable_unless_it_is_for_tests() {
    if php::is_in_processes() || !php::has_known_holes() {
        println!("skipped: this PHP has no known holes, or is not carried");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir_all(directory.path().join("app/public")).unwrap();
    let mut command = regent_command(directory.path());
    let said = complaint(&command.args(["embed", "app", "-o", "out"]).output().expect("regent can be run"));
    assert!(said.contains("has holes that are known") && said.contains("REGENT_OLD_PHP=yes"), "{said}");
    assert!(!directory.path().join("out").exists());
}

fn serves_the_application_by_itself(made: &Made) {
    // Its own Caddyfile is used where the command line says nothing of what is to be served.
    let server = made.setup(&["php-server", "--listen", "ADDRESS"]).start();
    let page = server.get("/index.php").expect(200).json();
    let app = made.unpacked().join("app");
    assert_eq!((page["memory"].as_str(), page["cached"].as_bool()), (Some("77M"), Some(true)), "{page}");
    assert_eq!(page["file"], app.join("public/index.php").display().to_string());
    assert_eq!(page["app"], app.display().to_string());
    if !php::is_in_processes() {
        let maps = fs::read_to_string(format!("/proc/{}/maps", server.engine())).unwrap();
        let own = made.unpacked().display().to_string();
        let mapped = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
        let libraries: Vec<_> = mapped.filter(|path| path.contains(".so")).collect();
        let foreign = libraries.iter().filter(|path| !path.starts_with(&own)).find(|path| {
            !["libc.so", "libm.so", "libresolv.so", "ld-linux", "libpthread.so", "libdl.so", "librt.so"]
                .iter()
                .any(|name| path.contains(name))
        });
        assert_eq!(foreign, None, "only the C library is the machine's");
        assert!(libraries.iter().any(|path| path.ends_with("libphp.so")), "{libraries:?}");
    }
    assert_eq!(fs::metadata(made.unpacked()).unwrap().permissions().mode() & 0o777, 0o700);
    assert!(!app.join(".git").exists() && !app.join("my-app").exists());
    server.stop();

    for command in ["run", "php-server"] {
        let server = made.setup(&[command]).env("SITE", "ADDRESS").start();
        assert_eq!(server.get("/").expect(200).text(), format!("booted in {}/public", app.display()));
        server.stop();
    }

    let output = made.run(&made.program(), &made.cache(), &["php-cli", "bin/console.php", "a", "--b"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let here = made.directory.path().canonicalize().unwrap();
    assert_eq!(said, format!("a --b in {} with 77M", here.display()), "{}", complaint_of(&output));
}

fn complaint_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What goes wrong is said, and leaves nothing.
fn refuses_what_is_not_whole_or_has_no_safe_place(made: &Made) {
    let arguments = ["php-cli", "-r", "echo 'runs';"];
    let copy = made.directory.path().join("copy");
    copy_program(&made.program(), &copy);
    let length = fs::metadata(&copy).unwrap().len();
    // A file that is open for writing cannot be run.
    let change =
        |change: &dyn Fn(File)| change(OpenOptions::new().write(true).read(true).open(&copy).unwrap());
    change(&|file| {
        let mut byte = [0];
        file.read_exact_at(&mut byte, length - 4096).unwrap();
        file.write_all_at(&[byte[0] ^ 1], length - 4096).unwrap();
    });
    let said = complaint(&made.run(&copy, &made.cache(), &arguments));
    assert!(said.contains("is damaged"), "{said}");
    change(&|file| file.set_len(length - 1).unwrap());
    let said = complaint(&made.run(&copy, &made.cache(), &arguments));
    assert!(said.contains("has been cut off, as `strip` does"), "{said}");
    let said = complaint(&made.run(&made.program(), Path::new("relative"), &arguments));
    assert!(said.contains("set HOME or XDG_CACHE_HOME"), "{said}");
    assert_eq!(fs::read_dir(made.cache().join("regent")).unwrap().count(), 0);

    fs::set_permissions(made.cache(), Permissions::from_mode(0o777)).unwrap();
    let said = complaint(&made.run(&made.program(), &made.cache(), &arguments));
    assert!(said.contains("everybody can put another directory in its place"), "{said}");
    fs::set_permissions(made.cache(), Permissions::from_mode(0o700)).unwrap();

    let small = made.directory.path().join("small");
    fs::create_dir(&small).unwrap();
    let script = "mount -t tmpfs -o size=4m,mode=700 none \"$XDG_CACHE_HOME\" || exit 77; \"$@\"; code=$?; ls -A \"$XDG_CACHE_HOME/regent\"; exit $code";
    let program = made.program().display().to_string();
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script, "sh", &program]).args(arguments);
    match command.env("XDG_CACHE_HOME", &small).output() {
        Ok(output) if output.status.code() == Some(1) && complaint_of(&output).starts_with("regent:") => {
            let said = complaint_of(&output);
            assert!(said.contains("there is no room for the application"), "{said}");
            assert_eq!(String::from_utf8_lossy(&output.stdout), "", "nothing is left");
        }
        _ => println!("skipped: no file system can be mounted here"),
    }

    let output = made.run(&made.program(), &made.cache(), &arguments);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "runs", "{}", complaint_of(&output));
    let said = complaint(&made.run(&made.program(), &made.cache(), &["embed", "app", "-o", "other"]));
    assert!(said.contains("has an application already"), "{said}");
}

#[test]
fn what_cannot_be_packed_is_named_and_no_file_is_made() {
    let directory = tempfile::tempdir().unwrap();
    let settings_of_php = tempfile::tempdir().unwrap();
    let app = directory.path().join("app");
    fs::create_dir_all(app.join("public")).unwrap();
    symlink("/etc", app.join("public/etc")).unwrap();
    let embed = |arguments: &[&str]| {
        let mut command = regent_command(settings_of_php.path());
        command.current_dir(directory.path()).arg("embed").args(arguments);
        complaint(&command.output().expect("regent can be run"))
    };
    let said = embed(&["app", "-o", "out"]);
    assert!(said.contains("public/etc leads out of the application, to /etc"), "{said}");
    let said = embed(&["none", "-o", "out"]);
    assert!(said.contains("none is no directory"), "{said}");
    let said = embed(&["app", "-o", "app"]);
    assert!(said.contains("is a directory; name the file"), "{said}");
    let said = embed(&["app", "-o", "out", "--exclude", "[a"]);
    assert!(said.contains("`[a` is no pattern of files"), "{said}");
    let names: Vec<_> =
        fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["app"]);
}
