//! Updates: what publishers send, and how subscribers get it.

use crate::uuid;
use bytes::Bytes;
use serde::{Deserialize, Serialize, Serializer};

/// Topics of one update.
const MOST_TOPICS: usize = 100;
/// Bytes of a topic, an id or a type.
const LONGEST_NAME: usize = 8 * 1024;

/// What a publisher asks for, not looked at yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Publication {
    /// The canonical topic, and alternative ones behind it.
    pub topics: Vec<String>,
    pub data: String,
    /// Only for subscribers that may have it.
    pub private: bool,
    /// `None`: the hub makes one.
    pub id: Option<String>,
    /// The type of the event.
    pub kind: Option<String>,
    /// Milliseconds after which subscribers whose connection breaks come again.
    pub retry: Option<u64>,
}

/// What is wrong with a publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UpdateError {
    #[error("Missing \"topic\" parameter")]
    NoTopic,
    #[error("Too many \"topic\" parameters: 100 are allowed")]
    TooManyTopics,
    #[error(
        "Invalid \"topic\" parameter: it must not be empty, longer than 8192 bytes or contain control characters"
    )]
    Topic,
    #[error(
        "Invalid \"id\" parameter: it must not start with \"#\", be longer than 8192 bytes or contain control characters"
    )]
    Id,
    #[error(
        "Invalid \"type\" parameter: it must not be longer than 8192 bytes or contain control characters"
    )]
    Kind,
}

/// An update with an id, whose parts can do no harm in an event stream.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "Stored")]
pub(crate) struct Update {
    topics: Vec<String>,
    id: String,
    is_private: bool,
    /// As it goes to subscribers.
    event: Bytes,
}

/// As it is kept in a file.
#[derive(Deserialize)]
struct Stored {
    topics: Vec<String>,
    id: String,
    private: bool,
    event: String,
}

/// The same, to be written.
#[derive(Serialize)]
struct StoredRef<'a> {
    topics: &'a [String],
    id: &'a str,
    private: bool,
    event: &'a str,
}

impl Update {
    pub fn new(publication: Publication) -> Result<Self, UpdateError> {
        let Publication { topics, data, private, id, kind, retry } = publication;
        if topics.is_empty() {
            return Err(UpdateError::NoTopic);
        }
        if topics.len() > MOST_TOPICS {
            return Err(UpdateError::TooManyTopics);
        }
        if !topics.iter().all(|topic| is_name(topic) && !topic.is_empty()) {
            return Err(UpdateError::Topic);
        }
        let id = id.filter(|id| !id.is_empty()).unwrap_or_else(uuid::urn);
        // What begins with `#` is for ids that hubs make (draft-dunglas-mercure-07, section 5).
        if !is_name(&id) || id.starts_with('#') {
            return Err(UpdateError::Id);
        }
        let kind = kind.unwrap_or_default();
        if !is_name(&kind) {
            return Err(UpdateError::Kind);
        }
        let event = event(&id, &kind, retry, &data);
        Ok(Self { topics, id, is_private: private, event })
    }

    pub fn topics(&self) -> &[String] {
        &self.topics
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn is_private(&self) -> bool {
        self.is_private
    }

    pub fn event(&self) -> Bytes {
        self.event.clone()
    }

    /// Bytes that it takes in memory, about.
    pub fn size(&self) -> usize {
        self.event.len()
            + self.topics.iter().map(|topic| topic.len() + size_of::<String>()).sum::<usize>()
            + 256
    }
}

impl Serialize for Update {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let event = std::str::from_utf8(&self.event).map_err(serde::ser::Error::custom)?;
        StoredRef { topics: &self.topics, id: &self.id, private: self.is_private, event }
            .serialize(serializer)
    }
}

impl From<Stored> for Update {
    fn from(stored: Stored) -> Self {
        let Stored { topics, id, private, event } = stored;
        Self { topics, id, is_private: private, event: event.into() }
    }
}

/// A line end would begin another field of the event, and a NUL makes clients ignore the id. The other control characters
/// are in no IRI.
fn is_name(text: &str) -> bool {
    text.len() <= LONGEST_NAME && !text.chars().any(char::is_control)
}

/// As the HTML standard has it, "Server-sent events", section 9.2.6. `kind` may be empty: none.
fn event(id: &str, kind: &str, retry: Option<u64>, data: &str) -> Bytes {
    let mut event = String::with_capacity(id.len() + kind.len() + data.len() + 64);
    if !kind.is_empty() {
        field(&mut event, "event", kind);
    }
    if let Some(retry) = retry {
        field(&mut event, "retry", &retry.to_string());
    }
    field(&mut event, "id", id);
    lines(data).for_each(|line| field(&mut event, "data", line));
    event.push('\n');
    event.into()
}

fn field(event: &mut String, name: &str, value: &str) {
    for part in [name, ": ", value, "\n"] {
        event.push_str(part);
    }
}

/// What is between line ends, of all three kinds that event streams know; at least one.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let Some(end) = text.find(['\r', '\n']) else {
            rest = None;
            return Some(text);
        };
        let length = if text[end..].starts_with("\r\n") { 2 } else { 1 };
        rest = Some(&text[end + length..]);
        Some(&text[..end])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn publication(topic: &str) -> Publication {
        Publication { topics: vec![topic.into()], id: Some("1".into()), ..Publication::default() }
    }

    fn text(publication: Publication) -> String {
        String::from_utf8(Update::new(publication).unwrap().event().to_vec()).unwrap()
    }

    #[test]
    fn an_event_has_the_fields_that_are_given() {
        assert_eq!(text(publication("t")), "id: 1\ndata: \n\n");
        let all = Publication {
            kind: Some("k".into()),
            retry: Some(5),
            data: "a\nb\r\nc\rd\n".into(),
            ..publication("t")
        };
        let lines = "data: a\ndata: b\ndata: c\ndata: d\ndata: \n";
        assert_eq!(text(all), format!("event: k\nretry: 5\nid: 1\n{lines}\n"));
    }

    #[test]
    fn an_id_is_made_if_there_is_none() {
        for id in [None, Some(String::new())] {
            let update = Update::new(Publication { id, ..publication("t") }).unwrap();
            assert!(update.id().starts_with("urn:uuid:"), "{}", update.id());
        }
    }

    #[test]
    fn what_would_break_an_event_stream_is_refused() {
        for bad in ["a\nb", "a\rb", "\n", "a\0", "a\u{85}b", "\u{7f}"] {
            assert_eq!(Update::new(publication(bad)), Err(UpdateError::Topic), "{bad:?}");
            let id = Publication { id: Some(bad.into()), ..publication("t") };
            assert_eq!(Update::new(id), Err(UpdateError::Id), "{bad:?}");
            let kind = Publication { kind: Some(bad.into()), ..publication("t") };
            assert_eq!(Update::new(kind), Err(UpdateError::Kind), "{bad:?}");
        }
        let id = Publication { id: Some("#1".into()), ..publication("t") };
        assert_eq!(Update::new(id), Err(UpdateError::Id));
        assert_eq!(Update::new(publication("")), Err(UpdateError::Topic));
        assert_eq!(Update::new(Publication::default()), Err(UpdateError::NoTopic));
        let many = Publication { topics: vec!["t".into(); MOST_TOPICS + 1], ..Publication::default() };
        assert_eq!(Update::new(many), Err(UpdateError::TooManyTopics));
    }

    /// What a browser makes of an event stream (HTML standard, section 9.2.6): ids and data of its events.
    fn browser(stream: &str) -> Vec<(String, String)> {
        let (mut id, mut data, mut events) = (String::new(), String::new(), Vec::new());
        for line in stream.replace("\r\n", "\n").split(['\n', '\r']) {
            let (name, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match name {
                "" if line.is_empty() && !data.is_empty() => {
                    data.pop();
                    events.push((id.clone(), std::mem::take(&mut data)));
                }
                "data" => data.extend([value, "\n"]),
                "id" => id = value.into(),
                _ => {}
            }
        }
        events
    }

    proptest! {
        #[test]
        fn a_browser_gets_one_event_with_the_data(data in "[a-z:\\r\\n é\\x00]{0,60}", id in "[!-~]{1,20}") {
            prop_assume!(!id.starts_with('#'));
            let update = Publication { data: data.clone(), id: Some(id.clone()), ..publication("t") };
            let expected = data.replace("\r\n", "\n").replace('\r', "\n");
            prop_assert_eq!(browser(&text(update)), vec![(id, expected)]);
        }
    }
}
