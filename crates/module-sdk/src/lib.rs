//! Handlers in Rust for the Regent application server, beside PHP.
//!
//! A module is a `cdylib`, which the site's configuration names: `native /hello/* target/release/libhello.so`.
//!
//! ```no_run
//! use regent_module::{Answer, module};
//!
//! module! {
//!     name: "hello",
//!     version: "1.0",
//!     init: |app| {
//!         app.get("/hello/{name}", |request| {
//!             let name: String = request.parameter("name")?;
//!             Ok(Answer::text(format!("Hello {name}\n")))
//!         });
//!         Ok(())
//!     }
//! }
//! # fn main() {}
//! ```
//!
//! Handlers run on many threads at the same time. What they share is captured by the closures, in an `Arc` or the like,
//! and is dropped after the last handler has returned. An [`Error`] that a handler returns is answered: what is wrong with
//! the request with its status and the reason, anything else with 500 and a line in the log. So is a panic.

#[doc(hidden)]
pub mod abi;
mod answer;
mod app;
#[cfg(test)]
mod c_header;
mod endpoint;
mod error;
#[cfg(test)]
mod fake_host;
mod instance;
mod interface;
#[doc(hidden)]
pub mod module;
mod request;
mod route;
mod stream;

pub use answer::Answer;
pub use app::App;
pub use error::{Error, Result};
pub use instance::{Instance, Level, Statistics};
pub use interface::Interface;
pub use request::Request;
pub use route::Route;
pub use stream::Stream;

/// Makes a module of this crate: its `name` and `version`, perhaps what it `needs`, and `init`, a closure without captures
/// that adds routes to an [`App`].
///
/// `init` is called once for each service that uses the module; an error that it returns says why the module cannot
/// be used. `needs: [("stock", "1.4")]` names modules that have to be there first, and their lowest versions (`""`: any).
#[macro_export]
macro_rules! module {
    (name: $name:expr, version: $version:expr, init: $init:expr $(,)?) => {
        $crate::module! { name: $name, version: $version, needs: [], init: $init }
    };
    (
        name: $name:expr, version: $version:expr, needs: [$(($needed:expr, $lowest:expr)),* $(,)?],
        init: $init:expr $(,)?
    ) => {
        const _: () = {
            struct Module;

            impl $crate::module::Setup for Module {
                fn setup(app: &mut $crate::App) -> $crate::Result<()> {
                    let init: fn(&mut $crate::App) -> $crate::Result<()> = $init;
                    init(app)
                }
            }

            static NEEDS: &[$crate::abi::Dependency] = &[
                $($crate::module::needs(concat!($needed, "\0"), concat!($lowest, "\0"))),*
            ];

            static INFO: $crate::abi::ModuleInfo =
                $crate::module::describe::<Module>(concat!($name, "\0"), concat!($version, "\0"), NEEDS);

            #[unsafe(no_mangle)]
            extern "C" fn regent_module(api: &$crate::abi::ApiHead) -> Option<&'static $crate::abi::ModuleInfo> {
                $crate::module::suits(api).then_some(&INFO)
            }
        };
    };
}
