//! Stateless session tickets (RFC 5077, RFC 8446 §4.6.1) whose keys outlive the process.

mod secrets;
mod ticketer;

pub(crate) use ticketer::Ticketer;

use crate::client_auth::ClientAuthClass;
use crate::clock::{self, Clock};
use crate::store::Store;
use crate::{Error, crypto};
use secrets::Secret;
use std::sync::{Arc, Mutex, PoisonError};

/// As long a key encrypts new tickets (Caddy's `session_tickets`).
const ROTATION: i64 = 12 * 3600;
/// As long a client may use a ticket, in seconds.
const LIFETIME: u32 = 12 * 3600;
/// The last ticket of a key must be readable for its whole lifetime.
const KEPT: i64 = ROTATION + LIFETIME as i64;

/// The secrets of the store, and all that is derived from them: one ticketer for each class of client
/// authentication, since rustls does not look at a client's certificate again when it comes back with a ticket.
#[derive(Debug)]
pub(crate) struct TicketKeys {
    store: Store,
    clock: Arc<dyn Clock>,
    secrets: Mutex<Vec<Secret>>,
    ticketers: Mutex<Vec<(ClientAuthClass, Arc<Ticketer>)>>,
}

impl TicketKeys {
    /// A store that cannot be used costs resumption over a restart, no more.
    pub fn open(store: Store, clock: Arc<dyn Clock>) -> Self {
        let keys = Self { store, clock, secrets: Mutex::default(), ticketers: Mutex::default() };
        keys.rotate();
        keys
    }

    pub fn ticketer(&self, class: ClientAuthClass) -> Arc<Ticketer> {
        let secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        let mut ticketers = self.ticketers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, ticketer)) = ticketers.iter().find(|(own, _)| *own == class) {
            return Arc::clone(ticketer);
        }
        let ticketer = Arc::new(Ticketer::new(class, LIFETIME, &secrets));
        ticketers.push((class, Arc::clone(&ticketer)));
        ticketer
    }

    /// Takes over what other processes have stored, and adds a secret where the newest is too old.
    pub fn rotate(&self) {
        let now = clock::unix_seconds(&*self.clock);
        let mut secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        let current = self.stored(now).unwrap_or_else(|error| {
            tracing::warn!(%error, "the keys of session tickets are not kept; clients do not resume after a restart");
            let mut own = secrets.clone();
            renew(&mut own, now);
            own
        });
        if *secrets == current {
            return;
        }
        *secrets = current;
        for (_, ticketer) in self.ticketers.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            ticketer.replace(&secrets);
        }
    }

    fn stored(&self, now: i64) -> Result<Vec<Secret>, Error> {
        let stored = secrets::load(&self.store)?;
        if !is_due(&stored, now) {
            return Ok(stored);
        }
        let _lock = self.store.lock("session_tickets")?;
        // Another process may have been faster.
        let mut stored = secrets::load(&self.store)?;
        if renew(&mut stored, now) == Renewal::Done {
            secrets::save(&self.store, &stored)?;
        }
        Ok(stored)
    }
}

#[derive(PartialEq, Eq)]
enum Renewal {
    Done,
    NotDue,
}

/// One from the future, as after a clock that was wrong, is due too: it would be used for ever.
fn is_due(secrets: &[Secret], now: i64) -> bool {
    secrets.first().is_none_or(|newest| !(0..ROTATION).contains(&(now - newest.created)))
}

fn renew(secrets: &mut Vec<Secret>, now: i64) -> Renewal {
    if !is_due(secrets, now) {
        return Renewal::NotDue;
    }
    secrets.retain(|secret| (0..KEPT).contains(&(now - secret.created)));
    secrets.insert(0, Secret { created: now, bytes: crypto::random() });
    Renewal::Done
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::ManualClock;
    use rustls::server::ProducesTickets;
    use std::time::Duration;

    const HOUR: Duration = Duration::from_secs(3600);

    fn open(directory: &tempfile::TempDir, clock: &Arc<ManualClock>) -> TicketKeys {
        TicketKeys::open(Store::new(directory.path()), Arc::clone(clock) as Arc<dyn Clock>)
    }

    #[test]
    fn tickets_are_read_after_a_restart_and_after_a_rotation_but_not_for_ever() {
        let directory = tempfile::tempdir().unwrap();
        let clock = ManualClock::new();
        let ticket = open(&directory, &clock).ticketer(ClientAuthClass::NONE).encrypt(b"session").unwrap();

        let keys = open(&directory, &clock);
        let ticketer = keys.ticketer(ClientAuthClass::NONE);
        assert_eq!(ticketer.decrypt(&ticket).unwrap(), b"session");
        clock.advance(13 * HOUR);
        keys.rotate();
        assert_eq!(ticketer.decrypt(&ticket).unwrap(), b"session");
        let newer = ticketer.encrypt(b"session").unwrap();
        assert_ne!(newer[..16], ticket[..16], "a new key has another name");
        clock.advance(12 * HOUR);
        keys.rotate();
        assert!(ticketer.decrypt(&ticket).is_none());
        assert_eq!(ticketer.decrypt(&newer).unwrap(), b"session");
    }

    #[test]
    fn a_rotation_of_one_process_reaches_the_other() {
        let directory = tempfile::tempdir().unwrap();
        let clock = ManualClock::new();
        let (one, other) = (open(&directory, &clock), open(&directory, &clock));
        clock.advance(13 * HOUR);
        one.rotate();
        other.rotate();
        let ticket = one.ticketer(ClientAuthClass::NONE).encrypt(b"session").unwrap();
        assert_eq!(other.ticketer(ClientAuthClass::NONE).decrypt(&ticket).unwrap(), b"session");
    }

    #[test]
    fn a_store_that_cannot_be_written_leaves_keys_in_memory() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("locks"), "in the way").unwrap();
        let keys = open(&directory, &ManualClock::new());
        let ticketer = keys.ticketer(ClientAuthClass::NONE);
        let ticket = ticketer.encrypt(b"session").unwrap();
        keys.rotate();
        assert_eq!(ticketer.decrypt(&ticket).unwrap(), b"session");
    }

    #[test]
    fn damaged_keys_are_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path());
        store.write("session_tickets/keys.json", b"{\"keys\":[{\"created\":1,\"secret\":\"zz\"}]}").unwrap();
        let keys = open(&directory, &ManualClock::new());
        assert!(keys.ticketer(ClientAuthClass::NONE).encrypt(b"session").is_some());
        assert_eq!(secrets::load(&store).unwrap().len(), 1);
    }
}
