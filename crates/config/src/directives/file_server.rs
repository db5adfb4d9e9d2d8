//! `file_server [MATCHER] [browse] { … }`: files under the site's root.
//!
//! | option | default | meaning |
//! |---|---|---|
//! | `root PATH` | the site's root | |
//! | `hide PATTERN…` | | files that count as missing; the Caddyfile itself always does |
//! | `index NAME…` \| `off` | index.html index.txt | served for a directory; with placeholders, what the request makes of it |
//! | `precompressed [br zstd gzip]` | off; all without arguments | serve `FILE.br` and so on if it is there |
//! | `status CODE` | 200; that of the error in [handle_errors](#handle_errors) | with placeholders too, such as `{err.status_code}` |
//! | `disable_canonical_uris` | | no redirect from `/dir` to `/dir/` |
//! | `etag_file_extensions ENDING…` | | the `ETag` of `FILE` is what `FILE` with the first of these endings holds that is there: a text in double quotes |
//! | `pass_thru` | | a missing file is left to the next handler |
//! | `browse [TEMPLATE]`, or a block of `file_limit N`, `sort BY [asc\|desc]`, `reveal_symlinks` and `plain_time_format LAYOUT` behind it | off | a directory without an index has a page that lists it: see below |
//!
//! A page of `browse` shows names, sizes and times of at most `file_limit` entries (10,000), sorted by name, namedirfirst (the
//! default), size or time. The query of a request may say otherwise, as `?sort=time&order=desc&limit=20&offset=40`. `Accept:
//! application/json` gets the same as JSON, in Caddy's form, and `Accept: text/plain` as text, with times by the layout. `TEMPLATE`
//! is a file that makes the page instead: a Go template with the functions of [templates](templates.md), and Caddy's names for
//! what is listed (`.Name`, `.Path`, `.Items`, `.Breadcrumbs` and so on), read for each page. What is hidden is not in it, nor are links that lead out of the
//! root or nowhere; a directory that a link out of the root leads to has no page. With `reveal_symlinks` it says where the others
//! lead, in the words of the link.
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
use crate::model::{Browse, FileServer, Handler, ListingOrder, ListingSort, Template};
use crate::problems::{error, unknown, unknown_option};
use crate::values;
use regent_caddyfile::{Error, Token};
use std::path::{Path, PathBuf};

pub(super) const DIRECTIVE: Directive = super::handler("file_server", parse);

const OPTIONS: &[&str] = &[
    "browse",
    "disable_canonical_uris",
    "etag_file_extensions",
    "hide",
    "index",
    "pass_thru",
    "precompressed",
    "root",
    "status",
];
const UNBUILT: &[&str] = &["fs"];

const SYNTAX: &str = "file_server [MATCHER] [browse] { OPTION… }";

/// Entries of a page: each is some hundred bytes of memory and of HTML.
const MOST_LISTED: u32 = 100_000;

/// In Caddy's order of preference.
const ENCODINGS: &[&str] = &["br", "zstd", "gzip"];

fn parse(cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    let browse = match call.args {
        [] => None,
        [word] if word.text == "browse" => Some(Box::default()),
        [word, ..] if word.text == "browse" => return Err(call.wrong_arguments(1, SYNTAX)),
        _ => return Err(call.wrong_arguments(0, SYNTAX)),
    };
    let mut server = FileServer { hide: cx.hidden.clone(), browse, ..FileServer::default() };
    for option in call.options() {
        let result = apply(cx, &option, &mut server);
        cx.check(result);
    }
    Ok(Handler::FileServer(server))
}

fn apply(cx: &mut Context<'_>, option: &Call<'_>, server: &mut FileServer) -> Result<(), Error> {
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
        "status" => {
            server.status = Some(Box::new(status(cx, option.one("status CODE")?)?));
        }
        "precompressed" => server.precompressed = precompressed(option)?,
        "browse" => server.browse = Some(Box::new(browse(cx, option)?)),
        "etag_file_extensions" => {
            let endings = option.some("etag_file_extensions ENDING…")?;
            if let Some(ending) =
                endings.iter().find(|ending| ending.text.is_empty() || ending.text.contains('/'))
            {
                return Err(error(
                    ending,
                    "an ending of file names has no slash; write one such as `.sha256`",
                ));
            }
            server.etag_endings = endings.iter().map(|ending| ending.text.clone()).collect();
        }
        _ => return Err(unknown_option(option.name, "file_server", OPTIONS, UNBUILT)),
    }
    Ok(())
}

fn browse(cx: &Context<'_>, option: &Call<'_>) -> Result<Browse, Error> {
    let mut browse = Browse::default();
    match option.args {
        [] => {}
        [template] => browse.template = Some(self::template(cx, template)?),
        _ => return Err(option.wrong_arguments(1, "browse [TEMPLATE] { OPTION… }")),
    }
    for line in option.options() {
        match line.name() {
            "file_limit" => {
                browse.file_limit =
                    values::integer(line.one("file_limit N")?, 1..=MOST_LISTED, "file_limit")?;
            }
            "sort" => {
                let words = line.some("sort BY [asc | desc]")?;
                let known = ["name", "namedirfirst", "size", "time"];
                browse.sort =
                    ListingSort::named(&words[0].text).ok_or_else(|| unknown(&words[0], "sort", &known))?;
                if let Some(order) = words.get(1) {
                    browse.order = ListingOrder::named(&order.text)
                        .ok_or_else(|| unknown(order, "order", &["asc", "desc"]))?;
                }
            }
            "reveal_symlinks" => {
                browse.reveal_links = line.exactly::<0>("reveal_symlinks").map(|_| true)?;
            }
            "plain_time_format" => {
                let layout = line.one("plain_time_format LAYOUT")?;
                if layout.text.is_empty() {
                    return Err(error(layout, "write a layout of Go's, such as `2006-01-02 15:04:05`"));
                }
                browse.plain_time_format.clone_from(&layout.text);
            }
            _ => {
                let known = ["file_limit", "plain_time_format", "reveal_symlinks", "sort"];
                return Err(unknown_option(line.name, "browse", &known, &[]));
            }
        }
    }
    Ok(browse)
}

/// The path of a file that is there; relative ones are to the working directory, as in Caddy.
fn template(cx: &Context<'_>, token: &Token) -> Result<PathBuf, Error> {
    let path = cx.environment.absolute(Path::new(&cx.fixed_text(token)?));
    match path.is_file() {
        true => Ok(path),
        false => Err(error(token, format!("the file does not exist: {}", path.display()))),
    }
}

fn index(names: &[Token]) -> Vec<Template> {
    match names {
        [only] if only.text == "off" => Vec::new(),
        names => names.iter().map(|token| Template::parse(&token.text)).collect(),
    }
}

/// A number, or what the request makes of it.
fn status(cx: &Context<'_>, token: &Token) -> Result<Template, Error> {
    let template = Template::parse(&token.text);
    let Some(text) = cx.fixed(&template) else { return Ok(template) };
    let fixed = Token { text, ..token.clone() };
    values::integer::<u16>(&fixed, 100..=999, "status").map(|code| Template::text(code.to_string()))
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
    use crate::model::{Browse, FileServer, Handler, ListingOrder, ListingSort, Template};

    #[test]
    fn options() {
        let text = "file_server /x* {\nroot /srv\nhide .git *.bak\nindex a b\npass_thru\nstatus 203\nprecompressed gzip\n\
                    disable_canonical_uris\netag_file_extensions .sha256 .md5\n}";
        let expected = FileServer {
            root: Some(Template::text("/srv")),
            hide: vec![Template::text(".git"), Template::text("*.bak")],
            index: vec![Template::text("a"), Template::text("b")],
            browse: None,
            pass_thru: true,
            canonical_uris: false,
            status: Some(Box::new(Template::text("203"))),
            precompressed: vec!["gzip".into()],
            etag_endings: vec![".sha256".into(), ".md5".into()],
        };
        assert_eq!(handler(text), Handler::FileServer(expected));
        assert_eq!(handler("file_server"), Handler::FileServer(FileServer::default()));
    }

    #[test]
    fn directories_are_listed_if_that_is_asked_for() {
        let browse = |text: &str| match handler(text) {
            Handler::FileServer(server) => server.browse,
            other => panic!("{other:?}"),
        };
        assert_eq!(browse("file_server /x* browse"), Some(Box::default()));
        assert_eq!(browse("file_server {\nbrowse\n}"), Some(Box::default()));
        let own = Browse {
            file_limit: 5,
            sort: ListingSort::Time,
            order: ListingOrder::Descending,
            reveal_links: true,
            plain_time_format: "15:04".into(),
            template: Some("/proc/self/status".into()),
        };
        assert_eq!(
            browse(
                "file_server {\nbrowse /proc/self/status {\nfile_limit 5\nsort time desc\nreveal_symlinks\n\
                 plain_time_format 15:04\n}\n}"
            ),
            Some(Box::new(own))
        );
        for text in [
            "browse /nowhere/page.html",
            "browse a b",
            "browse {\nplain_time_format \"\"\n}",
            "browse {\nsort age\n}",
            "browse {\nfile_limit 0\n}",
            "browse {\nreveal_symlinks x\n}",
            "etag_file_extensions",
            "etag_file_extensions ../x",
        ] {
            assert_eq!(errors(&format!("file_server {{\n{text}\n}}")).len(), 1, "{text}");
        }
        assert_eq!(errors("file_server browse x\nfile_server x").len(), 2);
    }

    #[test]
    fn what_the_request_says_stands_in_names_of_indexes_and_in_the_status() {
        let Handler::FileServer(server) =
            handler("file_server {\nindex index.{host}.html index.html\nstatus {err.status_code}\n}")
        else {
            panic!()
        };
        assert_eq!(server.index, [Template::parse("index.{host}.html"), Template::text("index.html")]);
        assert_eq!(server.status.as_deref(), Some(&Template::parse("{err.status_code}")));
    }

    #[test]
    fn mistakes() {
        let found = errors("file_server {\nfs x\nstatus 9\nprecompressed lz4\nidex x\n}");
        assert!(
            found[0].starts_with("`file_server fs` needs a third party's module in Caddy too"),
            "{found:?}"
        );
        assert!(found[3].contains("did you mean `index`?"), "{found:?}");
        assert_eq!(found.len(), 4);
    }
}
