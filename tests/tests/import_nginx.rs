//! `regent import nginx`: the site that it writes answers as nginx with php-fpm does.
#![forbid(unsafe_code)]

use regent_tests::fastcgi::Fpm;
use regent_tests::nginx::Nginx;
use regent_tests::{Conn, Response, Setup, own_address, regent_command};
use std::fs;
use std::net::SocketAddr;
use std::path::Path;

const NAMES_ITSELF: &str = "<?php echo 'RA', 'N ', $_SERVER['SCRIPT_NAME'];";

/// Of every site.
const FILES: &[(&str, &str)] = &[
    ("index.php", NAMES_ITSELF),
    ("other.php", NAMES_ITSELF),
    ("w/api.php", NAMES_ITSELF),
    ("w/index.php", NAMES_ITSELF),
    ("w/maintenance/update.php", NAMES_ITSELF),
    ("uploads/shell.php", NAMES_ITSELF),
    ("uploads/dir/index.php", NAMES_ITSELF),
    ("admin/index.php", NAMES_ITSELF),
    ("downloads/tool.php", NAMES_ITSELF),
    ("post.php", NAMES_ITSELF),
    ("uploads/photo.jpg", "a photo"),
    ("downloads/tool.zip", "a tool"),
    ("a.css", "a style"),
    ("dir/page.html", "a page"),
    ("404.html", "it is not here"),
    ("index.html", "a front page"),
];

/// Asked of every site.
const PATHS: &[&str] = &[
    "/",
    "/index.php",
    "/index.php/a/b",
    "/other.php",
    "/w/api.php",
    "/w/index.php",
    "/w/",
    "/w/maintenance/update.php",
    "/uploads/shell.php",
    "/uploads/shell.php/x.jpg",
    "/uploads/dir/",
    "/uploads/photo.jpg",
    "/uploads/none.jpg",
    "/admin/",
    "/admin/page",
    "/admin/index.php",
    "/downloads/tool.php",
    "/downloads/tool.zip",
    "/a.css",
    "/none.css",
    "/dir/page.html",
    "/dir/none",
    "/a/route?x=1",
    "/old/page",
    "/moved/to/here?x=1",
    "/blog/42",
    "/wiki/Main_Page",
    "/closed",
    "/healthz",
];

/// What both servers need, in the lines of each conf: SCRIPT is how php-fpm is asked.
const SCRIPT: &str = "include /etc/nginx/fastcgi_params; fastcgi_split_path_info ^(.+?\\.php)(/.*)$; \
                      fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name; \
                      fastcgi_param PATH_INFO $fastcgi_path_info; fastcgi_pass unix:FPM;";

#[test]
fn a_site_whose_scripts_are_all_run_is_what_it_was() {
    compare(
        "index index.php;
         location / { try_files $uri $uri/ /index.php?$args; }
         location = /healthz { return 200 well; }
         location = /closed { deny all; }
         location ~* ^/uploads/.*\\.php { return 403; }
         location ^~ /downloads/ { }
         location /admin/ { try_files $uri $uri/ /admin/index.php?$args; }
         location ~ ^(.+?\\.php)(/.*)?$ { try_files $fastcgi_script_name =404; SCRIPT }
         location ~* \\.(css|js)$ { expires 1h; }",
    );
}

#[test]
fn a_site_with_a_front_controller_alone_runs_nothing_else() {
    compare(
        "location / { try_files $uri /index.php$is_args$args; }
         location ~ ^/index\\.php(/|$) { SCRIPT }
         location ~ \\.php$ { return 404; }",
    );
}

#[test]
fn a_site_that_names_its_scripts_runs_those() {
    compare(
        "index index.php;
         location ~ ^/w/(index|api)\\.php$ { SCRIPT }
         location /uploads/ { }
         location /wiki/ { rewrite ^/wiki/(.*)$ /w/index.php?title=$1 last; }
         location = / { return 301 /wiki/Main_Page; }
         location / { try_files $uri $uri/ =404; }",
    );
    compare(
        "index index.php;
         location ~ ^/(index|w/api)\\.php$ { SCRIPT }
         location ~* ^.+\\.php$ { deny all; }
         location ~ ^/(uploads|admin) { deny all; return 403; }
         location / { try_files $uri $uri/ =404; }",
    );
}

#[test]
fn rewrites_redirects_and_aliases_lead_where_they_led() {
    compare(
        "index index.php;
         if ($request_method !~ ^(GET|HEAD|POST)$) { return 405; }
         rewrite ^/blog/([0-9]+)/?$ /post.php?id=$1 last;
         rewrite ^/moved/(.*)$ /new/$1 redirect;
         location /old { return 301 /a.css; }
         location /dir/ { alias ROOT/uploads/; }
         location / { if (!-e $request_filename) { rewrite ^(.*)$ /index.php?q=$1 last; } }
         location ~ \\.php$ { SCRIPT }",
    );
}

#[test]
fn a_site_of_files_is_what_it_was() {
    compare(
        "index index.html;
         location / { try_files $uri $uri/ =404; }
         location /admin/ { allow 192.0.2.1; deny all; }
         error_page 404 /404.html;",
    );
}

/// Asks both for all paths.
fn compare(conf: &str) {
    let Some(program) = Nginx::program() else { return };
    let setup = FILES.iter().fold(Setup::new(), |setup, (path, text)| setup.file(path, text));
    let directory = setup.directory().to_owned();
    let Some(fpm) = Fpm::start(&directory) else {
        println!("SKIPPED: php-fpm is not installed");
        return;
    };
    let address = own_address();
    let text = conf
        .replace("SCRIPT", SCRIPT)
        .replace("FPM", &fpm.socket().display().to_string())
        .replace("ROOT", &setup.root().display().to_string());
    let server =
        |listen: &str| format!("server {{\nlisten {listen};\nroot {};\n{text}\n}}\n", setup.root().display());
    let nginx = Nginx::start(&program, &directory, &server(&address.to_string()), address);
    let site = imported(&directory, &server("PORTHERE"));
    let options = "{\nadmin off\nfrankenphp {\nnum_threads 2\nmax_wait_time off\n}\n}\n";
    let regent = setup
        .caddyfile(&format!("{options}{}", site.replacen("http://:80 {", "http://ADDRESS {", 1)))
        .start();
    for path in PATHS {
        let theirs = ask(address, path);
        check(&theirs, &regent.get(path), path, &site);
    }
    regent.stop();
    drop(nginx);
}

/// What the command writes.
fn imported(directory: &Path, conf: &str) -> String {
    let file = directory.join("site.conf");
    fs::write(&file, conf.replace("listen PORTHERE;\n", "")).expect("the directory is ours");
    let output =
        regent_command(directory).args(["import", "nginx"]).arg(&file).output().expect("regent starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn ask(address: SocketAddr, path: &str) -> Response {
    let mut conn = Conn::open(address);
    conn.send(format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"));
    conn.response()
}

/// The same script, file, redirect or refusal. nginx shows the text of scripts that it does not run, which Regent does not where the
/// site has PHP; and it may take `/other.php/a`, which it does not refuse, for no script.
fn check(theirs: &Response, ours: &Response, path: &str, site: &str) {
    let (their_text, our_text) = (theirs.text(), ours.text());
    let shows_source = their_text.contains("<?php") && site.contains("php_server");
    let is_refused = |response: &Response| response.status >= 400;
    let is_same = if path.contains(".php/") && !is_refused(theirs) {
        true
    } else if shows_source || is_refused(theirs) {
        is_refused(ours)
    } else if theirs.status / 100 == 3 {
        let path_of = |response: &Response| {
            let location = response.header("location").unwrap_or_default().to_owned();
            location
                .split_once("://")
                .map_or(location.clone(), |(_, rest)| rest[rest.find('/').unwrap_or(0)..].to_owned())
        };
        (theirs.status, path_of(theirs)) == (ours.status, path_of(ours))
    } else {
        (theirs.status, their_text.trim()) == (ours.status, our_text.trim())
    };
    assert!(
        is_same,
        "{path}: nginx {} {their_text}\nRegent {} {our_text}\n{site}",
        theirs.status, ours.status
    );
}
