//! Updates that scripts publish, on their way to a hub of the server's.

use crate::ffi::{self, Str};
use regent_engine_host::Reporter;
use regent_wire::control::{self, Event, MAX_EVENT, Published};
use std::ffi::c_int;
use std::hash::{BuildHasher, Hasher, RandomState};

/// Topics of an update, and bytes of a name: what the hub takes.
const MOST_TOPICS: usize = 100;
const LONGEST_NAME: usize = 8 * 1024;

/// Where the updates of a script go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination {
    /// As the server numbers its hubs.
    Hub(u64),
    /// Nobody gets them, and the script does not know.
    Nobody,
    /// There is no hub.
    Nowhere,
}

/// Why an update is not published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    NoHub,
    Topic,
    Data,
    Id,
    Type,
    TooLarge,
    /// The server does not read, or has gone.
    Busy,
}

impl Refusal {
    pub fn code(self) -> c_int {
        match self {
            Self::NoHub => 1,
            Self::Topic => 2,
            Self::Data => 3,
            Self::Id => 4,
            Self::Type => 5,
            Self::TooLarge => 6,
            Self::Busy => 7,
        }
    }
}

/// Publishes an update, and returns its id. The server does not answer: what it would refuse is refused here.
///
/// # Safety
/// The C side's struct, whose pointers are valid for the time of the call.
pub unsafe fn publish(
    destination: Destination,
    publication: &ffi::Publication,
    reporter: &Reporter,
) -> Result<String, Refusal> {
    let hub = match destination {
        Destination::Hub(hub) => hub,
        Destination::Nobody => 0,
        Destination::Nowhere => return Err(Refusal::NoHub),
    };
    // SAFETY: law 5: as the caller promises.
    let update = unsafe { published(hub, publication) }?;
    let event = Event::Update(Box::new(update));
    if control::encode(&event).len() > MAX_EVENT {
        return Err(Refusal::TooLarge);
    }
    let delivered = destination == Destination::Nobody || reporter.deliver(&event);
    let Event::Update(update) = event else { return Err(Refusal::Busy) };
    if delivered { Ok(update.id) } else { Err(Refusal::Busy) }
}

/// # Safety
/// As [`publish`].
unsafe fn published(hub: u64, publication: &ffi::Publication) -> Result<Published, Refusal> {
    if publication.n_topics == 0 || publication.n_topics > MOST_TOPICS {
        return Err(Refusal::Topic);
    }
    // SAFETY: law 5: (pointer, length) for the time of the call.
    let (topics, data, id, kind) = unsafe {
        let topics = std::slice::from_raw_parts(publication.topics, publication.n_topics);
        let topics = topics.iter().map(|topic| text(*topic));
        let topics = topics.map(|topic| topic.filter(|topic| is_name(topic) && !topic.is_empty()));
        let topics = topics.collect::<Option<Vec<_>>>();
        (topics, text(publication.data), text(publication.id), text(publication.kind))
    };
    let id = id.filter(|id| is_name(id) && !id.starts_with('#')).ok_or(Refusal::Id)?;
    let kind = kind.filter(|kind| is_name(kind)).ok_or(Refusal::Type)?;
    Ok(Published {
        hub,
        topics: topics.ok_or(Refusal::Topic)?,
        data: data.ok_or(Refusal::Data)?,
        private: publication.private_update != 0,
        id: if id.is_empty() { urn() } else { id },
        kind: Some(kind).filter(|kind| !kind.is_empty()),
        retry: u64::try_from(publication.retry).ok(),
    })
}

/// `None`: it is not UTF-8.
///
/// # Safety
/// As [`publish`].
unsafe fn text(text: Str) -> Option<String> {
    // SAFETY: law 5: (pointer, length) for the time of the call.
    std::str::from_utf8(unsafe { text.bytes() }).ok().map(str::to_owned)
}

fn is_name(text: &str) -> bool {
    text.len() <= LONGEST_NAME && !text.chars().any(char::is_control)
}

/// A UUID of version 4 (RFC 9562 §5.4); unique, not a secret.
fn urn() -> String {
    let random = || u128::from(RandomState::new().build_hasher().finish());
    let bits = random() << 64 | random();
    let bits = bits & !(0xf << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62;
    let hex = format!("{bits:032x}");
    format!("urn:uuid:{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    /// What becomes of an update, and what the server hears of it.
    fn publish_to(
        to: Destination,
        topics: &[&str],
        data: &[u8],
        id: &str,
    ) -> (Result<String, Refusal>, String) {
        let (ours, mut servers) = UnixStream::pair().unwrap();
        let reader = std::thread::spawn(move || {
            let mut heard = String::new();
            servers.read_to_string(&mut heard).map(|_| heard).unwrap()
        });
        let reporter = Reporter::new(ours).unwrap();
        let topics: Vec<_> = topics.iter().map(|topic| Str::new(topic.as_bytes())).collect();
        let publication = ffi::Publication {
            topics: topics.as_ptr(),
            n_topics: topics.len(),
            data: Str::new(data),
            private_update: 1,
            id: Str::new(id.as_bytes()),
            kind: Str::EMPTY,
            retry: -1,
        };
        // SAFETY: the struct points to what lives here.
        let result = unsafe { publish(to, &publication, &reporter) };
        drop(reporter);
        (result, reader.join().unwrap())
    }

    #[test]
    fn an_update_is_told_to_the_server() {
        let (result, heard) = publish_to(Destination::Hub(7), &["a", "b"], b"x\ny", "urn:1");
        assert_eq!(result.as_deref(), Ok("urn:1"));
        let Ok(Event::Update(update)) = control::decode(&heard) else { panic!("{heard}") };
        assert_eq!((update.hub, update.topics.len(), &*update.data, update.private), (7, 2, "x\ny", true));
        let (made, _) = publish_to(Destination::Hub(7), &["a"], b"", "");
        assert!(made.unwrap().starts_with("urn:uuid:"));
        assert_eq!(
            publish_to(Destination::Nobody, &["a"], b"", "urn:2"),
            (Ok("urn:2".into()), String::new())
        );
    }

    #[test]
    fn what_a_hub_would_refuse_is_refused_at_once() {
        let refusal = |topics: &[&str], data: &[u8], id: &str| {
            publish_to(Destination::Hub(1), topics, data, id).0.unwrap_err()
        };
        assert_eq!(publish_to(Destination::Nowhere, &["a"], b"", "").0, Err(Refusal::NoHub));
        assert_eq!(refusal(&[], b"", ""), Refusal::Topic);
        assert_eq!(refusal(&["a\nb"], b"", ""), Refusal::Topic);
        assert_eq!(refusal(&[""], b"", ""), Refusal::Topic);
        assert_eq!(refusal(&["a"], b"\xFF", ""), Refusal::Data);
        assert_eq!(refusal(&["a"], b"", "#1"), Refusal::Id);
        assert_eq!(refusal(&["a"], &[b'x'; MAX_EVENT], ""), Refusal::TooLarge);
    }
}
