//! What `encode` means.

use serde::Serialize;

/// `encode`: compresses the responses of what follows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Encode {
    /// At least one, each coding once. Of codings that a client likes equally, the first is taken.
    pub formats: Vec<EncodeFormat>,
    /// In bytes. A shorter response is sent as it is; one whose length is not known is compressed.
    pub minimum_length: u64,
    /// Which responses; `None`: those of the content types that Caddy compresses.
    pub matcher: Option<ResponseMatcher>,
}

/// A content coding with its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum EncodeFormat {
    Zstd {
        level: ZstdLevel,
        checksum: bool,
    },
    /// `level`: 0 to 11.
    Brotli {
        level: u8,
    },
    /// `level`: 0 (stored) to 9.
    Gzip {
        level: u8,
    },
}

impl EncodeFormat {
    /// As `Accept-Encoding` and `Content-Encoding` have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Zstd { .. } => "zstd",
            Self::Brotli { .. } => "br",
            Self::Gzip { .. } => "gzip",
        }
    }
}

/// The levels as Caddy names them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub enum ZstdLevel {
    Fastest,
    #[default]
    Default,
    Better,
    Best,
}

/// Conditions on a response, all of which must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ResponseMatcher {
    /// Ranges with both ends in them, one of which must fit; empty: any status.
    pub statuses: Vec<(u16, u16)>,
    /// Fields, all of which must fit.
    pub fields: Vec<FieldMatcher>,
}

/// A condition on one field of a response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FieldMatcher {
    pub name: String,
    pub test: FieldTest,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum FieldTest {
    /// `header Field`
    Present,
    /// `header !Field`
    Absent,
    /// One of these fits one of the field's values; `*` at an end stands for anything.
    Like(Vec<String>),
}
