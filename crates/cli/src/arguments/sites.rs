//! The commands that serve without a configuration file.

use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Clone, Args)]
pub struct PhpServer {
    /// The directory to serve [default: the current one, or its `public` if there is one]
    #[arg(short, long, value_name = "DIRECTORY")]
    pub root: Option<PathBuf>,
    #[command(flatten)]
    pub site: Site,
    /// A worker script, and how many threads run it; may be given several times
    #[arg(short, long = "worker", value_name = "FILE[,N]")]
    pub workers: Vec<String>,
    /// Start the workers anew when a file changes: in this directory, or of this pattern; may be given several times
    #[arg(long, value_name = "PATTERN", requires = "workers")]
    pub watch: Vec<String>,
    /// A Mercure hub, with the keys of MERCURE_PUBLISHER_JWT_KEY and MERCURE_SUBSCRIBER_JWT_KEY
    #[arg(short, long)]
    pub mercure: bool,
}

impl PhpServer {
    /// Whether nothing is said of what is to be served.
    pub fn is_plain(&self) -> bool {
        let Self { root, site, workers, watch, mercure } = self;
        let Site { domain, listen, no_compress, access_log, debug } = site;
        let texts = root.is_none() && domain.is_none() && listen.is_none();
        let lists = workers.is_empty() && watch.is_empty();
        texts && lists && ![*mercure, *no_compress, *access_log, *debug].contains(&true)
    }
}

#[derive(Debug, Clone, Args)]
pub struct FileServer {
    /// The directory to serve [default: the current one]
    #[arg(short, long, value_name = "DIRECTORY")]
    pub root: Option<PathBuf>,
    #[command(flatten)]
    pub site: Site,
    /// Serve FILE.br, FILE.zst or FILE.gz, where they are, to clients that accept them: br, zstd, gzip
    #[arg(short, long, value_name = "ENCODING", value_delimiter = ',')]
    pub precompressed: Vec<String>,
    /// List the files of a directory that has no index
    #[arg(short, long)]
    pub browse: bool,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = PROXY_EXAMPLES)]
pub struct ReverseProxy {
    /// The address of the site, as a Caddyfile has it
    #[arg(short, long, value_name = "ADDRESS", default_value = "localhost")]
    pub from: String,
    /// Where requests go; may be given several times
    #[arg(short, long, value_name = "ADDRESS", required = true, value_delimiter = ',')]
    pub to: Vec<String>,
    /// Tell the upstream its own address in `Host`, as one with HTTPS mostly wants it
    #[arg(short, long)]
    pub change_host_header: bool,
    /// Accept whatever certificate an upstream has
    #[arg(long)]
    pub insecure: bool,
    /// Certificates of the local CA, whatever the name
    #[arg(short, long)]
    pub internal_certs: bool,
    /// No redirects from plain HTTP
    #[arg(short = 'r', long)]
    pub disable_redirects: bool,
    /// A field for the upstream, "NAME: VALUE"; may be given several times
    #[arg(short = 'H', long, value_name = "FIELD")]
    pub header_up: Vec<String>,
    /// A field of the response, "NAME: VALUE"; may be given several times
    #[arg(short = 'd', long, value_name = "FIELD")]
    pub header_down: Vec<String>,
    /// Log each request
    #[arg(long)]
    pub access_log: bool,
    /// Log more about the server itself
    #[arg(short = 'v', long)]
    pub debug: bool,
}

const PROXY_EXAMPLES: &str = "\
Examples:
  regent reverse-proxy --to :9000                          https://localhost, with a certificate of the local CA
  regent reverse-proxy --from :8080 --to 127.0.0.1:9000    plain HTTP
  regent reverse-proxy --from example.com --to https://10.0.0.1 --change-host-header";

#[derive(Debug, Clone, Args)]
pub struct Respond {
    /// The status, or the body if it is no number of three digits
    #[arg(value_name = "STATUS|BODY")]
    pub answer: Option<String>,
    /// The status [default: 200]
    #[arg(short, long, value_name = "CODE", value_parser = clap::value_parser!(u16).range(100..=999))]
    pub status: Option<u16>,
    /// The body, in which placeholders are replaced
    #[arg(short, long, value_name = "TEXT")]
    pub body: Option<String>,
    /// A field, "NAME: VALUE"; may be given several times
    #[arg(short = 'H', long = "header", value_name = "FIELD")]
    pub fields: Vec<String>,
    /// Where to listen: :PORT, HOST:PORT, or unix//PATH; with port 0 the system chooses one
    #[arg(short, long, value_name = "ADDRESS", default_value = ":0")]
    pub listen: String,
    /// Log each request
    #[arg(long)]
    pub access_log: bool,
    /// Log more about the server itself
    #[arg(short = 'v', long)]
    pub debug: bool,
}

/// What the two commands without a configuration file have in common.
#[derive(Debug, Clone, Args)]
pub struct Site {
    /// The only host to serve, with HTTPS; its plain HTTP is redirected if HTTPS is on port 443
    #[arg(short, long, value_name = "NAME")]
    pub domain: Option<String>,
    /// Where to listen: :PORT, HOST:PORT, or unix//PATH, with the mode of the file unix//PATH|0660 [default: :80, with --domain :443]
    #[arg(short, long, value_name = "ADDRESS")]
    pub listen: Option<String>,
    /// Do not compress responses; otherwise clients get zstd, br or gzip, whichever they take
    #[arg(long)]
    pub no_compress: bool,
    /// Log each request
    #[arg(short, long)]
    pub access_log: bool,
    /// Log more about the server itself
    #[arg(short = 'v', long)]
    pub debug: bool,
}
