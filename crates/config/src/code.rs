//! Whether a configuration has code run for its requests.

use crate::model::{Config, Global, Handler};

impl Config {
    /// Whether PHP or a native service may have something to do: for a request, in a worker, or beside them.
    pub fn runs_code(&self) -> bool {
        let Global { php, native, health, .. } = &self.global;
        let is_asked = !php.workers.is_empty() || !php.tasks.is_empty() || health.is_some();
        is_asked || !native.services.is_empty() || self.handlers().any(is_code)
    }
}

fn is_code(handler: &Handler) -> bool {
    matches!(handler, Handler::Php(_) | Handler::PhpServer(_) | Handler::Native(_))
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::config;

    #[test]
    fn php_is_found_wherever_a_request_may_come_to_it() {
        for text in [
            ":80 {\nphp_server\n}",
            ":80 {\nrespond x\n}\n:81 {\nhandle /a {\nroute {\nphp\n}\n}\n}",
            ":80 {\nfile_server\nhandle_errors {\nphp\n}\n}",
            ":80 {\nintercept {\nhandle_response {\nphp\n}\n}\nrespond x\n}",
            ":80 {\nreverse_proxy 127.0.0.1:1 {\nhandle_response {\nphp\n}\n}\n}",
            "{\nfrankenphp {\nworker /w.php\n}\n}\n:80 {\nrespond x\n}",
        ] {
            assert!(config(text).runs_code(), "{text}");
        }
    }

    #[test]
    fn what_the_server_does_itself_is_no_code() {
        for text in [
            ":80 {\nreverse_proxy 127.0.0.1:1 127.0.0.1:2\n}",
            ":80 {\nfile_server\nencode gzip\nmercure {\nanonymous\n}\nhandle_errors {\nrespond x\n}\n}",
            ":80 {\nintercept {\nreplace_status 200\n}\nrespond x\n}",
        ] {
            assert!(!config(text).runs_code(), "{text}");
        }
    }
}
