//! One account at one CA: its connection, and how much it may ask for.

use super::account::{self, AccountFiles};
use super::error::OrderError;
use super::https::HttpsClient;
use super::layout;
use super::options::Acme;
use super::zerossl;
use crate::clock::{self, Clock};
use crate::store::{Lock, Store};
use instant_acme::Account;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, sleep_until};

/// At most so many orders in so much time (certmagic's `RateLimitEvents`, `RateLimitEventsWindow`).
const ORDERS: usize = 10;
const WINDOW: Duration = Duration::from_secs(10);
/// After which the CA's directory and the roots are read again.
const FRESH: Duration = Duration::from_secs(12 * 3600);
/// So many seconds the account is not asked for again after a failure.
const FAILURE_HOLDS: i64 = 30;
/// How often a lock that another process holds is tried, as certmagic does.
const LOCK_POLL: Duration = Duration::from_secs(1);

pub(super) struct Ca {
    files: AccountFiles,
    /// Of it, what is about the account.
    acme: Acme,
    clock: Arc<dyn Clock>,
    account: Mutex<Known>,
    orders: Mutex<VecDeque<Instant>>,
}

#[derive(Default)]
struct Known {
    account: Option<(Account, Instant)>,
    /// Why the last try failed, and when, in seconds since 1970.
    failure: Option<(String, i64)>,
}

impl std::fmt::Debug for Ca {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ca").field("directory", &self.files.directory).finish_non_exhaustive()
    }
}

impl Ca {
    pub fn new(store: Store, clock: Arc<dyn Clock>, directory: &str, acme: &Acme) -> Self {
        let files = AccountFiles {
            store,
            directory: directory.to_owned(),
            email: acme.email.clone(),
            user: acme.zerossl_key.as_ref().map(zerossl::user),
        };
        Self { files, acme: acme.clone(), clock, account: Mutex::default(), orders: Mutex::default() }
    }

    /// Whether a site with these options has the same account.
    pub fn is_for(&self, directory: &str, acme: &Acme) -> bool {
        let own = &self.acme;
        self.files.directory == directory
            && (&own.email, &own.eab, &own.zerossl_key) == (&acme.email, &acme.eab, &acme.zerossl_key)
            && own.trusted_roots == acme.trusted_roots
    }

    pub fn directory(&self) -> &str {
        &self.files.directory
    }

    pub fn issuer_key(&self) -> String {
        layout::issuer_key(&self.files.directory)
    }

    pub async fn account(&self) -> Result<Account, OrderError> {
        let mut known = self.account.lock().await;
        if let Some((account, since)) = &known.account
            && since.elapsed() < FRESH
        {
            return Ok(account.clone());
        }
        // A thousand names shall not wait for a CA that is down one after another.
        // (A failure of the future is that of a clock that was set back since.)
        if let Some((reason, at)) = &known.failure
            && (0..FAILURE_HOLDS).contains(&(clock::unix_seconds(&*self.clock) - at))
        {
            return Err(OrderError::Account(reason.clone()));
        }
        match self.open_account().await {
            Ok(account) => {
                *known = Known { account: Some((account.clone(), Instant::now())), failure: None };
                Ok(account)
            }
            Err(error) => {
                known.failure = Some((error.to_string(), clock::unix_seconds(&*self.clock)));
                Err(error)
            }
        }
    }

    async fn open_account(&self) -> Result<Account, OrderError> {
        let acme = self.acme.clone();
        let https = tokio::task::spawn_blocking(move || HttpsClient::new(&acme)).await??;
        let _lock = lock(&self.files.store, &self.files.lock_name()).await?;
        account::open(self.files.clone(), &self.acme, https).await
    }

    /// It is registered again when it is needed next.
    pub async fn forget_account(&self) -> Result<(), OrderError> {
        let mut known = self.account.lock().await;
        tracing::warn!(
            ca = self.directory(),
            "the CA does not know the account; another one will be registered"
        );
        known.account = None;
        let files = self.files.clone();
        Ok(tokio::task::spawn_blocking(move || files.forget()).await??)
    }

    /// Waits until one more order is within the limit.
    pub async fn pace(&self) {
        let mut orders = self.orders.lock().await;
        if orders.len() >= ORDERS
            && let Some(oldest) = orders.pop_front()
        {
            sleep_until(oldest + WINDOW).await;
        }
        orders.push_back(Instant::now());
    }
}

/// Waits, however long another process holds it; one that has died loses it.
pub(super) async fn lock(store: &Store, name: &str) -> Result<Lock, OrderError> {
    loop {
        let (store, name) = (store.clone(), name.to_owned());
        if let Some(lock) = tokio::task::spawn_blocking(move || store.try_lock(&name)).await?? {
            return Ok(lock);
        }
        sleep(LOCK_POLL).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn eleven_orders_take_ten_seconds() {
        let ca = Ca::new(
            Store::new("/nonexistent"),
            Arc::new(crate::SystemClock),
            "https://ca.test",
            &Acme::default(),
        );
        let begun = Instant::now();
        for _ in 0..ORDERS {
            ca.pace().await;
        }
        assert_eq!(begun.elapsed(), Duration::ZERO);
        ca.pace().await;
        assert_eq!(begun.elapsed(), WINDOW);
    }
}
