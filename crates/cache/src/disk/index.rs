//! What is on the disk, as far as it must be known without asking the disk.

use crate::key::Key;
use crate::purge::Purge;
use crate::selection::{CookieRule, Selection};
use http::{HeaderMap, HeaderName};
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::time::SystemTime;

/// Responses of one URL; the oldest goes when there is one more.
const MOST_VARIANTS: usize = 32;
/// What a file takes of a disk, whatever its length.
const BLOCK: u64 = 4096;

/// How much there may be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Bytes of all files.
    pub(super) bytes: u64,
    pub(super) files: u64,
    /// Bytes of memory for what is known of them.
    pub(super) memory: u64,
}

pub(super) struct Index {
    bounds: Bounds,
    hasher: RandomState,
    entries: HashMap<u64, Entry>,
    urls: HashMap<Key, Vec<u64>>,
    /// Numbers in the order in which they are to go, but for those that have been used meanwhile. Some may have gone already.
    clock: VecDeque<u64>,
    bytes: u64,
    memory: u64,
    /// Bytes that are being written, or will be.
    begun: u64,
}

/// A file.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) key: Key,
    /// What its `Vary` names.
    pub(super) varied: Box<[HeaderName]>,
    /// The hash of its [`Selection`]: which it is exactly, the file says.
    pub(super) selection: u64,
    pub(super) tags: Box<[Box<str>]>,
    /// The length of the file.
    pub(super) length: u64,
    /// When the response came.
    pub(super) since: SystemTime,
    /// Since it came, or the hand of the clock was there.
    pub(super) used: Use,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    NotYet,
    Since,
}

/// The files that have gone, whose names are to go too.
pub(super) type Gone = Vec<u64>;

impl Index {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            hasher: RandomState::new(),
            entries: HashMap::new(),
            urls: HashMap::new(),
            clock: VecDeque::new(),
            bytes: 0,
            memory: 0,
            begun: 0,
        }
    }

    pub(super) fn hash(&self, selection: &Selection) -> u64 {
        self.hasher.hash_one(selection)
    }

    pub(super) fn files(&self) -> u64 {
        self.entries.len() as u64
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes + self.begun
    }

    /// The newest response for a request with these fields, and what it is selected by.
    pub(super) fn find(
        &mut self,
        key: &Key,
        base: &[u8],
        request: &HeaderMap,
        cookies: &CookieRule,
    ) -> Option<(u64, Selection)> {
        for number in self.urls.get(key)?.iter().rev() {
            let entry = self.entries.get_mut(number)?;
            let selection = Selection::new(base, &entry.varied, request, cookies);
            if self.hasher.hash_one(&selection) == entry.selection {
                entry.used = Use::Since;
                return Some((*number, selection));
            }
        }
        None
    }

    /// Whether this very response is there.
    pub(super) fn has(&self, key: &Key, selection: &Selection, since: SystemTime) -> bool {
        let hash = self.hash(selection);
        let numbers = self.urls.get(key).into_iter().flatten();
        let mut entries = numbers.filter_map(|number| self.entries.get(number));
        entries.any(|entry| entry.selection == hash && entry.since >= since)
    }

    /// Adds a file, whose room has been taken. What it replaces goes.
    pub(super) fn add(&mut self, number: u64, entry: Entry) -> Gone {
        let mut gone = self.forget(&entry.key, entry.selection);
        let of_url = self.urls.entry(entry.key.clone()).or_default();
        of_url.push(number);
        let oldest = (of_url.len() > MOST_VARIANTS).then(|| of_url[0]);
        if let Some(oldest) = oldest {
            self.remove(oldest);
            gone.push(oldest);
        }
        self.bytes += size(entry.length);
        self.memory += entry.weight();
        self.entries.insert(number, entry);
        self.clock.push_back(number);
        gone.extend(self.evict(0, 0));
        gone
    }

    /// Forgets what is selected so.
    pub(super) fn forget(&mut self, key: &Key, selection: u64) -> Gone {
        let numbers = self.urls.get(key).map_or(&[][..], Vec::as_slice).iter().copied();
        let of_selection =
            |number: &u64| self.entries.get(number).is_some_and(|entry| entry.selection == selection);
        let gone: Gone = numbers.filter(of_selection).collect();
        gone.iter().for_each(|number| drop(self.remove(*number)));
        gone
    }

    /// Takes room for so many bytes more, for which others go. `None`: there is none.
    pub(super) fn begin(&mut self, length: u64) -> Option<Gone> {
        let more = size(length);
        // What is being written leaves half of the room to what can be used.
        if self.begun + more > (self.bounds.bytes / 2).max(more) || more > self.bounds.bytes {
            return None;
        }
        let gone = self.evict(more, 1);
        self.begun += more;
        Some(gone)
    }

    /// Gives that room back, or takes it for a file that is [added](Self::add) now.
    pub(super) fn end(&mut self, length: u64) {
        self.begun = self.begun.saturating_sub(size(length));
    }

    /// Lets go what nobody has used for longest, about so many bytes.
    pub(super) fn shrink(&mut self, bytes: u64) -> Gone {
        let mut gone = Gone::new();
        let until = self.bytes.saturating_sub(bytes);
        while self.bytes > until
            && let Some(number) = self.turn()
        {
            gone.push(number);
        }
        gone
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<Entry> {
        let entry = self.entries.remove(&number)?;
        self.bytes -= size(entry.length);
        self.memory -= entry.weight();
        if let Some(of_url) = self.urls.get_mut(&entry.key) {
            of_url.retain(|other| *other != number);
            if of_url.is_empty() {
                self.urls.remove(&entry.key);
            }
        }
        if self.clock.len() > 2 * self.entries.len() + 1024 {
            self.clock.retain(|number| self.entries.contains_key(number));
        }
        Some(entry)
    }

    /// The URLs that have a response which is concerned.
    pub(super) fn concerned(&self, purge: &Purge) -> Vec<Key> {
        if let Some(key) = purge.only_url() {
            let is_concerned = self.urls.contains_key(key) && purge.concerns(key, &[]);
            return is_concerned.then(|| key.clone()).into_iter().collect();
        }
        let is_concerned = |numbers: &Vec<u64>| {
            let mut entries = numbers.iter().filter_map(|number| self.entries.get(number));
            entries.any(|entry| purge.concerns(&entry.key, &entry.tags))
        };
        let concerned = self.urls.iter().filter(|(_, numbers)| is_concerned(numbers));
        concerned.map(|(key, _)| key.clone()).collect()
    }

    /// Forgets all of a URL: the files, and the hashes of their selections.
    pub(super) fn remove_url(&mut self, key: &Key) -> (Gone, Vec<u64>) {
        let numbers = self.urls.get(key).cloned().unwrap_or_default();
        let hashes = numbers.iter().filter_map(|number| Some(self.remove(*number)?.selection)).collect();
        (numbers, hashes)
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.urls.clear();
        self.clock.clear();
        (self.bytes, self.memory) = (0, 0);
    }

    fn evict(&mut self, bytes: u64, files: u64) -> Gone {
        let mut gone = Gone::new();
        let bounds = self.bounds;
        while self.bytes + self.begun + bytes > bounds.bytes
            || self.files() + files > bounds.files
            || self.memory > bounds.memory
        {
            let Some(number) = self.turn() else { break };
            gone.push(number);
        }
        gone
    }

    /// Moves the hand of the clock to what goes now: who has been used gets another round.
    fn turn(&mut self) -> Option<u64> {
        loop {
            let number = self.clock.pop_front()?;
            let Some(entry) = self.entries.get_mut(&number) else { continue };
            if entry.used == Use::Since {
                entry.used = Use::NotYet;
                self.clock.push_back(number);
                continue;
            }
            self.remove(number);
            return Some(number);
        }
    }
}

impl Entry {
    /// Bytes of memory, about.
    fn weight(&self) -> u64 {
        let names: usize = self.varied.iter().map(|name| name.as_str().len() + 32).sum();
        let tags: usize = self.tags.iter().map(|tag| tag.len() + 32).sum();
        (320 + self.key.weight() + names + tags) as u64
    }
}

/// What a file takes of the disk.
fn size(length: u64) -> u64 {
    length.div_ceil(BLOCK) * BLOCK
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bounds(bytes: u64, files: u64) -> Bounds {
        Bounds { bytes, files, memory: 1 << 20 }
    }

    fn key(path: &str) -> Key {
        Key::new("http", "h", path).unwrap()
    }

    fn add(index: &mut Index, number: u64, path: &str, varied: &str, length: u64) -> Gone {
        let mut request = HeaderMap::new();
        request.insert("x", varied.parse().unwrap());
        let names = [HeaderName::from_static("x")];
        let selection = Selection::new(b"", &names, &request, &CookieRule::default());
        let mut gone = index.begin(length).unwrap();
        index.end(length);
        gone.extend(index.add(
            number,
            Entry {
                key: key(path),
                varied: names.into(),
                selection: index.hash(&selection),
                tags: [path.into()].into(),
                length,
                since: SystemTime::UNIX_EPOCH,
                used: Use::NotYet,
            },
        ));
        gone
    }

    fn find(index: &mut Index, path: &str, varied: &str) -> Option<u64> {
        let mut request = HeaderMap::new();
        request.insert("x", varied.parse().unwrap());
        index.find(&key(path), b"", &request, &CookieRule::default()).map(|(number, _)| number)
    }

    #[test]
    fn what_has_been_used_outlives_what_has_not() {
        let mut index = Index::new(bounds(4 * BLOCK, 100));
        for number in 0..4 {
            assert_eq!(add(&mut index, number, &format!("/{number}"), "", 1), []);
        }
        assert_eq!(find(&mut index, "/0", ""), Some(0));
        assert_eq!(add(&mut index, 4, "/4", "", 2 * BLOCK), [1, 2]);
        assert_eq!((find(&mut index, "/0", ""), find(&mut index, "/1", "")), (Some(0), None));
    }

    #[test]
    fn files_and_what_is_known_of_them_are_bounded_too() {
        let mut index = Index::new(bounds(1 << 30, 3));
        for number in 0..10 {
            add(&mut index, number, &format!("/{number}"), "", 1);
            assert!(index.files() <= 3);
        }
        let mut index = Index::new(Bounds { memory: 4000, ..bounds(1 << 30, 1 << 20) });
        for number in 0..100 {
            add(&mut index, number, &format!("/{number}"), "", 1);
        }
        assert!(index.files() < 12 && index.memory <= 4000);
    }

    #[test]
    fn a_newer_response_replaces_its_own_kind_and_variants_are_bounded() {
        let mut index = Index::new(bounds(1 << 30, 1 << 20));
        add(&mut index, 1, "/", "a", 1);
        add(&mut index, 2, "/", "b", 1);
        assert_eq!(add(&mut index, 3, "/", "a", 1), [1]);
        assert_eq!((find(&mut index, "/", "a"), find(&mut index, "/", "b")), (Some(3), Some(2)));
        for number in 10..100 {
            add(&mut index, number, "/", &number.to_string(), 1);
        }
        assert_eq!(index.files(), MOST_VARIANTS as u64);
    }

    #[test]
    fn what_is_being_written_has_room_and_leaves_half() {
        let mut index = Index::new(bounds(8 * BLOCK, 100));
        assert!(index.begin(9 * BLOCK).is_none());
        assert!(index.begin(4 * BLOCK).is_some());
        assert!(index.begin(1).is_none());
        index.end(4 * BLOCK);
        assert!(index.begin(1).is_some());
    }

    proptest! {
        #[test]
        fn sums_are_those_of_what_is_there(steps in prop::collection::vec((0_u8..4, 0_u64..12, 0_u64..20_000), 0..200)) {
            let mut index = Index::new(bounds(20 * BLOCK, 9));
            for (number, (what, which, length)) in steps.into_iter().enumerate() {
                let path = format!("/{which}");
                match what {
                    0 | 1 => drop(add(&mut index, number as u64, &path, &length.to_string()[..1], length)),
                    2 => drop(index.remove_url(&key(&path))),
                    _ => drop(find(&mut index, &path, &length.to_string()[..1])),
                }
                prop_assert!(index.bytes() <= 20 * BLOCK && index.files() <= 9);
                let entries = || index.entries.values();
                prop_assert_eq!(index.bytes, entries().map(|entry| size(entry.length)).sum::<u64>());
                prop_assert_eq!(index.memory, entries().map(Entry::weight).sum::<u64>());
                prop_assert_eq!(index.urls.values().map(Vec::len).sum::<usize>(), index.entries.len());
            }
        }
    }
}
