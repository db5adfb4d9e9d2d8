//! `encode [MATCHER] [FORMAT…] { … }`: compresses responses for clients that accept it. More about it:
//! [compression](compression.md).
//!
//! A `FORMAT` is `zstd`, `br` or `gzip`; without any, `zstd gzip`. Where a client likes several equally, the first that
//! is written is taken, those in the block before those in the line.
//!
//! | option | default | meaning |
//! |---|---|---|
//! | `gzip [LEVEL]` | 5 | 0 to 9 |
//! | `zstd [LEVEL]`, or a block of `level LEVEL` and `disable_checksum` | default | `fastest`, `default`, `better` or `best` |
//! | `br [LEVEL]` | 4 | 0 to 11 |
//! | `minimum_length BYTES` | 512 | shorter responses are sent as they are |
//! | `match CONDITION`, or a block | texts, fonts, SVG and other types that shrink | which responses: `status CODE…` and `header FIELD [VALUE]`, as matchers have them |
//!
//! ```caddyfile
//! encode zstd br gzip
//! encode /reports/* {
//!     gzip 9
//!     minimum_length 2000
//!     match {
//!         status 2xx
//!         header Content-Type text/csv*
//!     }
//! }
//! ```

use super::Directive;
use crate::call::Call;
use crate::context::Context;
use crate::matchers::Scope;
use crate::model::{
    Encode, EncodeFormat, FieldMatcher, FieldTest, Handler, ResponseMatcher, Template, ZstdLevel,
};
use crate::problems::{error, unknown, unknown_option};
use crate::values;
use regent_caddyfile::{Error, Token};

pub(super) const DIRECTIVE: Directive = super::handler("encode", parse);

/// Caddy's, `modules/caddyhttp/encode/encode.go`.
const MINIMUM_LENGTH: u64 = 512;
/// Caddy's, `modules/caddyhttp/encode/gzip/gzip.go`.
const GZIP_LEVEL: u8 = 5;
/// As fast as gzip at its default and smaller; beyond it each level costs a multiple.
const BROTLI_LEVEL: u8 = 4;

const FORMATS: &[&str] = &["zstd", "br", "gzip"];
const OPTIONS: &[&str] = &["br", "gzip", "match", "minimum_length", "zstd"];

fn parse(cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    let mut block = Block { formats: Vec::new(), minimum_length: MINIMUM_LENGTH, matcher: None };
    for option in call.options() {
        let result = block.option(cx, &option);
        cx.check(result);
    }
    let has_formats = call.block.is_some_and(|lines| lines.iter().any(|line| is_format(&line.name)));
    for token in call.args {
        let result = default_format(token).and_then(|format| block.add(token, format));
        cx.check(result);
    }
    if call.args.is_empty() && !has_formats {
        block.formats = vec![zstd_format(ZstdLevel::Default), EncodeFormat::Gzip { level: GZIP_LEVEL }];
    }
    let Block { formats, minimum_length, matcher } = block;
    Ok(Handler::Encode(Encode { formats, minimum_length, matcher }))
}

fn is_format(token: &Token) -> bool {
    FORMATS.contains(&token.text.as_str())
}

/// What the directive has said so far.
struct Block {
    formats: Vec<EncodeFormat>,
    minimum_length: u64,
    matcher: Option<ResponseMatcher>,
}

impl Block {
    fn option(&mut self, cx: &mut Context<'_>, option: &Call<'_>) -> Result<(), Error> {
        match option.name() {
            "gzip" => self.add(option.name, EncodeFormat::Gzip { level: level(option, 9, GZIP_LEVEL)? }),
            "br" => self.add(option.name, EncodeFormat::Brotli { level: level(option, 11, BROTLI_LEVEL)? }),
            "zstd" => {
                let format = zstd(cx, option)?;
                self.add(option.name, format)
            }
            "minimum_length" => {
                let token = option.one("minimum_length BYTES")?;
                self.minimum_length = values::integer(token, 0..=u64::from(u32::MAX), "minimum_length")?;
                Ok(())
            }
            "match" if self.matcher.is_some() => {
                Err(error(option.name, "there is a `match` already; write all conditions in one block"))
            }
            "match" => {
                self.matcher = Some(response_matcher(cx, option)?);
                Ok(())
            }
            _ => Err(unknown_option(option.name, "encode", OPTIONS, &[])),
        }
    }

    fn add(&mut self, token: &Token, format: EncodeFormat) -> Result<(), Error> {
        let kind = std::mem::discriminant(&format);
        if self.formats.iter().any(|known| std::mem::discriminant(known) == kind) {
            return Err(error(token, format!("`{}` is there twice", token.text)));
        }
        self.formats.push(format);
        Ok(())
    }
}

fn default_format(token: &Token) -> Result<EncodeFormat, Error> {
    match token.text.as_str() {
        "zstd" => Ok(zstd_format(ZstdLevel::Default)),
        "br" => Ok(EncodeFormat::Brotli { level: BROTLI_LEVEL }),
        "gzip" => Ok(EncodeFormat::Gzip { level: GZIP_LEVEL }),
        _ => {
            let Error { message, .. } = unknown(token, "format", FORMATS);
            Err(error(token, format!("{message} (the formats: {})", FORMATS.join(", "))))
        }
    }
}

const fn zstd_format(level: ZstdLevel) -> EncodeFormat {
    EncodeFormat::Zstd { level, checksum: true }
}

/// The level of gzip or br.
fn level(option: &Call<'_>, most: u8, default: u8) -> Result<u8, Error> {
    let syntax = format!("{} [LEVEL]", option.name());
    option.without_block(&syntax)?;
    match option.args {
        [] => Ok(default),
        [level] => values::integer(level, 0..=most, &syntax),
        _ => Err(option.wrong_arguments(1, &syntax)),
    }
}

/// Mistakes within the block are noted in `cx`.
fn zstd(cx: &mut Context<'_>, option: &Call<'_>) -> Result<EncodeFormat, Error> {
    let mut level = match option.args {
        [] => None,
        [level] => Some(zstd_level(level)?),
        _ => return Err(option.wrong_arguments(1, "zstd [LEVEL]")),
    };
    let mut checksum = true;
    for setting in option.options() {
        let result = match setting.name() {
            "level" if level.is_some() => Err(error(setting.name, "there is a level already")),
            "level" => setting.one("level LEVEL").and_then(zstd_level).map(|found| level = Some(found)),
            "disable_checksum" => setting.exactly::<0>("disable_checksum").map(|_| checksum = false),
            _ => Err(unknown_option(setting.name, "zstd", &["disable_checksum", "level"], &[])),
        };
        cx.check(result);
    }
    Ok(EncodeFormat::Zstd { level: level.unwrap_or_default(), checksum })
}

fn zstd_level(token: &Token) -> Result<ZstdLevel, Error> {
    // Not sensitive to case, as in Caddy.
    match token.text.to_ascii_lowercase().as_str() {
        "fastest" => Ok(ZstdLevel::Fastest),
        "default" => Ok(ZstdLevel::Default),
        "better" => Ok(ZstdLevel::Better),
        "best" => Ok(ZstdLevel::Best),
        text => Err(error(
            token,
            format!("`{text}` is no level of zstd; write `fastest`, `default`, `better` or `best`"),
        )),
    }
}

const MATCH_SYNTAX: &str = "match status CODE… | header FIELD [VALUE], or a block of such lines";

/// Mistakes within the block are noted in `cx`.
pub(super) fn response_matcher(cx: &mut Context<'_>, call: &Call<'_>) -> Result<ResponseMatcher, Error> {
    let mut matcher = ResponseMatcher::default();
    match (call.args, call.block) {
        ([name, args @ ..], None) => condition(&Call { name, args, block: None }, &mut matcher)?,
        ([], Some(_)) => {
            for option in call.options() {
                let result = condition(&option, &mut matcher);
                cx.check(result);
            }
        }
        ([], None) => return Err(call.wrong_arguments(1, MATCH_SYNTAX)),
        ([first, ..], Some(_)) => return Err(error(first, format!("write: {MATCH_SYNTAX}"))),
    }
    Ok(matcher)
}

fn condition(call: &Call<'_>, matcher: &mut ResponseMatcher) -> Result<(), Error> {
    match call.name() {
        "status" => {
            for token in call.some("status CODE…")? {
                matcher.statuses.push(values::statuses(token)?);
            }
            Ok(())
        }
        "header" => field(call, &mut matcher.fields),
        _ => Err(unknown(call.name, "condition on a response", &["header", "status"])),
    }
}

/// Several values of one field are alternatives.
fn field(call: &Call<'_>, fields: &mut Vec<FieldMatcher>) -> Result<(), Error> {
    let syntax = "header FIELD [VALUE] or header !FIELD";
    call.without_block(syntax)?;
    let (token, value) = match call.args {
        [field] => (field, None),
        [field, value] => (field, Some(value)),
        args => return Err(call.wrong_arguments(if args.is_empty() { 1 } else { 2 }, syntax)),
    };
    let (name, is_absent) = match token.text.strip_prefix('!') {
        Some(name) => (name, true),
        None => (token.text.as_str(), false),
    };
    if !super::header::is_name(name) || (is_absent && value.is_some()) {
        return Err(error(token, format!("`{}` is no field; write: {syntax}", token.text)));
    }
    if let Some(value) = value.filter(|value| Template::parse(&value.text).as_text().is_none()) {
        return Err(error(value, "a condition on a response cannot have placeholders"));
    }
    let test = match (is_absent, value) {
        (true, _) => FieldTest::Absent,
        (false, None) => FieldTest::Present,
        (false, Some(value)) => FieldTest::Like(vec![value.text.clone()]),
    };
    let known = fields.iter_mut().find(|known| known.name.eq_ignore_ascii_case(name));
    match (known.map(|known| &mut known.test), test) {
        (Some(FieldTest::Like(values)), FieldTest::Like(more)) => values.extend(more),
        (_, test) => fields.push(FieldMatcher { name: name.to_owned(), test }),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directives::testing::{errors, handler, load, routes};

    fn encode(text: &str) -> Encode {
        match handler(text) {
            Handler::Encode(encode) => encode,
            other => panic!("{other:?}"),
        }
    }

    const ZSTD: EncodeFormat = zstd_format(ZstdLevel::Default);
    const BROTLI: EncodeFormat = EncodeFormat::Brotli { level: 4 };
    const GZIP: EncodeFormat = EncodeFormat::Gzip { level: 5 };

    #[test]
    fn the_written_order_is_the_preference() {
        assert_eq!(
            encode("encode"),
            Encode { formats: vec![ZSTD, GZIP], minimum_length: 512, matcher: None }
        );
        assert_eq!(encode("encode zstd br gzip").formats, [ZSTD, BROTLI, GZIP]);
        assert_eq!(encode("encode /a* gzip zstd").formats, [GZIP, ZSTD]);
        assert_eq!(encode("encode zstd {\ngzip 9\n}").formats, [EncodeFormat::Gzip { level: 9 }, ZSTD]);
        assert_eq!(encode("encode {\nminimum_length 0\n}").formats, [ZSTD, GZIP]);
    }

    #[test]
    fn levels() {
        let found = encode("encode {\nbr 11\ngzip\nzstd best {\ndisable_checksum\n}\n}");
        let zstd = EncodeFormat::Zstd { level: ZstdLevel::Best, checksum: false };
        assert_eq!(found.formats, [EncodeFormat::Brotli { level: 11 }, GZIP, zstd]);
        let found = encode("encode {\nzstd {\nlevel Fastest\n}\n}");
        assert_eq!(found.formats, [zstd_format(ZstdLevel::Fastest)]);
    }

    #[test]
    fn conditions_on_the_response() {
        let like = |values: &[&str]| FieldTest::Like(values.iter().map(|&value| value.into()).collect());
        let field = |name: &str, test| FieldMatcher { name: name.into(), test };
        let text = "encode {\nmatch {\nstatus 2xx 404\nheader Content-Type text/*\nheader content-type a/b\n\
                    header !X\nheader Y\n}\n}";
        let expected = ResponseMatcher {
            statuses: vec![(200, 299), (404, 404)],
            fields: vec![
                field("Content-Type", like(&["text/*", "a/b"])),
                field("X", FieldTest::Absent),
                field("Y", FieldTest::Present),
            ],
        };
        assert_eq!(encode(text).matcher, Some(expected));
        let line = encode("encode {\nmatch header A b\n}").matcher.unwrap();
        assert_eq!(line.fields, [field("A", like(&["b"]))]);
    }

    #[test]
    fn it_stands_after_request_header_and_before_handlers() {
        let routes = routes("respond x\nencode\nrequest_header A b");
        assert!(matches!(routes[0].handler, Handler::RequestHeader(_)));
        assert!(matches!(routes[1].handler, Handler::Encode(_)));
    }

    #[test]
    fn mistakes_have_their_places() {
        let text = ":80 {\n\tencode gzip deflate {\n\t\tgzip 10\n\t\tzstd ultra\n\t\tbr -1\n\t\tminimum_lenght 1\n\
                    \t\tmatch {\n\t\t\tstatus ok\n\t\t\theader A {path}\n\t\t\theder A\n\t\t}\n\t\tmatch status 200\n\t}\n}";
        let found = load(text).unwrap_err().to_string();
        let lines: Vec<_> = found.lines().filter(|line| line.starts_with("Caddyfile:")).collect();
        let expected = [
            "Caddyfile:2:14: unknown format `deflate` (the formats: zstd, br, gzip)",
            "Caddyfile:3:8: `gzip [LEVEL]` must be a whole number from 0 to 9, not `10`",
            "Caddyfile:4:8: `ultra` is no level of zstd; write `fastest`, `default`, `better` or `best`",
            "Caddyfile:5:6: `br [LEVEL]` must be a whole number from 0 to 11, not `-1`",
            "Caddyfile:6:3: unknown option `minimum_lenght` of `encode`; did you mean `minimum_length`? (its options: \
             br, gzip, match, minimum_length, zstd)",
            "Caddyfile:8:11: `ok` is no status; write a number such as `404`, or `4xx`",
            "Caddyfile:9:13: a condition on a response cannot have placeholders",
            "Caddyfile:10:4: unknown condition on a response `heder`; did you mean `header`?",
            "Caddyfile:12:3: there is a `match` already; write all conditions in one block",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_format_is_there_once() {
        assert_eq!(errors("encode gzip gzip"), ["`gzip` is there twice"]);
        assert_eq!(errors("encode gzip {\ngzip 6\n}"), ["`gzip` is there twice"]);
        assert_eq!(errors("encode {\nmatch\n}").len(), 1);
    }
}
