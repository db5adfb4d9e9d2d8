//! Stored responses that scripts have forgotten, which the server does before the script goes on.

use crate::ffi::{self, Str, Var};
use regent_engine_host::Reporter;
use regent_wire::EngineThread;
use regent_wire::control::{self, Event, MAX_EVENT, Purging, REFUSED};
use regent_wire::names::key;
use std::ffi::c_int;
use std::time::Duration;

/// What the server keeps of one tag, and of a URL.
const LONGEST_TAG: usize = 1024;
const LONGEST_URL: usize = 4096;
/// It looks at all that is stored, which takes milliseconds; behind many others longer.
const PATIENCE: Duration = Duration::from_secs(5);
const HTTP_HOST: u32 = key("HTTP_HOST") as u32;

/// What may be forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forgotten {
    /// As the server numbers what sites may purge.
    Of(u64),
    /// Nothing, and the script does not know.
    Nothing,
}

/// Why nothing is forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    NoCache,
    Tag,
    Url,
    Prefix,
    TooLarge,
    /// The server does not read, has too much to do, or has gone.
    Busy,
    /// It has not answered in time, and may still do it.
    Late,
}

impl Refusal {
    pub fn code(self) -> c_int {
        match self {
            Self::NoCache => 1,
            Self::Tag => 2,
            Self::Url => 3,
            Self::Prefix => 4,
            Self::TooLarge => 5,
            Self::Busy => 6,
            Self::Late => 7,
        }
    }
}

/// Returns how many responses there were, when none of them is left. `variables`: of the request.
///
/// # Safety
/// The C side's struct and variables, whose pointers are valid for the time of the call.
pub unsafe fn purge(
    whose: Forgotten,
    purge: &ffi::Purge,
    variables: &[Var],
    thread: &EngineThread,
    reporter: &Reporter,
) -> Result<u64, Refusal> {
    // SAFETY: law 5: as the caller promises.
    let purging = unsafe { read(purge, variables) }?;
    let Forgotten::Of(scope) = whose else { return Ok(0) };
    let number = thread.next_question();
    let index = u16::try_from(thread.index()).map_err(|_| Refusal::Busy)?;
    let event = Event::Purge(Box::new(Purging { index, number, scope, ..purging }));
    if control::encode(&event).len() > MAX_EVENT {
        return Err(Refusal::TooLarge);
    }
    if !reporter.deliver(&event) {
        return Err(Refusal::Busy);
    }
    match thread.wait_for_answer(number, PATIENCE) {
        Some(REFUSED) => Err(Refusal::Busy),
        Some(purged) => Ok(purged),
        None => Err(Refusal::Late),
    }
}

/// # Safety
/// As [`purge`].
unsafe fn read(purge: &ffi::Purge, variables: &[Var]) -> Result<Purging, Refusal> {
    // SAFETY: law 5: (pointer, length) for the time of the call; a list without elements may have no pointer.
    let (tags, url, prefix) = unsafe {
        let tags = if purge.n_tags == 0 { &[] } else { std::slice::from_raw_parts(purge.tags, purge.n_tags) };
        let tags = tags.iter().map(|tag| tag_of(tag.bytes())).collect::<Option<Vec<_>>>();
        let host = variables.iter().find(|variable| variable.key == HTTP_HOST);
        let host = host.map_or(&[][..], |host| host.value.bytes());
        let location = |text: &Str| (!text.ptr.is_null()).then(|| location_of(text.bytes(), host));
        (tags, location(&purge.url), location(&purge.prefix))
    };
    Ok(Purging {
        index: 0,
        number: 0,
        scope: 0,
        tags: tags.ok_or(Refusal::Tag)?,
        url: url.map(|url| url.ok_or(Refusal::Url)).transpose()?,
        prefix: prefix.map(|prefix| prefix.ok_or(Refusal::Prefix)).transpose()?,
    })
}

/// As responses have them: other texts are no response's.
fn tag_of(tag: &[u8]) -> Option<String> {
    let is_tag = (1..=LONGEST_TAG).contains(&tag.len());
    let is_tag = is_tag && tag.iter().all(|byte| byte.is_ascii_graphic() && *byte != b',');
    is_tag.then(|| String::from_utf8_lossy(tag).into_owned())
}

/// Without the scheme. What begins with a slash is of the host that the request is for.
fn location_of(url: &[u8], host: &[u8]) -> Option<String> {
    let is_url = url.len() <= LONGEST_URL && url.iter().all(u8::is_ascii_graphic);
    let url = std::str::from_utf8(url).ok().filter(|_| is_url)?;
    if url.starts_with('/') && !url.starts_with("//") {
        let host = std::str::from_utf8(host).ok().filter(|host| !host.is_empty())?;
        return Some(format!("{host}{url}"));
    }
    let (scheme, rest) = url.split_once("://")?;
    let is_http = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    (is_http && !rest.is_empty() && !rest.starts_with('/')).then(|| rest.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_whole_or_of_the_request_s_host() {
        let location = |url: &str| location_of(url.as_bytes(), b"example.com:8080");
        for (url, want) in [
            ("/a?b", Some("example.com:8080/a?b")),
            ("HTTPS://example.org/a", Some("example.org/a")),
            ("http://example.org", Some("example.org")),
            ("//example.org/a", None),
            ("ftp://example.org/a", None),
            ("http:///a", None),
            ("a", None),
            ("", None),
            ("/a b", None),
            ("/\u{e9}", None),
        ] {
            assert_eq!(location(url).as_deref(), want, "{url}");
        }
        assert_eq!(location_of(b"/a", b""), None, "a request without a host has no path");
        assert_eq!(location(&format!("/{}", "a".repeat(LONGEST_URL))), None);
    }

    #[test]
    fn tags_are_what_responses_can_have() {
        for (tag, want) in [("post-1", true), ("a,b", false), ("a b", false), ("", false), ("\u{e9}", false)]
        {
            assert_eq!(tag_of(tag.as_bytes()).is_some(), want, "{tag}");
        }
    }
}
