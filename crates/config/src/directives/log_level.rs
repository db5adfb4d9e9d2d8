//! `log_level [MATCHER] LEVEL`: lines of access logs about these requests have this level, whatever their status: DEBUG, INFO, WARN
//! or ERROR. Of several that match, the most specific wins. It is kept in `{vars.log_level}`, as in Caddy.
//!
//! ```caddyfile
//! log_level /up DEBUG
//! ```

use super::Directive;
use crate::call::Call;
use crate::context::Context;
use crate::matchers::Scope;
use crate::model::{Handler, Template};
use crate::problems::unknown;
use regent_caddyfile::Error;

pub(super) const DIRECTIVE: Directive = super::handler("log_level", parse);

const LEVELS: &[&str] = &["DEBUG", "INFO", "WARN", "ERROR"];

fn parse(_cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    let token = call.one("log_level [MATCHER] LEVEL")?;
    let known = LEVELS.iter().find(|level| level.eq_ignore_ascii_case(&token.text));
    let level = known.ok_or_else(|| unknown(token, "level", LEVELS))?;
    Ok(Handler::Vars(vec![("log_level".into(), Template::text(level.to_ascii_lowercase()))]))
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{errors, handler, routes};
    use crate::model::{Handler, Template};

    #[test]
    fn a_level_is_a_variable() {
        let expected = Handler::Vars(vec![("log_level".into(), Template::text("warn"))]);
        assert_eq!(handler("log_level /up Warn"), expected);
        assert!(errors("log_level LOUD")[0].contains("unknown level"));
        assert_eq!(errors("log_level\nlog_level INFO {\n}").len(), 2);
    }

    #[test]
    fn the_most_specific_comes_last() {
        let paths: Vec<_> = routes("log_level /a/b ERROR\nlog_level WARN\nlog_level /a DEBUG")
            .iter()
            .map(|route| route.matchers.len())
            .collect();
        assert_eq!(paths, [0, 1, 1]);
    }
}
