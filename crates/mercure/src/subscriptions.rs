//! Active subscriptions: the events that tell of them, and the documents that list them (draft-dunglas-mercure-07,
//! section 8).

use crate::registry::Subscriber;
use crate::selector::Selector;
use crate::update::{Publication, Update};
use serde::Serialize;
use serde_json::Value;
use std::fmt::Write;

/// Where they are listed.
pub(crate) const PATH: &str = "/.well-known/mercure/subscriptions";
const CONTEXT: &str = "https://mercure.rocks/";

/// Which subscriptions are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Listing {
    All,
    /// Of this selector.
    Topic(String),
    One {
        topic: String,
        subscriber: String,
    },
}

/// Whether a subscription has begun or ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Begun,
    Ended,
}

#[derive(Serialize)]
struct Document<'a> {
    #[serde(rename = "@context", skip_serializing_if = "Option::is_none")]
    context: Option<&'static str>,
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    topic: &'a str,
    subscriber: &'a str,
    active: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<&'a Value>,
    #[serde(rename = "lastEventID", skip_serializing_if = "Option::is_none")]
    last_event_id: Option<&'a str>,
}

#[derive(Serialize)]
struct Collection<'a> {
    #[serde(rename = "@context")]
    context: &'static str,
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(rename = "lastEventID")]
    last_event_id: &'a str,
    subscriptions: Vec<Document<'a>>,
}

impl Listing {
    /// What a path asks for, as it stands in a request; `None`: there is no such document.
    pub fn of_path(path: &str) -> Option<Self> {
        let rest = path.strip_prefix(PATH)?;
        let Some(rest) = rest.strip_prefix('/') else { return rest.is_empty().then_some(Self::All) };
        match rest.split_once('/') {
            None if rest.is_empty() => Some(Self::All),
            None => Some(Self::Topic(decoded(rest)?)),
            Some((topic, subscriber)) if !subscriber.contains('/') => {
                Some(Self::One { topic: decoded(topic)?, subscriber: decoded(subscriber)? })
            }
            Some(_) => None,
        }
    }

    /// The path in the one form that templates expand to.
    pub fn path(&self) -> String {
        match self {
            Self::All => PATH.into(),
            Self::Topic(topic) => format!("{PATH}/{}", encoded(topic)),
            Self::One { topic, subscriber } => id(topic, subscriber),
        }
    }

    /// The document, as JSON-LD. `None`: there is no such subscription.
    pub fn document<'a>(
        &self,
        subscribers: impl Iterator<Item = &'a Subscriber>,
        last_event_id: &'a str,
    ) -> Option<Vec<u8>> {
        let subscriptions = subscribers.flat_map(|subscriber| {
            let selectors = subscriber.interest.topics.iter();
            selectors.map(move |selector| (subscriber, selector))
        });
        let mut wanted = subscriptions.filter(|(subscriber, selector)| match self {
            Self::All => true,
            Self::Topic(topic) => selector.text() == topic,
            Self::One { topic, subscriber: id } => selector.text() == topic && subscriber.id == *id,
        });
        let json = if let Self::One { .. } = self {
            let (subscriber, selector) = wanted.next()?;
            let document = document(subscriber, selector, Change::Begun);
            let last_event_id = Some(last_event_id);
            serde_json::to_vec(&Document { context: Some(CONTEXT), last_event_id, ..document })
        } else {
            serde_json::to_vec(&Collection {
                context: CONTEXT,
                id: self.path(),
                kind: "Subscriptions",
                last_event_id,
                subscriptions: wanted
                    .map(|(subscriber, selector)| document(subscriber, selector, Change::Begun))
                    .collect(),
            })
        };
        Some(json.expect("invariant: the keys of our documents are strings"))
    }
}

/// The private updates that tell of all subscriptions of a subscriber.
pub(crate) fn events(subscriber: &Subscriber, change: Change) -> impl Iterator<Item = Update> {
    subscriber.interest.topics.iter().filter_map(move |selector| {
        let document = Document { context: Some(CONTEXT), ..document(subscriber, selector, change) };
        let data =
            serde_json::to_string(&document).expect("invariant: the keys of our documents are strings");
        let publication =
            Publication { topics: vec![document.id], data, private: true, ..Publication::default() };
        // A selector that is too long when it is encoded has no event.
        Update::new(publication).ok()
    })
}

fn document<'a>(subscriber: &'a Subscriber, selector: &'a Selector, change: Change) -> Document<'a> {
    Document {
        context: None,
        id: id(selector.text(), &subscriber.id),
        kind: "Subscription",
        topic: selector.text(),
        subscriber: &subscriber.id,
        active: change == Change::Begun,
        payload: subscriber.payload.as_ref(),
        last_event_id: None,
    }
}

/// The expansion of `/.well-known/mercure/subscriptions/{topic}/{subscriber}`.
fn id(topic: &str, subscriber: &str) -> String {
    format!("{PATH}/{}/{}", encoded(topic), encoded(subscriber))
}

/// RFC 6570 §3.2.1: all but the unreserved characters.
fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len() + 32);
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(byte.into());
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// `None`: it is not UTF-8. A `+` is one, other than in a form.
fn decoded(text: &str) -> Option<String> {
    let digit = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let [first, after @ ..] = rest {
        (rest, _) = match (first, after) {
            (b'%', [high, low, behind @ ..]) => match (digit(*high), digit(*low)) {
                (Some(high), Some(low)) => (behind, bytes.push(high << 4 | low)),
                _ => (after, bytes.push(b'%')),
            },
            _ => (after, bytes.push(*first)),
        };
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Interest;
    use proptest::prelude::*;
    use serde_json::json;
    use std::sync::Arc;

    fn subscriber(id: &str, topics: &[&str]) -> Subscriber {
        let topics = topics.iter().map(|topic| Selector::new(topic)).collect();
        Subscriber {
            id: id.into(),
            interest: Arc::new(Interest::new(topics, Vec::new())),
            payload: Some(json!({"user": 1})),
            mailbox: Arc::default(),
        }
    }

    fn listed(path: &str) -> Option<Value> {
        let all = [subscriber("urn:1", &["https://a/{x}", "b"]), subscriber("urn:2", &["b"])];
        let listing = Listing::of_path(&format!("{PATH}{path}"))?;
        Some(serde_json::from_slice(&listing.document(all.iter(), "last")?).unwrap())
    }

    #[test]
    fn collections_list_all_subscriptions_or_those_of_a_topic() {
        for path in ["", "/"] {
            let all = listed(path).unwrap();
            assert_eq!((&all["id"], &all["lastEventID"]), (&json!(PATH), &json!("last")));
            assert_eq!(all["subscriptions"].as_array().unwrap().len(), 3);
        }
        let of_topic = listed("/https%3A%2F%2Fa%2F%7Bx%7D").unwrap();
        let id = format!("{PATH}/https%3A%2F%2Fa%2F%7Bx%7D");
        let one = json!({
            "id": format!("{id}/urn%3A1"), "type": "Subscription", "topic": "https://a/{x}", "subscriber": "urn:1",
            "active": true, "payload": {"user": 1},
        });
        let expected = json!({
            "@context": CONTEXT, "id": id, "type": "Subscriptions", "lastEventID": "last", "subscriptions": [one],
        });
        assert_eq!(of_topic, expected);
    }

    #[test]
    fn one_subscription_is_found_however_its_path_is_written() {
        for path in ["/b/urn%3A2", "/b/urn:2", "/%62/urn%3a2"] {
            let one = listed(path).unwrap();
            assert_eq!(one["id"], json!(format!("{PATH}/b/urn%3A2")));
            assert_eq!((&one["lastEventID"], &one["active"]), (&json!("last"), &json!(true)));
        }
        for path in ["/b/urn:3", "/c/urn:1", "/b/urn:2/x", "x", "/%FF"] {
            assert_eq!(listed(path), None, "{path}");
        }
    }

    #[test]
    fn events_are_private_and_have_the_topic_of_their_document() {
        let subscriber = subscriber("urn:1", &["a/b", "c"]);
        let events: Vec<_> = events(&subscriber, Change::Ended).collect();
        assert_eq!(events[0].topics(), [format!("{PATH}/a%2Fb/urn%3A1")]);
        assert!(events.len() == 2 && events.iter().all(Update::is_private));
        let text = String::from_utf8(events[0].event().to_vec()).unwrap();
        assert!(text.contains("\"active\":false") && text.contains("\"@context\""), "{text}");
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(text in ".{0,30}") {
            let decoded = decoded(&encoded(&text));
            prop_assert_eq!(decoded.as_deref(), Some(&*text));
        }

        #[test]
        fn any_path_is_read(path in "[/a%0-9F{}]{0,20}") {
            if let Some(listing) = Listing::of_path(&format!("{PATH}{path}")) {
                prop_assert_eq!(Listing::of_path(&listing.path()), Some(listing));
            }
        }
    }
}
