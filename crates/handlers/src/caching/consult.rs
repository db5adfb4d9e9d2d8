//! What there is for a request.

use super::answer;
use super::asked::{Asked, Concern, HasBody};
use super::fetch::{Fetch, Manner};
use super::invalidate::Passing;
use crate::context::exchange::Exchange;
use crate::context::failure::Failure;
use crate::context::target::Target;
use http::{HeaderValue, Method, Response, StatusCode, header};
use regent_cache::{
    CacheStatus, Flight, Forwarded, Found, Landed, Landing, Located, Reuse, Stored, Ticket, Tier,
    Waiting as Waited,
};
use regent_exchange::ResponseBody;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Fetches under way beyond which nothing is fetched that no client waits for.
const MOST_UNASKED: usize = 64;

/// What is to be done with a request.
pub enum Consulted {
    /// The cache has nothing to do with it.
    Uncached,
    /// It is handed on as it is.
    Passed(Passing),
    Answered(Response<ResponseBody>),
    /// The same, and a newer response is to be fetched, which nobody waits for.
    Refreshing(Response<ResponseBody>, Box<Fetch>),
    Fetch(Box<Fetch>),
    Wait(Waiting),
    /// The disk is to be asked, and then the cache again.
    Load(Loading),
    Refused(Failure),
}

/// What the disk has said of a request.
#[derive(Default)]
pub enum OnDisk {
    #[default]
    NotAsked,
    Nothing,
    Loaded(Arc<Stored>),
}

/// A stored response that is to be read.
pub struct Loading {
    located: Located,
    asked: Asked,
    /// Of those who wait for it.
    landing: Option<Landing>,
}

/// Whether a request may wait for another's fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Boarding {
    Together,
    /// It has waited, and goes on without others.
    Alone,
}

/// A request that waits for the fetch of another.
pub struct Waiting {
    flight: Flight,
    asked: Asked,
}

/// The response that is stored for a request, if it is fresh. For all else there is [`consult`].
pub fn hit(exchange: &mut Exchange, target: &Target, body: HasBody) -> Option<Response<ResponseBody>> {
    let Concern::Cached(asked) = Asked::of(exchange, target, body) else { return None };
    let now = SystemTime::now();
    let Found::Stored(stored) = find(&asked, exchange, now) else { return None };
    if asked.rules.policy.reuse(&stored.terms, &exchange.headers, now) != Reuse::Fresh {
        return None;
    }
    asked.rules.store.counts.hits.add_one();
    Some(answer::with(exchange, &asked.rules, &stored, CacheStatus::hit(stored.terms.ttl(now)), now))
}

/// `disk`: what the disk has, as far as it has been asked for this request.
pub fn consult(
    exchange: &mut Exchange,
    target: &Target,
    body: HasBody,
    boarding: Boarding,
    disk: OnDisk,
) -> Consulted {
    let asked = match Asked::of(exchange, target, body) {
        Concern::Nothing => return Consulted::Uncached,
        Concern::Passed(rules, why, reason) => return Consulted::Passed(Passing::new(rules, why, reason)),
        Concern::Cached(asked) => asked,
    };
    let now = SystemTime::now();
    let (found, tier) = match find(&asked, exchange, now) {
        Found::Stored(stored) => {
            let is_loaded = matches!(&disk, OnDisk::Loaded(loaded) if Arc::ptr_eq(loaded, &stored));
            (Found::Stored(stored), if is_loaded { Tier::Disk } else { Tier::Memory })
        }
        found => match disk {
            OnDisk::NotAsked => match asked.on_disk(exchange) {
                Some(located) => return load(asked, located, boarding),
                None => (found, Tier::Memory),
            },
            OnDisk::Loaded(stored) if fits(&asked, exchange, &stored) => (Found::Stored(stored), Tier::Disk),
            OnDisk::Nothing | OnDisk::Loaded(_) => (found, Tier::Memory),
        },
    };
    let (stale, other, why) = match found {
        Found::Stored(stored) => match asked.rules.policy.reuse(&stored.terms, &exchange.headers, now) {
            Reuse::Fresh => {
                asked.rules.store.counts.hits.add_one();
                note_tier(&asked, tier);
                let status = CacheStatus::hit_in(tier, stored.terms.ttl(now));
                return Consulted::Answered(answer::with(exchange, &asked.rules, &stored, status, now));
            }
            Reuse::Refreshing => return refreshing(exchange, target, asked, (stored, tier), now),
            Reuse::Validated if stored.terms.ttl(now) > 0 => (Some(stored), None, Forwarded::Request),
            Reuse::Validated => (Some(stored), None, Forwarded::Stale),
        },
        Found::Nothing => (None, None, Forwarded::UriMiss),
        Found::OfOthers(other) => (None, Some(other), Forwarded::VaryMiss),
        Found::Unstorable => return alone(exchange, target, asked, Forwarded::UriMiss),
    };
    if asked.rules.policy.is_only_if_cached(&exchange.headers) {
        return Consulted::Refused(Failure::new(StatusCode::GATEWAY_TIMEOUT));
    }
    if exchange.original_method() == Method::HEAD {
        // What it would fetch is nothing to store.
        return Consulted::Passed(Passing::new(asked.rules, why, "head"));
    }
    let landing = match boarding {
        Boarding::Alone => None,
        Boarding::Together => {
            let like = stale.as_ref().or(other.as_ref());
            let selection = like.map_or_else(
                || asked.selection(exchange),
                |like| like.selection_of(&asked.base, &exchange.headers, &asked.rules.cookies),
            );
            match asked.rules.store.flights.board(&asked.key, selection) {
                Ticket::Wait(flight) => return Consulted::Wait(Waiting { flight, asked }),
                Ticket::Fetch(landing) => Some(landing),
            }
        }
    };
    asked.rules.store.counts.misses.add_one();
    Consulted::Fetch(Box::new(Fetch::new(exchange, target, asked, Manner::ForAll { stale, landing }, why)))
}

/// Nobody waits for a response that is likely to be for its own client, and it is asked for as that client does.
fn alone(exchange: &Exchange, target: &Target, asked: Asked, why: Forwarded) -> Consulted {
    if exchange.original_method() == Method::HEAD {
        return Consulted::Passed(Passing::new(asked.rules, why, "head"));
    }
    asked.rules.store.counts.misses.add_one();
    Consulted::Fetch(Box::new(Fetch::new(exchange, target, asked, Manner::ForOne, why)))
}

fn refreshing(
    exchange: &mut Exchange,
    target: &Target,
    asked: Asked,
    (stored, tier): (Arc<Stored>, Tier),
    now: SystemTime,
) -> Consulted {
    asked.rules.store.counts.stale.add_one();
    note_tier(&asked, tier);
    let status = CacheStatus::hit_in(tier, stored.terms.ttl(now));
    let response = answer::with(exchange, &asked.rules, &stored, status, now);
    let flights = &asked.rules.store.flights;
    let selection = stored.selection_of(&asked.base, &exchange.headers, &asked.rules.cookies);
    let landing = match flights.count() < MOST_UNASKED {
        true => flights.board_alone(&asked.key, selection),
        false => None,
    };
    let Some(landing) = landing else { return Consulted::Answered(response) };
    let manner = Manner::ForAll { stale: Some(stored), landing: Some(landing) };
    let fetch = Fetch::new(exchange, target, asked, manner, Forwarded::Stale);
    Consulted::Refreshing(response, Box::new(fetch))
}

fn find(asked: &Asked, exchange: &Exchange, now: SystemTime) -> Found {
    asked.rules.store.find(&asked.key, &asked.base, &exchange.headers, &asked.rules.cookies, now)
}

/// One request reads it for all.
fn load(asked: Asked, located: Located, boarding: Boarding) -> Consulted {
    let landing = match boarding {
        Boarding::Alone => None,
        Boarding::Together => {
            match asked.rules.store.flights.board(located.key(), located.selection().clone()) {
                Ticket::Wait(flight) => return Consulted::Wait(Waiting { flight, asked }),
                Ticket::Fetch(landing) => Some(landing),
            }
        }
    };
    Consulted::Load(Loading { located, asked, landing })
}

fn fits(asked: &Asked, exchange: &Exchange, stored: &Stored) -> bool {
    stored.fits(&asked.base, &exchange.headers, &asked.rules.cookies)
}

fn note_tier(asked: &Asked, tier: Tier) {
    if tier == Tier::Disk {
        asked.rules.store.note_loaded();
    }
}

impl Loading {
    /// What the disk has. Who waits for the same has it too.
    pub async fn load(self) -> OnDisk {
        let loaded = self.asked.rules.store.load(self.located).await;
        if let Some(landing) = self.landing {
            landing.land(Landed::Loaded(loaded.clone()));
        }
        OnDisk::of(loaded)
    }
}

impl OnDisk {
    fn of(loaded: Option<Arc<Stored>>) -> Self {
        loaded.map_or(Self::Nothing, Self::Loaded)
    }
}

/// What a request that has waited has of it.
pub enum Arrived {
    Answered(Result<Response<ResponseBody>, Failure>),
    GoesOn(Boarding, OnDisk),
}

impl Waiting {
    /// The longest wait.
    pub fn patience(&self) -> Duration {
        self.asked.rules.wait
    }

    /// How the fetch of the other ends.
    pub async fn landed(&mut self) -> Landed {
        self.flight.landed().await
    }

    /// What that means for this request.
    pub fn arrived(self, landed: Landed, exchange: &mut Exchange) -> Arrived {
        let Asked { rules, base, .. } = &self.asked;
        let now = SystemTime::now();
        let fits = |stored: &Stored| stored.fits(base, &exchange.headers, &rules.cookies);
        let goes_on = |boarding| Arrived::GoesOn(boarding, OnDisk::NotAsked);
        let stored = match landed {
            Landed::Failed(status) => return Arrived::Answered(Err(failed(status))),
            Landed::Loaded(loaded) => return Arrived::GoesOn(Boarding::Together, OnDisk::of(loaded)),
            Landed::Stored(stored) => {
                let reuse = rules.policy.reuse(&stored.terms, &exchange.headers, now);
                if reuse == Reuse::Validated {
                    return goes_on(Boarding::Alone);
                }
                // There may be as many that want the same as this one.
                if !fits(&stored) {
                    return goes_on(Boarding::Together);
                }
                rules.store.counts.hits.add_one();
                stored
            }
            Landed::InsteadOfError(stored) if fits(&stored) => {
                rules.store.counts.stale.add_one();
                stored
            }
            Landed::Unstored | Landed::InsteadOfError(_) => return goes_on(Boarding::Alone),
        };
        rules.store.counts.collapsed.add_one();
        let (ttl, waiting) = (stored.terms.ttl(now), Waited::Collapsed);
        let status = CacheStatus::Hit { ttl, waiting, tier: Tier::Memory };
        Arrived::Answered(Ok(answer::with(exchange, rules, &stored, status, now)))
    }
}

/// What the request that fetched was answered with.
fn failed(status: StatusCode) -> Failure {
    let failure = Failure::new(status);
    match status {
        StatusCode::SERVICE_UNAVAILABLE => {
            failure.with_field(header::RETRY_AFTER, HeaderValue::from_static("1"))
        }
        _ => failure,
    }
}
