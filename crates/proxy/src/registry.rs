//! What is known of upstreams that DNS has named, for as long as they may come back.

use crate::state::UpstreamState;
use regent_config::{PassiveHealth, UpstreamAddress};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long an upstream is remembered that no answer of DNS names any more, as in Caddy.
const REMEMBERED: Duration = Duration::from_secs(3600);
/// Upstreams that one directive remembers while nobody uses them.
const MOST_REMEMBERED: usize = 1024;

/// By address, for all I/O threads.
#[derive(Default)]
pub(crate) struct Registry(Mutex<HashMap<UpstreamAddress, Known>>);

struct Known {
    state: Arc<UpstreamState>,
    named: Instant,
}

impl Known {
    /// By an I/O thread, which has it among its upstreams, or by a request.
    fn is_used(&self) -> bool {
        Arc::strong_count(&self.state) > 1
    }
}

impl Registry {
    pub fn state(&self, address: &UpstreamAddress, health: &PassiveHealth) -> Arc<UpstreamState> {
        let mut all = self.lock();
        let now = Instant::now();
        if let Some(known) = all.get_mut(address) {
            known.named = now;
            return Arc::clone(&known.state);
        }
        all.retain(|_, known| known.is_used() || now.duration_since(known.named) < REMEMBERED);
        if all.len() >= MOST_REMEMBERED {
            all.retain(|_, known| known.is_used());
        }
        let state = UpstreamState::new(address.to_string(), health);
        all.insert(address.clone(), Known { state: Arc::clone(&state), named: now });
        state
    }

    /// Those that requests can go to.
    pub fn used(&self) -> Vec<Arc<UpstreamState>> {
        let all = self.lock();
        all.values().filter(|known| known.is_used()).map(|known| Arc::clone(&known.state)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<UpstreamAddress, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_of_an_upstream_outlives_its_name_but_not_for_ever() {
        let registry = Registry::default();
        let health = PassiveHealth { fail_duration: Duration::from_secs(60), ..PassiveHealth::default() };
        let address = |number: u32| UpstreamAddress::Tcp { host: format!("h{number}"), port: 1 };
        registry.state(&address(0), &health).fail();
        assert!(registry.used().is_empty());
        assert!(!registry.state(&address(0), &health).is_healthy());
        let kept = registry.state(&address(0), &health);
        assert_eq!(registry.used().len(), 1);
        (1..3000).for_each(|number| drop(registry.state(&address(number), &health)));
        assert!(registry.lock().len() <= MOST_REMEMBERED);
        assert!(Arc::ptr_eq(&kept, &registry.state(&address(0), &health)));
    }
}
