//! A request that fetches a response for the cache, and what becomes of the response.

use super::answer;
use super::asked::{self, Asked};
use super::tee::Copying;
use crate::context::cache_rules::CacheRules;
use crate::context::exchange::Exchange;
use crate::context::failure::Failure;
use crate::context::target::Target;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, Response, StatusCode, header};
use regent_cache::{
    CacheStatus, Detail, Forwarded, Full, Gathering, Ground, Landed, Landing, Question, Selection, Spilling,
    Stored, StoredBody, Taken, Terms, Waiting as Waited,
};
use regent_exchange::ResponseBody;
use std::sync::Arc;
use std::time::SystemTime;

/// What a client asks of the response that it gets, and the cache makes of the one that is stored.
const OF_THE_CLIENT: [HeaderName; 5] = [
    header::ACCEPT_ENCODING,
    header::IF_MODIFIED_SINCE,
    header::IF_NONE_MATCH,
    header::IF_RANGE,
    header::RANGE,
];

/// Bytes of a large body that go to the disk at a time.
const SPILLED_AT_ONCE: usize = 256 * 1024;

/// A request that is to be handed on.
pub struct Fetch {
    /// As whoever makes the response is to see it.
    pub exchange: Exchange,
    pub target: Target,
    asked: Asked,
    stale: Option<Arc<Stored>>,
    landing: Option<Landing>,
    why: Forwarded,
    /// Purges before it.
    purges: u64,
    since: SystemTime,
}

/// For whom a response is fetched.
pub(super) enum Manner {
    /// `stale`: what is stored, and may be good still. `landing`: of those who wait; `None`: nobody is to.
    ForAll {
        stale: Option<Arc<Stored>>,
        landing: Option<Landing>,
    },
    ForOne,
}

/// What came of it.
pub enum Outcome {
    Done(Fetched),
    /// It has to be handed on once more.
    Again(Box<Fetch>),
    /// It is stored while it comes.
    Storing(Box<Copying>),
}

/// What the client that asked gets.
pub enum Fetched {
    /// What is stored now, or was.
    Stored(Answer),
    /// A response that is for it alone, or not complete yet.
    Response(Response<ResponseBody>),
    Failed(Failure),
}

/// A stored response for whoever asked for it.
pub struct Answer {
    rules: Arc<CacheRules>,
    stored: Arc<Stored>,
    status: CacheStatus,
}

/// A response whose body is on its way into the store.
pub(super) struct Storing {
    fetch: Box<Fetch>,
    status: StatusCode,
    headers: HeaderMap,
    terms: Terms,
    gathering: Gathering,
    /// Where it is, if it is too large for memory, but for what is gathered.
    spilling: Option<Spilling>,
}

impl Fetch {
    pub(super) fn new(
        exchange: &Exchange,
        target: &Target,
        asked: Asked,
        manner: Manner,
        why: Forwarded,
    ) -> Self {
        let mut own = exchange.of_cache();
        // What is stored is for those without them too.
        for uri in [&mut own.uri, &mut own.original_uri] {
            *uri = asked::without_ignored(uri, &asked.rules).into_owned();
        }
        let (stale, landing) = match manner {
            Manner::ForOne => (None, None),
            Manner::ForAll { stale, landing } => {
                prepare(&mut own.headers, &asked.rules, stale.as_deref());
                (stale, landing)
            }
        };
        let purges = asked.rules.store.purges();
        let since = SystemTime::now();
        Self { exchange: own, target: target.clone(), asked, stale, landing, why, purges, since }
    }

    /// Goes on with what it was answered with.
    pub fn answered(mut self: Box<Self>, result: Result<Response<ResponseBody>, Failure>) -> Outcome {
        let now = SystemTime::now();
        let is_error = |status: StatusCode| matches!(status.as_u16(), 500 | 502 | 503 | 504);
        let status = result.as_ref().map_or_else(Failure::status, Response::status);
        if is_error(status)
            // One error is no better than another, and the newer one is true.
            && let Some(stale) = self
                .stale
                .take_if(|stale| !is_error(stale.status) && stale.terms.may_replace_error(now))
        {
            return Outcome::Done(self.replaced(stale, status, now));
        }
        let response = match result {
            Ok(response) => response,
            Err(failure) => return Outcome::Done(self.failed(failure)),
        };
        if status == StatusCode::NOT_MODIFIED
            && let Some(stale) = self.stale.take()
        {
            return self.validated(&stale, response, now);
        }
        let question = Question {
            request: &self.exchange.headers,
            status,
            headers: response.headers(),
            asked: self.since,
            now,
        };
        match self.asked.rules.policy.judge(&question) {
            Err(ground) => Outcome::Done(self.unstored(response, ground)),
            Ok(terms) => self.storing(response, terms),
        }
    }

    fn storing(self: Box<Self>, response: Response<ResponseBody>, terms: Terms) -> Outcome {
        let gathering = Gathering::new(&self.asked.rules.store);
        if response.body().len().is_some_and(|length| !self.asked.rules.store.may_take(length)) {
            return Outcome::Done(self.unstored(response, Ground::Size));
        }
        let status = self.cache_status(None, Ok(()));
        let (mut head, body) = response.into_parts();
        let (code, headers) = (head.status, head.headers.clone());
        answer::mark(&mut head.headers, &self.asked.rules, status);
        let storing = Storing { fetch: self, status: code, headers, terms, gathering, spilling: None };
        Outcome::Storing(Box::new(Copying::new(Response::from_parts(head, ()), body, storing)))
    }

    /// What is stored is good still, or something else has been meant.
    fn validated(
        self: Box<Self>,
        stale: &Stored,
        response: Response<ResponseBody>,
        now: SystemTime,
    ) -> Outcome {
        let merged = stale.freshened(response.headers(), now);
        let mut of_both = merged.clone();
        // How old it is, is said by the 304 alone.
        response.headers().get(header::AGE).into_iter().for_each(|age| {
            of_both.insert(header::AGE, age.clone());
        });
        let terms = self.asked.rules.policy.judge(&Question {
            request: &self.exchange.headers,
            status: stale.status,
            headers: &of_both,
            asked: self.since,
            now,
        });
        let fresh = terms.ok().and_then(|terms| stale.with(merged, terms));
        let Some(fresh) = fresh.filter(|_| stale.is_meant_by(response.headers())) else {
            return self.again(stale);
        };
        self.asked.rules.store.counts.revalidations.add_one();
        let status = self.cache_status(Some(StatusCode::NOT_MODIFIED), Ok(()));
        let put = self.asked.rules.store.put(&self.asked.key, fresh, self.purges);
        match put {
            Ok(stored) => Outcome::Done(self.landed(stored, status)),
            // It was purged meanwhile.
            Err(_) => self.again(stale),
        }
    }

    /// Asks for all of it.
    fn again(mut self: Box<Self>, stale: &Stored) -> Outcome {
        stale.conditions().for_each(|(name, _)| drop(self.exchange.headers.remove(name)));
        self.purges = self.asked.rules.store.purges();
        self.since = SystemTime::now();
        Outcome::Again(self)
    }

    fn landed(self, stored: Arc<Stored>, status: CacheStatus) -> Fetched {
        if let Some(landing) = self.landing {
            landing.land(Landed::Stored(Arc::clone(&stored)));
        }
        Fetched::Stored(Answer { rules: self.asked.rules, stored, status })
    }

    /// What is stored stands for an error.
    fn replaced(mut self: Box<Self>, stale: Arc<Stored>, error: StatusCode, now: SystemTime) -> Fetched {
        self.asked.rules.store.counts.stale.add_one();
        if let Some(landing) = self.landing.take() {
            landing.land(Landed::InsteadOfError(Arc::clone(&stale)));
        }
        tracing::debug!(
            url = self.asked.key.url(),
            status = error.as_u16(),
            "a stale response stands for an error"
        );
        let status = CacheStatus::hit(stale.terms.ttl(now));
        Fetched::Stored(Answer { rules: self.asked.rules, stored: stale, status })
    }

    fn failed(self, failure: Failure) -> Fetched {
        // Who waits would only add to what is too much already; after a crash it may go well.
        let is_of_all =
            matches!(failure.status(), StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT);
        if let Some(landing) = self.landing.filter(|_| is_of_all) {
            landing.land(Landed::Failed(failure.status()));
        }
        Fetched::Failed(failure)
    }

    fn unstored(self, mut response: Response<ResponseBody>, ground: Ground) -> Fetched {
        let Asked { rules, key, .. } = &self.asked;
        let asks_for_none = self.exchange.headers.contains_key(header::CACHE_CONTROL);
        if ground.is_of_the_url() && !asks_for_none {
            rules.store.note_unstorable(key, SystemTime::now());
        }
        let status = self.cache_status(None, Err(Detail::Ground(ground)));
        answer::mark(response.headers_mut(), rules, status);
        Fetched::Response(response)
    }

    fn cache_status(&self, status: Option<StatusCode>, outcome: Result<(), Detail>) -> CacheStatus {
        CacheStatus::Forwarded { why: self.why, status, outcome, waiting: Waited::Not }
    }
}

impl Answer {
    /// As this request wants it: whole, in part, or not at all.
    pub fn to(self, exchange: &mut Exchange) -> Response<ResponseBody> {
        answer::with(exchange, &self.rules, &self.stored, self.status, SystemTime::now())
    }
}

impl Storing {
    pub(super) fn push(&mut self, piece: &[u8]) -> Result<(), Full> {
        let is_enough = self.gathering.len() + piece.len() > SPILLED_AT_ONCE;
        if self.spilling.is_some() && is_enough && !self.gathering.is_empty() {
            return Err(Full);
        }
        self.gathering.push(piece)
    }

    /// Moves what has come to the disk, and this piece behind it, so that there is room for more. `false`: there is no place for
    /// it.
    pub(super) async fn spill(&mut self, piece: Bytes) -> bool {
        let spilling = self.spilling.take();
        self.spilling = self.fetch.asked.rules.store.spill(spilling, &mut self.gathering, piece).await;
        self.spilling.is_some()
    }

    /// Whether a disk takes what memory has no room for.
    pub(super) fn may_spill(&self) -> bool {
        self.fetch.asked.rules.store.may_spill()
    }

    pub(super) fn is_spilled(&self) -> bool {
        self.spilling.is_some()
    }

    /// Room for what waits for the client beside.
    pub(super) fn copies(&self) -> Taken {
        self.gathering.copies()
    }

    /// The body is complete, and all of it is in one place. An error says why it is not stored.
    pub(super) fn finish(self) -> Result<Fetched, Ground> {
        let Self { fetch, status, headers, terms, gathering, spilling } = self;
        let body = match spilling {
            Some(spilling) => StoredBody::File(spilling.finish()),
            None => StoredBody::Memory(gathering.finish()),
        };
        let said = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        if said.is_some_and(|said: u64| said != body.len()) {
            return Err(Ground::Broken);
        }
        let Asked { rules, key, base } = &fetch.asked;
        let request = &fetch.exchange.headers;
        let selection = Selection::new(base, &Selection::names(&headers), request, &rules.cookies);
        let stored = Stored::new(status, &headers, body, terms, selection, SystemTime::now());
        let stored = rules.store.put(key, stored.ok_or(Ground::Size)?, fetch.purges)?;
        let status = fetch.cache_status(None, Ok(()));
        Ok(fetch.landed(stored, status))
    }

    /// It is too large.
    pub(super) fn give_up(self) {
        self.fetch.asked.rules.store.note_unstorable(&self.fetch.asked.key, SystemTime::now());
    }
}

/// Asks for a response for everybody, whole and not compressed, or whether the one that is stored is good still.
fn prepare(headers: &mut HeaderMap, rules: &CacheRules, stale: Option<&Stored>) {
    OF_THE_CLIENT.iter().for_each(|name| drop(headers.remove(name)));
    if headers.contains_key(header::COOKIE) && !rules.cookies.ignored.is_empty() {
        let kept = rules.cookies.without_ignored(headers);
        headers.remove(header::COOKIE);
        kept.into_iter().for_each(|kept| drop(headers.insert(header::COOKIE, kept)));
    }
    for (name, value) in stale.iter().flat_map(|stale| stale.conditions()) {
        headers.insert(name, value);
    }
}
