//! Entries of the stream.

use crate::update::Update;
use redis::streams::StreamId;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The field of an entry that has its update, as JSON.
pub(super) const FIELD: &str = "update";

/// The id of an entry: milliseconds, and a number among those of the same. Each entry has a greater one than those before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    milliseconds: u64,
    number: u64,
}

/// What was read of the stream.
pub(super) struct Entry {
    pub place: Place,
    /// `None`: it is not one of ours.
    pub update: Option<Arc<Update>>,
}

impl Entry {
    /// `None`: Redis has answered something else than an entry.
    pub fn of(id: &StreamId) -> Option<Self> {
        let place = id.id.parse().ok()?;
        let update: Option<Vec<u8>> = id.get(FIELD);
        let update = update.and_then(|json| serde_json::from_slice(&json).ok()).map(Arc::new);
        Some(Self { place, update })
    }
}

impl FromStr for Place {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (milliseconds, number) = text.split_once('-').ok_or(())?;
        let number_of = |text: &str| text.parse().map_err(|_| ());
        Ok(Self { milliseconds: number_of(milliseconds)?, number: number_of(number)? })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.milliseconds, self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_in_the_order_of_entries() {
        let place = |text: &str| text.parse::<Place>().unwrap();
        assert!(place("9-0") < place("10-0") && place("10-2") < place("10-10"));
        assert_eq!(place("1700000000000-3").to_string(), "1700000000000-3");
        for bad in ["", "1", "-", "1-", "a-1", "1-1-1", "99999999999999999999-0"] {
            assert_eq!(bad.parse::<Place>(), Err(()), "{bad}");
        }
    }

    #[test]
    fn what_others_have_put_into_the_stream_is_no_update() {
        let id = |value: &str| StreamId {
            id: "1-1".into(),
            map: [(FIELD.to_owned(), redis::Value::BulkString(value.into()))].into(),
            ..StreamId::default()
        };
        let ours = r#"{"topics":["a"],"id":"1","private":false,"event":"id: 1\ndata: \n\n"}"#;
        assert_eq!(Entry::of(&id(ours)).unwrap().update.unwrap().id(), "1");
        for other in ["", "{}", "1", r#"{"topics":"a"}"#] {
            assert!(Entry::of(&id(other)).unwrap().update.is_none(), "{other}");
        }
        assert!(Entry::of(&StreamId { id: "x".into(), ..StreamId::default() }).is_none());
    }
}
