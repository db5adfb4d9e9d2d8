//! `file_server [MATCHER] { … }`: files under the site's root.
//!
//! | option | default | meaning |
//! |---|---|---|
//! | `root PATH` | the site's root | |
//! | `hide PATTERN…` | | files that count as missing; the Caddyfile itself always does |
//! | `index NAME…` \| `off` | index.html index.txt | served for a directory |
//! | `precompressed [br zstd gzip]` | off; all without arguments | serve `FILE.br` and so on if it is there |
//! | `status CODE` | 200; that of the error in [handle_errors](#handle_errors) | |
//! | `disable_canonical_uris` | | no redirect from `/dir` to `/dir/` |
//! | `pass_thru` | | a missing file is left to the next handler |
//!
//! ```caddyfile
//! file_server /assets/* {
//!     precompressed
//! }
//! ```

use super::Directive;
use crate::call::Call;
use crate::context::Context;
use crate::matchers::Scope;
use crate::model::{FileServer, Handler, Template};
use crate::problems::{not_built_as, unknown, unknown_option};
use crate::values;
use regent_caddyfile::{Error, Token};

pub(super) const DIRECTIVE: Directive = super::handler("file_server", parse);

const OPTIONS: &[&str] =
    &["disable_canonical_uris", "hide", "index", "pass_thru", "precompressed", "root", "status"];
const UNBUILT: &[&str] = &["browse", "etag_file_extensions", "fs"];

/// In Caddy's order of preference.
const ENCODINGS: &[&str] = &["br", "zstd", "gzip"];

fn parse(cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    match call.args.first() {
        Some(token) if token.text == "browse" => return Err(not_built_as(token, "file_server browse")),
        Some(_) => return Err(call.wrong_arguments(0, "file_server [MATCHER] { OPTION… }")),
        None => {}
    }
    let mut server = FileServer { hide: cx.hidden.clone(), ..FileServer::default() };
    for option in call.options() {
        let result = apply(&option, &mut server);
        cx.check(result);
    }
    Ok(Handler::FileServer(server))
}

fn apply(option: &Call<'_>, server: &mut FileServer) -> Result<(), Error> {
    match option.name() {
        "root" => server.root = Some(Template::parse(&option.one("root PATH")?.text)),
        "hide" => {
            server.hide.extend(option.some("hide PATTERN…")?.iter().map(|token| Template::parse(&token.text)))
        }
        "index" => server.index = index(option.some("index NAME… | off")?),
        "pass_thru" => server.pass_thru = option.exactly::<0>("pass_thru").map(|_| true)?,
        "disable_canonical_uris" => {
            server.canonical_uris = option.exactly::<0>("disable_canonical_uris").map(|_| false)?;
        }
        "status" => server.status = Some(values::integer(option.one("status CODE")?, 100..=999, "status")?),
        "precompressed" => server.precompressed = precompressed(option)?,
        _ => return Err(unknown_option(option.name, "file_server", OPTIONS, UNBUILT)),
    }
    Ok(())
}

fn index(names: &[Token]) -> Vec<String> {
    match names {
        [only] if only.text == "off" => Vec::new(),
        names => names.iter().map(|token| token.text.clone()).collect(),
    }
}

fn precompressed(option: &Call<'_>) -> Result<Vec<String>, Error> {
    option.without_block("precompressed [br zstd gzip]")?;
    if option.args.is_empty() {
        return Ok(ENCODINGS.iter().map(|name| (*name).to_owned()).collect());
    }
    if let Some(token) = option.args.iter().find(|token| !ENCODINGS.contains(&token.text.as_str())) {
        return Err(unknown(token, "encoding", ENCODINGS));
    }
    Ok(option.args.iter().map(|token| token.text.clone()).collect())
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{errors, handler};
    use crate::model::{FileServer, Handler, Template};

    #[test]
    fn options() {
        let text = "file_server /x* {\nroot /srv\nhide .git *.bak\nindex a b\npass_thru\nstatus 203\nprecompressed gzip\n\
                    disable_canonical_uris\n}";
        let expected = FileServer {
            root: Some(Template::text("/srv")),
            hide: vec![Template::text(".git"), Template::text("*.bak")],
            index: vec!["a".into(), "b".into()],
            pass_thru: true,
            canonical_uris: false,
            status: Some(203),
            precompressed: vec!["gzip".into()],
        };
        assert_eq!(handler(text), Handler::FileServer(expected));
        assert_eq!(handler("file_server"), Handler::FileServer(FileServer::default()));
    }

    #[test]
    fn mistakes() {
        let found =
            errors("file_server browse\nfile_server {\nbrowse\nstatus 9\nprecompressed lz4\nidex x\n}");
        assert_eq!(found[0], "`file_server browse` is not built yet in Regent");
        assert_eq!(found[1], "`file_server browse` is not built yet in Regent");
        assert!(found[4].contains("did you mean `index`?"), "{found:?}");
        assert_eq!(found.len(), 5);
    }
}
