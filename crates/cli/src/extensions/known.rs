//! What is known of extensions and threads. A PHP with threads refuses extensions that were compiled for one without, and
//! takes any other: whether its author thought of threads it cannot see.

/// How an extension does where PHP's threads share a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Safety {
    /// It comes with PHP, and keeps its state for each thread.
    Safe,
    /// Safe, but there is something to know: what the process has once for all threads, say.
    Shares(&'static str),
    /// What goes wrong.
    Trouble(&'static str),
    Unknown,
}

/// By the name that PHP knows it by, in small letters.
pub fn safety(extension: &str) -> Safety {
    if let Some((_, safety)) = SPECIAL.iter().find(|(name, _)| *name == extension) {
        return *safety;
    }
    match SAFE.contains(&extension) {
        true => Safety::Safe,
        false => Safety::Unknown,
    }
}

const SPECIAL: [(&str, Safety); 13] = [
    ("ffi", Safety::Shares("what a called library keeps is the process's")),
    ("gettext", Safety::Shares("catalogues that were read stay until the engine is replaced")),
    ("ldap", Safety::Shares("ldap_set_option(null, ...) is for the whole process")),
    ("xdebug", Safety::Trouble("made for one request at a time: for development, with num_threads 1")),
    ("pcov", Safety::Trouble("made for the command line: for `regent php-cli`")),
    (
        "imagick",
        Safety::Trouble("its OpenMP threads and PHP's get in each other's way: set MAGICK_THREAD_LIMIT=1"),
    ),
    ("imap", Safety::Trouble("its library keeps state for the process: use a PHP of processes")),
    ("snmp", Safety::Trouble("its library keeps state for the process: use a PHP of processes")),
    ("newrelic", Safety::Trouble("not made for threads: use a PHP of processes")),
    ("ddtrace", Safety::Trouble("crashes were reported with threads: try it under load first")),
    ("swoole", Safety::Trouble("a server of its own, which cannot run within another")),
    ("openswoole", Safety::Trouble("a server of its own, which cannot run within another")),
    ("readline", Safety::Shares("the command line alone has it, where it is built in")),
];

/// What comes with PHP.
const SAFE: [&str; 60] = [
    "bcmath",
    "bz2",
    "calendar",
    "core",
    "ctype",
    "curl",
    "date",
    "dba",
    "dom",
    "exif",
    "fileinfo",
    "filter",
    "ftp",
    "gd",
    "gmp",
    "hash",
    "iconv",
    "intl",
    "json",
    "lexbor",
    "libxml",
    "mbstring",
    "mysqli",
    "mysqlnd",
    "odbc",
    "openssl",
    "pcntl",
    "pcre",
    "pdo",
    "pdo_mysql",
    "pdo_odbc",
    "pdo_pgsql",
    "pdo_sqlite",
    "pgsql",
    "phar",
    "posix",
    "random",
    "reflection",
    "session",
    "shmop",
    "simplexml",
    "soap",
    "sockets",
    "sodium",
    "spl",
    "sqlite3",
    "standard",
    "sysvmsg",
    "sysvsem",
    "sysvshm",
    "tidy",
    "tokenizer",
    "uri",
    "xml",
    "xmlreader",
    "xmlwriter",
    "xsl",
    "zend opcache",
    "zip",
    "zlib",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_php_cannot_see_is_told_apart() {
        assert_eq!(safety("gmp"), Safety::Safe);
        assert!(matches!(safety("xdebug"), Safety::Trouble(_)));
        assert!(matches!(safety("gettext"), Safety::Shares(_)));
        assert_eq!(safety("somebody_s"), Safety::Unknown);
    }
}
