//! What an access log keeps to itself.

use serde::Serialize;

/// Of `format filter`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LogFilter {
    pub field: LogField,
    pub action: LogAction,
}

/// A field of an access log. Caddy writes its name with `>` between the levels, as `request>uri`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum LogField {
    RemoteIp,
    RemotePort,
    ClientIp,
    Proto,
    Method,
    Host,
    Uri,
    /// All of them.
    RequestHeaders,
    /// In lower case.
    RequestHeader(String),
    BytesRead,
    UserId,
    Duration,
    Size,
    Status,
    /// All of them.
    ResponseHeaders,
    /// In lower case.
    ResponseHeader(String),
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum LogAction {
    Delete,
    /// With this text, whatever the field was.
    Replace(String),
    /// With its addresses cut to so many bits, of IPv4 and of IPv6.
    IpMask {
        v4: u8,
        v6: u8,
    },
    /// What a regular expression finds is replaced; `$1` is a group.
    Regexp {
        pattern: String,
        replacement: String,
    },
    /// The same with several, one after the other.
    MultiRegexp(Vec<(String, String)>),
    /// Under this name.
    Rename(String),
    /// As the first eight digits of its SHA-256.
    Hash,
    /// Parameters of the URL that the field is. Not for fields that are no texts.
    Query(Vec<ValueEdit>),
    /// Cookies of the list that the field is.
    Cookie(Vec<ValueEdit>),
}

/// What becomes of the query parameters, or the cookies, of one name.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ValueEdit {
    pub name: String,
    pub action: ValueAction,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum ValueAction {
    Delete,
    Replace(String),
    Hash,
}
