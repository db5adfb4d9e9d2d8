//! Who has subscribed to what.

use crate::mailbox::Mailbox;
use crate::selector::{Selector, any_fits};
use crate::update::Update;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// The number of a connection, in the order in which they came.
pub(crate) type Number = u64;

/// What a subscriber wants and may have.
#[derive(Debug, Default)]
pub(crate) struct Interest {
    /// Selectors of what it wants; no two are the same.
    pub topics: Vec<Selector>,
    /// Selectors of private updates that it may have.
    pub grants: Vec<Selector>,
}

/// A connection that gets updates.
pub(crate) struct Subscriber {
    /// A URN.
    pub id: String,
    pub interest: Arc<Interest>,
    pub payload: Option<Value>,
    pub mailbox: Arc<Mailbox>,
}

/// All connections of a hub, by what they want: an update costs what those cost that get it, and a look at each template.
#[derive(Default)]
pub(crate) struct Registry {
    subscribers: BTreeMap<Number, Subscriber>,
    /// By topic.
    exact: HashMap<Box<str>, BTreeSet<Number>>,
    /// By template, or `*`.
    patterns: HashMap<Box<str>, Pattern>,
}

struct Pattern {
    selector: Selector,
    numbers: BTreeSet<Number>,
}

impl Interest {
    /// Whether a subscriber gets the update. The topic that it wants and the one that allows it need not be the same
    /// (draft-dunglas-mercure-07, section 6.2).
    pub fn wants(&self, update: &Update) -> bool {
        any_fits(&self.topics, update.topics()) && self.may_have(update)
    }

    fn may_have(&self, update: &Update) -> bool {
        !update.is_private() || any_fits(&self.grants, update.topics())
    }
}

impl Registry {
    pub fn add(&mut self, number: Number, subscriber: Subscriber) {
        for selector in &subscriber.interest.topics {
            let text = selector.text();
            let numbers = if selector.is_pattern() {
                let pattern = || Pattern { selector: Selector::new(text), numbers: BTreeSet::new() };
                &mut self.patterns.entry(text.into()).or_insert_with(pattern).numbers
            } else {
                self.exact.entry(text.into()).or_default()
            };
            numbers.insert(number);
        }
        self.subscribers.insert(number, subscriber);
    }

    pub fn remove(&mut self, number: Number) -> Option<Subscriber> {
        let subscriber = self.subscribers.remove(&number)?;
        for text in subscriber.interest.topics.iter().map(Selector::text) {
            if let Some(numbers) = self.exact.get_mut(text) {
                numbers.remove(&number);
                if numbers.is_empty() {
                    self.exact.remove(text);
                }
            }
            if let Some(pattern) = self.patterns.get_mut(text) {
                pattern.numbers.remove(&number);
                if pattern.numbers.is_empty() {
                    self.patterns.remove(text);
                }
            }
        }
        Some(subscriber)
    }

    /// Those that want the update and may have it.
    pub fn recipients(&self, update: &Update) -> Vec<(Number, &Arc<Mailbox>)> {
        let mut numbers: Vec<Number> = Vec::new();
        for topic in update.topics() {
            numbers.extend(self.exact.get(&**topic).into_iter().flatten());
            for pattern in self.patterns.values().filter(|pattern| pattern.selector.fits(topic)) {
                numbers.extend(&pattern.numbers);
            }
        }
        numbers.sort_unstable();
        numbers.dedup();
        let subscribers =
            numbers.into_iter().filter_map(|number| Some((number, self.subscribers.get(&number)?)));
        let may_have = |(_, subscriber): &(Number, &Subscriber)| subscriber.interest.may_have(update);
        subscribers.filter(may_have).map(|(number, subscriber)| (number, &subscriber.mailbox)).collect()
    }

    /// In the order in which they came.
    pub fn subscribers(&self) -> impl Iterator<Item = &Subscriber> {
        self.subscribers.values()
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::update::Publication;
    use proptest::prelude::*;

    fn interest(topics: &[&str], grants: &[&str]) -> Arc<Interest> {
        let selectors = |texts: &[&str]| texts.iter().map(|text| Selector::new(text)).collect();
        Arc::new(Interest { topics: selectors(topics), grants: selectors(grants) })
    }

    fn subscriber(interest: &Arc<Interest>) -> Subscriber {
        Subscriber {
            id: "urn:x".into(),
            interest: Arc::clone(interest),
            payload: None,
            mailbox: Arc::default(),
        }
    }

    fn update(topics: &[&str], private: bool) -> Update {
        let topics = topics.iter().map(|topic| (*topic).to_owned()).collect();
        Update::new(Publication { topics, private, ..Publication::default() }).unwrap()
    }

    fn numbers(registry: &Registry, update: &Update) -> Vec<Number> {
        registry.recipients(update).into_iter().map(|(number, _)| number).collect()
    }

    #[test]
    fn an_update_goes_once_to_everyone_who_wants_it() {
        let mut registry = Registry::default();
        for (number, topics) in
            [&["a"][..], &["b", "a"], &["*"], &["/x/{id}"], &["/x/{id}", "*", "a"]].iter().enumerate()
        {
            registry.add(number as Number, subscriber(&interest(topics, &[])));
        }
        assert_eq!(numbers(&registry, &update(&["a"], false)), [0, 1, 2, 4]);
        assert_eq!(numbers(&registry, &update(&["/x/1", "b"], false)), [1, 2, 3, 4]);
        assert_eq!(numbers(&registry, &update(&["other"], false)), [2, 4]);
        assert!(numbers(&registry, &update(&["a"], true)).is_empty());
    }

    #[test]
    fn private_updates_go_to_those_that_may_have_one_of_their_topics() {
        let mut registry = Registry::default();
        let wanted = &["/books/{id}"][..];
        registry.add(1, subscriber(&interest(wanted, &["/users/1{?topic}"])));
        registry.add(2, subscriber(&interest(wanted, &["/users/2{?topic}"])));
        registry.add(3, subscriber(&interest(wanted, &["*"])));
        registry.add(4, subscriber(&interest(wanted, &[])));
        assert_eq!(numbers(&registry, &update(&["/books/1", "/users/1?topic=%2Fbooks%2F1"], true)), [1, 3]);
    }

    #[test]
    fn nothing_is_left_of_those_that_have_gone() {
        let mut registry = Registry::default();
        registry.add(1, subscriber(&interest(&["a", "*", "/x/{id}"], &[])));
        registry.add(2, subscriber(&interest(&["a"], &[])));
        assert!(registry.remove(1).is_some() && registry.remove(1).is_none());
        assert_eq!(numbers(&registry, &update(&["a"], false)), [2]);
        registry.remove(2);
        assert!(registry.exact.is_empty() && registry.patterns.is_empty() && registry.subscribers.is_empty());
    }

    proptest! {
        /// The index says what each subscriber would say of itself.
        #[test]
        fn the_index_is_right(
            interests in prop::collection::vec(
                (prop::collection::vec("(a|b|/a/\\{x\\}|/\\{\\+x\\}|\\*)", 0..3), prop::collection::vec("(a|/a/\\{x\\}|\\*)", 0..2)),
                0..6,
            ),
            topics in prop::collection::vec("(a|b|/a/1|/b/2/3)", 1..3),
            private: bool,
        ) {
            let mut registry = Registry::default();
            let mut wanting = Vec::new();
            let topics: Vec<&str> = topics.iter().map(String::as_str).collect();
            let update = update(&topics, private);
            for (number, (topics, grants)) in interests.iter().enumerate() {
                let texts = |list: &[String]| list.iter().map(|text| Selector::new(text)).collect();
                let interest = Arc::new(Interest { topics: texts(topics), grants: texts(grants) });
                if interest.wants(&update) {
                    wanting.push(number as Number);
                }
                registry.add(number as Number, subscriber(&interest));
            }
            prop_assert_eq!(numbers(&registry, &update), wanting);
        }
    }
}
