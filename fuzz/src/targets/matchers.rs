//! Patterns and templates that a configuration has, with requests: they compile or are refused, and a glob fits what a
//! simple implementation says that it does.
//!
//! Lines: pattern, template, target, value of a field.

use crate::corpus::fixtures;
use crate::input::Input;
use http::{HeaderValue, Request};
use regent_config::{Environment, parse};
use regent_exchange::Connection;
use std::sync::Arc;
use regent_cache::{Limits, Store};
use regent_handlers::fuzzing::glob_fits;
use regent_handlers::{Action, Exchange, LogOutputs, RateZones, Sites};
use std::collections::BTreeMap;

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let (pattern, template) = (input.text_line(), input.text_line());
    let (target, value) = (input.line(), input.line());
    assert_eq!(glob_fits(pattern.as_bytes(), target), naive_fits(pattern.as_bytes(), target), "{pattern}");
    let is_quotable = |text: &str| !text.contains('`') && !text.contains("{$");
    if is_quotable(pattern) && is_quotable(template) {
        respond(pattern, template, target, value);
    }
}

/// The pattern as one for the path, the header and the host, the template as a body, a field and a target.
fn respond(pattern: &str, template: &str, target: &[u8], value: &[u8]) {
    let caddyfile = format!(
        ":80 {{\n@p path `{pattern}`\n@h header X-Value `{pattern}`\n@n host `{pattern}`\n@q query `k={pattern}`\n\
         header @p X-Answer `{template}`\nrewrite @q `/{template}`\nredir @h `{template}`\nrespond @n `{template}`\n\
         respond `{template}`\n}}"
    );
    let environment = Environment { variables: BTreeMap::new(), current_dir: fixtures().to_owned() };
    let Ok(loaded) = parse("Caddyfile", &caddyfile, fixtures(), &environment) else { return };
    let Ok(sites) = Sites::build(&loaded.config.servers[0], &[], &loaded.config.proxies, &LogOutputs::default(), &Arc::new(Store::new(Limits { memory: 1 << 20, object: 1 << 10 })), &RateZones::default(), None) else { return };
    let request = Request::builder().uri(target).header("cookie", "a=b; c=d").header("host", "example.com:80");
    let Ok(mut request) = request.body(()) else { return };
    if let Ok(value) = HeaderValue::from_bytes(value) {
        request.headers_mut().insert("x-value", value);
    }
    let mut exchange = Exchange::new(request.into_parts().0, Connection::default());
    if let Action::Respond(response) = sites.route(&mut exchange) {
        exchange.finish(response);
    }
}

enum Token {
    Star,
    /// Upper and lower case are one.
    One(Box<dyn Fn(u8) -> bool>),
}

/// All places of the pattern where one can be after each byte of the text.
fn naive_fits(pattern: &[u8], text: &[u8]) -> Option<bool> {
    let tokens = tokens(pattern)?;
    let mut places = vec![false; tokens.len() + 1];
    places[0] = true;
    skip_stars(&tokens, &mut places);
    for &byte in text {
        let mut next = vec![false; tokens.len() + 1];
        for (at, token) in tokens.iter().enumerate().filter(|(at, _)| places[*at]) {
            match token {
                Token::Star if byte != b'/' => next[at] = true,
                Token::One(fits) if fits(byte) => next[at + 1] = true,
                Token::Star | Token::One(_) => {}
            }
        }
        skip_stars(&tokens, &mut next);
        places = next;
    }
    Some(places[tokens.len()])
}

/// A star may stand for nothing.
fn skip_stars(tokens: &[Token], places: &mut [bool]) {
    for (at, token) in tokens.iter().enumerate() {
        if places[at] && matches!(token, Token::Star) {
            places[at + 1] = true;
        }
    }
}

fn tokens(pattern: &[u8]) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut bytes = pattern.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        tokens.push(match byte {
            b'*' => Token::Star,
            b'?' => Token::One(Box::new(|byte| byte != b'/')),
            b'[' => class(&mut bytes)?,
            byte => {
                let literal = if byte == b'\\' { bytes.next()? } else { byte };
                Token::One(Box::new(move |byte| byte.eq_ignore_ascii_case(&literal)))
            }
        });
    }
    Some(tokens)
}

fn class(bytes: &mut std::iter::Peekable<impl Iterator<Item = u8>>) -> Option<Token> {
    let negated = bytes.next_if_eq(&b'^').is_some();
    let mut members = [false; 256];
    let mut count = 0;
    loop {
        let mut low = bytes.next()?;
        if low == b']' && count > 0 {
            break;
        }
        if low == b'\\' {
            low = bytes.next()?;
        }
        let mut high = low;
        if bytes.next_if_eq(&b'-').is_some() {
            high = bytes.next()?;
            if high == b'\\' {
                high = bytes.next()?;
            }
        }
        (low..=high).for_each(|member| members[usize::from(member)] = true);
        count += 1;
    }
    let is_member = move |byte: u8| members[usize::from(byte)];
    Some(Token::One(Box::new(move |byte| {
        byte != b'/' && (is_member(byte.to_ascii_lowercase()) || is_member(byte.to_ascii_uppercase())) != negated
    })))
}
