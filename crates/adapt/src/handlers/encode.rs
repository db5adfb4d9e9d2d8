//! `encode`.

use crate::object::Object;
use crate::responses::response_matcher;
use regent_config::{Encode, EncodeFormat, ZstdLevel};

/// What the formats do where nothing is said, as Regent has it.
const MINIMUM_LENGTH: u64 = 512;
const GZIP_LEVEL: u8 = 5;
const BROTLI_LEVEL: u8 = 4;

pub(super) fn handler(encode: &Encode) -> Object {
    let Encode { formats, minimum_length, matcher } = encode;
    let mut handler = Object::handler("encode");
    let mut encodings = Object::new();
    formats.iter().for_each(|format| encodings.set(format.name(), encoding(*format)));
    handler.set("encodings", encodings);
    handler.set_list("prefer", formats.iter().map(|format| format.name()));
    handler.set_unless("minimum_length", *minimum_length, MINIMUM_LENGTH);
    handler.set_some("match", matcher.as_ref().map(response_matcher));
    handler
}

fn encoding(format: EncodeFormat) -> Object {
    let mut object = Object::new();
    match format {
        EncodeFormat::Zstd { level, checksum } => {
            object.set_unless("level", level_name(level), level_name(ZstdLevel::Default));
            if !checksum {
                object.set("checksum", false);
            }
        }
        EncodeFormat::Brotli { level } => object.set_unless("level", level, BROTLI_LEVEL),
        EncodeFormat::Gzip { level } => object.set_unless("level", level, GZIP_LEVEL),
    }
    object
}

fn level_name(level: ZstdLevel) -> &'static str {
    match level {
        ZstdLevel::Fastest => "fastest",
        ZstdLevel::Default => "default",
        ZstdLevel::Better => "better",
        ZstdLevel::Best => "best",
    }
}
