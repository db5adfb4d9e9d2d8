//! What the suites share of the configurations of nginx and php-fpm.

use std::path::Path;

use super::{LISTEN_BACKLOG, worker_user};

/// A php-fpm with one pool. `processes`: the directives about its children.
pub fn fpm(directory: &Path, socket: &Path, processes: &str) -> String {
    let user = worker_user().map_or(String::new(), |user| format!("user = {user}\ngroup = {user}\n"));
    format!(
        "[global]
daemonize = no
error_log = {directory}/php-fpm.log
log_level = warning

[bench]
{user}listen = {socket}
listen.mode = 0666
{processes}",
        directory = directory.display(),
        socket = socket.display(),
    )
}

/// One whose children are there from the start.
pub fn fixed_fpm(directory: &Path, socket: &Path, children: u16) -> String {
    fpm(directory, socket, &format!("listen.backlog = {LISTEN_BACKLOG}\n{}", fixed_children(children)))
}

pub fn fixed_children(children: u16) -> String {
    format!("pm = static\npm.max_children = {children}\npm.max_requests = 0\n")
}

/// An nginx that never closes a kept connection. `http`: the lines of that block which differ.
pub fn nginx(directory: &Path, http: &str) -> String {
    let user = worker_user().map_or(String::new(), |user| format!("user {user};\n"));
    let processes = std::thread::available_parallelism().map_or(1, usize::from);
    let directory = directory.display();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("    {kind}_temp_path \"{directory}/{kind}\";\n"))
        .concat();
    format!(
        "{user}daemon off;
worker_processes {processes};
pid \"{directory}/nginx.pid\";
events {{
    worker_connections 16384;
}}
http {{
    access_log off;
    sendfile on;
    tcp_nopush on;
    keepalive_timeout 3600s;
    keepalive_requests 1000000000;
{temporary}{http}}}
"
    )
}

/// Lines of a `location` block.
pub fn fastcgi_parameters() -> String {
    let line = |(name, value): &(&str, &str)| format!("            fastcgi_param {name} {value};\n");
    FASTCGI_PARAMETERS.iter().map(line).collect()
}

/// Those of nginx's own fastcgi.conf, which other distributions keep elsewhere.
const FASTCGI_PARAMETERS: &[(&str, &str)] = &[
    ("SCRIPT_FILENAME", "$document_root$fastcgi_script_name"),
    ("QUERY_STRING", "$query_string"),
    ("REQUEST_METHOD", "$request_method"),
    ("CONTENT_TYPE", "$content_type"),
    ("CONTENT_LENGTH", "$content_length"),
    ("SCRIPT_NAME", "$fastcgi_script_name"),
    ("REQUEST_URI", "$request_uri"),
    ("DOCUMENT_URI", "$document_uri"),
    ("DOCUMENT_ROOT", "$document_root"),
    ("SERVER_PROTOCOL", "$server_protocol"),
    ("REQUEST_SCHEME", "$scheme"),
    ("GATEWAY_INTERFACE", "CGI/1.1"),
    ("SERVER_SOFTWARE", "nginx/$nginx_version"),
    ("REMOTE_ADDR", "$remote_addr"),
    ("REMOTE_PORT", "$remote_port"),
    ("SERVER_ADDR", "$server_addr"),
    ("SERVER_PORT", "$server_port"),
    ("SERVER_NAME", "$server_name"),
    ("REDIRECT_STATUS", "200"),
];
