//! Content codings: which of the encoded copies of a file a client takes (RFC 9110 §12.5.3).

use crate::error::BuildError;
use http::{HeaderMap, HeaderValue, header};

/// A coding with the ending of its sidecar files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Coding {
    name: &'static str,
    ending: &'static str,
}

const KNOWN: [Coding; 3] = [
    Coding { name: "gzip", ending: ".gz" },
    Coding { name: "br", ending: ".br" },
    Coding { name: "zstd", ending: ".zst" },
];

impl Coding {
    pub(crate) fn by_name(name: &str) -> Result<Self, BuildError> {
        let known = KNOWN.into_iter().find(|coding| coding.name == name);
        known.ok_or_else(|| BuildError::ContentCoding(name.to_owned()))
    }

    pub(crate) fn value(self) -> HeaderValue {
        HeaderValue::from_static(self.name)
    }

    pub(crate) fn ending(self) -> &'static str {
        self.ending
    }
}

/// Those of `offered` that the client takes, the best first; of equal ones, the one that is offered first.
pub(crate) fn accepted(headers: &HeaderMap, offered: &[Coding]) -> Vec<Coding> {
    let weight = |coding: &Coding| weight(headers, coding.name);
    let mut accepted: Vec<_> = offered.iter().copied().filter(|coding| weight(coding) > 0).collect();
    accepted.sort_by_key(|coding| std::cmp::Reverse(weight(coding)));
    accepted
}

/// How much the client likes a coding, in thousandths; 0: it does not take it.
pub(crate) fn weight(headers: &HeaderMap, coding: &str) -> u32 {
    named_weight(headers, coding).or_else(|| named_weight(headers, "*")).unwrap_or(0)
}

/// The weight of what is listed by this very name; `None` if it is not.
pub(crate) fn named_weight(headers: &HeaderMap, name: &str) -> Option<u32> {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let mut wishes = values.flat_map(|value| value.split(',')).filter_map(parse_wish);
    wishes.find(|(listed, _)| listed.eq_ignore_ascii_case(name)).map(|(_, weight)| weight)
}

/// A name and its weight in thousandths; `None` if the weight is malformed.
fn parse_wish(text: &str) -> Option<(&str, u32)> {
    let mut parts = text.split(';');
    let name = parts.next()?.trim();
    let weight =
        match parts.find_map(|part| part.trim().strip_prefix(['q', 'Q'])?.trim_start().strip_prefix('=')) {
            Some(text) => text.trim().parse::<f32>().ok().filter(|weight| (0.0..=1.0).contains(weight))?,
            None => 1.0,
        };
    // At most 1000, so the cast is exact.
    Some((name, (weight * 1000.0).round() as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_decide_then_the_order_of_the_configuration() {
        let offered = ["zstd", "br", "gzip"].map(|name| Coding::by_name(name).unwrap());
        for (field, want) in [
            ("gzip, br", vec!["br", "gzip"]),
            ("gzip;q=1.0, br;q=0.5", vec!["gzip", "br"]),
            ("br;q=0, *", vec!["zstd", "gzip"]),
            ("*;q=0.1, gzip", vec!["gzip", "zstd", "br"]),
            ("identity", vec![]),
            ("GZIP; Q=0.001", vec!["gzip"]),
            ("gzip;q=2", vec![]),
            ("", vec![]),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_str(field).unwrap());
            let names: Vec<_> = accepted(&headers, &offered).iter().map(|coding| coding.name).collect();
            assert_eq!(names, want, "{field}");
        }
        assert!(accepted(&HeaderMap::new(), &offered).is_empty());
    }
}
