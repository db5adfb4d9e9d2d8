//! `max_response_header SIZE`, in `frankenphp`: bytes of the fields of a response of PHP or of a native module, each with 8 bytes beside
//! its name and value. From 8KiB to 16MiB; 256KiB without it.
//!
//! A larger response is a 500 without what the script prints, for which `handle_errors` is asked; the log has the size that it had.
//! Early hints and trailers that are larger are left out, with a line in the log.
//!
//! ```caddyfile
//! {
//!     frankenphp {
//!         max_response_header 1MiB
//!     }
//! }
//! ```

use crate::call::Call;
use crate::problems::error;
use crate::values;
use regent_caddyfile::Error;

pub(super) fn parse(option: &Call<'_>) -> Result<usize, Error> {
    let token = option.one("max_response_header SIZE")?;
    let size = values::size(token)?;
    if !(8 << 10..=16 << 20).contains(&size) {
        return Err(error(token, "`max_response_header` must be from 8KiB to 16MiB"));
    }
    Ok(size as usize)
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{config, file_errors};

    fn text(argument: &str) -> String {
        format!("{{\nfrankenphp {{\nmax_response_header {argument}\n}}\n}}\n:80 {{\n}}")
    }

    #[test]
    fn the_fields_of_a_response_have_a_bound() {
        assert_eq!(config(":80 {\n}").global.php.max_response_header, 256 << 10);
        assert_eq!(config(&text("1MiB")).global.php.max_response_header, 1 << 20);
        for wrong in ["4KiB", "17MiB", "off", ""] {
            assert_eq!(file_errors(&text(wrong)).len(), 1, "{wrong}");
        }
    }
}
