//! Names of variables that nearly every request has, by number, so that neither side has to spell or hash them.
//!
//! The order is part of the protocol: append only, and change the layout's version when anything moves.

/// Index = key. CGI meta-variables (RFC 3875 §4.1), what PHP servers add to them, and common request fields.
pub const WELL_KNOWN: &[&str] = &[
    "REQUEST_METHOD",
    "REQUEST_URI",
    "QUERY_STRING",
    "CONTENT_TYPE",
    "CONTENT_LENGTH",
    "SCRIPT_FILENAME",
    "SCRIPT_NAME",
    "DOCUMENT_ROOT",
    "DOCUMENT_URI",
    "PATH_INFO",
    "PATH_TRANSLATED",
    "PHP_SELF",
    "SERVER_PROTOCOL",
    "SERVER_SOFTWARE",
    "SERVER_NAME",
    "SERVER_PORT",
    "SERVER_ADDR",
    "GATEWAY_INTERFACE",
    "REQUEST_SCHEME",
    "HTTPS",
    "SSL_PROTOCOL",
    "SSL_CIPHER",
    "REMOTE_ADDR",
    "REMOTE_HOST",
    "REMOTE_PORT",
    "REMOTE_USER",
    "REMOTE_IDENT",
    "AUTH_TYPE",
    "FRANKENPHP_WORKER",
    "REGENT_WORKER",
    "REGENT_THREAD",
    "HTTP_HOST",
    "HTTP_USER_AGENT",
    "HTTP_ACCEPT",
    "HTTP_ACCEPT_ENCODING",
    "HTTP_ACCEPT_LANGUAGE",
    "HTTP_ACCEPT_CHARSET",
    "HTTP_AUTHORIZATION",
    "HTTP_CACHE_CONTROL",
    "HTTP_CONNECTION",
    "HTTP_COOKIE",
    "HTTP_DNT",
    "HTTP_EXPECT",
    "HTTP_FORWARDED",
    "HTTP_IF_MATCH",
    "HTTP_IF_MODIFIED_SINCE",
    "HTTP_IF_NONE_MATCH",
    "HTTP_IF_RANGE",
    "HTTP_IF_UNMODIFIED_SINCE",
    "HTTP_KEEP_ALIVE",
    "HTTP_ORIGIN",
    "HTTP_PRAGMA",
    "HTTP_PRIORITY",
    "HTTP_RANGE",
    "HTTP_REFERER",
    "HTTP_SEC_CH_UA",
    "HTTP_SEC_CH_UA_MOBILE",
    "HTTP_SEC_CH_UA_PLATFORM",
    "HTTP_SEC_FETCH_DEST",
    "HTTP_SEC_FETCH_MODE",
    "HTTP_SEC_FETCH_SITE",
    "HTTP_SEC_FETCH_USER",
    "HTTP_TE",
    "HTTP_UPGRADE",
    "HTTP_UPGRADE_INSECURE_REQUESTS",
    "HTTP_VIA",
    "HTTP_X_FORWARDED_FOR",
    "HTTP_X_FORWARDED_HOST",
    "HTTP_X_FORWARDED_PROTO",
    "HTTP_X_REAL_IP",
    "HTTP_X_REQUESTED_WITH",
    "HTTP_X_CSRF_TOKEN",
    "HTTP_CONTENT_TYPE",
    "HTTP_CONTENT_LENGTH",
    // No variable of `$_SERVER`: the number of the hub that the script may publish to.
    "REGENT_HUB",
    // The same: the number of what the script may have the cache forget.
    "REGENT_CACHE",
];

/// A key that names a variable by its text.
pub const OTHER: u16 = u16::MAX;

/// The key of a name, found at compile time: `const METHOD: u16 = key("REQUEST_METHOD");`. [`OTHER`] if it has none.
pub const fn key(name: &str) -> u16 {
    let mut index = 0;
    while index < WELL_KNOWN.len() {
        if equal(WELL_KNOWN[index].as_bytes(), name.as_bytes()) {
            return index as u16;
        }
        index += 1;
    }
    OTHER
}

const fn equal(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut index = 0;
    while index < a.len() {
        if a[index] != b[index] {
            return false;
        }
        index += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_its_own_key() {
        for (index, name) in WELL_KNOWN.iter().enumerate() {
            assert_eq!(key(name), index as u16, "{name}");
        }
        assert_eq!(key("HTTP_X_NOBODY"), OTHER);
    }
}
