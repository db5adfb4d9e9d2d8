//! The head of a script's response (RFC 3875 §6.3).

use crate::fastcgi::fault::Fault;
use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use hyper::ext::ReasonPhrase;

/// A head that is coming.
#[derive(Default)]
pub(super) struct Incoming {
    text: BytesMut,
    /// No end of the head begins before it.
    searched: usize,
}

impl Incoming {
    /// Takes more of the output. Gives the head once it is whole, with what of the body has come after it.
    pub fn take(&mut self, bytes: &[u8], most: usize) -> Result<Option<(Response<()>, Bytes)>, Fault> {
        self.text.extend_from_slice(bytes);
        match end(&self.text, self.searched) {
            Some((length, gap)) if length <= most => {
                let head = self.text.split_to(length);
                self.text.advance(gap);
                Ok(Some((parse(&head)?, self.text.split().freeze())))
            }
            None if self.text.len() <= most => {
                self.searched = self.text.len().saturating_sub(2);
                Ok(None)
            }
            _ => Err(Fault::Head("it is too large")),
        }
    }
}

/// Where the empty line is that ends a head, and how much of it there is besides the end of the last field.
fn end(text: &[u8], searched: usize) -> Option<(usize, usize)> {
    let empty = |rest: &[u8]| match rest {
        [b'\n', ..] => Some(1),
        [b'\r', b'\n', ..] => Some(2),
        _ => None,
    };
    // A head of nothing.
    if let (0, Some(gap)) = (searched, empty(text)) {
        return Some((0, gap));
    }
    let lines = text.iter().enumerate().skip(searched).filter(|(_, byte)| **byte == b'\n');
    lines.map(|(at, _)| at + 1).find_map(|next| empty(&text[next..]).map(|gap| (next, gap)))
}

/// Lines that are no fields are dropped: a script can write anything.
fn parse(head: &[u8]) -> Result<Response<()>, Fault> {
    let mut response = Response::new(());
    let (mut status, mut fields) = (None, HeaderMap::new());
    for line in head.split(|byte| *byte == b'\n') {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"status") {
            status = Some(value);
        } else if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
            fields.try_append(name, value).map_err(|_| Fault::Head("it has too many fields"))?;
        }
    }
    match status {
        Some(said) => {
            let (code, reason) = said.split_at(said.len().min(3));
            *response.status_mut() = StatusCode::from_bytes(code)
                .ok()
                .filter(|status| !status.is_informational() && matches!(reason, [] | [b' ', ..]))
                .ok_or(Fault::Head("its status is none"))?;
            response.extensions_mut().extend(reason_phrase(reason.trim_ascii()));
        }
        // RFC 3875 §6.2.4.
        None if fields.contains_key(header::LOCATION) => *response.status_mut() = StatusCode::FOUND,
        None => {}
    }
    *response.headers_mut() = fields;
    Ok(response)
}

fn reason_phrase(text: &[u8]) -> http::Extensions {
    let mut extensions = http::Extensions::new();
    if let Some(reason) = ReasonPhrase::try_from(text).ok().filter(|_| !text.is_empty()) {
        extensions.insert(reason);
    }
    extensions
}

/// The length of the body, if it is a plain number; several have to agree.
pub(super) fn declared(fields: &HeaderMap) -> Option<u64> {
    let mut values = fields.get_all(header::CONTENT_LENGTH).iter().map(|value| value.as_bytes());
    let first = values.next()?;
    let is_number = !first.is_empty() && first.iter().all(u8::is_ascii_digit);
    let is_one = is_number && values.all(|other| other == first);
    is_one.then(|| std::str::from_utf8(first).ok()?.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MOST: usize = 1000;

    /// A head, and what of the body came with it; `None`: it is not whole.
    type Found = Result<Option<(Response<()>, Vec<u8>)>, Fault>;

    fn head(text: &[u8], size: usize) -> Found {
        let mut incoming = Incoming::default();
        let mut pieces = text.chunks(size);
        while let Some(piece) = pieces.next() {
            if let Some((head, rest)) = incoming.take(piece, MOST)? {
                return Ok(Some((head, [&rest[..], &pieces.collect::<Vec<_>>().concat()].concat())));
            }
        }
        Ok(None)
    }

    fn whole(text: &str) -> (Response<()>, Vec<u8>) {
        head(text.as_bytes(), text.len()).unwrap().unwrap()
    }

    proptest! {
        #[test]
        fn where_a_head_is_cut_does_not_matter(
            text in prop_oneof![prop::collection::vec(any::<u8>(), 0..200), "[A-c:\r\n 0-9]{0,200}".prop_map(String::into_bytes)],
            size in 1_usize..20,
        ) {
            let shown = |found: Found| {
                found.map(|found| found.map(|(head, rest)| (head.status(), head.headers().clone(), rest))).map_err(|fault| fault.to_string())
            };
            prop_assert_eq!(shown(head(&text, size)), shown(head(&text, text.len().max(1))));
        }
    }

    #[test]
    fn heads_are_read() {
        let (head, rest) =
            whole("Status: 404 Not here\r\nX-A: 1\r\nx-a: 2\r\nContent-type: text/html\r\n\r\nbody");
        assert_eq!(
            (head.status(), head.headers().len(), &rest[..]),
            (StatusCode::NOT_FOUND, 3, &b"body"[..])
        );
        assert_eq!(head.extensions().get::<ReasonPhrase>().unwrap().as_bytes(), b"Not here");
        assert_eq!(whole("A: 1\n\nbody").1, b"body");
        assert_eq!(whole("\r\nbody").1, b"body");
        assert_eq!(whole("Location: /x\r\n\r\n").0.status(), StatusCode::FOUND);
        assert_eq!(whole("Status: 201\r\nLocation: /x\r\n\r\n").0.status(), StatusCode::CREATED);
        let odd = whole("no field\r\nX bad: 1\r\nX-\u{1}: 1\r\nX-B: a\0b\r\nX-C: ok\r\n\r\n").0;
        assert_eq!(odd.headers().keys().collect::<Vec<_>>(), ["x-c"]);
    }

    #[test]
    fn heads_that_harm_are_refused() {
        for text in
            ["Status: 101 x\n\n", "Status: 42\n\n", "Status: abc\n\n", "Status:\n\n", "Status: 2000\n\n"]
        {
            assert!(head(text.as_bytes(), 100).is_err(), "{text}");
        }
        assert!(head(&vec![b'a'; MOST + 1], 100).is_err());
        let many: String = (0..40_000).map(|number| format!("a{number}:\n")).collect();
        assert!(Incoming::default().take(format!("{many}\n").as_bytes(), usize::MAX).is_err());
    }

    #[test]
    fn lengths_are_plain_and_agree() {
        let length = |lines: &str| declared(whole(&format!("{lines}\n")).0.headers());
        assert_eq!(length("Content-Length: 12\n"), Some(12));
        assert_eq!(length("Content-Length: 12\nContent-Length: 12\n"), Some(12));
        for lines in [
            "A: 1\n",
            "Content-Length: 1\nContent-Length: 2\n",
            "Content-Length: +1\n",
            "Content-Length: -1\n",
        ] {
            assert_eq!(length(lines), None, "{lines}");
        }
    }
}
