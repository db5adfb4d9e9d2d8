//! `regent manpage`: the manual pages, which say what `--help` says.

use crate::arguments::Arguments;
use anyhow::{Context, Result};
use clap::CommandFactory;
use std::fs;
use std::path::Path;

/// One page for the program, and one for each command; what is there by these names is replaced.
pub fn write_pages(directory: &Path) -> Result<()> {
    fs::create_dir_all(directory).with_context(|| format!("making {}", directory.display()))?;
    clap_mangen::generate_to(Arguments::command(), directory)
        .with_context(|| format!("writing manual pages to {}", directory.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_page_for_each_command_with_its_options() {
        let directory = tempfile::tempdir().unwrap();
        let pages = directory.path().join("man1");
        write_pages(&pages).unwrap();
        let page = |name: &str| fs::read_to_string(pages.join(name)).unwrap();
        assert!(page("regent.1").contains("regent\\-validate(1)"), "{}", page("regent.1"));
        assert!(page("regent-run.1").contains("envfile"), "{}", page("regent-run.1"));
        for command in Arguments::command().get_subcommands().filter(|command| !command.is_hide_set()) {
            page(&format!("regent-{}.1", command.get_name()));
        }
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = write_pages(&file.path().join("man1")).unwrap_err();
        assert!(format!("{error:#}").contains(&file.path().display().to_string()), "{error:#}");
    }
}
