//! The configurations of the servers, each for one application.

use std::path::Path;

use super::application::Application;
use super::peer::Peer;
use crate::peers::configurations::{fastcgi_parameters, fixed_fpm, nginx};

/// What the configurations of a server are made of.
#[derive(Debug)]
pub struct Parts<'a> {
    pub application: Application,
    /// The server's own.
    pub directory: &'a Path,
    /// The document root.
    pub root: &'a Path,
    pub port: u16,
    pub threads: u16,
}

impl Parts<'_> {
    /// Regent's and FrankenPHP's.
    pub fn caddyfile(&self, peer: Peer) -> String {
        let (block, more) =
            if peer.is_regent() { ("regent", "") } else { ("frankenphp", "\tpersist_config off\n") };
        let index = self.index(peer);
        // One thread must be left for classic requests.
        let options = match self.application.worker().filter(|_| peer.is_worker()) {
            Some(worker) => format!(
                "\t\tnum_threads {}\n\t\tworker {{\n\t\t\tfile \"{}\"\n\t\t\tnum {}\n\t\t}}\n",
                self.threads + 1,
                self.root.join(worker).display(),
                self.threads,
            ),
            None => format!("\t\tnum_threads {}\n", self.threads),
        };
        format!(
            "{{
\tadmin off
\tauto_https off
{more}\t{block} {{
{options}\t}}
}}

http://:{port} {{
\tbind 127.0.0.1
\troot * \"{root}\"
\tphp_server {{
\t\tindex {index}
\t}}
}}
",
            port = self.port,
            root = self.root.display(),
        )
    }

    fn index(&self, peer: Peer) -> &'static str {
        let worker = self.application.worker().filter(|_| peer.is_worker());
        worker.unwrap_or_else(|| self.application.front_controller())
    }

    pub fn nginx(&self, socket: &Path) -> String {
        let http = format!(
            "    fastcgi_buffers 32 16k;
    fastcgi_buffer_size 32k;
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        root \"{root}\";
        index {index};
        location / {{
            try_files $uri /{index}$is_args$args;
        }}
        location ~ \\.php$ {{
            fastcgi_pass \"unix:{socket}\";
{parameters}        }}
    }}
",
            port = self.port,
            root = self.root.display(),
            index = self.application.front_controller(),
            socket = socket.display(),
            parameters = fastcgi_parameters(),
        );
        nginx(self.directory, &http)
    }

    pub fn fpm_pool(&self, socket: &Path) -> String {
        fixed_fpm(self.directory, socket, self.threads)
    }
}

/// PHP's settings of these runs, on top of those of all suites: deprecations are of the applications' age, sessions are not
/// kept where the machine has its own, and old ones are not looked for in the midst of a measurement.
pub fn php_ini(directory: &Path, settings: &[String]) -> String {
    let mut text = format!(
        "error_reporting = 8191\nsession.save_path = \"{}\"\nsession.gc_probability = 0\n",
        directory.join("sessions").display()
    );
    for setting in settings {
        text += &format!("{setting}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(application: Application) -> Parts<'static> {
        let (directory, root) = (Path::new("/w/server"), Path::new("/w/app"));
        Parts { application, directory, root, port: 8080, threads: 8 }
    }

    #[test]
    fn as_many_threads_answer_in_both_modes() {
        let classic = parts(Application::Symfony).caddyfile(Peer::Classic);
        assert!(classic.contains("\tregent {\n\t\tnum_threads 8\n\t}\n"), "{classic}");
        assert!(classic.contains("\t\tindex index.php\n"), "{classic}");
        let worker = parts(Application::Symfony).caddyfile(Peer::FrankenphpWorker);
        let block = "\tfrankenphp {\n\t\tnum_threads 9\n\t\tworker {\n\t\t\tfile \"/w/app/worker.php\"\n\t\t\tnum 8\n";
        assert!(worker.contains(block) && worker.contains("\t\tindex worker.php\n"), "{worker}");
    }

    #[test]
    fn paths_that_are_no_files_are_the_front_controllers() {
        let text = parts(Application::Dokuwiki).nginx(Path::new("/w/php.sock"));
        assert!(text.contains("try_files $uri /doku.php$is_args$args;"), "{text}");
        let caddyfile = parts(Application::Dokuwiki).caddyfile(Peer::OtherClassic);
        assert!(caddyfile.contains("\t\tindex doku.php\n"), "{caddyfile}");
    }

    #[test]
    fn settings_of_the_command_line_win() {
        let text = php_ini(Path::new("/w/server"), &["opcache.jit = \"tracing\"".to_owned()]);
        assert!(text.ends_with("session.gc_probability = 0\nopcache.jit = \"tracing\"\n"), "{text}");
    }
}
