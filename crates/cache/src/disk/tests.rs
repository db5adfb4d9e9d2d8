use super::*;
use crate::policy::{Policy, Question};
use crate::rope::Gathering;
use crate::store::{Found, Limits, Store};
use crate::stored::StoredBody;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Instant, SystemTime};
use tempfile::TempDir;

/// Bytes of the largest body in memory.
const OBJECT: u64 = 1 << 16;

struct Fixture {
    _parent: TempDir,
    limits: DiskLimits,
}

impl Fixture {
    fn new() -> Self {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("pages");
        let limits = DiskLimits { directory, bytes: 8 << 20, files: 1000, object: 1 << 20 };
        Self { _parent: parent, limits }
    }

    fn path(&self) -> &Path {
        &self.limits.directory
    }

    /// With a disk that is in use, and knows all that it holds.
    fn open(&self) -> Arc<Store> {
        let store = self.begin();
        until(|| store.figures().disk.working == 1);
        until(|| store.figures().disk.files == self.files().len() as u64);
        store
    }

    fn begin(&self) -> Arc<Store> {
        let store = Arc::new(Store::new(Limits { memory: 1 << 20, object: OBJECT }));
        store.with_disk(&self.limits).unwrap();
        store
    }

    fn files(&self) -> Vec<std::path::PathBuf> {
        let entries = fs::read_dir(self.path()).into_iter().flatten();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.filter(|path| path.extension().is_some_and(|ending| ending == "response")).collect()
    }
}

#[track_caller]
fn until(mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        // clock: a round of a loop that ends with an event, or when the test hangs.
        assert!(Instant::now() < deadline, "it does not come about");
        std::thread::sleep(Duration::from_millis(2)); // clock: as above.
    }
}

fn key(path: &str) -> Key {
    Key::new("http", "h", path).unwrap()
}

fn response(body: StoredBody, tag: &str) -> Stored {
    let mut headers = HeaderMap::new();
    for (name, value) in [("cache-control", "max-age=600"), ("etag", "\"a\""), ("xkey", tag), ("x-two", "1")]
    {
        headers.append(HeaderName::from_static(name), HeaderValue::try_from(value).unwrap());
    }
    headers.append("x-two", HeaderValue::from_bytes(b"\xff").unwrap());
    let (request, now) = (HeaderMap::new(), SystemTime::now());
    let question = Question { request: &request, status: StatusCode::OK, headers: &headers, asked: now, now };
    let terms = Policy::default().judge(&question).unwrap();
    let selection = Selection::new(b"site", &[], &request, &CookieRule::default());
    Stored::new(StatusCode::OK, &headers, body, terms, selection, now).unwrap()
}

fn put(store: &Store, path: &str, tag: &str, body: &[u8]) {
    let mut gathering = Gathering::new(store);
    gathering.push(body).unwrap();
    let stored = response(StoredBody::Memory(gathering.finish()), tag);
    store.put(&key(path), stored, store.purges()).unwrap();
}

fn written(store: &Store, count: u64) {
    until(|| store.figures().disk.writes >= count);
}

fn is_in_memory(store: &Store, path: &str) -> bool {
    let found = store.find(&key(path), b"site", &HeaderMap::new(), &CookieRule::default(), SystemTime::now());
    matches!(found, Found::Stored(_))
}

fn located(store: &Store, path: &str) -> Option<Located> {
    store.find_on_disk(&key(path), b"site", &HeaderMap::new(), &CookieRule::default())
}

async fn load(store: &Store, path: &str) -> Option<Arc<Stored>> {
    store.load(located(store, path)?).await
}

fn bytes(body: &StoredBody) -> Vec<u8> {
    match body {
        StoredBody::Memory(rope) => rope.slice(0, rope.len()).concat(),
        StoredBody::File(file) => {
            let mut bytes = vec![0; file.len() as usize];
            rustix::io::pread(file.fd(), &mut *bytes, file.offset(0)).unwrap();
            bytes
        }
    }
}

#[tokio::test]
async fn what_was_stored_is_there_after_a_restart_as_it_was() {
    let fixture = Fixture::new();
    let store = fixture.open();
    put(&store, "/", "a", &vec![7; 60_000]);
    let Found::Stored(before) =
        store.find(&key("/"), b"site", &HeaderMap::new(), &CookieRule::default(), SystemTime::now())
    else {
        panic!("it was put")
    };
    assert!(store.close_disk(Duration::from_secs(5)));
    drop(store);
    let store = fixture.open();
    assert!(!is_in_memory(&store, "/"));
    let after = load(&store, "/").await.unwrap();
    assert_eq!((&after.headers, &after.terms, &after.tags), (&before.headers, &before.terms, &before.tags));
    assert_eq!((bytes(&after.body), after.status), (vec![7; 60_000], StatusCode::OK));
    assert!(is_in_memory(&store, "/"), "it is in memory again");
    let other = store.find_on_disk(&key("/"), b"other", &HeaderMap::new(), &CookieRule::default());
    assert!(other.is_none(), "sites share nothing");
}

#[tokio::test]
async fn what_memory_lets_go_is_on_the_disk() {
    let fixture = Fixture::new();
    let store = fixture.open();
    for number in 0..60 {
        put(&store, &format!("/{number}"), "a", &[number; 40_000]);
        written(&store, u64::from(number) + 1);
    }
    let gone = (0..60).find(|number| !is_in_memory(&store, &format!("/{number}"))).unwrap();
    let stored = load(&store, &format!("/{gone}")).await.unwrap();
    assert_eq!(bytes(&stored.body), [gone; 40_000]);
}

#[tokio::test]
async fn a_body_larger_than_memory_takes_goes_to_the_disk_as_it_comes() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let mut spilling = None;
    let mut gathering = Gathering::new(&store);
    for number in 0..10 {
        gathering.push(&[number; 60_000]).unwrap();
        spilling = store.spill(spilling, &mut gathering, Bytes::new()).await;
    }
    assert_eq!(store.figures().bodies, 0);
    let body = StoredBody::File(spilling.unwrap().finish());
    store.put(&key("/"), response(body, "a"), store.purges()).unwrap();
    written(&store, 1);
    drop(store);
    let store = fixture.open();
    let stored = load(&store, "/").await.unwrap();
    assert!(matches!(stored.body, StoredBody::File(_)) && !is_in_memory(&store, "/"));
    assert_eq!(bytes(&stored.body), (0..10).flat_map(|number| [number; 60_000]).collect::<Vec<_>>());

    // It is good still: another file, with the same body.
    let fresh = stored.with(stored.headers.clone(), stored.terms.clone()).unwrap();
    store.put(&key("/"), fresh, store.purges()).unwrap();
    written(&store, 1);
    assert_eq!(bytes(&load(&store, "/").await.unwrap().body).len(), 600_000);
    until(|| fixture.files().len() == 1);
}

#[tokio::test]
async fn a_body_that_is_too_large_or_given_up_leaves_nothing() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let mut spilling = None;
    for _ in 0..20 {
        let mut gathering = Gathering::new(&store);
        gathering.push(&[1; 60_000]).unwrap();
        spilling = store.spill(spilling, &mut gathering, Bytes::new()).await;
        if spilling.is_none() {
            break;
        }
    }
    assert!(spilling.is_none(), "more than 1 MiB");
    until(|| fs::read_dir(fixture.path()).unwrap().count() == 1);
    assert_eq!(store.figures().disk.bytes, 0);
}

#[tokio::test]
async fn a_torn_file_is_a_miss_and_is_removed() {
    let fixture = Fixture::new();
    let store = fixture.open();
    put(&store, "/", "a", &[7; 5000]);
    written(&store, 1);
    drop(store);
    let whole = fs::read(&fixture.files()[0]).unwrap();
    let path = fixture.files()[0].clone();
    for (what, torn) in [
        ("the body", {
            let mut torn = whole.clone();
            torn[3000] ^= 1;
            torn
        }),
        ("the end", whole[..whole.len() - 1].to_vec()),
        ("the heading", {
            let mut torn = whole.clone();
            torn[9] ^= 1;
            torn
        }),
        ("what is known", {
            let mut torn = whole.clone();
            let last = torn.len() - 9;
            torn[last] ^= 1;
            torn
        }),
        ("all but the heading", {
            let mut torn = whole.clone();
            torn[32..].fill(0);
            torn
        }),
        ("all of it", Vec::new()),
    ] {
        fs::write(&path, torn).unwrap();
        let store = fixture.begin();
        until(|| store.figures().disk.working == 1);
        // The body is not looked at before it is asked for.
        until(|| store.figures().disk.files == 1 || fixture.files().is_empty());
        assert!(load(&store, "/").await.is_none(), "{what}");
        until(|| fixture.files().is_empty());
        until(|| store.figures().disk.files == 0);
    }
    fs::write(&path, &whole).unwrap();
    assert!(load(&fixture.open(), "/").await.is_some());
}

#[tokio::test]
async fn a_purge_takes_what_is_on_the_disk_too_and_counts_it_once() {
    let fixture = Fixture::new();
    let store = fixture.open();
    for (path, tag) in [("/a", "x"), ("/b", "y"), ("/c/1", "z"), ("/c/2", "z"), ("/d", "w")] {
        put(&store, path, tag, b"x");
    }
    written(&store, 5);
    drop(store);
    let store = fixture.open();
    load(&store, "/a").await.unwrap();
    for (purge, count) in [
        (Purge::Tags(vec!["x".into(), "none".into()]), 1),
        (Purge::Url(key("/b")), 1),
        (Purge::Prefix("http://h/c/".into()), 2),
        (Purge::Everything, 1),
        (Purge::Everything, 0),
    ] {
        assert_eq!(store.purge(&purge), count, "{purge:?}");
    }
    store.settle();
    assert_eq!(fixture.files(), Vec::<PathBuf>::new());
    assert!(located(&store, "/d").is_none());
}

#[tokio::test]
async fn what_is_purged_while_it_is_read_is_not_there() {
    let fixture = Fixture::new();
    let store = fixture.open();
    put(&store, "/", "a", b"x");
    written(&store, 1);
    let located = located(&store, "/").unwrap();
    store.purge(&Purge::Tags(vec!["a".into()]));
    assert!(store.load(located).await.is_none() && !is_in_memory(&store, "/"));
}

#[tokio::test]
async fn two_servers_do_not_share_a_directory_and_the_second_gets_it_after_the_first() {
    let fixture = Fixture::new();
    let first = fixture.open();
    put(&first, "/", "a", b"x");
    written(&first, 1);
    let second = fixture.begin();
    put(&second, "/2", "a", b"x");
    assert!(is_in_memory(&second, "/2"), "it goes on in memory");
    assert_eq!(second.figures().disk.working, 0);
    assert!(first.close_disk(Duration::from_secs(5)));
    until(|| second.figures().disk.working == 1);
    until(|| second.figures().disk.files == 1);
    assert!(load(&second, "/").await.is_some());
    // What its scripts still purge goes.
    assert_eq!(first.purge(&Purge::Tags(vec!["a".into()])), 1);
    first.settle();
    assert!(fixture.files().iter().all(|path| !path.ends_with("0000000000000001.response")));
}

#[tokio::test]
async fn a_directory_that_is_removed_is_made_anew() {
    let fixture = Fixture::new();
    let store = fixture.open();
    put(&store, "/", "a", b"x");
    written(&store, 1);
    fs::remove_dir_all(fixture.path()).unwrap();
    assert!(load(&store, "/").await.is_none());
    put(&store, "/2", "a", b"x");
    until(|| store.figures().disk.working == 1 && fixture.path().exists());
    put(&store, "/3", "a", b"x");
    until(|| !fixture.files().is_empty());
    assert!(is_in_memory(&store, "/2"));
}

#[test]
fn a_directory_that_cannot_be_used_is_tried_again() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.path()).unwrap();
    fs::set_permissions(fixture.path(), Permissions::from_mode(0o755)).unwrap();
    let store = fixture.begin();
    until(|| store.figures().disk.errors > 0);
    put(&store, "/", "a", b"x");
    assert_eq!((store.figures().disk.working, store.figures().disk.dropped), (0, 1));
    fs::set_permissions(fixture.path(), Permissions::from_mode(0o700)).unwrap();
    until(|| store.figures().disk.working == 1);
}

#[test]
fn bounds_of_bytes_and_files_hold() {
    let mut fixture = Fixture::new();
    (fixture.limits.bytes, fixture.limits.files) = (40 * 4096, 30);
    let store = fixture.open();
    for number in 0..200 {
        put(&store, &format!("/{number}"), "a", &vec![0; 100 * (number % 90)]);
        written(&store, number as u64 + 1);
        let figures = store.figures().disk;
        assert!(figures.bytes <= 40 * 4096 && figures.files <= 30, "{figures:?}");
    }
    // `settle` waits for a slow disk no longer than a request may.
    until(|| fixture.files().len() as u64 == store.figures().disk.files);
    let files = fixture.files();
    let taken: u64 = files.iter().map(|path| fs::metadata(path).unwrap().len().next_multiple_of(4096)).sum();
    assert!(files.len() <= 30 && taken <= 40 * 4096, "{} files, {taken} bytes", files.len());
    assert!(store.figures().disk.evictions >= 170);
}

#[tokio::test]
async fn many_readers_of_a_slow_disk_are_bounded() {
    let fixture = Fixture::new();
    let store = fixture.open();
    put(&store, "/", "a", b"x");
    written(&store, 1);
    let held: Vec<_> = (0..MOST_READS).map(|_| located(&store, "/").unwrap()).collect();
    assert!(located(&store, "/").is_none(), "it is a miss");
    drop(held);
    assert!(load(&store, "/").await.is_some());
}

#[test]
fn a_file_of_another_version_goes_and_its_number_is_not_given_again() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.path()).unwrap();
    fs::set_permissions(fixture.path(), Permissions::from_mode(0o700)).unwrap();
    let path = fixture.path().join("0000000000000009.response");
    fs::write(&path, Bytes::from_static(b"RegentC\x02and so on, longer than a heading is")).unwrap();
    let store = fixture.open();
    until(|| !path.exists());
    put(&store, "/", "a", b"x");
    written(&store, 1);
    assert!(fixture.files()[0].ends_with("000000000000000a.response"), "{:?}", fixture.files());
}
