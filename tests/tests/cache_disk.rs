//! The disk behind the memory of `cache`: what it keeps, through what, and what becomes of the cache without it.
#![forbid(unsafe_code)]

use regent_tests::{Response, Server, Setup, in_parallel, regent_command, until};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Counts its runs, and says how many bytes it has: more than memory takes, if asked to.
const PAGE: &str = r#"<?php
$directory = dirname($_SERVER['DOCUMENT_ROOT']);
file_put_contents("$directory/runs", '.', FILE_APPEND | LOCK_EX);
clearstatcache();
header('Cache-Control: max-age=' . ($_GET['age'] ?? 600));
header('Surrogate-Key: ' . ($_GET['tag'] ?? 'page'));
header('ETag: "' . ($_GET['etag'] ?? 'a') . '"');
$size = (int) ($_GET['size'] ?? 0);
if ($size > 0) {
    $block = implode(range(0, 9));
    for ($sent = 0; $sent < $size; $sent += 65530) {
        echo str_repeat($block, min(6553, intdiv($size - $sent, 10)));
    }
} else {
    echo 'run ', filesize("$directory/runs");
}
"#;

fn setup(options: &str) -> Setup {
    let options = format!("cache {{\n{options}\n}}");
    Setup::new().admin("ADMIN").global_options(&options).file("index.php", PAGE).site("cache\nphp_server")
}

/// With a disk that is in use.
fn started(options: &str) -> Server {
    in_use(setup(options).start())
}

fn in_use(server: Server) -> Server {
    until("the disk is in use", || figure(&server, "working").as_bool().filter(|working| *working));
    server
}

fn figure(server: &Server, name: &str) -> serde_json::Value {
    server.admin().get("/regent/cache").expect(200).json()["disk"][name].clone()
}

fn wait_for(server: &Server, name: &str, count: u64) {
    until(&format!("{name} are {count}"), || (figure(server, name) == count).then_some(()));
}

fn again(directory: &Path) -> Command {
    let mut command = regent_command(directory);
    command.args(["run", "--config", "Caddyfile"]);
    command
}

fn status(response: &Response) -> String {
    response.header_all("cache-status").join(", ")
}

fn files(server: &Server) -> Vec<PathBuf> {
    let entries = fs::read_dir(server.directory().join("pages")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|ending| ending == "response")).collect()
}

fn runs(server: &Server) -> usize {
    fs::read(server.directory().join("runs")).map_or(0, |runs| runs.len())
}

fn purge(server: &Server, query: &str) -> u64 {
    let answer = server.admin().request("POST", &format!("/regent/cache/purge?{query}")).send();
    answer.expect(200).json()["purged"].as_u64().unwrap()
}

#[test]
fn what_is_stored_outlives_the_server_however_that_ends() {
    let server = started("disk DIRECTORY/pages 64MiB");
    server.get("/a").expect(200);
    let server = in_use(server.restart(again));
    wait_for(&server, "files", 1);
    let from_disk = server.get("/a").expect(200);
    assert_eq!((from_disk.text(), runs(&server)), ("run 1".into(), 1), "{from_disk:?}");
    assert!(
        status(&from_disk).starts_with("Regent; hit; ttl=") && status(&from_disk).ends_with("; detail=disk")
    );
    assert!(from_disk.header("age").is_some() && from_disk.header("surrogate-key").is_none());
    let from_memory = server.get("/a");
    assert!(
        status(&from_memory).starts_with("Regent; hit; ttl=") && !status(&from_memory).contains("detail")
    );

    server.get("/b").expect(200);
    wait_for(&server, "writes", 1);
    let server = in_use(server.restart_after_crash(again));
    wait_for(&server, "files", 2);
    for path in ["/a", "/b"] {
        assert!(status(&server.get(path)).contains("detail=disk"), "{path}");
    }
    assert_eq!((runs(&server), figure(&server, "hits")), (2, 2.into()));
    assert_eq!(server.admin().metric("regent_cache_disk_hits_total", &[]), 2.0);
    assert_eq!(server.admin().metric("regent_cache_disk_working", &[]), 1.0);
    server.stop();
}

#[test]
fn only_the_server_can_read_what_is_there() {
    let server = started("disk DIRECTORY/pages 64MiB");
    server.get("/").expect(200);
    wait_for(&server, "files", 1);
    let directory = fs::metadata(server.directory().join("pages")).unwrap();
    assert_eq!(directory.permissions().mode() & 0o7777, 0o700);
    let files = files(&server);
    assert_eq!(fs::metadata(&files[0]).unwrap().permissions().mode() & 0o7777, 0o600);
    server.stop();
}

#[test]
fn a_purge_takes_what_was_stored_before_a_restart_and_is_not_undone_by_a_crash() {
    let server = started("disk DIRECTORY/pages 64MiB");
    for target in ["/a?tag=one", "/b?tag=two", "/c/1", "/c/2", "/d"] {
        server.get(target).expect(200);
    }
    wait_for(&server, "writes", 5);
    let server = in_use(server.restart_after_crash(again));
    wait_for(&server, "files", 5);
    let site = format!("http://{}", server.address());
    assert_eq!(purge(&server, "tag=one"), 1);
    assert_eq!(purge(&server, &format!("url={site}/b%3Ftag=two")), 1);
    assert_eq!(purge(&server, &format!("prefix={site}/c/")), 2);
    let server = in_use(server.restart_after_crash(again));
    wait_for(&server, "files", 1);
    for target in ["/a?tag=one", "/b?tag=two", "/c/1", "/c/2"] {
        assert!(status(&server.get(target)).starts_with("Regent; fwd=uri-miss"), "{target}");
    }
    assert!(status(&server.get("/d")).contains("detail=disk"));
    wait_for(&server, "files", 5);
    server.request("POST", "/d").body("text/plain", "x").send().expect(200);
    wait_for(&server, "files", 4);
    assert_eq!(purge(&server, "all=true"), 4);
    assert_eq!(files(&server), Vec::<PathBuf>::new());
    server.stop();
}

#[test]
fn what_memory_lets_go_and_what_is_too_large_for_it_is_served_from_the_disk() {
    const SIZE: usize = 5_000_000;
    let server = started("memory 1MiB\nlargest_object 100KiB\ndisk DIRECTORY/pages 64MiB");
    for number in 0..40 {
        server.get(&format!("/?size=60000&number={number}")).expect(200);
        // An eighth of the memory may wait for the disk: two of them.
        wait_for(&server, "files", number + 1);
    }
    for number in 0..40 {
        let response = server.get(&format!("/?size=60000&number={number}")).expect(200);
        assert!(status(&response).starts_with("Regent; hit") && response.body.len() == 60_000, "{number}");
    }
    assert_eq!(runs(&server), 40);
    assert!(figure(&server, "hits").as_u64().unwrap() > 20, "memory has room for some 15");

    let target = format!("/?size={SIZE}");
    let first = server.get(&target).expect(200);
    assert!(status(&first).contains("stored"), "{}", status(&first));
    wait_for(&server, "files", 41);
    let whole = server.get(&target).expect(200);
    assert!(status(&whole).contains("hit") && whole.body == first.body && whole.body.len() == SIZE);
    assert_eq!(whole.header("content-length"), Some("5000000"));
    for (range, part) in
        [("bytes=0-9", 0..10), ("bytes=4000003-4999999", 4_000_003..SIZE), ("bytes=-5", SIZE - 5..SIZE)]
    {
        let response = server.request("GET", &target).header("Range", range).send().expect(206);
        assert!(response.body == first.body[part], "{range}");
    }
    let known = server.request("GET", &target).header("If-None-Match", "\"a\"").send();
    assert_eq!(known.expect(304).body.len(), 0);
    assert_eq!(server.request("HEAD", &target).send().expect(200).header("content-length"), Some("5000000"));
    assert_eq!(runs(&server), 41);

    // Beyond the largest: it reaches its client, and nothing is left of it.
    let larger = server.get("/?size=17000000").expect(200);
    assert!(larger.body.len() == 17_000_000);
    until("nothing is left of it", || {
        let begun =
            fs::read_dir(server.directory().join("pages")).unwrap().map(|entry| entry.unwrap().path());
        begun.into_iter().all(|path| path.extension().is_none_or(|ending| ending != "begun")).then_some(())
    });
    server.stop();
}

#[test]
fn many_who_ask_for_what_is_on_the_disk_run_nothing() {
    let server = started("memory 1MiB\nlargest_object 100KiB\ndisk DIRECTORY/pages 64MiB");
    let targets = ["/?size=50000", "/?size=500000"];
    for (number, target) in targets.iter().enumerate() {
        server.get(target).expect(200);
        wait_for(&server, "files", number as u64 + 1);
    }
    let server = in_use(server.restart(again));
    wait_for(&server, "files", 2);
    in_parallel(200, |number| {
        let response = server.get(targets[number % 2]).expect(200);
        assert!(status(&response).starts_with("Regent; hit"), "{}", status(&response));
        assert_eq!(response.body.len(), [50_000, 500_000][number % 2]);
    });
    assert_eq!(runs(&server), 2);
    server.stop();
}

#[test]
fn what_is_over_on_the_disk_is_asked_about() {
    let origin = r#"<?php
        if (($_SERVER['HTTP_IF_NONE_MATCH'] ?? '') === '"a"') { http_response_code(304); }
        header('Cache-Control: max-age=1'); header('ETag: "a"'); echo 'page';"#;
    let server = in_use(setup("disk DIRECTORY/pages 64MiB").file("index.php", origin).start());
    server.get("/").expect(200);
    let server = in_use(server.restart(again));
    wait_for(&server, "files", 1);
    let response = until("it is over", || {
        let response = server.get("/").expect(200);
        status(&response).contains("fwd=stale").then_some(response)
    });
    assert!(status(&response).contains("fwd=stale; fwd-status=304; stored"), "{}", status(&response));
    assert_eq!(response.text(), "page");
    server.stop();
}

#[test]
fn a_reload_keeps_the_disk_and_another_one_begins_anew() {
    let server = started("disk DIRECTORY/pages 64MiB");
    server.get("/").expect(200);
    wait_for(&server, "files", 1);
    let text = fs::read_to_string(server.directory().join("Caddyfile")).unwrap();
    let reload = |text: &str| {
        server.write_caddyfile(text);
        server.admin().request("POST", "/regent/reload").send().expect(200);
    };
    reload(&text.replace("cache\n", "header X-New 1\ncache\n"));
    assert!(status(&server.get("/")).starts_with("Regent; hit"));
    reload(&text.replace("64MiB", "32MiB"));
    // The store before gives the directory up when nobody needs it any more.
    until("the disk is in use again", || (figure(&server, "limit") == 32 << 20).then_some(()));
    until("it is known what is there", || (figure(&server, "files") == 1).then_some(()));
    assert!(status(&server.get("/")).contains("detail=disk"));
    assert_eq!(runs(&server), 1);
    server.stop();
}

#[test]
fn an_upgrade_hands_the_disk_over() {
    let mut server = started("disk DIRECTORY/pages 64MiB");
    server.get("/").expect(200);
    wait_for(&server, "files", 1);
    let answer = server.admin().request("POST", "/regent/upgrade").send().expect(200).json();
    server.follow(u32::try_from(answer["process"].as_u64().unwrap()).unwrap());
    let server = in_use(server);
    wait_for(&server, "files", 1);
    assert!(status(&server.get("/")).contains("hit"));
    assert_eq!(runs(&server), 1);
    server.stop();
}

#[test]
fn a_second_server_with_the_same_directory_says_so_and_goes_on_in_memory() {
    let first = started("disk DIRECTORY/pages 64MiB");
    first.get("/").expect(200);
    wait_for(&first, "files", 1);
    let second = setup(&format!("disk {} 64MiB", first.directory().join("pages").display())).start();
    second.wait_for_log("another process has the directory of the cache");
    assert_eq!(figure(&second, "working"), false);
    assert!(status(&second.get("/")).contains("uri-miss; stored"));
    assert!(status(&second.get("/")).starts_with("Regent; hit"));
    first.stop();
    let second = in_use(second);
    second.wait_for_log("this process has the directory of the cache now");
    second.stop();
}

#[test]
fn a_directory_that_cannot_be_used_costs_nothing_but_what_is_on_it() {
    let setup = setup("disk DIRECTORY/pages 64MiB");
    fs::write(setup.directory().join("pages"), "a file").unwrap();
    let server = setup.start();
    server.wait_for_log("the disk of the cache cannot be used: it goes on in memory");
    server.get("/").expect(200);
    assert!(status(&server.get("/")).starts_with("Regent; hit"));
    assert_eq!(server.admin().metric("regent_cache_disk_working", &[]), 0.0);
    fs::remove_file(server.directory().join("pages")).unwrap();
    let server = in_use(server);
    server.wait_for_log("the disk of the cache is in use again");
    server.get("/b").expect(200);
    wait_for(&server, "files", 1);

    // Deleted and damaged under the server, by whoever may.
    let path = files(&server).remove(0);
    fs::remove_file(path).unwrap();
    fs::remove_dir_all(server.directory().join("pages")).unwrap();
    assert!(status(&server.get("/b")).starts_with("Regent; hit"));
    server.get("/c").expect(200);
    until("it is made anew", || server.directory().join("pages/lock").exists().then_some(()));
    let server = in_use(server);
    server.get("/d").expect(200);
    until("it is written to", || (!files(&server).is_empty()).then_some(()));
    server.stop();
}

#[test]
fn a_full_disk_is_a_smaller_cache() {
    let setup = setup("memory 1MiB\nlargest_object 100KiB\ndisk DIRECTORY/mount/pages 64MiB");
    let mount = setup.directory().join("mount");
    fs::create_dir(&mount).unwrap();
    let mut command = Command::new("mount");
    command.args(["-t", "tmpfs", "-o", "size=1m,mode=700", "none"]).arg(&mount).stderr(Stdio::null());
    let is_mounted = command.status().is_ok_and(|status| status.success());
    if !is_mounted {
        return println!("SKIPPED: only root can have a disk that is full");
    }
    let _mounted = Mounted(mount.clone());
    let server = in_use(setup.start());
    for number in 0..60 {
        server.get(&format!("/?size=60000&number={number}")).expect(200);
    }
    server.wait_for_log("the disk of the cache cannot be written: it goes on in memory");
    assert!(server.admin().metric("regent_cache_disk_errors_total", &[]) > 0.0);
    let taken: u64 =
        fs::read_dir(mount.join("pages")).unwrap().map(|file| file.unwrap().metadata().unwrap().size()).sum();
    assert!(taken <= 1 << 20);
    let large = server.get("/?size=3000000").expect(200);
    assert_eq!(large.body.len(), 3_000_000, "who asked has all of it");
    // There is room again, and it is used.
    let target = "/?size=60000&number=again";
    until("it is written again", || {
        purge(&server, "all=true");
        server.get(target).expect(200);
        (figure(&server, "files").as_u64()? > 0).then_some(())
    });
    server.stop();
}

struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn without_a_cache_in_any_site_there_is_no_disk() {
    let setup = Setup::new().global_options("cache {\ndisk DIRECTORY/pages 64MiB\n}");
    let server = setup.file("index.php", PAGE).start();
    server.get("/").expect(200);
    assert!(!server.directory().join("pages").exists());
    server.stop();
}
