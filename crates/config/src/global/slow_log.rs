//! `slow_log DURATION [FILE]`, in `frankenphp`: tells of each request to PHP that has been running for so long, once, with what
//! its script is at. The request goes on. `off`, or 0: of none.
//!
//! Without `FILE` it goes to the server's log. See [slow requests](deadlines.md#see-what-slow-requests-are-at).

use crate::call::Call;
use crate::context::Context;
use crate::model::SlowLog;
use crate::values;
use regent_caddyfile::Error;
use std::path::Path;

const SYNTAX: &str = "slow_log DURATION [FILE], or slow_log off";

pub(super) fn parse(cx: &Context<'_>, option: &Call<'_>) -> Result<Option<SlowLog>, Error> {
    option.without_block(SYNTAX)?;
    let (after, file) = match option.args {
        [after] => (after, None),
        [after, file] => (after, Some(file)),
        _ => return Err(option.wrong_arguments(2, SYNTAX)),
    };
    let after = values::request_timeout(after)?;
    let file = file.map(|file| cx.fixed_text(file)).transpose()?;
    let file = file.map(|file| cx.environment.absolute(Path::new(&file)));
    Ok((!after.is_zero()).then_some(SlowLog { after, file }))
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{config, file_errors};
    use crate::model::SlowLog;
    use std::time::Duration;

    fn text(arguments: &str) -> String {
        format!("{{\nfrankenphp {{\nslow_log {arguments}\n}}\n}}\n:80 {{\n}}")
    }

    #[test]
    fn arguments() {
        let slow_log = |arguments: &str| config(&text(arguments)).global.php.slow_log;
        let after = Duration::from_millis(1500);
        assert_eq!(slow_log("1.5s"), Some(SlowLog { after, file: None }));
        assert_eq!(slow_log("1500ms slow.log"), Some(SlowLog { after, file: Some("/srv/slow.log".into()) }));
        assert_eq!((slow_log("off"), slow_log("0")), (None, None));
    }

    #[test]
    fn mistakes() {
        for arguments in ["", "5", "5s a b", "5s {path}", "5s {\na\n}"] {
            assert_eq!(file_errors(&text(arguments)).len(), 1, "{arguments}");
        }
    }
}
