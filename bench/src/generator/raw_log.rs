//! One line for each request.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use super::tally::End;

#[derive(Debug)]
pub struct RawLog {
    path: PathBuf,
    file: BufWriter<File>,
}

impl RawLog {
    pub fn create(path: &Path) -> Result<Self> {
        let create = || -> io::Result<BufWriter<File>> {
            let mut file = BufWriter::new(File::create(path)?);
            file.write_all(b"# start (s)\tlatency (us)\tkind\tstatus or failure\n")?;
            Ok(file)
        };
        let file = create().with_context(|| not_written(path))?;
        Ok(Self { path: path.to_owned(), file })
    }

    pub fn write(&mut self, start: Duration, latency: Duration, kind: &str, end: End) -> Result<()> {
        let (start, latency) = (start.as_secs_f64(), latency.as_micros());
        writeln!(self.file, "{start:.6}\t{latency}\t{kind}\t{end}").with_context(|| not_written(&self.path))
    }

    /// What is still buffered comes onto the disk now, or is an error.
    pub fn finish(mut self) -> Result<()> {
        self.file.flush().with_context(|| not_written(&self.path))
    }
}

fn not_written(path: &Path) -> String {
    format!("{} could not be written", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_a_line() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("raw.tsv");
        let mut log = RawLog::create(&path).expect("created");
        log.write(Duration::from_millis(1500), Duration::from_micros(250), "page", End::Right(204))
            .expect("written");
        log.write(Duration::ZERO, Duration::from_secs(3), "page", End::Timeout).expect("written");
        log.finish().expect("flushed");
        let text = std::fs::read_to_string(path).expect("readable");
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(lines, ["1.500000\t250\tpage\t204", "0.000000\t3000000\tpage\ttimeout"]);
    }

    #[test]
    fn a_full_disk_names_the_file() {
        let mut log = RawLog::create(Path::new("/dev/full")).expect("the header is buffered");
        log.write(Duration::ZERO, Duration::ZERO, "page", End::Left).expect("buffered");
        let error = format!("{:#}", log.finish().expect_err("nothing fits"));
        assert!(error.contains("/dev/full") && error.contains("No space left"), "{error}");
    }
}
