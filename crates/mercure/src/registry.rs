//! Who has subscribed to what.

use crate::budget;
use crate::index::Index;
use crate::mailbox::Mailbox;
use crate::selector::{Selector, any_fits};
use crate::template::Topic;
use crate::update::Update;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The number of a connection, in the order in which they came.
pub(crate) type Number = u64;

/// What a subscriber wants and may have.
#[derive(Debug, Default)]
pub(crate) struct Interest {
    /// Selectors of what it wants; no two are the same.
    pub topics: Vec<Arc<Selector>>,
    /// Selectors of private updates that it may have.
    pub grants: Vec<Arc<Selector>>,
}

/// A connection that gets updates.
pub(crate) struct Subscriber {
    /// A URN.
    pub id: String,
    pub interest: Arc<Interest>,
    pub payload: Option<Value>,
    pub mailbox: Arc<Mailbox>,
}

/// All connections of a hub, by what they want and may have.
pub(crate) struct Registry {
    subscribers: BTreeMap<Number, Subscriber>,
    /// What those want that may have no private update. Those are not looked at for one.
    anonymous: Index,
    /// What the others want.
    granted: Index,
    /// What the others may have.
    grants: Index,
}

impl Interest {
    pub fn new(topics: Vec<Selector>, grants: Vec<Selector>) -> Self {
        let shared = |selectors: Vec<Selector>| selectors.into_iter().map(Arc::new).collect();
        Self { topics: shared(topics), grants: shared(grants) }
    }

    /// Of all templates: what a look at an update costs is in proportion to it.
    pub fn variables(&self) -> usize {
        self.topics.iter().chain(&self.grants).map(|selector| selector.variables()).sum()
    }

    /// Whether a subscriber gets the update. The topic that it wants and the one that allows it need not be the same
    /// (draft-dunglas-mercure-07, section 6.2).
    pub fn wants(&self, update: &Update) -> bool {
        self.may_have(update) && any_fits(&self.topics, update.topics())
    }

    fn may_have(&self, update: &Update) -> bool {
        !update.is_private() || any_fits(&self.grants, update.topics())
    }
}

impl Default for Registry {
    fn default() -> Self {
        Self {
            subscribers: BTreeMap::new(),
            anonymous: Index::new(budget::ANONYMOUS),
            granted: Index::new(budget::GRANTED),
            grants: Index::new(budget::SIGNED),
        }
    }
}

impl Registry {
    /// Whether what such a subscriber wants is within the bounds of the hub.
    pub fn has_room_for(&self, interest: &Interest) -> bool {
        let index = if interest.grants.is_empty() { &self.anonymous } else { &self.granted };
        index.has_room_for(&interest.topics)
    }

    /// Answers the subscriber's interest, of selectors that it has in common with others.
    pub fn add(&mut self, number: Number, subscriber: Subscriber) -> Arc<Interest> {
        let Interest { topics, grants } = &*subscriber.interest;
        let wanted = if grants.is_empty() { &mut self.anonymous } else { &mut self.granted };
        let interest = Arc::new(Interest {
            topics: topics.iter().map(|selector| wanted.add(selector, number)).collect(),
            grants: grants.iter().map(|selector| self.grants.add(selector, number)).collect(),
        });
        self.subscribers.insert(number, Subscriber { interest: Arc::clone(&interest), ..subscriber });
        interest
    }

    pub fn remove(&mut self, number: Number) -> Option<Subscriber> {
        let subscriber = self.subscribers.remove(&number)?;
        let Interest { topics, grants } = &*subscriber.interest;
        let wanted = if grants.is_empty() { &mut self.anonymous } else { &mut self.granted };
        topics.iter().for_each(|selector| wanted.remove(selector, number));
        grants.iter().for_each(|selector| self.grants.remove(selector, number));
        Some(subscriber)
    }

    /// Those that want the update and may have it.
    pub fn recipients(&self, update: &Update) -> Vec<(Number, &Arc<Mailbox>)> {
        let topics: Vec<_> = update.topics().iter().map(|topic| Topic::new(topic)).collect();
        if update.is_private() && !topics.iter().any(|topic| self.grants.fitting(topic).next().is_some()) {
            return Vec::new();
        }
        let anonymous = (!update.is_private()).then_some(&self.anonymous);
        let mut numbers: Vec<Number> = Vec::new();
        for index in anonymous.into_iter().chain([&self.granted]) {
            topics.iter().for_each(|topic| numbers.extend(index.fitting(topic).flatten()));
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
        Arc::new(Interest::new(selectors(topics), selectors(grants)))
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
        registry.add(3, subscriber(&interest(&["a", "/x/{id}"], &["/x/{id}", "b"])));
        registry.remove(3);
        let indexes = [&registry.anonymous, &registry.granted, &registry.grants];
        assert!(indexes.iter().all(|index| index.is_empty()) && registry.subscribers.is_empty());
    }

    #[test]
    fn who_has_no_token_leaves_room_for_those_that_have_one() {
        let mut registry = Registry::default();
        let names = ["a"; 16].join(",");
        let templates = |number: Number| -> Vec<_> {
            (0..25).map(|template| Selector::new(&format!("{{{names}}}{number}_{template}"))).collect()
        };
        let refused = (0..).find(|number| {
            let interest = Arc::new(Interest::new(templates(*number), Vec::new()));
            let has_room = registry.has_room_for(&interest);
            if has_room {
                registry.add(*number, subscriber(&interest));
            }
            !has_room
        });
        assert_eq!(refused, Some(40));
        assert!(registry.has_room_for(&interest(&["topic", "*"], &[])), "topics cost no time");
        assert!(registry.has_room_for(&Interest::new(templates(0), Vec::new())), "they are there");
        assert!(registry.has_room_for(&Interest::new(templates(100), vec![Selector::new("mine")])));
        registry.remove(7);
        assert!(registry.has_room_for(&Interest::new(templates(100), Vec::new())));
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
                let interest = Arc::new(Interest::new(texts(topics), texts(grants)));
                if interest.wants(&update) {
                    wanting.push(number as Number);
                }
                registry.add(number as Number, subscriber(&interest));
            }
            prop_assert_eq!(numbers(&registry, &update), wanting);
        }
    }
}
