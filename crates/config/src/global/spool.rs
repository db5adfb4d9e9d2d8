//! `spool { … }`, in `frankenphp`: where request bodies wait for a thread and answers for a slow client, so that
//! neither holds a thread.
//!
//! | option | default | meaning |
//! |---|---|---|
//! | `memory SIZE` | 1MiB | of a body, in memory |
//! | `file SIZE` | 1GiB; 0: none | of the same body, in a temporary file |
//! | `directory PATH` | the system's | of the temporary files |

use crate::call::Call;
use crate::context::Context;
use crate::model::Spool;
use crate::problems::unknown_option;
use crate::values;
use regent_caddyfile::Error;
use std::path::Path;

const OPTIONS: &[&str] = &["directory", "file", "memory"];

pub(super) fn parse(cx: &mut Context<'_>, call: &Call<'_>, spool: &mut Spool) {
    cx.check(call.no_arguments("spool { memory | file SIZE; directory PATH }"));
    for option in call.options() {
        let result = apply(cx, &option, spool);
        cx.check(result);
    }
}

fn apply(cx: &Context<'_>, option: &Call<'_>, spool: &mut Spool) -> Result<(), Error> {
    match option.name() {
        "memory" => spool.memory = values::size(option.one("memory SIZE")?)?,
        "file" => spool.file = values::size(option.one("file SIZE")?)?,
        "directory" => {
            let path = cx.fixed_text(option.one("directory PATH")?)?;
            spool.directory = Some(cx.environment.absolute(Path::new(&path)));
        }
        _ => return Err(unknown_option(option.name, "spool", OPTIONS, &[])),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{config, file_errors};
    use crate::model::Spool;

    fn text(options: &str) -> String {
        format!("{{\nfrankenphp {{\nspool {{\n{options}\n}}\n}}\n}}\n:80 {{\n}}")
    }

    #[test]
    fn options() {
        let spool = |options: &str| config(&text(options)).global.php.spool;
        let expected = Spool { memory: 65_536, file: 0, directory: Some("/srv/tmp".into()) };
        assert_eq!(spool("memory 64KiB\nfile 0\ndirectory tmp"), expected);
        assert_eq!(spool(""), Spool { memory: 1 << 20, file: 1 << 30, directory: None });
    }

    #[test]
    fn mistakes() {
        let found = file_errors(&text("memory x\nfile\ndirectory {path}\ndirectry /x"));
        assert!(found[3].contains("did you mean `directory`?"), "{found:?}");
        assert_eq!(found.len(), 4, "{found:?}");
    }
}
