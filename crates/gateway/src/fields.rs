//! Fields of an engine's responses and of trailer sections, as far as they are valid HTTP.

use http::{HeaderMap, HeaderName, HeaderValue, header};

/// The fields of a trailer section, as far as they are valid HTTP.
pub(crate) fn trailers<'a>(fields: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Box<HeaderMap> {
    let mut trailers = Box::<HeaderMap>::default();
    for (name, value) in fields.filter_map(|(name, value)| valid(name, value)) {
        trailers.append(name, value);
    }
    trailers
}

/// `None`, and a line in the log, for one that is not.
pub(crate) fn valid(name: &[u8], value: &[u8]) -> Option<(HeaderName, HeaderValue)> {
    match (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
        (Ok(name), Ok(value)) => Some((name, value)),
        _ => {
            tracing::debug!(name = %String::from_utf8_lossy(name), "an invalid header field was dropped");
            None
        }
    }
}

/// Whether the client takes trailers (RFC 9110 §10.1.4).
pub(crate) fn accepts_trailers(request: &HeaderMap) -> bool {
    let values = request.get_all(header::TE).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|coding| coding.trim().eq_ignore_ascii_case("trailers"))
}

/// As `Trailer` lists them.
pub(crate) fn names(trailers: &HeaderMap) -> Option<HeaderValue> {
    let names: Vec<&str> = trailers.keys().map(HeaderName::as_str).collect();
    HeaderValue::try_from(names.join(", ")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(te: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(header::TE, HeaderValue::from_static(te))])
    }

    #[test]
    fn trailers_are_for_clients_that_say_so() {
        for (te, expected) in
            [("trailers", true), ("gzip;q=0.5, Trailers", true), ("", false), ("trailersx", false)]
        {
            assert_eq!(accepts_trailers(&request(te)), expected, "{te}");
        }
    }
}
