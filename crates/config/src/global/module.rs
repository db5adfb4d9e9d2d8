//! `module LIBRARY { config NAME VALUE… }`, in `frankenphp`: a native module that is loaded because others depend on it.
//!
//! It answers no requests itself, but offers an interface to the modules of `native` directives; those need no `module`
//! line. The library's path is relative to the file that names it.
//!
//! ```caddyfile
//! {
//!     regent {
//!         module modules/libdb.so {
//!             config path /var/lib/app.db
//!         }
//!     }
//! }
//! ```

use crate::call::Call;
use crate::context::Context;
use crate::model::NativeModule;
use crate::native;
use crate::problems::{error, unknown_option};

const SYNTAX: &str = "module LIBRARY { config NAME VALUE… }";

/// Adds the module of a line `module LIBRARY`; all mistakes are noted.
pub(super) fn declare(cx: &mut Context<'_>, call: &Call<'_>) {
    let mut config = Vec::new();
    for option in call.options() {
        match option.name() {
            "config" => native::settings(cx, &option, &mut config),
            _ => cx.errors.push(unknown_option(option.name, "module", &["config"], &[])),
        }
    }
    let [library] = call.args else { return cx.errors.push(call.wrong_arguments(1, SYNTAX)) };
    let file = native::library(cx, library);
    let Some(file) = cx.check(file) else { return };
    if cx.native.modules.iter().any(|module| module.file == file) {
        return cx.errors.push(error(library, format!("the module {} is declared twice", file.display())));
    }
    cx.native.modules.push(NativeModule { file, config });
}
