//! A request that is kept for hours.

use super::Exchange;
use http::{HeaderMap, HeaderValue};

impl Exchange {
    /// Copies what lies in the buffer that the request was read into, of 8 KiB at least, so that this does not keep it.
    pub fn detach(&mut self) {
        let headers = std::iter::once(&mut self.headers).chain(self.first_headers.as_deref_mut());
        headers.flat_map(HeaderMap::values_mut).for_each(detach_value);
        for uri in [&mut self.uri, &mut self.original_uri] {
            if let Ok(copy) = uri.to_string().parse() {
                *uri = copy;
            }
        }
    }
}

fn detach_value(value: &mut HeaderValue) {
    let is_sensitive = value.is_sensitive();
    *value = HeaderValue::from_bytes(value.as_bytes()).expect("invariant: it is a value");
    value.set_sensitive(is_sensitive);
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use http::{HeaderName, Request, Uri};
    use regent_exchange::Connection;

    #[test]
    fn nothing_is_left_in_the_buffer_and_all_is_as_it_was() {
        let buffer = Bytes::from("/a?b=c example.com token".to_owned());
        let value = |range| HeaderValue::from_maybe_shared(buffer.slice(range)).unwrap();
        let mut head = Request::new(()).into_parts().0;
        head.uri = Uri::from_maybe_shared(buffer.slice(..6)).unwrap();
        head.headers = [("host", 7..18), ("x-token", 19..24), ("x-token", 0..2)]
            .into_iter()
            .map(|(name, range)| (HeaderName::from_static(name), value(range)))
            .collect();
        head.headers.get_mut("x-token").unwrap().set_sensitive(true);
        let mut exchange = Exchange::new(head, Connection::default());
        let before = exchange.clone();
        exchange.detach();
        assert_eq!((&exchange.uri, &exchange.original_uri), (&before.uri, &before.original_uri));
        assert_eq!(exchange.headers, before.headers);
        assert!(exchange.headers["x-token"].is_sensitive());
        drop((before, value));
        assert!(buffer.is_unique());
    }
}
