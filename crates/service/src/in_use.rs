//! Whether requests still use what a configuration has made.

use tokio::sync::watch;

/// Held by whatever answers requests under one configuration.
#[derive(Debug, Clone)]
pub struct InUse {
    _held: watch::Sender<()>,
}

/// Knows when the last request has ended that began under some configurations. By default there are none of them.
#[derive(Debug, Clone, Default)]
pub struct Unused(Vec<watch::Receiver<()>>);

impl Unused {
    /// Of one configuration, with what its services hold.
    pub fn new() -> (InUse, Self) {
        let (held, receiver) = watch::channel(());
        (InUse { _held: held }, Self(vec![receiver]))
    }

    /// Of those before as well, as far as there still are requests under them.
    #[must_use]
    pub fn after(mut self, before: &Self) -> Self {
        self.0.extend(before.0.iter().filter(|receiver| receiver.has_changed().is_ok()).cloned());
        self
    }

    /// Ends with the last of the requests.
    pub async fn ended(self) {
        for mut receiver in self.0 {
            // Nothing is ever sent: it ends when the last holder is gone.
            while receiver.changed().await.is_ok() {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn a_configuration_is_unused_when_the_last_holder_is_gone() {
        let (in_use, unused) = Unused::new();
        let request = in_use.clone();
        drop(in_use);
        assert_eq!(unused.clone().ended().now_or_never(), None);
        drop(request);
        assert_eq!(unused.ended().now_or_never(), Some(()));
        assert_eq!(Unused::default().ended().now_or_never(), Some(()));
    }

    #[test]
    fn those_before_count_while_they_are_in_use() {
        let (first_in_use, first) = Unused::new();
        let (second_in_use, second) = Unused::new();
        let both = second.after(&first);
        drop(second_in_use);
        assert_eq!(both.clone().ended().now_or_never(), None);
        drop(first_in_use);
        assert_eq!(both.clone().ended().now_or_never(), Some(()));
        let (_third_in_use, third) = Unused::new();
        assert_eq!(third.after(&both).0.len(), 1, "what has ended is forgotten");
    }
}
