//! The servers, and what they need of the machine.

use std::fmt;
use std::path::Path;

use clap::ValueEnum;

use super::Options;
use crate::load::h2load;
use crate::packages::Program;
use crate::peers::programs::{PhpProgram, php_fpm};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Peer {
    /// Regent, a fresh PHP request for each
    Classic,
    /// Regent with a worker script
    Worker,
    /// The other Regent (--other, --other-ini), a fresh PHP request for each
    OtherClassic,
    /// The other Regent with a worker script
    OtherWorker,
    /// nginx in front of the distribution's php-fpm
    Fpm,
    /// nginx in front of the php-fpm of --fpm-prefix
    OtherFpm,
    /// FrankenPHP, a fresh PHP request for each
    Frankenphp,
    /// FrankenPHP with a worker script
    FrankenphpWorker,
}

/// Of the distribution's packages, as far as PHP loads them from files: what the applications ask for.
const EXTENSIONS: [(&str, &str); 3] =
    [("mysqli", "php-mysql"), ("xml", "php-xml"), ("mbstring", "php-mbstring")];

impl Peer {
    pub fn is_worker(self) -> bool {
        matches!(self, Self::Worker | Self::OtherWorker | Self::FrankenphpWorker)
    }

    pub fn is_regent(self) -> bool {
        matches!(self, Self::Classic | Self::Worker | Self::OtherClassic | Self::OtherWorker)
    }

    pub fn is_other_regent(self) -> bool {
        matches!(self, Self::OtherClassic | Self::OtherWorker)
    }

    pub fn is_fpm(self) -> bool {
        matches!(self, Self::Fpm | Self::OtherFpm)
    }

    pub fn is_frankenphp(self) -> bool {
        matches!(self, Self::Frankenphp | Self::FrankenphpWorker)
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Classic => "Regent classic",
            Self::Worker => "Regent worker",
            Self::OtherClassic => "other Regent classic",
            Self::OtherWorker => "other Regent worker",
            Self::Fpm => "nginx + php-fpm",
            Self::OtherFpm => "nginx + other php-fpm",
            Self::Frankenphp => "FrankenPHP classic",
            Self::FrankenphpWorker => "FrankenPHP worker",
        })
    }
}

/// What the run needs of the machine.
pub fn programs(options: &Options) -> Vec<Program> {
    let mut programs = vec![Program::named("h2load", h2load::PACKAGE), Program::named("curl", "curl")];
    let chosen = |wanted: fn(Peer) -> bool| options.all_peers().into_iter().any(wanted);
    if chosen(Peer::is_fpm) {
        programs.push(Program::named("nginx", "nginx"));
    }
    if chosen(|peer| peer == Peer::Fpm) {
        programs.extend(fpm_programs());
    }
    programs
}

/// The distribution's php-fpm, with what the applications ask for.
pub fn fpm_programs() -> Vec<Program> {
    let fpm = php_fpm();
    let own = Program { package: "php-fpm", is_there: fpm.is_some() };
    let extensions = EXTENSIONS.map(|(name, package)| Program {
        package,
        is_there: fpm.as_ref().is_some_and(|fpm| has_extension(fpm, name)),
    });
    [own].into_iter().chain(extensions).collect()
}

fn has_extension(fpm: &PhpProgram, name: &str) -> bool {
    let (major, minor) = fpm.version;
    Path::new(&format!("/etc/php/{major}.{minor}/mods-available/{name}.ini")).is_file()
}
