//! Native modules: what the `native` directive and the global option `module` have in common, and the services' names.

use crate::call::Call;
use crate::context::Context;
use crate::model::{NativeGlobal, NativeId, NativeModule, NativeService};
use crate::problems::error;
use regent_caddyfile::{Error, Token};
use std::path::{Path, PathBuf};

/// The pool of PHP scripts that are no worker's.
const CLASSIC: &str = "classic";

/// All native modules of the file so far.
#[derive(Default)]
pub(crate) struct Natives {
    pub modules: Vec<NativeModule>,
    services: Vec<NativeService>,
    /// Of each service, the name that the file gives it.
    names: Vec<Option<Token>>,
}

impl Natives {
    /// Adds a service, whose name is known when the whole file is.
    pub fn add(&mut self, service: NativeService, name: Option<&Token>) -> Option<NativeId> {
        let id = u16::try_from(self.services.len()).ok()?;
        self.services.push(service);
        self.names.push(name.cloned());
        Some(NativeId(id))
    }

    pub fn into_global(self) -> NativeGlobal {
        NativeGlobal { modules: self.modules, services: self.services }
    }
}

/// Names the services: as the file says, or by their libraries. Pools of both engines share one name space, in lists,
/// metrics and the admin API.
pub(crate) fn finish_names(cx: &mut Context<'_>) {
    let given = std::mem::take(&mut cx.native.names);
    for (index, name) in given.iter().enumerate() {
        let Some(token) = name else { continue };
        let result = if is_taken(cx, &token.text) {
            Err(error(token, format!("another pool has the name `{}` already", token.text)))
        } else {
            Ok(token.text.clone())
        };
        cx.native.services[index].name = cx.check(result).unwrap_or_default();
    }
    for index in (0..given.len()).filter(|index| given[*index].is_none()) {
        cx.native.services[index].name = free_name(cx, &stem(&cx.native.services[index].file));
    }
}

fn is_taken(cx: &Context<'_>, name: &str) -> bool {
    name == CLASSIC || cx.workers.has(name) || cx.native.services.iter().any(|service| service.name == name)
}

/// `stem`, with a number behind it if it is taken.
fn free_name(cx: &Context<'_>, stem: &str) -> String {
    let numbered = (2_u32..).map(|number| format!("{stem}-{number}"));
    let mut names = std::iter::once(stem.to_owned()).chain(numbered);
    names.find(|name| !is_taken(cx, name)).unwrap_or_default()
}

/// `hello` of `/srv/libhello.so` and `libhello.so.2`.
fn stem(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_prefix("lib").unwrap_or(&name);
    let (stem, _) = name.split_once(".so").unwrap_or((name, ""));
    if stem.is_empty() { name.to_owned() } else { stem.to_owned() }
}

/// The absolute path of a library, which has to be there. It is relative to the file that names it, as an import is.
pub(crate) fn library(cx: &Context<'_>, token: &Token) -> Result<PathBuf, Error> {
    let written = cx.fixed_text(token)?;
    let file = cx.environment.absolute(&token.span.directory().join(written));
    if file.is_file() {
        return Ok(file);
    }
    let what = if file.exists() { "is no file" } else { "does not exist" };
    Err(error(token, format!("the library {what}: {}", file.display())))
}

/// `config NAME VALUE…`, or a block of such lines: one entry for each value, in order.
pub(crate) fn settings(cx: &mut Context<'_>, option: &Call<'_>, config: &mut Vec<(String, String)>) {
    const SYNTAX: &str = "config NAME VALUE…, or config { NAME VALUE… }";
    let Some(lines) = option.block else {
        match option.args {
            [name, values @ ..] if !values.is_empty() => setting(cx, &name.text, values, config),
            _ => cx.errors.push(option.wrong_arguments(2, SYNTAX)),
        }
        return;
    };
    cx.check(option.no_arguments(SYNTAX));
    for line in lines.iter().map(Call::new) {
        if let Some(values) = cx.check(line.some("NAME VALUE…")) {
            setting(cx, line.name(), values, config);
        }
    }
}

fn setting(cx: &mut Context<'_>, name: &str, values: &[Token], config: &mut Vec<(String, String)>) {
    for value in values {
        let value = cx.fixed_text(value);
        config.extend(cx.check(value).map(|value| (name.to_owned(), value)));
    }
}
