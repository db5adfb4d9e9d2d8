//! A `server` as a site.

use super::addresses::{self, Listen};
use super::content::{self, php_of};
use super::locations;
use super::site::Site;
use super::tree::Directive;
use super::values::size;
use super::{access, rewrites};
use crate::LeftOut;
use crate::writer::{Writer, word};
use std::collections::BTreeMap;
use std::path::Path;

/// Lines of a server or a location that need no counterpart: what they ask for is so, or has no meaning without nginx' processes.
const SILENT: &[&str] = &[
    "aio",
    "charset",
    "chunked_transfer_encoding",
    "client_body_buffer_size",
    "client_body_timeout",
    "client_header_buffer_size",
    "client_header_timeout",
    "default_type",
    "directio",
    "disable_symlinks",
    "error_log",
    "etag",
    "fastcgi_buffer_size",
    "fastcgi_buffering",
    "fastcgi_buffers",
    "fastcgi_busy_buffers_size",
    "fastcgi_connect_timeout",
    "fastcgi_hide_header",
    "fastcgi_index",
    "fastcgi_intercept_errors",
    "fastcgi_ignore_client_abort",
    "fastcgi_keep_conn",
    "fastcgi_max_temp_file_size",
    "fastcgi_param",
    "fastcgi_pass",
    "fastcgi_read_timeout",
    "fastcgi_request_buffering",
    "fastcgi_send_timeout",
    "fastcgi_split_path_info",
    "fastcgi_temp_file_write_size",
    "gzip",
    "gzip_buffers",
    "gzip_comp_level",
    "gzip_disable",
    "gzip_http_version",
    "gzip_min_length",
    "gzip_proxied",
    "gzip_static",
    "gzip_types",
    "gzip_vary",
    "http2",
    "http3",
    "if_modified_since",
    "index",
    "keepalive_requests",
    "keepalive_timeout",
    "large_client_header_buffers",
    "limit_conn_log_level",
    "limit_req_log_level",
    "limit_req_status",
    "listen",
    "log_not_found",
    "max_ranges",
    "merge_slashes",
    "msie_padding",
    "open_file_cache",
    "open_file_cache_errors",
    "open_file_cache_min_uses",
    "open_file_cache_valid",
    "port_in_redirect",
    "quic_retry",
    "reset_timedout_connection",
    "send_timeout",
    "sendfile",
    "server_name",
    "server_name_in_redirect",
    "server_tokens",
    "ssl",
    "ssl_buffer_size",
    "ssl_certificate",
    "ssl_certificate_key",
    "ssl_ciphers",
    "ssl_conf_command",
    "ssl_dhparam",
    "ssl_early_data",
    "ssl_ecdh_curve",
    "ssl_prefer_server_ciphers",
    "ssl_protocols",
    "ssl_session_cache",
    "ssl_session_tickets",
    "ssl_session_timeout",
    "ssl_stapling",
    "ssl_stapling_verify",
    "ssl_trusted_certificate",
    "resolver",
    "resolver_timeout",
    "tcp_nodelay",
    "tcp_nopush",
    "types",
    "types_hash_max_size",
    "variables_hash_max_size",
];

/// The definitions that lines of a server refer to.
pub(super) struct Surroundings<'a> {
    pub upstreams: BTreeMap<&'a str, &'a Directive>,
    /// `limit_req_zone` lines by `zone=NAME`.
    pub zones: BTreeMap<&'a str, &'a Directive>,
    /// Lines of `http`, which hold for all servers.
    shared: Vec<&'a Directive>,
    /// The names of servers with TLS.
    secured: Vec<String>,
}

impl<'a> Surroundings<'a> {
    pub fn new(around: &[&'a Directive], servers: &[&'a Directive]) -> Self {
        let named =
            |name: &str| around.iter().copied().filter(move |line| line.name == name).collect::<Vec<_>>();
        let upstreams = named("upstream").into_iter().map(|line| (line.arg(0), line)).collect();
        let zone = |line: &'a Directive| {
            let zone = line.args.iter().find_map(|arg| arg.strip_prefix("zone="))?;
            Some((zone.split(':').next().unwrap_or(zone), line))
        };
        let zones = named("limit_req_zone").into_iter().filter_map(zone).collect();
        let with_tls =
            servers.iter().filter(|server| addresses::listens(server.body()).iter().any(|one| one.has_tls));
        let secured = with_tls.flat_map(|server| addresses::names(server.body()).0).collect();
        Self { upstreams, zones, shared: around.to_vec(), secured }
    }

    fn shared(&self, name: &str) -> Option<&'a Directive> {
        self.shared.iter().copied().find(|line| line.name == name)
    }
}

/// The site, and what of the server it does not say.
pub(super) fn write(server: &Directive, around: &Surroundings<'_>, writer: &mut Writer) -> Vec<LeftOut> {
    let lines = server.body();
    let listens = addresses::listens(lines);
    let (names, unsaid) = addresses::names(lines);
    if leads_to_https(lines, &listens, &names, around) {
        return Vec::new();
    }
    let mut site = Site::new(around, php_of(lines));
    writer.space();
    let head = addresses::written(&names, &listens).join(", ");
    writer.block(&head, |writer| {
        unsaid.iter().for_each(|line| site.leave_out(line, "a name has to be written out", writer));
        let options = Options { lines, around };
        options.write(&listens, writer);
        content::write_headers(&mut site, lines, writer);
        rest(&mut site, lines, writer);
        writer.space();
        locations::write(&mut site, lines, writer);
        error_pages(&mut site, lines, writer);
    });
    site.left_out
}

/// A server that only sends to HTTPS is needed no more: Regent does so for each site with a certificate.
fn leads_to_https(
    lines: &[Directive],
    listens: &[Listen],
    names: &[String],
    around: &Surroundings<'_>,
) -> bool {
    let target = |line: &Directive| match (line.name.as_str(), line.args.len()) {
        ("return", 2) => Some(line.arg(1).to_owned()),
        ("rewrite", 2 | 3) if matches!(line.arg(0), "^" | "^(.*)$" | "^(.*)" | ".*") => {
            Some(line.arg(1).to_owned())
        }
        _ => None,
    };
    let inner =
        lines.iter().filter(|line| line.name == "location" && line.arg(0) == "/").flat_map(Directive::body);
    let Some(target) = lines.iter().chain(inner).find_map(target) else { return false };
    let Some(host) = target.strip_prefix("https://") else { return false };
    let is_own = ["$host", "$server_name", "$http_host"].iter().any(|own| host.starts_with(own))
        || names
            .iter()
            .any(|name| host.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with(['$', '/'])));
    let is_plain = listens.iter().all(|listen| !listen.has_tls && listen.port == 80);
    is_plain && is_own && (names.is_empty() || names.iter().all(|name| around.secured.contains(name)))
}

/// The first lines of a site.
struct Options<'a, 'b> {
    lines: &'a [Directive],
    around: &'a Surroundings<'b>,
}

impl Options<'_, '_> {
    fn write(&self, listens: &[Listen], writer: &mut Writer) {
        let bound: Vec<_> =
            listens.iter().filter(|one| !one.address.is_empty()).map(|one| one.address.as_str()).collect();
        if !bound.is_empty() {
            writer.line(&format!("bind {}", bound.join(" ").replace(['[', ']'], "")));
        }
        if let (Some(certificate), Some(key)) = (self.own("ssl_certificate"), self.own("ssl_certificate_key"))
        {
            writer.comment("Certificates come by themselves. To begin with those of nginx, which the server's user has to be able to read:");
            writer.comment(&format!("tls {} {}", word(certificate.arg(0)), word(key.arg(0))));
        }
        if let Some(root) = self.any("root") {
            writer.line(&format!("root * {}", word(root.arg(0))));
        }
        if self.any("gzip").is_some_and(|line| line.arg(0) == "on") {
            writer.line("encode zstd br gzip");
        }
        if let Some(size) = self.any("client_max_body_size").and_then(body_limit) {
            write_body_limit(&size, writer);
            if self.lines.iter().any(content::is_of_php) {
                let php = size.replace("iB", "");
                let own = format!(
                    "PHP has limits of its own: php_ini post_max_size {php}, php_ini upload_max_filesize {php}"
                );
                writer.comment(&own);
            }
        }
        if let Some(log) =
            self.own("access_log").filter(|line| line.arg(0) != "off" && !line.arg(0).starts_with("syslog:"))
        {
            let name = Path::new(log.arg(0)).file_name().unwrap_or_default().to_string_lossy();
            writer
                .block("log", |writer| writer.line(&format!("output file /var/log/regent/{}", word(&name))));
        }
    }

    fn own(&self, name: &str) -> Option<&Directive> {
        self.lines.iter().find(|line| line.name == name)
    }

    fn any(&self, name: &str) -> Option<&Directive> {
        self.own(name).or_else(|| self.around.shared(name))
    }
}

/// `None`: there is no limit.
pub(super) fn body_limit(line: &Directive) -> Option<String> {
    size(line.arg(0)).filter(|size| size != "0")
}

pub(super) fn write_body_limit(size: &str, writer: &mut Writer) {
    writer.block("request_body", |writer| writer.line(&format!("max_size {size}")));
}

/// Lists the lines that no other part takes.
pub(super) fn rest(site: &mut Site<'_>, lines: &[Directive], writer: &mut Writer) {
    for line in lines {
        let name = line.name.as_str();
        let is_known = SILENT.contains(&name)
            || access::TAKES.contains(&name)
            || rewrites::TAKES.contains(&name)
            || content::TAKES.contains(&name)
            || matches!(
                name,
                "root" | "client_max_body_size" | "access_log" | "location" | "error_page" | "set"
            );
        if is_known {
            continue;
        }
        let why = match name {
            "include" => "there is no such file",
            "ssl_client_certificate" | "ssl_verify_client" => "write `tls { client_auth { … } }`",
            name if name.starts_with("fastcgi_cache") || name.starts_with("proxy_cache") => {
                "write `cache`, which reads Cache-Control"
            }
            name if name.starts_with("ssl_") => "Regent's own choice is kept; see `tls`",
            name if name.ends_with("_by_lua_block")
                || name.ends_with("_by_lua")
                || name.ends_with("_by_lua_file") =>
            {
                "there is no Lua"
            }
            _ => "it has no counterpart",
        };
        site.leave_out(line, why, writer);
    }
}

fn error_pages(site: &mut Site<'_>, lines: &[Directive], writer: &mut Writer) {
    for line in lines.iter().filter(|line| line.name == "error_page") {
        let Some((page, statuses)) = line.args.split_last() else { continue };
        let statuses: Vec<&str> =
            statuses.iter().map(String::as_str).filter(|status| status.parse::<u16>().is_ok()).collect();
        let is_front =
            site.php.as_ref().is_some_and(|php| php.front.as_deref() == Some(page.trim_start_matches('/')));
        if is_front && statuses == ["404"] {
            continue;
        }
        if statuses.is_empty() || !page.starts_with('/') || statuses.len() + 1 != line.args.len() {
            site.leave_out(line, "write `handle_errors`", writer);
            continue;
        }
        writer.space();
        writer.block(&format!("handle_errors {}", statuses.join(" ")), |writer| {
            writer.line(&format!("rewrite * {}", word(page)));
            match (&site.php, page.contains(".php")) {
                (Some(_), true) => writer.line("php_server"),
                _ => writer.line("file_server"),
            }
        });
    }
}
