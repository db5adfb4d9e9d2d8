//! `copy_response_headers { include FIELD… }`, or `exclude FIELD…`: gives the client these fields of the upstream's response;
//! only in [handle_response](#reverse_proxy).

use super::copy_response::check_place;
use super::{Directive, header};
use crate::call::Call;
use crate::context::Context;
use crate::matchers::Scope;
use crate::model::{CopiedFields, Handler};
use crate::problems::{error, unknown_option};
use regent_caddyfile::Error;

pub(super) const DIRECTIVE: Directive = super::handler("copy_response_headers", parse);

fn parse(cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    check_place(cx, call)?;
    call.no_arguments("copy_response_headers { include FIELD… }")?;
    let mut fields = CopiedFields::default();
    for option in call.options() {
        let list = match option.name() {
            "include" => &mut fields.include,
            "exclude" => &mut fields.exclude,
            _ => {
                let known = &["exclude", "include"];
                return Err(unknown_option(option.name, "copy_response_headers", known, &[]));
            }
        };
        for token in option.some("include FIELD… | exclude FIELD…")? {
            if !header::is_name(&token.text) {
                return Err(error(token, format!("`{}` is no name of a header field", token.text)));
            }
            list.push(token.text.clone());
        }
    }
    match fields.include.is_empty() || fields.exclude.is_empty() {
        true => Ok(Handler::CopyResponseHeaders(fields)),
        false => Err(error(call.name, "`include` and `exclude` cannot stand together")),
    }
}
