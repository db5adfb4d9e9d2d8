//! Whose responses may be forgotten.

use crate::key::Key;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The URLs of some hosts.
pub struct Scope {
    number: u64,
    /// Whether a host, with its port, is one of them.
    has_host: HasHost,
}

type HasHost = Box<dyn Fn(&str) -> bool + Send + Sync>;

/// All scopes that are in use, by numbers that are given once: an engine may still have one of a configuration before.
#[derive(Debug, Default)]
pub struct Scopes(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    scopes: Vec<Weak<Scope>>,
    last: u64,
}

impl Scope {
    pub fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn contains(&self, key: &Key) -> bool {
        (self.has_host)(key.host_port())
    }
}

impl PartialEq for Scope {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Scope {}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Scope").field(&self.number).finish()
    }
}

impl Scopes {
    /// Known as long as somebody has it.
    pub fn add(&self, has_host: impl Fn(&str) -> bool + Send + Sync + 'static) -> Arc<Scope> {
        let mut known = self.known();
        known.last += 1;
        let scope = Arc::new(Scope { number: known.last, has_host: Box::new(has_host) });
        known.scopes.retain(|scope| scope.strong_count() > 0);
        known.scopes.push(Arc::downgrade(&scope));
        scope
    }

    pub fn find(&self, number: u64) -> Option<Arc<Scope>> {
        self.known().scopes.iter().filter_map(Weak::upgrade).find(|scope| scope.number == number)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_known_as_long_as_its_scope_is_in_use_and_never_given_again() {
        let scopes = Scopes::default();
        let (one, other) = (scopes.add(|host| host == "a"), scopes.add(|_| true));
        let key = Key::new("https", "B:8443", "/x").unwrap();
        assert!(!one.contains(&key) && other.contains(&key));
        assert_eq!(scopes.find(other.number()), Some(Arc::clone(&other)));
        let number = other.number();
        drop(other);
        assert_eq!(scopes.find(number), None);
        assert!(scopes.add(|_| true).number() > number);
    }
}
