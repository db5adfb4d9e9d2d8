//! One fetch for all that miss the same.

use crate::key::Key;
use crate::selection::Selection;
use crate::stored::Stored;
use http::StatusCode;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// The fetches that are under way.
#[derive(Debug, Default)]
pub struct Flights(Mutex<UnderWay>);

type Aim = (Key, Selection);
type UnderWay = HashMap<Arc<Aim>, watch::Receiver<Option<Landed>>>;

/// Whether one fetches or waits.
#[derive(Debug)]
pub enum Ticket {
    Fetch(Landing),
    Wait(Flight),
}

/// How a fetch has ended.
#[derive(Debug, Clone)]
pub enum Landed {
    Stored(Arc<Stored>),
    /// It has failed, and this may stand for its response, stale as it is.
    InsteadOfError(Arc<Stored>),
    /// Its response is for the one that fetched only.
    Unstored,
    /// There is no response, and there would be none for anybody else now.
    Failed(StatusCode),
    /// What was on the disk, whether it is over or not; `None`: it was not there after all.
    Loaded(Option<Arc<Stored>>),
}

/// Another's fetch.
#[derive(Debug)]
pub struct Flight(watch::Receiver<Option<Landed>>);

/// One's own fetch. Whoever waits goes on when it is dropped.
#[derive(Debug)]
pub struct Landing {
    flights: Arc<Flights>,
    aim: Arc<Aim>,
    landed: watch::Sender<Option<Landed>>,
}

impl Flights {
    /// Fetches, or waits if that is being fetched.
    pub fn board(self: &Arc<Self>, key: &Key, selection: Selection) -> Ticket {
        let aim = Arc::new((key.clone(), selection));
        let mut under_way = self.under_way();
        if let Some(landed) = under_way.get(&aim) {
            return Ticket::Wait(Flight(landed.clone()));
        }
        let (landed, waiting) = watch::channel(None);
        under_way.insert(Arc::clone(&aim), waiting);
        Ticket::Fetch(Landing { flights: Arc::clone(self), aim, landed })
    }

    /// As [`Self::board`] for who does not wait. `None`: it is being fetched.
    pub fn board_alone(self: &Arc<Self>, key: &Key, selection: Selection) -> Option<Landing> {
        match self.board(key, selection) {
            Ticket::Fetch(landing) => Some(landing),
            Ticket::Wait(_) => None,
        }
    }

    pub fn count(&self) -> usize {
        self.under_way().len()
    }

    fn under_way(&self) -> MutexGuard<'_, UnderWay> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Flight {
    /// [`Landed::Unstored`] also if whoever fetched has given up.
    pub async fn landed(&mut self) -> Landed {
        let landed = self.0.wait_for(Option::is_some).await;
        landed.ok().and_then(|landed| landed.clone()).unwrap_or(Landed::Unstored)
    }
}

impl Landing {
    /// Tells all that wait. Who comes later fetches again.
    pub fn land(self, landed: Landed) {
        self.leave();
        self.landed.send_replace(Some(landed));
    }

    /// Whether anybody waits.
    pub fn is_awaited(&self) -> bool {
        // One receiver is that of the map.
        self.landed.receiver_count() > 1
    }

    fn leave(&self) {
        let mut under_way = self.flights.under_way();
        if under_way.get(&self.aim).is_some_and(|landed| landed.same_channel(&self.landed.subscribe())) {
            under_way.remove(&self.aim);
        }
    }
}

impl Drop for Landing {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selection::CookieRule;
    use http::HeaderMap;

    fn aim(path: &str) -> Aim {
        let key = Key::new("http", "h", path).unwrap();
        (key, Selection::new(b"", &[], &HeaderMap::new(), &CookieRule::default()))
    }

    fn board(flights: &Arc<Flights>, path: &str) -> Ticket {
        let (key, selection) = aim(path);
        flights.board(&key, selection)
    }

    #[tokio::test]
    async fn one_fetches_and_all_others_wait_until_it_lands() {
        let flights = Arc::<Flights>::default();
        let Ticket::Fetch(landing) = board(&flights, "/") else { panic!("nothing is under way") };
        assert!(!landing.is_awaited());
        let waiting: Vec<_> = (0..3)
            .map(|_| match board(&flights, "/") {
                Ticket::Wait(mut flight) => tokio::spawn(async move { flight.landed().await }),
                Ticket::Fetch(_) => panic!("it is under way"),
            })
            .collect();
        assert!(landing.is_awaited());
        assert!(matches!(board(&flights, "/other"), Ticket::Fetch(_)));
        landing.land(Landed::Failed(StatusCode::SERVICE_UNAVAILABLE));
        for landed in waiting {
            assert!(matches!(landed.await.unwrap(), Landed::Failed(StatusCode::SERVICE_UNAVAILABLE)));
        }
        assert_eq!(flights.count(), 0);
    }

    #[tokio::test]
    async fn who_gives_up_keeps_nobody_waiting() {
        let flights = Arc::<Flights>::default();
        let Ticket::Fetch(landing) = board(&flights, "/") else { panic!("nothing is under way") };
        let Ticket::Wait(mut flight) = board(&flights, "/") else { panic!("it is under way") };
        drop(landing);
        assert!(matches!(flight.landed().await, Landed::Unstored));
        assert!(matches!(board(&flights, "/"), Ticket::Fetch(_)));
    }
}
