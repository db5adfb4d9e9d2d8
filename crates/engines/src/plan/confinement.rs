//! What engines and tasks give up at their start.

use regent_config::{Confine, Enforcement, Namespaces, Programs};
use regent_wire::confine::{Confinement, Grant, Limits, Shortfall};

pub(crate) fn of(confine: &Confine) -> Confinement {
    let asked = match confine {
        Confine::Off => return Confinement::Off,
        Confine::Unasked => return Confinement::Unasked,
        Confine::Asked(asked) => asked,
    };
    Confinement::Asked(Limits {
        read: asked.read.clone(),
        write: asked.write.clone(),
        namespaces: match asked.namespaces {
            Namespaces::Allowed => Grant::Allowed,
            Namespaces::Refused => Grant::Refused,
        },
        programs: match asked.programs {
            Programs::Allowed => Grant::Allowed,
            Programs::Refused => Grant::Refused,
        },
        shortfall: match asked.enforcement {
            Enforcement::BestEffort => Shortfall::IsTold,
            Enforcement::Strict => Shortfall::Ends,
        },
    })
}

/// The process of a task gives way to PHP's command line program, and so may start programs.
pub(crate) fn of_task(confine: &Confine) -> Confinement {
    match of(confine) {
        Confinement::Asked(limits) => Confinement::Asked(Limits { programs: Grant::Allowed, ..limits }),
        confinement => confinement,
    }
}
