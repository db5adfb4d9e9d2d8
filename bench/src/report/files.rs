//! Pages as files.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::escape::file_stem;
use super::page::{Figure, Page};
use super::{gnuplot, html, markdown, svg};

/// Of the scripts and data for gnuplot, in the directory of the page.
const DATA: &str = "data";

/// Writes `NAME.html`, `NAME.md` and for each figure `FIGURE.svg`, `data/FIGURE-IDENTITY.dat` and `data/FIGURE.gp` into
/// the directory, which is made if missing; the paths are those written. An error names the file; one is that two
/// figures of the page would have the same file. Pages in one directory must not have figures of the same name either.
pub fn write_page(page: &Page, directory: &Path) -> Result<Vec<PathBuf>> {
    let stem = file_stem(&page.name);
    let mut files = Files::within(directory)?;
    files.write(&format!("{stem}.html"), &html::page(page))?;
    files.write(&format!("{stem}.md"), &markdown::page(page))?;
    for figure in figures(page) {
        files.write(&format!("{}.svg", file_stem(&figure.name)), &svg::document(figure))?;
    }
    let mut data = Files::within(&directory.join(DATA))?;
    for file in figures(page).flat_map(gnuplot::files) {
        data.write(&file.name, &file.text)?;
    }
    files.written.append(&mut data.written);
    Ok(files.written)
}

/// Writes `index.html` with all pages inlined, one after the other; the path is that of the file.
pub fn write_index(pages: &[Page], directory: &Path) -> Result<PathBuf> {
    let mut files = Files::within(directory)?;
    files.write("index.html", &html::pages("Benchmarks of Regent", pages))?;
    Ok(directory.join("index.html"))
}

fn figures(page: &Page) -> impl Iterator<Item = &Figure> {
    page.sections.iter().flat_map(|section| &section.figures)
}

/// A directory and what was written into it.
struct Files {
    directory: PathBuf,
    written: Vec<PathBuf>,
}

impl Files {
    fn within(directory: &Path) -> Result<Self> {
        fs::create_dir_all(directory)
            .with_context(|| format!("{} could not be made", directory.display()))?;
        Ok(Self { directory: directory.to_owned(), written: Vec::new() })
    }

    fn write(&mut self, name: &str, text: &str) -> Result<()> {
        let path = self.directory.join(name);
        ensure!(!self.written.contains(&path), "{} would be written twice: rename a figure", path.display());
        fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))?;
        self.written.push(path);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::page::Style;
    use crate::report::testing::{figure, sample_page, series, small_page};

    /// `REGENT_REPORT_LOOK=DIRECTORY cargo test -p regent-bench report::files` leaves a page of made-up figures there,
    /// to be looked at.
    #[test]
    fn a_page_is_written_with_its_figures_and_data() {
        let temporary = tempfile::tempdir().unwrap();
        let chosen = std::env::var_os("REGENT_REPORT_LOOK").map(PathBuf::from);
        let directory = chosen.as_deref().unwrap_or(temporary.path());
        let written = write_page(&sample_page(), directory).unwrap();
        let index = write_index(&[sample_page(), small_page()], directory).unwrap();
        for name in
            ["sample.html", "sample.md", "throughput.svg", "data/throughput-worker.dat", "data/throughput.gp"]
        {
            assert!(written.contains(&directory.join(name)), "{name} in {written:?}");
        }
        assert!(written.iter().chain([&index]).all(|path| path.is_file()));
    }

    #[test]
    fn an_error_names_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let in_the_way = directory.path().join("small.html");
        fs::create_dir(&in_the_way).unwrap();
        let error = format!("{:#}", write_page(&small_page(), directory.path()).unwrap_err());
        assert!(error.contains(in_the_way.to_str().unwrap()), "{error}");
    }

    #[test]
    fn figures_of_one_name_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let mut page = small_page();
        page.sections[0].figures.push(figure("a:b", Vec::new()));
        page.sections[0].figures.push(figure("a-b", Vec::new()));
        let error = write_page(&page, directory.path()).unwrap_err().to_string();
        assert!(error.contains("a-b.svg"), "{error}");
    }

    #[test]
    fn no_series_overwrites_that_of_another_figure() {
        let directory = tempfile::tempdir().unwrap();
        let mut page = small_page();
        let of = |identity| vec![series("s", identity, Style::Line, Vec::new())];
        page.sections[0].figures = vec![figure("p99", of("fpm-kept")), figure("p99-fpm", of("kept"))];
        let error = write_page(&page, directory.path()).unwrap_err().to_string();
        assert!(error.contains("p99-fpm-kept.dat"), "{error}");
    }
}
