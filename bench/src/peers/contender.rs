//! Which server with which settings: what the command line names and the results are labelled with.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use clap::ValueEnum;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::site::Script;

/// One server of a comparison: `classic`, `fpm:default`, `frankenphp-worker` …
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Contender {
    pub kind: Kind,
    pub tuning: Tuning,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// One that this program knows how to start.
    BuiltIn(ServerKind),
    /// One that a description file tells how to start, by its identity.
    External(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum ServerKind {
    /// Regent, a fresh PHP request for each HTTP request
    Classic,
    /// Regent, a worker script that handles requests in a loop
    Worker,
    /// Regent, a native module in C++ that is compiled for the run, in its engine
    Native,
    /// The same module in the server itself, on its I/O threads
    NativeInline,
    /// Regent without PHP: its own `respond`, the floor of what the server, the machine and the load can do
    Respond,
    /// The distribution's nginx and php-fpm over a Unix socket
    Fpm,
    /// The same with connections that nginx keeps to php-fpm: more throughput, but starving clients
    FpmKept,
    /// The distribution's Apache, prefork, with mod_php
    Apache,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tuning {
    /// The best settings known.
    #[default]
    Best,
    /// The distribution's (for Regent: the program's) own settings of what shapes performance: numbers of processes,
    /// threads and connections, listen backlogs, keep-alive. The plan's pool does not count then.
    Default,
}

/// After an identity on the command line: `apache:default`.
const DEFAULT_SUFFIX: &str = ":default";

impl Contender {
    pub fn built_in(&self) -> Option<ServerKind> {
        match self.kind {
            Kind::BuiltIn(kind) => Some(kind),
            Kind::External(_) => None,
        }
    }

    /// Whether it can be asked for this script. What an external server has is known when it is started.
    pub fn has(&self, script: Script) -> bool {
        self.built_in().is_none_or(|kind| kind.has(script))
    }

    /// What names this contender on the command line: unique, and the same in every run.
    pub fn identity(&self) -> String {
        let name = match &self.kind {
            Kind::BuiltIn(kind) => kind.identity(),
            Kind::External(identity) => identity,
        };
        match self.tuning {
            Tuning::Best => name.to_owned(),
            Tuning::Default => format!("{name}{DEFAULT_SUFFIX}"),
        }
    }
}

impl Kind {
    pub fn is_regent(&self) -> bool {
        matches!(self, Self::BuiltIn(kind) if kind.is_regent())
    }
}

impl From<ServerKind> for Contender {
    fn from(kind: ServerKind) -> Self {
        Self { kind: Kind::BuiltIn(kind), tuning: Tuning::Best }
    }
}

/// Every name is someone's: what this program does not know may be the identity of a description.
impl FromStr for Contender {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let (name, tuning) = match text.strip_suffix(DEFAULT_SUFFIX) {
            Some(name) => (name, Tuning::Default),
            None => (text, Tuning::Best),
        };
        let built_in = ServerKind::value_variants().iter().find(|kind| kind.identity() == name);
        let kind = built_in.map_or_else(|| Kind::External(name.to_owned()), |kind| Kind::BuiltIn(*kind));
        Ok(Self { kind, tuning })
    }
}

/// For legends. An external server shows its identity here; its description knows the name.
impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match &self.kind {
            Kind::BuiltIn(kind) => kind.to_string(),
            Kind::External(identity) => identity.clone(),
        };
        match self.tuning {
            Tuning::Best => f.pad(&name),
            Tuning::Default => f.pad(&format!("{name}, default settings")),
        }
    }
}

impl Serialize for Contender {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.identity())
    }
}

impl<'de> Deserialize<'de> for Contender {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Ok(contender) = String::deserialize(deserializer)?.parse();
        Ok(contender)
    }
}

impl ServerKind {
    pub fn is_regent(self) -> bool {
        match self {
            Self::Classic | Self::Worker | Self::Native | Self::NativeInline | Self::Respond => true,
            Self::Fpm | Self::FpmKept | Self::Apache => false,
        }
    }

    /// Whether it is the module that a C++ compiler makes.
    pub fn is_native(self) -> bool {
        matches!(self, Self::Native | Self::NativeInline)
    }

    /// Whether it has this script, or what does the same.
    pub fn has(self, script: Script) -> bool {
        match self {
            Self::Native => matches!(script, Script::Hello | Script::Sleep),
            // What sleeps may not run inline.
            Self::NativeInline | Self::Respond => script == Script::Hello,
            _ => true,
        }
    }

    pub fn is_fpm(self) -> bool {
        matches!(self, Self::Fpm | Self::FpmKept)
    }

    /// On the command line, in names of files, and in the palette.
    pub fn identity(self) -> &'static str {
        match self {
            Self::Classic => "classic",
            Self::Worker => "worker",
            Self::Native => "native",
            Self::NativeInline => "native-inline",
            Self::Respond => "respond",
            Self::Fpm => "fpm",
            Self::FpmKept => "fpm-kept",
            Self::Apache => "apache",
        }
    }
}

impl fmt::Display for ServerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Classic => "Regent classic",
            Self::Worker => "Regent worker",
            Self::Native => "Regent native",
            Self::NativeInline => "Regent native, inline",
            Self::Respond => "Regent without PHP",
            Self::Fpm => "nginx + php-fpm",
            Self::FpmKept => "nginx + php-fpm, kept",
            Self::Apache => "Apache + mod_php",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Contender {
        let Ok(contender) = text.parse();
        contender
    }

    #[test]
    fn an_identity_is_read_as_what_it_came_from() {
        for text in
            ["classic", "native-inline", "fpm", "fpm-kept:default", "apache:default", "frankenphp-worker"]
        {
            assert_eq!(parse(text).identity(), text);
        }
        assert_eq!(parse("fpm"), Contender::from(ServerKind::Fpm));
        assert_eq!(parse("frankenphp").kind, Kind::External("frankenphp".to_owned()));
    }

    #[test]
    fn the_identities_are_the_names_of_the_command_line() {
        for kind in ServerKind::value_variants() {
            let value = kind.to_possible_value().expect("none is skipped");
            assert_eq!(value.get_name(), kind.identity());
        }
    }

    #[test]
    fn a_legend_tells_the_two_tunings_apart() {
        assert_eq!(parse("apache").to_string(), "Apache + mod_php");
        assert_eq!(parse("apache:default").to_string(), "Apache + mod_php, default settings");
    }
}
