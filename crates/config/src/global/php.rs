//! `php PROGRAM`, in `frankenphp`: the engine, a program that is built for one PHP. Without it that is `regent-php` beside the
//! server, or what the environment variable `REGENT_ENGINE` names. See [which PHP](php.md).

use crate::call::Call;
use crate::context::Context;
use regent_caddyfile::Error;
use std::path::{Path, PathBuf};

pub(super) fn parse(cx: &Context<'_>, option: &Call<'_>) -> Result<PathBuf, Error> {
    let program = cx.fixed_text(option.one("php PROGRAM")?)?;
    Ok(cx.environment.absolute(Path::new(&program)))
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{config, file_errors};

    fn text(arguments: &str) -> String {
        format!("{{\nregent {{\nphp {arguments}\n}}\n}}\n:80 {{\n}}")
    }

    #[test]
    fn a_program_is_one_path() {
        let program = |arguments: &str| config(&text(arguments)).global.php.program;
        assert_eq!(program("/usr/lib/regent/regent-php-8.2"), Some("/usr/lib/regent/regent-php-8.2".into()));
        assert_eq!(program("bin/regent-php"), Some("/srv/bin/regent-php".into()));
        for arguments in ["", "a b", "{path}"] {
            assert_eq!(file_errors(&text(arguments)).len(), 1, "{arguments}");
        }
    }
}
