//! What is particular to configurations in Caddy's JSON.

mod route;

pub(crate) use route::DIRECTIVE;

use crate::context::Context;
use crate::load::Loaded;
use crate::template;
use regent_caddy_json::Parsed;
use regent_caddyfile::{Error, Errors, File, Line, Span, Token};

/// Says of each mistake and warning where in the document it is, beside the line and the column.
pub(crate) fn with_places(parsed: &Parsed, result: Result<Loaded, Errors>) -> Result<Loaded, Errors> {
    let add = |message: &mut String, span: &Option<Span>| {
        let place = span.as_ref().map(|span| parsed.place(span)).filter(|place| !place.is_empty());
        message.extend(place.map(|place| format!(" (at {place})")));
    };
    match result {
        Ok(mut loaded) => {
            let warnings = loaded.warnings.iter_mut().chain(&mut loaded.differences);
            warnings.for_each(|warning| add(&mut warning.message, &warning.span));
            Ok(loaded)
        }
        Err(mut errors) => {
            // What is written once for several sites is wrong once.
            let offset = |error: &Error| error.span.as_ref().map(Span::offset);
            errors.0.dedup_by(|one, other| offset(one) == offset(other) && one.message == other.message);
            errors.0.iter_mut().for_each(|error| add(&mut error.message, &error.span));
            Err(errors)
        }
    }
}

/// Caddy's JSON has the long names of placeholders only; what a Caddyfile writes for them would be text there.
pub(crate) fn warn_of_shorthands(cx: &mut Context<'_>, file: &File) {
    let of_sites = file.sites.iter().map(|site| &site.lines);
    let all = of_sites.chain(file.named_routes.iter().map(|route| &route.lines));
    all.for_each(|lines| of_lines(cx, lines));
}

fn of_lines(cx: &mut Context<'_>, lines: &[Line]) {
    for line in lines {
        // The words of Regent's own directives are those of a Caddyfile.
        for token in line.args.iter().filter(|token| token.quoted) {
            of_token(cx, token);
        }
        of_lines(cx, line.block.as_deref().unwrap_or_default());
    }
}

fn of_token(cx: &mut Context<'_>, token: &Token) {
    if let Some((name, long)) = template::shorthand(&token.text) {
        cx.warn(
            token,
            format!(
                "`{{{name}}}` is a placeholder of Caddyfiles, and text to Caddy in JSON: write {{{long}}}"
            ),
        );
    }
}
