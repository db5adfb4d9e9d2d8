//! What of a request and its response is changed for the upstream: `header_up`, `header_down`, `method`, `rewrite`.

use crate::call::Call;
use crate::directives::header;
use crate::model::{HeaderOp, Rewrite, Template};
use crate::problems::error;
use regent_caddyfile::Error;

pub(super) const OPTIONS: &[&str] = &["header_down", "header_up", "method", "rewrite"];

/// What the directive says of that.
#[derive(Default)]
pub(in crate::directives) struct Written {
    pub header_up: Vec<HeaderOp>,
    pub header_down: Vec<HeaderOp>,
    pub rewrites: Vec<Rewrite>,
}

impl Written {
    pub fn read(&mut self, option: &Call<'_>) -> Result<(), Error> {
        match option.name() {
            "header_up" => self.header_up.push(operation(option, &['?', '>'])?),
            // Fields are set when they have come from the upstream, which is late enough.
            "header_down" => self.header_down.push(operation(option, &['?'])?),
            "method" => {
                let method = Template::parse(&option.one("method METHOD")?.text);
                self.rewrites.push(Rewrite::Method(method));
            }
            _ => {
                let to = Template::parse(&option.one("rewrite TO")?.text);
                self.rewrites.push(Rewrite::To(to));
            }
        }
        Ok(())
    }
}

fn operation(option: &Call<'_>, of_header_alone: &[char]) -> Result<HeaderOp, Error> {
    const SYNTAX: &str = "header_up [+|-]FIELD [VALUE | SEARCH REPLACEMENT]; the same with header_down";
    let [field, values @ ..] = option.some(SYNTAX)? else { return Err(option.wrong_arguments(1, SYNTAX)) };
    if field.text.starts_with(of_header_alone) {
        return Err(error(field, format!("`{}` is for `header` only; write: {SYNTAX}", &field.text[..1])));
    }
    header::operation(field, values, SYNTAX)
}
