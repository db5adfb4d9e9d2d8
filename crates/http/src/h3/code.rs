//! Error codes (RFC 9114 §8.1, RFC 9204 §6).

use quinn::VarInt;

macro_rules! codes {
    ($($name:ident = $value:literal),* $(,)?) => {
        $(pub(super) const $name: VarInt = VarInt::from_u32($value);)*
    };
}

codes! {
    NO_ERROR = 0x100,
    INTERNAL_ERROR = 0x102,
    STREAM_CREATION_ERROR = 0x103,
    CLOSED_CRITICAL_STREAM = 0x104,
    FRAME_UNEXPECTED = 0x105,
    FRAME_ERROR = 0x106,
    EXCESSIVE_LOAD = 0x107,
    ID_ERROR = 0x108,
    SETTINGS_ERROR = 0x109,
    MISSING_SETTINGS = 0x10a,
    REQUEST_REJECTED = 0x10b,
    REQUEST_CANCELLED = 0x10c,
    REQUEST_INCOMPLETE = 0x10d,
    MESSAGE_ERROR = 0x10e,
    QPACK_DECOMPRESSION_FAILED = 0x200,
    QPACK_ENCODER_STREAM_ERROR = 0x201,
    QPACK_DECODER_STREAM_ERROR = 0x202,
}
