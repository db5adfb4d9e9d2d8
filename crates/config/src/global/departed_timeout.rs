//! `departed_timeout DURATION | off`, in `frankenphp`: a request to PHP whose client has left, and that does nothing but wait for so long,
//! is ended as one that exceeds its `request_timeout`. A minute without it.
//!
//! `ignore_user_abort(true)` and `fastcgi_finish_request()` in a request have it go on; see
//! [clients that leave](deadlines.md#clients-that-leave).
//!
//! ```caddyfile
//! {
//!     frankenphp {
//!         departed_timeout 10s
//!     }
//! }
//! ```

use crate::call::Call;
use crate::values;
use regent_caddyfile::Error;
use std::time::Duration;

pub(super) fn parse(option: &Call<'_>) -> Result<Option<Duration>, Error> {
    values::time_or_off(option.one("departed_timeout DURATION | off")?)
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{config, file_errors};
    use std::time::Duration;

    fn text(argument: &str) -> String {
        format!("{{\nfrankenphp {{\ndeparted_timeout {argument}\n}}\n}}\n:80 {{\n}}")
    }

    #[test]
    fn a_request_whose_client_has_left_may_wait_for_a_minute() {
        let limit = |text: &str| config(text).global.php.departed_timeout;
        assert_eq!(limit(":80 {\n}"), Some(Duration::from_secs(60)));
        assert_eq!(limit(&text("90s")), Some(Duration::from_secs(90)));
        assert_eq!((limit(&text("off")), limit(&text("0"))), (None, None));
        assert_eq!(file_errors(&text("never")).len(), 1);
    }
}
