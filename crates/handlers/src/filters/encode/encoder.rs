//! The encoders of the content codings, behind one interface that gives and takes bytes.

use flate2::write::GzEncoder;
use regent_config::{EncodeFormat, ZstdLevel};
use std::io::{self, Write};
use zstd::zstd_safe::CParameter;

/// Binary logarithm of the largest zstd window: 512 KiB. RFC 9659 lets browsers refuse more than 8 MiB; pages are
/// smaller, and each doubling doubles what a response holds in memory. Caddy takes 128 KiB.
const ZSTD_WINDOW: u32 = 19;

/// The same of brotli: 256 KiB.
const BROTLI_WINDOW: u32 = 18;

/// The smallest windows that both formats know.
const LEAST_WINDOW: u32 = 10;

/// A stream that is being encoded. Measured with bodies of 3 MB, it holds 1.8 MiB with zstd at its default level and
/// 3.7 MiB at `best`, 2.6 MiB with brotli at 4 and 35 MiB at 9, and 0.3 MiB with gzip; less for a body that is known to be
/// short.
pub(crate) struct Encoder(Kind);

enum Kind {
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
    Brotli(Box<brotli::CompressorWriter<Vec<u8>>>),
    Gzip(GzEncoder<Vec<u8>>),
}

impl Encoder {
    /// `length`: that of the whole body in bytes, if it is known; only memory depends on it.
    pub(crate) fn new(format: EncodeFormat, length: Option<u64>) -> io::Result<Self> {
        Ok(Self(match format {
            EncodeFormat::Zstd { level, checksum } => {
                let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), zstd_level(level))?;
                encoder.include_checksum(checksum)?;
                let window = window(length, ZSTD_WINDOW);
                encoder.window_log(window)?;
                if matches!(level, ZstdLevel::Better | ZstdLevel::Best) {
                    // These levels have tables for a window eight times as large.
                    encoder.set_parameter(CParameter::HashLog(window))?;
                    encoder.set_parameter(CParameter::ChainLog(window))?;
                }
                Kind::Zstd(encoder)
            }
            EncodeFormat::Brotli { level } => {
                let window = window(length, BROTLI_WINDOW);
                let writer = brotli::CompressorWriter::new(Vec::new(), 16 * 1024, level.into(), window);
                Kind::Brotli(Box::new(writer))
            }
            EncodeFormat::Gzip { level } => {
                Kind::Gzip(GzEncoder::new(Vec::new(), flate2::Compression::new(level.into())))
            }
        }))
    }

    pub(crate) fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        self.writer().write_all(piece)
    }

    /// Brings all that was written so far to the output, so that it can be decoded.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.writer().flush()
    }

    /// What was encoded since the last call.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(match &mut self.0 {
            Kind::Zstd(encoder) => encoder.get_mut(),
            Kind::Brotli(encoder) => encoder.get_mut(),
            Kind::Gzip(encoder) => encoder.get_mut(),
        })
    }

    /// Ends the stream. Gives what was encoded since the last [`Self::take`].
    pub(crate) fn finish(self) -> io::Result<Vec<u8>> {
        match self.0 {
            Kind::Zstd(encoder) => encoder.finish(),
            Kind::Brotli(encoder) => Ok(encoder.into_inner()),
            Kind::Gzip(encoder) => encoder.finish(),
        }
    }

    fn writer(&mut self) -> &mut dyn Write {
        match &mut self.0 {
            Kind::Zstd(encoder) => encoder,
            Kind::Brotli(encoder) => encoder,
            Kind::Gzip(encoder) => encoder,
        }
    }
}

/// As klauspost/compress, which Caddy uses, compares its levels to those of zstd.
fn zstd_level(level: ZstdLevel) -> i32 {
    match level {
        ZstdLevel::Fastest => 1,
        ZstdLevel::Default => 3,
        ZstdLevel::Better => 7,
        ZstdLevel::Best => 11,
    }
}

/// Binary logarithm of a window that holds the whole body, if that is within `most`.
fn window(length: Option<u64>, most: u32) -> u32 {
    let needed = |length: u64| u64::BITS - length.leading_zeros();
    length.map_or(most, |length| needed(length).clamp(LEAST_WINDOW, most))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Read;

    pub(crate) const FORMATS: [EncodeFormat; 6] = [
        EncodeFormat::Zstd { level: ZstdLevel::Default, checksum: true },
        EncodeFormat::Zstd { level: ZstdLevel::Best, checksum: false },
        EncodeFormat::Brotli { level: 4 },
        EncodeFormat::Brotli { level: 9 },
        EncodeFormat::Gzip { level: 5 },
        EncodeFormat::Gzip { level: 0 },
    ];

    /// What a client can make of these bytes, which need not be a whole stream; an error if they are none at all, or if
    /// `whole` and the end is missing.
    pub(crate) fn decode(format: EncodeFormat, encoded: &[u8], whole: bool) -> io::Result<Vec<u8>> {
        let mut reader: Box<dyn Read> = match format {
            EncodeFormat::Zstd { .. } => Box::new(zstd::stream::read::Decoder::new(encoded)?),
            EncodeFormat::Brotli { .. } => Box::new(brotli::Decompressor::new(encoded, 4096)),
            EncodeFormat::Gzip { .. } => Box::new(flate2::read::GzDecoder::new(encoded)),
        };
        let mut decoded = Vec::new();
        match reader.read_to_end(&mut decoded) {
            Err(error) if whole => Err(error),
            Ok(_) | Err(_) => Ok(decoded),
        }
    }

    #[test]
    fn what_is_flushed_can_be_decoded() {
        for format in FORMATS {
            let mut encoder = Encoder::new(format, None).unwrap();
            let (mut encoded, mut given) = (Vec::new(), Vec::new());
            for piece in ["<html>", "one", "two two two two", ""] {
                encoder.write(piece.as_bytes()).unwrap();
                encoder.flush().unwrap();
                given.extend_from_slice(piece.as_bytes());
                encoded.extend(encoder.take());
                assert_eq!(decode(format, &encoded, false).unwrap(), given, "{format:?}");
            }
            assert!(decode(format, &encoded, true).is_err(), "{format:?}: the end is missing");
            encoded.extend(encoder.finish().unwrap());
            assert_eq!(decode(format, &encoded, true).unwrap(), given, "{format:?}");
        }
    }

    #[test]
    fn nothing_is_a_stream_too() {
        for format in FORMATS {
            let encoded = Encoder::new(format, None).unwrap().finish().unwrap();
            assert_eq!(decode(format, &encoded, true).unwrap(), b"", "{format:?}");
        }
    }

    #[test]
    fn windows_follow_the_length() {
        assert_eq!(window(None, 18), 18);
        assert_eq!(window(Some(0), 18), 10);
        assert_eq!(window(Some(65_535), 18), 16);
        assert_eq!(window(Some(65_536), 18), 17);
        assert_eq!(window(Some(u64::MAX), 18), 18);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn any_bytes_in_any_pieces_come_back(
            pieces in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..300), 1..400_usize, any::<bool>()), 0..12),
            knows_length in any::<bool>(),
            format in prop::sample::select(&FORMATS),
        ) {
            let pieces: Vec<_> = pieces.iter().map(|(bytes, times, flush)| (bytes.repeat(*times), *flush)).collect();
            let given: Vec<u8> = pieces.iter().flat_map(|(piece, _)| piece.clone()).collect();
            let mut encoder = Encoder::new(format, knows_length.then_some(given.len() as u64)).unwrap();
            let mut encoded = Vec::new();
            for (piece, flush) in &pieces {
                encoder.write(piece).unwrap();
                if *flush {
                    encoder.flush().unwrap();
                }
                encoded.extend(encoder.take());
            }
            encoded.extend(encoder.finish().unwrap());
            prop_assert_eq!(decode(format, &encoded, true).unwrap(), given);
        }
    }
}
