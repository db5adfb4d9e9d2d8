//! `transport fastcgi`, and the options that `php_fastcgi` shares with it.

use crate::call::Call;
use crate::context::Context;
use crate::model::{ProxyTransport, Template};
use crate::problems::unknown_option;
use crate::values::{self, duration};
use crate::workers;
use regent_caddyfile::{Error, Token};

pub(in crate::directives) const OPTIONS: &[&str] = &[
    "capture_stderr",
    "dial_timeout",
    "env",
    "read_timeout",
    "resolve_root_symlink",
    "root",
    "split",
    "write_timeout",
];

/// Reads a line of `transport fastcgi { … }` into a transport that is one of FastCGI.
pub(in crate::directives) fn option(
    cx: &mut Context<'_>,
    line: &Call<'_>,
    transport: &mut ProxyTransport,
) -> Result<(), Error> {
    let fastcgi = transport.fastcgi.get_or_insert_default();
    match line.name() {
        "root" => fastcgi.root = Some(Template::parse(&line.one("root PATH")?.text)),
        "split" => fastcgi.split = texts(line.some("split TEXT…")?),
        "env" => {
            let pairs = workers::pairs(cx, line, "env NAME VALUE");
            fastcgi.env.extend(pairs.into_iter().map(|(name, value)| (name, Template::parse(&value.text))));
        }
        "resolve_root_symlink" => {
            fastcgi.resolve_root_symlink = flag(line, "resolve_root_symlink [true | false]")?;
        }
        "capture_stderr" => fastcgi.capture_stderr = flag(line, "capture_stderr [true | false]")?,
        "dial_timeout" => transport.dial_timeout = duration(line.one("dial_timeout DURATION")?)?,
        "read_timeout" => transport.read_timeout = duration(line.one("read_timeout DURATION")?)?,
        "write_timeout" => transport.write_timeout = duration(line.one("write_timeout DURATION")?)?,
        _ => return Err(unknown_option(line.name, "transport fastcgi", OPTIONS, &[])),
    }
    Ok(())
}

fn texts(tokens: &[Token]) -> Vec<String> {
    tokens.iter().map(|token| token.text.clone()).collect()
}

/// As Caddy has them: the option alone switches it on.
fn flag(line: &Call<'_>, syntax: &str) -> Result<bool, Error> {
    match line.args {
        [] => line.without_block(syntax).map(|()| true),
        _ => values::boolean(line.one(syntax)?),
    }
}
