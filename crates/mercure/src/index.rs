//! Selectors of many subscribers, each of them once, and found by what topics begin with.

use crate::budget::Cost;
use crate::registry::Number;
use crate::selector::Selector;
use crate::template::Topic;
use std::borrow::Borrow;
use std::collections::{BTreeSet, HashMap};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Bytes of the beginnings that patterns are found by. A topic is looked up once for each length.
const LONGEST_BEGINNING: usize = 64;

/// An update costs what those cost that it is for, and a look at each pattern that begins as its topic does.
pub(crate) struct Index {
    /// Those that fit one topic each.
    topics: Entries,
    /// Templates, and `*`, by what every topic begins with that they fit.
    patterns: HashMap<Box<[u8]>, Entries>,
    /// How many beginnings of that length there are.
    lengths: [usize; LONGEST_BEGINNING + 1],
    cost: Cost,
    limit: Cost,
}

/// Whose a selector is.
type Entries = HashMap<ByText, BTreeSet<Number>>;

/// A selector is found by its text.
struct ByText(Arc<Selector>);

impl Index {
    pub fn new(limit: Cost) -> Self {
        Self {
            topics: HashMap::new(),
            patterns: HashMap::new(),
            lengths: [0; LONGEST_BEGINNING + 1],
            cost: Cost::default(),
            limit,
        }
    }

    /// Whether these, no two of which are the same, can be added. One that is here already costs nothing.
    pub fn has_room_for(&self, selectors: &[Arc<Selector>]) -> bool {
        let new = selectors.iter().filter(|selector| {
            !self.entries(selector).is_some_and(|entries| entries.contains_key(selector.text()))
        });
        new.fold(self.cost, |cost, selector| cost.plus(Cost::of(selector))).is_within(self.limit)
    }

    /// Answers the one to keep, which all subscribers have that asked for the same.
    pub fn add(&mut self, selector: &Arc<Selector>, number: Number) -> Arc<Selector> {
        let entries = match beginning(selector) {
            Some(beginning) => self.patterns.entry(beginning.into()).or_insert_with(|| {
                self.lengths[beginning.len()] += 1;
                Entries::new()
            }),
            None => &mut self.topics,
        };
        let known = entries.get_key_value(selector.text()).map(|(ByText(known), _)| Arc::clone(known));
        let selector = known.unwrap_or_else(|| {
            self.cost = self.cost.plus(Cost::of(selector));
            Arc::clone(selector)
        });
        entries.entry(ByText(Arc::clone(&selector))).or_default().insert(number);
        selector
    }

    pub fn remove(&mut self, selector: &Selector, number: Number) {
        let beginning = beginning(selector);
        let entries = match beginning {
            Some(beginning) => self.patterns.get_mut(beginning),
            None => Some(&mut self.topics),
        };
        let Some(entries) = entries else { return };
        let Some(numbers) = entries.get_mut(selector.text()) else { return };
        numbers.remove(&number);
        if !numbers.is_empty() {
            return;
        }
        entries.remove(selector.text());
        self.cost = self.cost.minus(Cost::of(selector));
        if let Some(beginning) = beginning.filter(|_| entries.is_empty()) {
            self.patterns.remove(beginning);
            self.lengths[beginning.len()] -= 1;
        }
    }

    /// Whose selectors fit the topic, for each of the selectors.
    pub fn fitting<'a>(&'a self, topic: &'a Topic<'a>) -> impl Iterator<Item = &'a BTreeSet<Number>> {
        let text = topic.text();
        let lengths = (0..=text.len().min(LONGEST_BEGINNING)).filter(|length| self.lengths[*length] > 0);
        let patterns = lengths.filter_map(|length| self.patterns.get(&text.as_bytes()[..length]));
        let fitting = patterns.flatten().filter(|(ByText(selector), _)| selector.fits(topic));
        self.topics.get(text).into_iter().chain(fitting.map(|(_, numbers)| numbers))
    }

    fn entries(&self, selector: &Selector) -> Option<&Entries> {
        match beginning(selector) {
            Some(beginning) => self.patterns.get(beginning),
            None => Some(&self.topics),
        }
    }

    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        let has_no_lengths = self.lengths.iter().all(|number| *number == 0);
        self.topics.is_empty() && self.patterns.is_empty() && has_no_lengths && self.cost == Cost::default()
    }
}

/// Cut between bytes: it need not be text. `None`: the selector fits one topic.
fn beginning(selector: &Selector) -> Option<&[u8]> {
    let prefix = selector.prefix()?.as_bytes();
    Some(&prefix[..prefix.len().min(LONGEST_BEGINNING)])
}

impl Borrow<str> for ByText {
    fn borrow(&self) -> &str {
        self.0.text()
    }
}

impl Hash for ByText {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.text().hash(state);
    }
}

impl PartialEq for ByText {
    fn eq(&self, other: &Self) -> bool {
        self.0.text() == other.0.text()
    }
}

impl Eq for ByText {}

#[cfg(test)]
mod tests {
    use super::*;

    fn selector(text: &str) -> Arc<Selector> {
        Arc::new(Selector::new(text))
    }

    #[test]
    fn the_same_selector_of_many_is_there_once() {
        let mut index = Index::new(Cost { variables: 1, bytes: 1000 });
        let first = index.add(&selector("/a/{id}"), 1);
        for number in 2..100 {
            assert!(index.has_room_for(&[selector("/a/{id}")]));
            assert!(Arc::ptr_eq(&first, &index.add(&selector("/a/{id}"), number)));
        }
        assert!(!index.has_room_for(&[selector("/b/{id}")]) && index.has_room_for(&[selector("/b")]));
        (1..99).for_each(|number| index.remove(&first, number));
        assert!(
            !index.has_room_for(&[selector("/b/{id}")])
                && index.fitting(&Topic::new("/a/1")).eq([&[99].into()])
        );
        index.remove(&first, 99);
        assert!(index.has_room_for(&[selector("/b/{id}")]) && index.is_empty());
    }

    #[test]
    fn patterns_are_found_however_long_what_they_begin_with_is() {
        let mut index = Index::new(crate::budget::SIGNED);
        let long = "é".repeat(100);
        let selectors =
            ["*", "{x}", "/{x}", "/a{x}", "/aé{x}", &format!("{long}{{x}}"), &format!("x{long}{{x}}")]
                .map(selector);
        for (number, selector) in (0..).zip(&selectors) {
            index.add(selector, number);
        }
        let found =
            |topic: &str| index.fitting(&Topic::new(topic)).flatten().copied().collect::<BTreeSet<_>>();
        assert_eq!(found("/aé1"), [0, 2, 3, 4].into());
        assert_eq!(found("").len(), 2);
        assert_eq!(found(&long), [0, 1, 5].into());
        assert_eq!(found(&format!("x{long}1")), [0, 1, 6].into());
        for (number, selector) in (0..).zip(&selectors) {
            index.remove(selector, number);
        }
        assert!(index.is_empty());
    }

    #[test]
    fn what_is_not_there_is_not_removed() {
        let mut index = Index::new(crate::budget::SIGNED);
        index.add(&selector("/{a}"), 1);
        ["/{b}", "/c/{d}", "e"].iter().for_each(|text| index.remove(&selector(text), 1));
        assert_eq!(index.fitting(&Topic::new("/1")).count(), 1);
    }
}
