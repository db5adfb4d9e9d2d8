//! The `Date` field, which an origin server with a clock sends (RFC 9110 §6.6.1).

use http::HeaderValue;
use std::cell::RefCell;
use std::time::{Duration, SystemTime};

/// The value of `Date`, written anew every second at most.
#[derive(Default)]
pub(crate) struct DateField(RefCell<Option<(Duration, HeaderValue)>>);

impl DateField {
    pub fn now(&self) -> HeaderValue {
        self.at(SystemTime::now())
    }

    fn at(&self, time: SystemTime) -> HeaderValue {
        let second = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let second = Duration::from_secs(second);
        let mut written = self.0.borrow_mut();
        if let Some((of, value)) = &*written
            && *of == second
        {
            return value.clone();
        }
        let text = httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + second);
        let value = HeaderValue::try_from(text).expect("invariant: a date is ASCII");
        *written = Some((second, value.clone()));
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_that_of_the_second() {
        let date = DateField::default();
        let at = |seconds| date.at(SystemTime::UNIX_EPOCH + Duration::from_millis(seconds));
        assert_eq!(at(784_111_777_000), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(at(784_111_777_999), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(at(784_111_778_000), "Sun, 06 Nov 1994 08:49:38 GMT");
    }
}
