//! The kinds of engines.

use std::fmt;

/// What an engine runs. A server has one [`Engine`](crate::Engine) for each kind that its configuration needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineKind {
    Php,
    Native,
}

impl EngineKind {
    /// The file name of the engine's program.
    pub fn program(self) -> &'static str {
        match self {
            Self::Php => "regent-php",
            Self::Native => "regent-native",
        }
    }

    /// The environment variable that names the program when it is not beside `regent`.
    pub fn variable(self) -> &'static str {
        match self {
            Self::Php => "REGENT_ENGINE",
            Self::Native => "REGENT_NATIVE_ENGINE",
        }
    }
}

/// As the log says it.
impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Php => "PHP",
            Self::Native => "native modules",
        })
    }
}
