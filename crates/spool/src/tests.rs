//! A spool is offered chunks, and read from, in every order that its two ends allow.

use super::*;
use regent_config as config;
use std::path::Path;

const CHUNK: usize = 64 * 1024;

/// Bounds in chunks: for each spool 16 in memory and 84 in a file.
fn spools_in(directory: &Path) -> Arc<Spools> {
    let bounds = config::Spool { memory: 16 << 16, file: 84 << 16, directory: Some(directory.to_path_buf()) };
    Spools::open(&bounds).unwrap()
}

fn spools() -> Arc<Spools> {
    spools_in(&std::env::temp_dir())
}

fn without_files() -> Arc<Spools> {
    Spools::open(&config::Spool { memory: 16 << 16, file: 0, directory: None }).unwrap()
}

async fn read(reader: &mut SpoolReader) -> Option<io::Result<Bytes>> {
    poll_fn(|context| reader.poll_chunk(context)).await
}

async fn read_all(mut reader: SpoolReader) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(chunk) = read(&mut reader).await {
        all.extend_from_slice(&chunk.unwrap());
    }
    all
}

/// Chunks that differ.
fn chunks(count: usize) -> Vec<Bytes> {
    (0..count).map(|index| Bytes::from(vec![index as u8; CHUNK])).collect()
}

/// Offers chunks until one is refused, and gives their number.
async fn fill(writer: &SpoolWriter, chunks: &[Bytes]) -> usize {
    for (index, chunk) in chunks.iter().enumerate() {
        if writer.offer(chunk.clone()).await.unwrap() != Offered::Taken {
            return index;
        }
    }
    chunks.len()
}

#[tokio::test]
async fn what_memory_does_not_hold_goes_through_a_file_in_order() {
    let spools = spools();
    let (writer, reader) = spool(&spools, VecDeque::new());
    let chunks = chunks(90);
    assert_eq!(fill(&writer, &chunks).await, 90);
    assert_eq!(writer.0.borrow().chunks.len(), 16);
    assert_eq!(spools.all_files.used(), 74 << 16);
    writer.end(Ok(()));
    assert!(read_all(reader).await == chunks.concat());
}

#[tokio::test]
async fn a_reader_that_keeps_up_gets_the_same() {
    let (writer, reader) = spool(&spools(), VecDeque::new());
    let chunks = chunks(300);
    let write = async {
        for chunk in &chunks {
            writer.write(chunk.clone()).await;
        }
        writer.end(Ok(()));
    };
    let (all, ()) = tokio::join!(read_all(reader), write);
    assert!(all == chunks.concat());
}

#[tokio::test]
async fn a_full_spool_gives_the_chunk_back_and_takes_more_when_it_was_read() {
    let (writer, mut reader) = spool(&spools(), VecDeque::new());
    let chunks = chunks(300);
    assert_eq!(fill(&writer, &chunks).await, 100, "16 in memory, 84 in the file");
    let mut read_back = Vec::new();
    while read_back.len() < 100 * CHUNK {
        read_back.extend_from_slice(&read(&mut reader).await.unwrap().unwrap());
    }
    assert!(read_back == chunks[..100].concat());
    assert_eq!(fill(&writer, &chunks).await, 100, "the file is used from its beginning again");
}

#[tokio::test]
async fn without_files_the_writer_waits_for_the_reader() {
    let (writer, reader) = spool(&without_files(), VecDeque::new());
    let chunks = chunks(100);
    let write = async {
        for chunk in &chunks {
            writer.write(chunk.clone()).await;
            assert!(writer.0.borrow().chunks.len() <= 16);
        }
        writer.end(Ok(()));
    };
    let (all, ()) = tokio::join!(read_all(reader), write);
    assert!(all == chunks.concat());
}

#[tokio::test]
async fn a_writer_goes_on_when_its_reader_has_enough() {
    let spools = without_files();
    let (writer, mut reader) = spool(&spools, VecDeque::new());
    let chunks = chunks(100);
    assert_eq!(fill(&writer, &chunks).await, 16);
    let write = async {
        for chunk in &chunks {
            writer.write(chunk.clone()).await;
        }
        writer.end(Ok(()));
    };
    let have_enough = async {
        read(&mut reader).await.unwrap().unwrap();
        reader.discard_rest();
        drop(reader);
    };
    tokio::join!(write, have_enough);
    assert_eq!(spools.all_memory.used(), 0);
}

/// The disk writes while the reader leaves.
#[tokio::test]
async fn a_file_that_is_written_to_when_its_reader_has_enough_takes_no_share() {
    let spools = spools();
    let (writer, reader) = spool(&spools, VecDeque::new());
    let chunks = chunks(20);
    assert_eq!(fill(&writer, &chunks).await, 20);
    let place = writer.0.borrow_mut().place_for(&chunks[0]);
    let Place::File(room) = place else { panic!("memory is full") };
    reader.discard_rest();
    writer.write_to_file(room, &chunks[0]).await.unwrap();
    assert!(writer.0.borrow().file.is_empty());
    assert_eq!((spools.all_files.used(), spools.all_memory.used()), (0, 0));
}

#[tokio::test]
async fn bounds_of_zero_let_one_chunk_after_the_other_through() {
    let bounds = config::Spool { memory: 0, file: 0, directory: None };
    let (writer, reader) = spool(&Spools::open(&bounds).unwrap(), VecDeque::new());
    let chunks = chunks(10);
    let write = async {
        for chunk in &chunks {
            writer.write(chunk.clone()).await;
        }
        writer.end(Ok(()));
    };
    let (all, ()) = tokio::join!(read_all(reader), write);
    assert!(all == chunks.concat());
}

#[tokio::test]
async fn small_chunks_count_for_what_they_take() {
    let (writer, _reader) = spool(&without_files(), VecDeque::new());
    let held = fill(&writer, &vec![Bytes::from_static(b"x"); 1 << 20]).await;
    assert!((16 << 16) / held >= 64, "{held} chunks of one byte");
}

#[tokio::test]
async fn all_files_together_are_bounded_and_a_spool_that_ends_makes_room() {
    let spools = spools();
    let chunks = chunks(100);
    let mut full = Vec::new();
    for _ in 0..8 {
        let (writer, reader) = spool(&spools, VecDeque::new());
        assert_eq!(fill(&writer, &chunks).await, 100);
        full.push((writer, reader));
    }
    let (writer, _reader) = spool(&spools, VecDeque::new());
    assert_eq!(fill(&writer, &chunks).await, 16, "memory is left, but no file");
    full.pop();
    assert_eq!(fill(&writer, &chunks).await, 84);
    drop((full, writer, _reader));
    assert_eq!((spools.all_files.used(), spools.all_memory.used()), (0, 0));
}

#[tokio::test]
async fn a_spool_that_others_left_no_memory_uses_its_file_at_once() {
    let spools = spools();
    let mut others = spools.all_memory.share();
    others.take_anyway(256 * (16 << 16));
    let (writer, reader) = spool(&spools, VecDeque::new());
    let chunks = chunks(10);
    assert_eq!(fill(&writer, &chunks).await, 10);
    assert!(writer.0.borrow().chunks.is_empty());
    writer.end(Ok(()));
    assert!(read_all(reader).await == chunks.concat());
}

#[tokio::test]
async fn a_directory_that_has_gone_is_an_error_and_what_came_before_is_good() {
    let directory = tempfile::tempdir().unwrap();
    let spools = spools_in(directory.path());
    directory.close().unwrap();
    let (writer, mut reader) = spool(&spools, VecDeque::new());
    let chunks = chunks(17);
    assert_eq!(fill(&writer, &chunks[..16]).await, 16);
    assert_eq!(writer.offer(chunks[16].clone()).await.unwrap_err().kind(), io::ErrorKind::NotFound);
    assert_eq!(read(&mut reader).await.unwrap().unwrap(), chunks[0]);
    let (other, _reader) = spool(&spools, VecDeque::new());
    assert_eq!(other.offer(chunks[0].clone()).await.unwrap(), Offered::Taken, "others go on");
}

#[tokio::test]
async fn a_disk_that_takes_no_more_broke_responses_off_that_were_being_read() {
    let directory = tempfile::tempdir().unwrap();
    let spools = spools_in(directory.path());
    directory.close().unwrap();
    let (writer, reader) = spool(&spools, VecDeque::new());
    let chunks = chunks(300);
    let write = async {
        for chunk in &chunks {
            writer.write(chunk.clone()).await;
            assert!(writer.0.borrow().chunks.len() <= 17, "it waits for its reader");
        }
        writer.end(Ok(()));
    };
    let (all, ()) = tokio::join!(read_all(reader), write);
    assert!(all == chunks.concat());
    drop(writer);
    assert_eq!((spools.all_memory.used(), spools.all_files.used()), (0, 0));
}

/// What is in the file already comes first.
#[tokio::test]
async fn a_disk_that_becomes_full_while_a_response_waits_keeps_its_order() {
    let directory = tempfile::tempdir().unwrap();
    let spools = spools_in(directory.path());
    let (writer, reader) = spool(&spools, VecDeque::new());
    let chunks = chunks(120);
    assert_eq!(fill(&writer, &chunks[..40]).await, 40);
    // A file that cannot be written to, with what the other has.
    let file = writer.0.borrow().file.read_only();
    writer.0.borrow_mut().file.replace_file(file);
    let write = async {
        for chunk in &chunks[40..] {
            writer.write(chunk.clone()).await;
        }
        writer.end(Ok(()));
    };
    let (all, ()) = tokio::join!(read_all(reader), write);
    assert!(all == chunks.concat());
}

#[tokio::test]
async fn a_spool_that_broke_off_ends_with_the_error() {
    let begun = VecDeque::from([Bytes::from("begun")]);
    let (writer, mut reader) = spool(&spools(), begun);
    writer.end(Err(io::Error::other("broken")));
    assert_eq!(read(&mut reader).await.unwrap().unwrap(), "begun");
    assert!(read(&mut reader).await.unwrap().is_err());
}
