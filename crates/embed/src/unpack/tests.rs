use super::*;
use crate::{Application, Archive, Excluded, layout};
use std::os::unix::fs::{MetadataExt, symlink};
use tar::{Builder, Header};

/// A file with an archive behind it, and what its footer says.
struct Program {
    directory: TempDir,
    footer: Footer,
}

impl Program {
    fn of(archive: &[u8], unpacked: u64) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let packed = zstd::encode_all(archive, 1).unwrap();
        let mut sha256 = [0; 32];
        sha256.copy_from_slice(aws_lc_rs::digest::digest(&SHA256, &packed).as_ref());
        let footer = Footer { length: packed.len() as u64, unpacked, sha256 };
        fs::write(directory.path().join("program"), [packed, footer.to_bytes()].concat()).unwrap();
        Self { directory, footer }
    }

    fn tar(entries: &[(EntryType, &str, &str)]) -> Self {
        let mut tar = Builder::new(Vec::new());
        for (kind, path, content) in entries {
            let mut header = Header::new_gnu();
            header.set_entry_type(*kind);
            header.set_mode(0o777);
            // The library refuses to write such paths.
            header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
            let is_link = matches!(kind, EntryType::Symlink | EntryType::Link);
            if is_link {
                header.as_old_mut().linkname[..content.len()].copy_from_slice(content.as_bytes());
            }
            let content = if is_link { "" } else { content };
            header.set_size(content.len() as u64);
            header.set_cksum();
            tar.append(&header, content.as_bytes()).unwrap();
        }
        let archive = tar.into_inner().unwrap();
        Self::of(&archive, archive.len() as u64)
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("program")
    }

    fn unpack(&self, place: &Place) -> Result<Unpacked, EmbedError> {
        unpack(&self.path(), &self.footer, place)
    }
}

fn place() -> (TempDir, Place) {
    let directory = tempfile::tempdir().unwrap();
    let place = Place::open(&directory.path().join("cache")).unwrap();
    (directory, place)
}

fn names(place: &Place) -> Vec<String> {
    fs::read_dir(place.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[test]
fn hostile_archives_are_refused_and_leave_nothing() {
    use EntryType::{Block, Directory, Link, Regular, Symlink};
    let (kept, place) = place();
    for entries in [
        &[(Regular, "../out", "x")][..],
        &[(Regular, "/tmp/out", "x")],
        &[(Directory, "app", ""), (Regular, "app/../../out", "x")],
        &[(Directory, "app", ""), (Symlink, "app/link", "../../out")],
        &[(Directory, "app", ""), (Symlink, "app/link", "/etc")],
        &[
            (Directory, "app", ""),
            (Directory, "app/d", ""),
            (Symlink, "app/d/e", ".."),
            (Symlink, "app/d/e/f", "../.."),
        ],
        &[(Directory, "app", ""), (Symlink, "app/link", "sub"), (Regular, "app/link", "x")],
        &[(Symlink, "app", "x"), (Regular, "app/x", "x")],
        &[(Directory, "app", ""), (Link, "app/hard", "/etc/passwd")],
        &[(Directory, "app", ""), (Block, "app/disk", "")],
        &[(Regular, "app/x", "in no directory")],
    ] {
        let error = Program::tar(entries).unpack(&place).unwrap_err();
        assert!(
            matches!(error, EmbedError::Damaged(_) | EmbedError::LinkOut { .. } | EmbedError::File { .. }),
            "{entries:?}: {error}"
        );
        assert_eq!(names(&place), [""; 0], "{entries:?}");
    }
    assert!(!kept.path().join("out").exists() && !Path::new("/tmp/out").exists());
}

#[test]
fn an_archive_is_no_larger_than_it_says() {
    let (_kept, place) = place();
    let program = Program::of(&vec![0; 1 << 24], 1024);
    assert!(program.unpack(&place).is_ok(), "what is beyond is not read: an empty archive");
    let mut tar = Builder::new(Vec::new());
    let mut header = Header::new_gnu();
    header.set_size(1 << 24);
    tar.append_data(&mut header, "bomb", vec![0; 1 << 24].as_slice()).unwrap();
    let program = Program::of(&tar.into_inner().unwrap(), 1 << 16);
    assert!(program.unpack(&place).is_err());
}

#[test]
fn a_changed_byte_is_noticed() {
    let (_kept, place) = place();
    let program = Program::tar(&[(EntryType::Directory, "app", "")]);
    let mut bytes = fs::read(program.path()).unwrap();
    bytes[8] ^= 1;
    fs::write(program.path(), bytes).unwrap();
    let error = program.unpack(&place).unwrap_err();
    assert!(matches!(&error, EmbedError::Damaged(why) if why.contains("sum")), "{error}");
    assert_eq!(names(&place), [""; 0]);
}

#[test]
fn it_is_unpacked_once_and_again_where_it_is_not_whole() {
    let (_kept, place) = place();
    let program =
        Program::tar(&[(EntryType::Directory, "app", ""), (EntryType::Regular, "app/x", "content")]);
    let unpacked = program.unpack(&place).unwrap();
    let file = unpacked.directory.join("app/x");
    assert_eq!(fs::read_to_string(&file).unwrap(), "content");
    assert_eq!(fs::metadata(&unpacked.directory).unwrap().mode() & 0o777, 0o700);
    let first = fs::metadata(&file).unwrap().ino();
    assert_eq!(program.unpack(&place).unwrap(), unpacked);
    assert_eq!(fs::metadata(&file).unwrap().ino(), first, "the same file");
    fs::remove_file(unpacked.directory.join(COMPLETE)).unwrap();
    fs::write(unpacked.directory.join("planted.php"), "x").unwrap();
    program.unpack(&place).unwrap();
    assert!(!unpacked.directory.join("planted.php").exists());
}

#[test]
fn what_others_could_have_planted_is_not_used() {
    let (_kept, place) = place();
    let program = Program::tar(&[(EntryType::Directory, "app", "")]);
    let directory = place.path().join(format!("{PREFIX}{}", program.footer.name()));
    symlink("/etc", &directory).unwrap();
    assert!(matches!(program.unpack(&place), Err(EmbedError::File { .. })), "a link");
    fs::remove_file(&directory).unwrap();
    fs::create_dir(&directory).unwrap();
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).unwrap();
    assert!(matches!(program.unpack(&place), Err(EmbedError::Unsafe { .. })), "open to all");
}

#[test]
fn what_a_killed_process_has_left_goes_and_what_another_is_at_stays() {
    let (_kept, place) = place();
    let left = place.path().join(".unpacking-left");
    let busy = place.path().join(".unpacking-busy");
    fs::create_dir(&left).unwrap();
    fs::create_dir(&busy).unwrap();
    let _held = lock(&busy).unwrap();
    Program::tar(&[(EntryType::Directory, "app", "")]).unpack(&place).unwrap();
    assert!(!left.exists() && busy.exists());
}

#[test]
fn what_was_packed_is_unpacked() {
    let directory = tempfile::tempdir().unwrap();
    let app = directory.path().join("src");
    fs::create_dir_all(app.join("public")).unwrap();
    fs::write(app.join("public/index.php"), "<?php").unwrap();
    fs::write(app.join("run.sh"), "#!/bin/sh").unwrap();
    fs::set_permissions(app.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("public/index.php", app.join("link")).unwrap();
    let long = "x".repeat(200);
    fs::write(app.join(&long), "long").unwrap();
    let output = directory.path().join("out");
    let own = std::env::current_exe().unwrap();
    let mut archive = Archive::begin(&own, &output).unwrap();
    archive.application(&Application::read(&app, &Excluded::default(), &[]).unwrap()).unwrap();
    let packed = archive.finish().unwrap();
    assert_eq!(fs::metadata(&output).unwrap().len(), packed.size);
    let footer = Footer::read(&output).unwrap().unwrap();
    let (_kept, place) = place();
    let unpacked = unpack(&output, &footer, &place).unwrap().directory.join(layout::APPLICATION);
    assert_eq!(fs::read_to_string(unpacked.join("link")).unwrap(), "<?php");
    assert_eq!(fs::read_to_string(unpacked.join(long)).unwrap(), "long");
    assert_eq!(fs::metadata(unpacked.join("run.sh")).unwrap().mode() & 0o777, 0o700);
    let changed = |path: &Path| fs::metadata(path).unwrap().mtime();
    assert_eq!(changed(&unpacked.join("run.sh")), changed(&app.join("run.sh")));
    assert!(matches!(Archive::begin(&output, &output), Err(EmbedError::Program { .. })), "once is enough");
}
