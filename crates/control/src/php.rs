//! The PHP of the engines, in the words of the admin API and of the metrics.

use regent_admin::PhpState;
use regent_engines::Php;
use regent_metrics::PhpGauge;
use regent_php_floor::Verdict;

pub(crate) fn listed(php: &Php) -> regent_admin::Php {
    regent_admin::Php {
        version: php.build.version.clone(),
        package: package(php),
        state: match php.verdict {
            Verdict::Sound => PhpState::Sound,
            Verdict::Below(_) => PhpState::Below,
            Verdict::Unproven(_) => PhpState::Unproven,
            Verdict::Unlisted => PhpState::Unlisted,
        },
        floor: php.verdict.floor().map(|floor| floor.version.clone()),
    }
}

pub(crate) fn gauge(php: &Php) -> PhpGauge {
    PhpGauge {
        version: php.build.version.clone(),
        package: package(php).unwrap_or_default(),
        state: php.verdict.name(),
        is_below_floor: php.verdict.is_below(),
    }
}

fn package(php: &Php) -> Option<String> {
    php.build.package.as_ref().map(|package| package.version.clone())
}
