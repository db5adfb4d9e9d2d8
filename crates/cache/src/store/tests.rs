use super::*;
use crate::policy::{Policy, Question, Reuse};
use crate::rope::Gathering;
use crate::selection::Selection;
use http::{HeaderName, HeaderValue, StatusCode};
use proptest::prelude::*;

const NOW: SystemTime = SystemTime::UNIX_EPOCH;

fn fields(fields: &[(&'static str, &str)]) -> HeaderMap {
    let field = |(name, value): &(&'static str, &str)| {
        (HeaderName::from_static(name), HeaderValue::try_from(*value).unwrap())
    };
    fields.iter().map(field).collect()
}

fn store(memory: u64, object: u64) -> Store {
    Store::new(Limits { memory, object })
}

fn key(path: &str) -> Key {
    Key::new("http", "Example.com", path).unwrap()
}

fn body(store: &Store, bytes: &[u8]) -> StoredBody {
    let mut gathering = Gathering::new(store);
    gathering.push(bytes).unwrap();
    StoredBody::Memory(gathering.finish())
}

fn response(store: &Store, request: &HeaderMap, own: &[(&'static str, &str)], bytes: &[u8]) -> Stored {
    let mut headers = fields(own);
    headers.insert("cache-control", HeaderValue::from_static("max-age=60"));
    let question = Question { request, status: StatusCode::OK, headers: &headers, asked: NOW, now: NOW };
    let terms = Policy::default().judge(&question).unwrap();
    let selection = Selection::new(b"", &Selection::names(&headers), request, &CookieRule::default());
    Stored::new(StatusCode::OK, &headers, body(store, bytes), terms, selection, NOW).unwrap()
}

fn put(store: &Store, path: &str, own: &[(&'static str, &str)], bytes: &[u8]) {
    let stored = response(store, &HeaderMap::new(), own, bytes);
    store.put(&key(path), stored, store.purges()).unwrap();
}

fn find(store: &Store, path: &str, request: &[(&'static str, &str)]) -> Found {
    store.find(&key(path), b"", &fields(request), &CookieRule::default(), NOW)
}

fn is_stored(store: &Store, path: &str) -> bool {
    matches!(find(store, path, &[]), Found::Stored(_))
}

#[test]
fn each_request_finds_the_response_that_varies_with_it() {
    let store = store(1 << 20, 1 << 16);
    for language in ["de", "en"] {
        let request = fields(&[("accept-language", language)]);
        let stored = response(&store, &request, &[("vary", "accept-language")], language.as_bytes());
        store.put(&key("/"), stored, 0).unwrap();
    }
    for language in ["de", "en"] {
        let Found::Stored(stored) = find(&store, "/", &[("accept-language", language)]) else {
            panic!("{language}")
        };
        let StoredBody::Memory(rope) = &stored.body else { panic!("{stored:?}") };
        assert_eq!(rope.slice(0, 2).concat(), language.as_bytes());
    }
    assert!(matches!(find(&store, "/", &[("accept-language", "fr")]), Found::OfOthers(_)));
    assert!(matches!(find(&store, "/x", &[]), Found::Nothing));
    for language in 0..200 {
        let request = fields(&[("accept-language", &language.to_string())]);
        store.put(&key("/"), response(&store, &request, &[("vary", "accept-language")], b"x"), 0).unwrap();
    }
    assert_eq!(store.urls.get(&key("/")).unwrap().variants.len(), MOST_VARIANTS);
}

#[test]
fn sites_share_nothing() {
    let store = store(1 << 20, 1 << 16);
    put(&store, "/", &[], b"x");
    let found = store.find(&key("/"), b"other", &HeaderMap::new(), &CookieRule::default(), NOW);
    assert!(matches!(found, Found::OfOthers(_)));
    assert!(Key::new("http", "h", &"x".repeat(5000)).is_none());
}

#[test]
fn what_cannot_be_stored_is_remembered_for_a_while_and_hides_nothing() {
    let store = store(1 << 20, 1 << 16);
    store.note_unstorable(&key("/"), NOW);
    assert!(matches!(find(&store, "/", &[]), Found::Unstorable));
    let later = store.find(&key("/"), b"", &HeaderMap::new(), &CookieRule::default(), NOW + UNSTORABLE);
    assert!(matches!(later, Found::Nothing));
    put(&store, "/", &[], b"x");
    store.note_unstorable(&key("/"), NOW);
    assert!(is_stored(&store, "/"));
}

#[test]
fn a_purge_takes_what_it_names_and_nothing_else() {
    let all = ["/a", "/a/b", "/c?x=1"];
    for (purge, left) in [
        (Purge::Url(key("/a")), &["/a/b", "/c?x=1"][..]),
        (Purge::Url(Key::new("https", "example.com", "/a").unwrap()), &all),
        (Purge::Prefix("http://example.com/a".into()), &["/c?x=1"]),
        (Purge::Tags(vec!["two".into(), "none".into()]), &["/a", "/a/b"]),
        (Purge::Everything, &[]),
    ] {
        let store = store(1 << 20, 1 << 16);
        put(&store, "/a", &[("xkey", "one")], b"x");
        put(&store, "/a/b", &[], b"x");
        put(&store, "/c?x=1", &[("surrogate-key", "one two")], b"x");
        let purged = store.purge(&purge);
        let found: Vec<_> = all.into_iter().filter(|path| is_stored(&store, path)).collect();
        assert_eq!((found.as_slice(), purged as usize), (left, all.len() - left.len()), "{purge:?}");
    }
}

#[test]
fn what_was_asked_for_before_a_purge_is_not_stored_after_it() {
    let store = store(1 << 20, 1 << 16);
    let tagged = || response(&store, &HeaderMap::new(), &[("xkey", "a")], b"old");
    let asked = store.purges();
    store.purge(&Purge::Tags(vec!["b".into()]));
    assert!(store.put(&key("/"), tagged(), asked).is_ok(), "the purge was of others");
    store.purge(&Purge::Tags(vec!["a".into()]));
    assert_eq!(store.put(&key("/"), tagged(), asked).err(), Some(Ground::Purged));
    assert!(!is_stored(&store, "/"));
    let asked = store.purges();
    for _ in 0..300 {
        store.purge(&Purge::Tags(vec!["b".into()]));
    }
    assert_eq!(
        store.put(&key("/"), tagged(), asked).err(),
        Some(Ground::Purged),
        "they are too many to know"
    );
}

#[test]
fn bodies_under_way_are_bounded_one_by_one_and_together() {
    let store = store(800, 600);
    let gather = |bytes: usize| {
        let mut gathering = Gathering::new(&store);
        gathering.push(&vec![0; bytes]).map(|()| gathering)
    };
    assert!(gather(601).is_err());
    let first = gather(600).unwrap();
    let mut second = gather(600).unwrap();
    let mut copies = second.copies();
    copies.grow(200).unwrap();
    assert!(gather(1).is_err(), "all of them may have the memory, and room for one more");
    drop(copies);
    let first = first.finish();
    let mut third = gather(200).unwrap();
    assert!(third.push(b"x").is_err());
    let read = first.clone();
    drop(first);
    assert!(third.push(b"x").is_err(), "a client still reads it");
    drop(read);
    assert!(third.push(b"x").is_ok());
    assert!(second.push(b"x").is_err());
    drop((second, third));
    assert_eq!(store.figures().bodies, 0);
}

#[test]
fn a_flood_of_urls_stays_within_the_bound_and_displaces_nothing_that_is_asked_for() {
    let store = store(1 << 20, 1 << 16);
    put(&store, "/front", &[], &[0; 30_000]);
    for number in 0..5_000 {
        assert!(is_stored(&store, "/front"), "it is gone after {number}");
        put(&store, &format!("/?{number}"), &[], &[0; 1000]);
        assert!(store.figures().bytes <= 1 << 20);
    }
    let figures = store.figures();
    assert!(figures.evictions > 3_000 && figures.entries < 1_000, "{figures:?}");
}

#[test]
fn the_largest_object_has_a_place() {
    let store = store(128 << 20, 8 << 20);
    for number in 0..100 {
        let path = format!("/{number}");
        put(&store, &path, &[], &vec![0; 8 << 20]);
        assert!(is_stored(&store, &path), "{number}");
    }
    assert!(store.figures().bytes <= 128 << 20);
}

proptest! {
    #[test]
    fn a_stored_response_is_found_by_requests_of_its_own_only(
        own in "[ab]{0,2}", other in "[ab]{0,2}", base in 0_u8..2, other_base in 0_u8..2,
    ) {
        let store = store(1 << 20, 1 << 16);
        let request = fields(&[("x", &own)]);
        let mut stored = response(&store, &request, &[("vary", "X")], b"x");
        stored.selection = Selection::new(&[base], &Selection::names(&stored.headers), &request, &CookieRule::default());
        prop_assert_eq!(Policy::default().reuse(&stored.terms, &request, NOW), Reuse::Fresh);
        store.put(&key("/"), stored, 0).unwrap();
        let found = store.find(&key("/"), &[other_base], &fields(&[("x", &other)]), &CookieRule::default(), NOW);
        prop_assert_eq!(matches!(found, Found::Stored(_)), own == other && base == other_base);
    }
}
