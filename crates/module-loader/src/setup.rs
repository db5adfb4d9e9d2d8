//! What an instance can do while its init runs.

use crate::error::LoadError;
use crate::instance::Instance;
use crate::router::{Route, RouteError, Router};
use std::ffi::c_void;
use std::path::Path;

/// Grows while init runs, and is taken from the instance afterwards.
#[derive(Default)]
pub struct Setup {
    pub router: Router,
    pub offers: Vec<Offer>,
    /// What the modules offer that this one depends on.
    pub visible: Vec<Offer>,
    trouble: Option<Trouble>,
}

/// An interface for other modules.
#[derive(Debug, Clone)]
pub struct Offer {
    pub name: Vec<u8>,
    pub version: u32,
    pub interface: *const c_void,
}

// SAFETY: the pointer is only passed on to modules, which regent.h says use it from any thread.
unsafe impl Send for Offer {}

/// The first thing that has gone wrong.
enum Trouble {
    Duplicate { method: String, path: String },
    BadRoute(String),
    Failed(String),
}

impl Offer {
    pub fn is(&self, name: &[u8], version: u32) -> bool {
        self.name == name && self.version == version
    }
}

impl Setup {
    pub fn seeing(visible: Vec<Offer>) -> Self {
        Self { visible, ..Self::default() }
    }

    /// What cannot be added is an error of the whole module, whether its init looks at the result or not.
    pub fn route(&mut self, method: Option<&str>, path: &str, route: Route) -> Result<(), RouteError> {
        let added = self.router.add(method, path, route);
        match &added {
            Ok(()) => {}
            Err(RouteError::Duplicate) => self.note(Trouble::Duplicate {
                method: method.unwrap_or("(every method)").to_owned(),
                path: path.to_owned(),
            }),
            Err(RouteError::Invalid(what)) => self.note(Trouble::BadRoute(what.clone())),
        }
        added
    }

    pub fn bad_route(&mut self, what: &str) {
        self.note(Trouble::BadRoute(what.to_owned()));
    }

    pub fn fail(&mut self, reason: String) {
        self.note(Trouble::Failed(reason));
    }

    fn note(&mut self, trouble: Trouble) {
        self.trouble.get_or_insert(trouble);
    }

    /// The error of an init that has returned `status`.
    pub fn verdict(&self, status: i32, file: &Path, instance: &Instance) -> Result<(), LoadError> {
        let (file, module) = (file.to_owned(), instance.module().to_owned());
        Err(match &self.trouble {
            None if status == crate::abi::OK => return Ok(()),
            None => LoadError::InitFailed {
                file,
                module,
                reason: format!("its init returned {status}, without a reason (api->fail)"),
            },
            Some(Trouble::Failed(reason)) => LoadError::InitFailed { file, module, reason: reason.clone() },
            Some(Trouble::BadRoute(what)) => LoadError::BadRoute { file, module, what: what.clone() },
            Some(Trouble::Duplicate { method, path }) => {
                LoadError::DuplicateRoute { file, module, method: method.clone(), path: path.clone() }
            }
        })
    }
}
