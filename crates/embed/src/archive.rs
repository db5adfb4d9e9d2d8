//! Makes an executable: the program, the archive, and the footer.

use crate::application::{Application, Kind};
use crate::footer::Footer;
use crate::mark::Mark;
use crate::{EmbedError, layout};
use aws_lc_rs::digest::{Context, SHA256};
use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tar::{Builder, EntryType, Header};
use tempfile::NamedTempFile;
use zstd::Encoder;

/// Ten seconds for PHP with its libraries; higher levels take several times as long for some percent.
const LEVEL: i32 = 9;

/// An executable that is being made. Dropped, it leaves nothing.
pub struct Archive {
    output: PathBuf,
    tar: Builder<Counted<Encoder<'static, Summed<NamedTempFile>>>>,
    program: u64,
}

/// How large an executable has become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packed {
    /// Bytes of the file.
    pub size: u64,
    /// Bytes of what is unpacked.
    pub unpacked: u64,
}

impl Archive {
    /// `program`: one without an application. The file is there when [`Archive::finish`] has made it.
    pub fn begin(program: &Path, output: &Path) -> Result<Self, EmbedError> {
        let mut bytes = fs::read(program).map_err(EmbedError::file("reading", program))?;
        if !Mark::set(&mut bytes) {
            let reason = "it has an application already, or is not `regent`".into();
            return Err(EmbedError::Program { program: program.to_owned(), reason });
        }
        let writing = || EmbedError::file("writing", output);
        let directory = output.parent().filter(|parent| !parent.as_os_str().is_empty());
        let mut file = NamedTempFile::with_prefix_in(".regent-embed-", directory.unwrap_or(Path::new(".")))
            .map_err(writing())?;
        file.write_all(&bytes).map_err(writing())?;
        let summed = Summed { inner: file, sum: Context::new(&SHA256), length: 0 };
        let encoder = Encoder::new(summed, LEVEL).map_err(writing())?;
        let mut tar = Builder::new(Counted { inner: encoder, length: 0 });
        tar.follow_symlinks(false);
        Ok(Self { output: output.to_owned(), tar, program: bytes.len() as u64 })
    }

    pub fn application(&mut self, application: &Application) -> Result<(), EmbedError> {
        let root = Path::new(layout::APPLICATION);
        self.directory(root)?;
        for entry in &application.entries {
            let (from, to) = (application.root.join(&entry.path), root.join(&entry.path));
            match &entry.kind {
                Kind::Directory => self.directory(&to)?,
                Kind::File => self.file(&from, &to)?,
                Kind::Link(target) => {
                    let mut header = header(EntryType::Symlink, 0, 0o777);
                    let added = self.tar.append_link(&mut header, &to, target);
                    added.map_err(EmbedError::file("packing", from))?;
                }
            }
        }
        Ok(())
    }

    /// With the time of its last change, which opcache compares.
    pub fn file(&mut self, from: &Path, to: &Path) -> Result<(), EmbedError> {
        let pack = |tar: &mut Builder<_>| {
            let file = File::open(from)?;
            let about = file.metadata()?;
            let is_program = about.permissions().mode() & 0o111 != 0;
            let mut header = header(EntryType::Regular, about.len(), if is_program { 0o700 } else { 0o600 });
            let changed = about.modified()?.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            header.set_mtime(changed.as_secs());
            // One that grows meanwhile is packed as it was; one that shrinks is an error.
            tar.append_data(&mut header, to, io::Read::take(&file, about.len()))
        };
        pack(&mut self.tar).map_err(EmbedError::file("packing", from))
    }

    /// A program or a library, in its changed form.
    pub fn program(&mut self, bytes: &[u8], to: &Path) -> Result<(), EmbedError> {
        let mut header = header(EntryType::Regular, bytes.len() as u64, 0o700);
        self.tar.append_data(&mut header, to, bytes).map_err(EmbedError::file("packing", to))
    }

    pub fn text(&mut self, text: &[u8], to: &Path) -> Result<(), EmbedError> {
        let mut header = header(EntryType::Regular, text.len() as u64, 0o600);
        self.tar.append_data(&mut header, to, text).map_err(EmbedError::file("packing", to))
    }

    pub fn directory(&mut self, path: &Path) -> Result<(), EmbedError> {
        let mut header = header(EntryType::Directory, 0, 0o700);
        self.tar.append_data(&mut header, path, io::empty()).map_err(EmbedError::file("packing", path))
    }

    /// Puts the executable to its place, in one step.
    pub fn finish(self) -> Result<Packed, EmbedError> {
        let Self { output, tar, program } = self;
        let writing = || EmbedError::file("writing", &output);
        let Counted { inner: encoder, length: unpacked } = tar.into_inner().map_err(writing())?;
        let Summed { inner: file, sum, length } = encoder.finish().map_err(writing())?;
        let mut sha256 = [0; 32];
        sha256.copy_from_slice(sum.finish().as_ref());
        let footer = Footer { length, unpacked, sha256 }.to_bytes();
        let mut file = BufWriter::new(file);
        file.write_all(&footer).map_err(writing())?;
        let file = file.into_inner().map_err(|error| writing()(error.into_error()))?;
        file.as_file().set_permissions(Permissions::from_mode(0o755)).map_err(writing())?;
        file.as_file().sync_all().map_err(writing())?;
        file.persist(&output).map_err(|error| writing()(error.error))?;
        Ok(Packed { size: program + length + footer.len() as u64, unpacked })
    }
}

/// The same for the same files, whoever packs them and when.
fn header(kind: EntryType, size: u64, mode: u32) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(mode);
    header.set_mtime(0);
    header.set_cksum();
    header
}

/// What is written to it, and how much that is.
struct Counted<W> {
    inner: W,
    length: u64,
}

/// What is written to it, with its sum.
struct Summed<W> {
    inner: W,
    sum: Context,
    length: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.length += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.sum.update(&bytes[..written]);
        self.length += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
