//! Which coding a client gets (RFC 9110 §12.5.3).

use crate::files::content_coding::{named_weight, weight};
use http::{HeaderMap, Method, header};
use regent_config::EncodeFormat;

/// The format that the client likes best, the first of several; `None`: the response is to stay as it is.
pub(crate) fn choose(method: &Method, headers: &HeaderMap, formats: &[EncodeFormat]) -> Option<EncodeFormat> {
    if *method == Method::CONNECT || is_upgrade(headers) || has_no_transform(headers) {
        return None;
    }
    let (mut best, mut best_weight) = (None, named_weight(headers, "identity").unwrap_or(0));
    for format in formats {
        let weight = weight(headers, format.name());
        let is_better = if best.is_none() { weight >= best_weight } else { weight > best_weight };
        if weight > 0 && is_better {
            (best, best_weight) = (Some(*format), weight);
        }
    }
    best
}

/// A WebSocket's handshake, for example: what follows it is no response.
fn is_upgrade(headers: &HeaderMap) -> bool {
    headers.contains_key(header::UPGRADE) || headers.contains_key(header::SEC_WEBSOCKET_KEY)
}

/// RFC 9111 §5.2.1.6 and §5.2.2.6.
pub(crate) fn has_no_transform(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    let mut directives = values.flat_map(|value| value.split(','));
    directives.any(|directive| directive.trim().eq_ignore_ascii_case("no-transform"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};
    use regent_config::ZstdLevel;

    const FORMATS: [EncodeFormat; 3] = [
        EncodeFormat::Zstd { level: ZstdLevel::Default, checksum: true },
        EncodeFormat::Brotli { level: 4 },
        EncodeFormat::Gzip { level: 5 },
    ];

    fn chosen(fields: &[(&'static str, &str)]) -> &'static str {
        let fields = fields.iter().map(|(name, value)| {
            (HeaderName::from_static(name), HeaderValue::from_bytes(value.as_bytes()).unwrap())
        });
        choose(&Method::GET, &fields.collect(), &FORMATS).map_or("identity", EncodeFormat::name)
    }

    #[test]
    fn what_the_client_likes_best_and_then_what_is_written_first() {
        for (field, want) in [
            ("gzip", "gzip"),
            ("gzip, deflate, br, zstd", "zstd"),
            ("gzip, deflate, br", "br"),
            ("br;q=0.9, gzip", "gzip"),
            ("zstd;q=0.5, br;q=0.8, gzip;q=0.8", "br"),
            ("GZip;Q=0.2", "gzip"),
            ("*", "zstd"),
            ("*;q=0", "identity"),
            ("zstd;q=0, *", "br"),
            ("gzip, *;q=0", "gzip"),
            ("identity", "identity"),
            ("identity;q=0", "identity"),
            ("identity, gzip;q=0.5", "identity"),
            ("identity;q=0.5, gzip;q=0.5", "gzip"),
            ("gzip;q=0.000", "identity"),
            ("gzip;q=2", "identity"),
            ("gzip;q=-1", "identity"),
            ("gzip;q=NaN", "identity"),
            ("gzip;q=", "identity"),
            ("gzip br", "identity"),
            ("deflate, compress", "identity"),
            (",,;,", "identity"),
            ("", "identity"),
            ("gzip\u{e9}", "identity"),
            (" gzip ; q=1 , ", "gzip"),
        ] {
            assert_eq!(chosen(&[("accept-encoding", field)]), want, "{field}");
        }
        assert_eq!(chosen(&[]), "identity");
        assert_eq!(chosen(&[("accept-encoding", "deflate"), ("accept-encoding", "br")]), "br");
    }

    #[test]
    fn upgrades_and_no_transform_are_left_alone() {
        let gzip = ("accept-encoding", "gzip");
        assert_eq!(chosen(&[gzip, ("upgrade", "websocket")]), "identity");
        assert_eq!(chosen(&[gzip, ("sec-websocket-key", "x")]), "identity");
        assert_eq!(chosen(&[gzip, ("cache-control", "max-age=0, No-Transform")]), "identity");
        assert_eq!(chosen(&[gzip, ("cache-control", "max-age=0")]), "gzip");
    }
}
