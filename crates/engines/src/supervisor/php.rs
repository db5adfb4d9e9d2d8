//! Whether the PHP of an engine is known to have critical holes.

use super::State;
use crate::kind::EngineKind;
use regent_php_floor::{Build, Package, Table, Verdict};
use regent_wire::control::Started;

/// The PHP that an engine runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Php {
    pub build: Build,
    pub verdict: Verdict,
}

impl Php {
    fn of(started: &Started) -> Self {
        let package = started.library.as_deref().and_then(Package::of);
        let build = Build { version: started.version.clone(), package };
        let verdict = Table::built_in().judge(&build);
        Self { build, verdict }
    }
}

impl State {
    /// Warns of a PHP with holes once, and not at each start of an engine with it.
    pub fn judge_php(&mut self, started: &Started) {
        if self.setup.plan.kind != EngineKind::Php {
            return;
        }
        let php = Some(Php::of(started));
        if self.php != php {
            php.iter().for_each(warn);
            self.php = php;
        }
    }
}

fn warn(php: &Php) {
    let package = php.build.package.as_ref().map(|package| package.version.as_str());
    match &php.verdict {
        Verdict::Below(floor) => tracing::warn!(
            version = php.build.version,
            package,
            floor = floor.version,
            holes = floor.holes.join(", "),
            "this PHP has holes that are known and run an attacker's code; `regent doctor` says what mends it"
        ),
        Verdict::Unproven(floor) => tracing::info!(
            version = php.build.version,
            package,
            floor = floor.version,
            "whether the distribution has mended this PHP is not known; `regent doctor` says how to find out"
        ),
        Verdict::Sound | Verdict::Unlisted => {}
    }
}
