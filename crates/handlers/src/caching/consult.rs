//! What there is for a request.

use super::answer;
use super::asked::{Asked, Concern, HasBody};
use super::fetch::{Fetch, Manner};
use super::invalidate::Passing;
use crate::context::exchange::Exchange;
use crate::context::failure::Failure;
use crate::context::target::Target;
use http::{HeaderValue, Method, Response, StatusCode, header};
use regent_cache::{CacheStatus, Flight, Forwarded, Found, Landed, Reuse, Stored, Ticket, Waiting as Waited};
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
    Refused(Failure),
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

pub fn consult(exchange: &mut Exchange, target: &Target, body: HasBody, boarding: Boarding) -> Consulted {
    let asked = match Asked::of(exchange, target, body) {
        Concern::Nothing => return Consulted::Uncached,
        Concern::Passed(rules, why, reason) => return Consulted::Passed(Passing::new(rules, why, reason)),
        Concern::Cached(asked) => asked,
    };
    let now = SystemTime::now();
    let (stale, other, why) = match find(&asked, exchange, now) {
        Found::Stored(stored) => match asked.rules.policy.reuse(&stored.terms, &exchange.headers, now) {
            Reuse::Fresh => {
                asked.rules.store.counts.hits.add_one();
                let status = CacheStatus::hit(stored.terms.ttl(now));
                return Consulted::Answered(answer::with(exchange, &asked.rules, &stored, status, now));
            }
            Reuse::Refreshing => return refreshing(exchange, target, asked, stored, now),
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
    stored: Arc<Stored>,
    now: SystemTime,
) -> Consulted {
    asked.rules.store.counts.stale.add_one();
    let status = CacheStatus::hit(stored.terms.ttl(now));
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

/// What a request that has waited has of it.
pub enum Arrived {
    Answered(Result<Response<ResponseBody>, Failure>),
    GoesOn(Boarding),
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
        let stored = match landed {
            Landed::Failed(status) => return Arrived::Answered(Err(failed(status))),
            Landed::Stored(stored) => {
                let reuse = rules.policy.reuse(&stored.terms, &exchange.headers, now);
                if reuse == Reuse::Validated {
                    return Arrived::GoesOn(Boarding::Alone);
                }
                // There may be as many that want the same as this one.
                if !fits(&stored) {
                    return Arrived::GoesOn(Boarding::Together);
                }
                rules.store.counts.hits.add_one();
                stored
            }
            Landed::InsteadOfError(stored) if fits(&stored) => {
                rules.store.counts.stale.add_one();
                stored
            }
            Landed::Unstored | Landed::InsteadOfError(_) => return Arrived::GoesOn(Boarding::Alone),
        };
        rules.store.counts.collapsed.add_one();
        let status = CacheStatus::Hit { ttl: stored.terms.ttl(now), waiting: Waited::Collapsed };
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
