//! What the topics of subscribers may cost a hub: anybody can ask for any.

use crate::selector::Selector;

/// Bytes that a selector takes beside its text, about.
const OVERHEAD: usize = 256;

/// What selectors cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    /// Of templates: the time of each update grows with them.
    pub variables: usize,
    /// Of memory, about.
    pub bytes: usize,
}

/// Of all connections of a hub whose token grants nothing, or that have none. If all is taken, a topic of 100 bytes costs a
/// hundredth of a second, and one of 8 KiB, which only publishers can choose, half a second.
pub(crate) const ANONYMOUS: Cost = Cost { variables: 16 << 10, bytes: 64 << 20 };
/// Of all others of a hub, who are known to its owner.
pub(crate) const GRANTED: Cost = Cost { variables: 256 << 10, bytes: 256 << 20 };
/// Of what tokens grant, which the hub's owner has signed.
pub(crate) const SIGNED: Cost = Cost { variables: usize::MAX, bytes: usize::MAX };

impl Cost {
    pub fn of(selector: &Selector) -> Self {
        Self { variables: selector.variables(), bytes: selector.text().len() + OVERHEAD }
    }

    pub fn plus(self, other: Self) -> Self {
        Self { variables: self.variables + other.variables, bytes: self.bytes + other.bytes }
    }

    pub fn minus(self, other: Self) -> Self {
        Self { variables: self.variables - other.variables, bytes: self.bytes - other.bytes }
    }

    pub fn is_within(self, limit: Self) -> bool {
        self.variables <= limit.variables && self.bytes <= limit.bytes
    }
}
