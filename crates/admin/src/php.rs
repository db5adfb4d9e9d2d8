//! Which PHP the engines run, and whether it is known to have critical holes.

use serde::{Deserialize, Serialize};

/// The PHP of the engine that started last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Php {
    /// As PHP's `PHP_VERSION`.
    pub version: String,
    /// The version of the distribution's package that it is from. `None`: it is from none.
    pub package: Option<String>,
    pub state: PhpState,
    /// The lowest version without known critical holes, if the state is `below` or `unproven`.
    pub floor: Option<String>,
}

/// What the table of PHP's versions says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PhpState {
    /// It has the fixes of all that is known.
    Sound,
    /// It has critical holes.
    Below,
    /// Its distribution mends PHP and leaves the number, and the table does not say whether it has mended this one.
    Unproven,
    /// The table knows nothing of its branch.
    Unlisted,
}
