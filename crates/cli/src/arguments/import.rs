//! `regent import`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct Import {
    #[command(subcommand)]
    pub from: ImportFrom,
}

#[derive(Debug, Subcommand)]
pub enum ImportFrom {
    /// Sites of nginx: a file of sites-enabled, or nginx.conf with all that it includes
    #[command(after_help = EXAMPLES)]
    Nginx(ImportFile),
}

#[derive(Debug, Args)]
pub struct ImportFile {
    /// The file
    pub file: PathBuf,
    /// Where to write the Caddyfile, a file that is not there yet [default: the standard output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  regent import nginx /etc/nginx/sites-enabled/shop                 look at what becomes of a site
  regent import nginx /etc/nginx/nginx.conf -o sites.caddyfile      all sites of a server
  regent validate --config sites.caddyfile                          what is to be done";
