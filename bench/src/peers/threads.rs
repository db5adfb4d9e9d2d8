//! How many threads or processes of a server run PHP, seen from outside and cheaply.

use serde::Deserialize;

use crate::procfs;

/// Where a server's PHP runs.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PhpThreads {
    /// In each child of the server's process.
    Children,
    /// In the threads of the server's process and of all processes below it that are named one of these and a number:
    /// `php-0`, `php-1` … (FrankenPHP numbers in hexadecimal digits). Where PHP runs in processes, they are named so.
    Named(Vec<String>),
}

impl PhpThreads {
    /// Their number now, below this process.
    pub fn count(&self, leader: i32) -> u32 {
        let number = match self {
            Self::Children => procfs::children(leader).len(),
            Self::Named(names) => {
                let mut processes = procfs::descendants(leader);
                processes.push(leader);
                processes.into_iter().map(|process| count_named(process, names)).sum()
            }
        };
        u32::try_from(number).expect("invariant: Linux process ids fit in 31 bits")
    }
}

fn count_named(process: i32, names: &[String]) -> usize {
    procfs::thread_names(process)
        .iter()
        .filter(|thread| names.iter().any(|name| is_numbered(thread, name)))
        .count()
}

fn is_numbered(thread: &str, name: &str) -> bool {
    thread
        .strip_prefix(name)
        .and_then(|rest| rest.strip_prefix('-'))
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    #[test]
    fn a_number_must_follow_the_name() {
        assert!(is_numbered("php-0", "php") && is_numbered("worker.php-12", "worker.php"));
        for other in ["php", "php-", "php-x", "regent-php-0", "phpx-1"] {
            assert!(!is_numbered(other, "php"), "{other}");
        }
    }

    #[test]
    fn the_named_threads_of_a_process_are_counted() {
        let own = i32::try_from(std::process::id()).expect("a pid");
        let threads = PhpThreads::Named(vec!["census".to_owned()]);
        let barrier = Barrier::new(3);
        thread::scope(|scope| {
            for number in 0..2 {
                let name = format!("census-{number}");
                let builder = thread::Builder::new().name(name);
                builder
                    .spawn_scoped(scope, || {
                        barrier.wait();
                        barrier.wait();
                    })
                    .expect("a thread");
            }
            barrier.wait();
            assert_eq!(threads.count(own), 2);
            barrier.wait();
        });
    }
}
