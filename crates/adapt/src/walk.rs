//! What has to be known of all routes before any is written.

use regent_config::{Config, Handler, WorkerRef};

/// Of each handler of PHP, the workers that it can use.
pub(crate) fn worker_lists(config: &Config) -> Vec<Vec<WorkerRef>> {
    let lists = config.handlers().filter_map(|handler| match handler {
        Handler::Php(php) => Some(php.workers.clone()),
        Handler::PhpServer(server) => Some(server.php.workers.clone()),
        _ => None,
    });
    lists.collect()
}
