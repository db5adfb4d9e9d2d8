//! Why modules cannot be loaded.

use std::path::PathBuf;

/// Why none of the modules is loaded: which file, what is wrong, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    #[error("{}: the file cannot be opened ({reason}); build the module, or correct the path", file.display())]
    NotFound { file: PathBuf, reason: String },
    #[error(
        "{}: not a shared library that can be loaded ({reason}); compile it with `-shared -fPIC` for this \
         system",
        file.display()
    )]
    NotALibrary { file: PathBuf, reason: String },
    #[error(
        "{}: something that it uses is defined nowhere ({reason}); link the library that defines it into \
         the module",
        file.display()
    )]
    MissingSymbol { file: PathBuf, reason: String },
    #[error(
        "{}: exports no function regent_module; include regent.h and define it, in C++ within extern \
         \"C\"",
        file.display()
    )]
    NoEntry { file: PathBuf },
    #[error("{}: its regent_module returned NULL: it cannot work with this version of Regent", file.display())]
    Declined { file: PathBuf },
    #[error(
        "{}: made for version {found} of the module interface, but this Regent has version {known}; compile \
         it with this Regent's regent.h",
        file.display()
    )]
    WrongAbi { file: PathBuf, found: u32, known: u32 },
    #[error(
        "{}: what it says of itself cannot be: {what}; fill in regent_module_info as regent.h \
         says",
        file.display()
    )]
    BadDescription { file: PathBuf, what: String },
    #[error(
        "{} and {}: both are modules named {name}; give one of them another \
         name",
        first.display(), second.display()
    )]
    SameName { name: String, first: PathBuf, second: PathBuf },
    #[error(
        "{}: the module {module} depends on {dependency}, which is not loaded; add `module <library of \
         {dependency}>` to the configuration",
        file.display()
    )]
    MissingDependency { file: PathBuf, module: String, dependency: String },
    #[error(
        "{}: the module {module} depends on {dependency} {wanted} or newer, but {found} is loaded; update {dependency}",
        file.display()
    )]
    OldDependency { file: PathBuf, module: String, dependency: String, wanted: String, found: String },
    #[error("modules depend on each other in a circle: {}; take one of the dependencies out", circle.join(" → "))]
    Cycle { circle: Vec<String> },
    #[error("{}: the module {module} adds the route {method} {path} twice; remove one of them", file.display())]
    DuplicateRoute { file: PathBuf, module: String, method: String, path: String },
    #[error("{}: the module {module} adds a route that cannot be: {what}", file.display())]
    BadRoute { file: PathBuf, module: String, what: String },
    #[error("{}: the module {module} could not be initialised: {reason}", file.display())]
    InitFailed { file: PathBuf, module: String, reason: String },
    #[error(
        "{}: the module {module} is to answer requests, but its init has added no route; call api->route, \
         or use the `module` option if others only depend on it",
        file.display()
    )]
    NoRoutes { file: PathBuf, module: String },
    #[error("two services are named {name}; give one of them another name")]
    SameService { name: String },
}
