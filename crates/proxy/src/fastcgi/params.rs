//! A request's variables (RFC 3875 §4.1), as php-fpm knows them from other servers (Caddy's fastcgi.go, `buildEnv`).

use crate::upload::Upload;
use http::{HeaderMap, HeaderName, HeaderValue, Uri, Version, header};
use http_body::Body;
use regent_handlers::{Exchange, PhpTarget};
use std::borrow::Cow;
use std::os::unix::ffi::OsStrExt;

/// Applications look for FrankenPHP in it; as the server's own PHP has it.
const SOFTWARE: &str = concat!("FrankenPHP (Regent/", env!("CARGO_PKG_VERSION"), ")");
/// The first length that does not fit into one byte.
const LONG: usize = 0x80;

/// What the variables are made of.
pub(crate) struct Variables<'a> {
    pub exchange: &'a Exchange,
    /// As the upstream is to have it.
    pub fields: &'a HeaderMap,
    pub uri: &'a Uri,
    pub method: &'a str,
    pub script: &'a PhpTarget,
}

/// Pairs of names and values.
struct Pairs<'a> {
    bytes: Vec<u8>,
    /// These go before all others.
    own: &'a [(String, String)],
}

impl Variables<'_> {
    /// As pairs (the FastCGI specification, §3.4).
    pub fn encode(&self, upload: &Upload) -> Vec<u8> {
        let mut pairs = Pairs { bytes: Vec::with_capacity(2048), own: &self.script.delivery.env };
        self.script(&mut pairs);
        self.request(&mut pairs);
        self.connection(&mut pairs);
        self.body(&mut pairs, upload);
        self.fields(&mut pairs);
        for (index, (name, value)) in pairs.own.iter().enumerate() {
            // Of several of a name, the last counts.
            if !pairs.own[index + 1..].iter().any(|(later, _)| later == name) {
                write(&mut pairs.bytes, name.as_bytes(), value.as_bytes());
            }
        }
        pairs.bytes
    }

    fn script(&self, pairs: &mut Pairs<'_>) {
        let script = self.script;
        pairs.add("DOCUMENT_ROOT", script.document_root().as_os_str().as_bytes());
        pairs.add("SCRIPT_FILENAME", script.script_filename().as_os_str().as_bytes());
        pairs.add("SCRIPT_NAME", script.script_name());
        pairs.add("DOCUMENT_URI", script.script_name());
        // An empty one is not the same as none (CVE-2019-11043).
        if !script.path_info().is_empty() {
            pairs.add("PATH_INFO", script.path_info());
            pairs.add("PATH_TRANSLATED", &script.path_translated());
        }
    }

    fn request(&self, pairs: &mut Pairs<'_>) {
        let original = self.exchange.original_uri.path_and_query().map_or("/", |uri| uri.as_str());
        pairs.add("GATEWAY_INTERFACE", b"CGI/1.1");
        pairs.add("SERVER_SOFTWARE", SOFTWARE.as_bytes());
        pairs.add("REQUEST_METHOD", self.method.as_bytes());
        pairs.add("REQUEST_URI", original.as_bytes());
        pairs.add("QUERY_STRING", self.uri.query().unwrap_or_default().as_bytes());
        let protocol: &[u8] = match self.exchange.version {
            Version::HTTP_10 => b"HTTP/1.0",
            Version::HTTP_2 => b"HTTP/2.0",
            Version::HTTP_3 => b"HTTP/3.0",
            _ => b"HTTP/1.1",
        };
        pairs.add("SERVER_PROTOCOL", protocol);
    }

    fn connection(&self, pairs: &mut Pairs<'_>) {
        let connection = &self.exchange.connection;
        let remote = connection.remote.map(|remote| remote.ip().to_canonical().to_string());
        let remote = remote.unwrap_or_default();
        let remote_port = connection.remote.map(|remote| remote.port().to_string()).unwrap_or_default();
        let local = connection.local.map(|local| local.ip().to_canonical().to_string()).unwrap_or_default();
        let name = if self.exchange.host.is_empty() { &local } else { &self.exchange.host };
        pairs.add("REMOTE_ADDR", remote.as_bytes());
        pairs.add("REMOTE_HOST", remote.as_bytes());
        pairs.add("REMOTE_PORT", remote_port.as_bytes());
        pairs.add("SERVER_ADDR", local.as_bytes());
        pairs.add("SERVER_NAME", regent_handlers::in_url(name).as_bytes());
        pairs.add("SERVER_PORT", self.port().as_bytes());
        pairs.add("REQUEST_SCHEME", connection.scheme().as_bytes());
        if let Some(tls) = &connection.tls {
            pairs.add("HTTPS", b"on");
            pairs.add("SSL_PROTOCOL", tls.protocol.as_bytes());
            pairs.add("SSL_CIPHER", tls.cipher.as_bytes());
        }
    }

    /// That which the client has named, or that of the listener.
    fn port(&self) -> Cow<'_, str> {
        let named = std::str::from_utf8(self.exchange.host_port()).ok();
        let port = named.and_then(|named| named.rsplit_once(':')).map(|(_, port)| port);
        match port.filter(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())) {
            Some(port) => port.into(),
            None => self.exchange.connection.local.map_or("".into(), |local| local.port().to_string().into()),
        }
    }

    fn body(&self, pairs: &mut Pairs<'_>, upload: &Upload) {
        let content_type = self.fields.get(header::CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
        pairs.add("CONTENT_TYPE", content_type);
        let length = upload.size_hint().exact().unwrap_or(0);
        let is_said = length > 0 || self.exchange.headers.contains_key(header::CONTENT_LENGTH);
        let length = if is_said { length.to_string() } else { String::new() };
        pairs.add("CONTENT_LENGTH", length.as_bytes());
    }

    /// `HTTP_*`, several of a name in one. `Proxy` would be believed by what looks for `HTTP_PROXY` (CVE-2016-5385).
    fn fields(&self, pairs: &mut Pairs<'_>) {
        for name in self.fields.keys() {
            let is_left_out =
                [header::CONTENT_TYPE, header::CONTENT_LENGTH].contains(name) || name == "proxy";
            if !is_left_out {
                pairs.add(&variable(name), &joined(self.fields, name));
            }
        }
    }
}

impl Pairs<'_> {
    fn add(&mut self, name: &str, value: &[u8]) {
        if !self.own.iter().any(|(own, _)| own == name) {
            write(&mut self.bytes, name.as_bytes(), value);
        }
    }
}

/// `x-forwarded-for` → `HTTP_X_FORWARDED_FOR`.
fn variable(field: &HeaderName) -> String {
    format!("HTTP_{}", field.as_str().replace('-', "_").to_ascii_uppercase())
}

/// RFC 9110 §5.3; cookies: RFC 6265 §5.4.
fn joined<'a>(fields: &'a HeaderMap, name: &HeaderName) -> Cow<'a, [u8]> {
    let separator: &[u8] = if *name == header::COOKIE { b"; " } else { b", " };
    let mut values = fields.get_all(name).iter().map(HeaderValue::as_bytes);
    match (values.next(), values.next()) {
        (Some(only), None) => only.into(),
        _ => {
            let values: Vec<_> = fields.get_all(name).iter().map(HeaderValue::as_bytes).collect();
            values.join(separator).into()
        }
    }
}

fn write(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    length(out, name.len());
    length(out, value.len());
    out.extend_from_slice(name);
    out.extend_from_slice(value);
}

fn length(out: &mut Vec<u8>, length: usize) {
    match u8::try_from(length) {
        Ok(short) if length < LONG => out.push(short),
        // Heads are far smaller than the two gigabytes of which this has no bit.
        _ => out.extend_from_slice(&(length as u32 | 1 << 31).to_be_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read_length(bytes: &mut &[u8]) -> usize {
        let (first, rest) = bytes.split_first().unwrap();
        if usize::from(*first) < LONG {
            *bytes = rest;
            return usize::from(*first);
        }
        let (long, rest) = bytes.split_at(4);
        *bytes = rest;
        (u32::from_be_bytes(long.try_into().unwrap()) & !(1 << 31)) as usize
    }

    fn read(mut bytes: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut pairs = Vec::new();
        while !bytes.is_empty() {
            let (name, value) = (read_length(&mut bytes), read_length(&mut bytes));
            let (pair, rest) = bytes.split_at(name + value);
            pairs.push((pair[..name].to_vec(), pair[name..].to_vec()));
            bytes = rest;
        }
        pairs
    }

    proptest! {
        #[test]
        fn pairs_are_read_as_they_were_written(
            pairs in prop::collection::vec(("[A-Z_]{0,200}", prop::collection::vec(any::<u8>(), 0..300)), 0..10),
        ) {
            let mut bytes = Vec::new();
            pairs.iter().for_each(|(name, value)| write(&mut bytes, name.as_bytes(), value));
            let pairs: Vec<_> = pairs.into_iter().map(|(name, value)| (name.into_bytes(), value)).collect();
            prop_assert_eq!(read(&bytes), pairs);
        }
    }

    #[test]
    fn what_the_configuration_says_goes_before_all_else() {
        let own = [("HTTPS".to_owned(), "on".to_owned())];
        let mut pairs = Pairs { bytes: Vec::new(), own: &own };
        pairs.add("HTTPS", b"off");
        pairs.add("A", b"1");
        assert_eq!(read(&pairs.bytes), [(b"A".to_vec(), b"1".to_vec())]);
    }

    #[test]
    fn fields_of_one_name_are_one_variable() {
        let mut fields = HeaderMap::new();
        for value in ["a=1", "b=2"] {
            fields.append(header::COOKIE, HeaderValue::from_static(value));
            fields.append(header::ACCEPT, HeaderValue::from_static(value));
        }
        assert_eq!(joined(&fields, &header::COOKIE), &b"a=1; b=2"[..]);
        assert_eq!(joined(&fields, &header::ACCEPT), &b"a=1, b=2"[..]);
        assert_eq!(variable(&HeaderName::from_static("x-forwarded-for")), "HTTP_X_FORWARDED_FOR");
    }
}
