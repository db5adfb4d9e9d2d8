//! The command line.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Parser;

use super::application::Application;
use super::checkout::Checkout;
use super::peer::Peer;
use crate::arguments::regent_binary;
use crate::peers::programs::find;
use crate::statistics::distinct;

/// Measures real applications on Regent, php-fpm and FrankenPHP: requests/s, latencies, CPU time for each request, memory.
#[derive(Debug, Parser)]
pub struct Options {
    /// Applications, in the order in which they are measured
    #[arg(long, value_delimiter = ',', value_enum, default_value = "wordpress,symfony,laravel,dokuwiki")]
    applications: Vec<Application>,

    /// Numbers of connections
    #[arg(long, value_delimiter = ',', default_value = "1,8,32",
          value_parser = clap::value_parser!(u32).range(1..=1_000))]
    connections: Vec<u32>,

    /// Interleaved rounds; a figure to be published needs 5
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,

    /// Time of one measurement, in whole seconds
    #[arg(long, default_value = "5s", value_parser = parse_seconds)]
    pub duration: Duration,

    /// Servers, in the order in which the odd rounds measure them; a worker where the application has one [default: classic,
    /// worker and fpm, and what --other, --other-ini, --fpm-prefix and --frankenphp add]
    #[arg(long, value_delimiter = ',', value_enum)]
    servers: Vec<Peer>,

    /// Threads of Regent's and FrankenPHP's PHP, and children of php-fpm
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub threads: u16,

    /// The regent binary; by default the one beside this program
    #[arg(long)]
    regent: Option<PathBuf>,

    /// Another regent binary, with another PHP beside it, to compare with
    #[arg(long, value_name = "FILE")]
    other: Option<PathBuf>,

    /// A PHP setting, NAME=VALUE, of all servers. May be given several times
    #[arg(long = "ini", value_name = "NAME=VALUE", value_parser = parse_setting)]
    pub settings: Vec<String>,

    /// A PHP setting of the other Regent alone (the same program unless --other names one). May be given several times
    #[arg(long = "other-ini", value_name = "NAME=VALUE", value_parser = parse_setting)]
    pub other_settings: Vec<String>,

    /// Where PHP was installed with a php-fpm (sbin/php-fpm), as of the same source as Regent's
    #[arg(long, value_name = "DIRECTORY")]
    pub fpm_prefix: Option<PathBuf>,

    /// A FrankenPHP
    #[arg(long, value_name = "FILE")]
    frankenphp: Option<PathBuf>,

    /// Regent's sources, whose tools/fetch-app brings the applications; by default those that this program was built of
    #[arg(long, value_name = "DIRECTORY")]
    checkout: Option<PathBuf>,

    /// Directory of the results
    #[arg(long, default_value = "regent-bench-results/apps")]
    pub out: PathBuf,
}

impl Options {
    /// Each once, in the order given.
    pub fn applications(&self) -> Vec<Application> {
        distinct(self.applications.iter().copied())
    }

    /// Each once, in the order given.
    pub fn connections(&self) -> Vec<u32> {
        distinct(self.connections.iter().copied())
    }

    pub fn most_connections(&self) -> u32 {
        self.connections.iter().copied().max().unwrap_or(1)
    }

    /// Those that can run the application.
    pub fn peers(&self, application: Application) -> Vec<Peer> {
        let has_worker = application.worker().is_some();
        self.all_peers().into_iter().filter(|peer| has_worker || !peer.is_worker()).collect()
    }

    /// Each once, in the order given.
    pub fn all_peers(&self) -> Vec<Peer> {
        if !self.servers.is_empty() {
            return distinct(self.servers.iter().copied());
        }
        let mut peers = vec![Peer::Classic, Peer::Worker];
        if self.other.is_some() || !self.other_settings.is_empty() {
            peers.extend([Peer::OtherClassic, Peer::OtherWorker]);
        }
        peers.push(Peer::Fpm);
        peers.extend(self.fpm_prefix.iter().map(|_| Peer::OtherFpm));
        if self.frankenphp.is_some() {
            peers.extend([Peer::Frankenphp, Peer::FrankenphpWorker]);
        }
        peers
    }

    pub fn checkout(&self) -> Result<Checkout> {
        Checkout::find(self.checkout.as_deref())
    }

    /// The program of one of Regent's servers, as an absolute path.
    pub fn regent_binary(&self, peer: Peer) -> Result<PathBuf> {
        let other = self.other.as_ref().filter(|_| peer.is_other_regent());
        regent_binary(other.or(self.regent.as_ref()).map(PathBuf::as_path))
    }

    pub fn other_fpm(&self) -> Result<PathBuf> {
        let program = self.fpm_prefix.as_ref().map(|prefix| prefix.join("sbin/php-fpm"));
        let program = program.filter(|program| program.is_file());
        ensure!(
            program.is_some(),
            "there is no php-fpm: name a PHP that was built with --enable-fpm with --fpm-prefix, or leave other-fpm out"
        );
        Ok(std::path::absolute(program.expect("invariant: it was looked at"))?)
    }

    pub fn frankenphp_binary(&self) -> Result<PathBuf> {
        let given = self.frankenphp.as_deref().filter(|program| program.is_file());
        let program = given.map(Path::to_owned).or_else(|| find("frankenphp"));
        ensure!(
            program.is_some(),
            "there is no FrankenPHP: name its binary with --frankenphp, or leave it out of --servers"
        );
        Ok(std::path::absolute(program.expect("invariant: it was looked at"))?)
    }
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    match text.strip_suffix('s').unwrap_or(text).parse() {
        Ok(seconds @ 1..=300) => Ok(Duration::from_secs(seconds)),
        _ => Err("expected whole seconds from 1s to 300s".to_owned()),
    }
}

/// As a line of php.ini.
fn parse_setting(text: &str) -> Result<String, String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() && !text.contains(['\n', '"']) => {
            Ok(format!("{} = \"{}\"", name.trim(), value.trim()))
        }
        _ => Err("expected NAME=VALUE, such as opcache.jit=tracing".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(arguments: &[&str]) -> Options {
        Options::try_parse_from([&["apps"], arguments].concat()).expect("valid")
    }

    #[test]
    fn workers_are_measured_where_an_application_has_one() {
        let options = options(&[]);
        assert_eq!(options.peers(Application::Symfony), [Peer::Classic, Peer::Worker, Peer::Fpm]);
        assert_eq!(options.peers(Application::Wordpress), [Peer::Classic, Peer::Fpm]);
        assert_eq!((options.connections(), options.most_connections()), (vec![1, 8, 32], 32));
    }

    #[test]
    fn what_is_given_is_measured() {
        let given =
            options(&["--other", "/bin/true", "--fpm-prefix", "/opt/php", "--frankenphp", "/bin/true"]);
        let peers = given.peers(Application::Dokuwiki);
        assert_eq!(peers, [Peer::Classic, Peer::OtherClassic, Peer::Fpm, Peer::OtherFpm, Peer::Frankenphp]);
        let chosen = options(&["--servers", "fpm,classic,fpm"]);
        assert_eq!(chosen.peers(Application::Symfony), [Peer::Fpm, Peer::Classic]);
    }

    #[test]
    fn the_other_regent_may_be_the_same_program() {
        let same = options(&["--regent", "/bin/true", "--other-ini", "opcache.jit=tracing"]);
        assert_eq!(same.regent_binary(Peer::OtherClassic).expect("there"), PathBuf::from("/bin/true"));
        assert_eq!(same.other_settings, ["opcache.jit = \"tracing\""]);
        let other = options(&["--regent", "/bin/true", "--other", "/bin/false"]);
        assert_eq!(other.regent_binary(Peer::OtherWorker).expect("there"), PathBuf::from("/bin/false"));
        assert_eq!(other.regent_binary(Peer::Worker).expect("there"), PathBuf::from("/bin/true"));
    }

    #[test]
    fn settings_have_a_name() {
        for wrong in ["opcache.jit", "=1", "a=\"b\"", "a=1\nb=2"] {
            assert!(parse_setting(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_not_there_is_said_with_the_option() {
        let error = options(&["--fpm-prefix", "/nonexistent"]).other_fpm().expect_err("missing").to_string();
        assert!(error.contains("--fpm-prefix"), "{error}");
    }
}
