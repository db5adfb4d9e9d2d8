//! PHP threads, and the form in which FrankenPHP lists them.

use crate::milliseconds::since_1970;
use crate::pool::Engine;
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime};

/// What a thread of PHP is at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadStack {
    pub index: u16,
    /// The functions that it is in, the innermost first, each with its place; none if it runs no script.
    pub stack: Vec<String>,
}

/// All threads.
#[derive(Debug, Clone, PartialEq)]
pub struct Threads {
    pub threads: Vec<Thread>,
    /// How many more could be started.
    pub reserved: u32,
}

/// A thread of an engine, or a process of one that has no threads.
#[derive(Debug, Clone, PartialEq)]
pub struct Thread {
    /// Its number in its engine.
    pub index: u32,
    pub engine: Engine,
    /// [`crate::Pool::name`]
    pub pool: String,
    /// The worker's script, absolute; `None` for classic requests and native services.
    pub worker: Option<String>,
    pub activity: Activity,
    /// Requests that it has served.
    pub requests: u64,
    /// Bytes that PHP has allocated in it; 0 where nobody counts them.
    pub memory: u64,
}

/// What a thread does.
#[derive(Debug, Clone, PartialEq)]
pub enum Activity {
    /// Boots, and does not take requests yet.
    Starting,
    /// Its worker script failed; it waits before it is started again.
    Backoff,
    /// Waits for a request, for so long.
    Idle(Duration),
    Busy(Current),
    /// Far beyond its route's usual time and off the CPU: no longer counted as capacity.
    Stuck(Current),
    /// Ends, after its request if it has one.
    Leaving(Option<Current>),
}

/// The request that a thread is at.
#[derive(Debug, Clone, PartialEq)]
pub struct Current {
    pub method: String,
    /// As the client sent it; what is not UTF-8 replaced. Hostile: escape it wherever it is shown.
    pub uri: String,
    pub started_at: SystemTime,
}

/// The answer of `GET /frankenphp/threads`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ThreadList {
    pub thread_debug_states: Vec<ThreadState>,
    pub reserved_thread_count: u32,
}

/// A thread as FrankenPHP lists it (its `docs/metrics.md`, from 1.12.1 on), and what Regent adds: the last five fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ThreadState {
    pub index: u32,
    /// `Regular PHP Thread`, `Worker PHP Thread - ` and the script (dashboards cut it at that), or `Native Thread - ` and
    /// the service.
    pub name: String,
    /// `booting`, `ready` (busy or not) or `shutting down`.
    pub state: String,
    pub is_waiting: bool,
    pub is_busy: bool,
    pub waiting_since_milliseconds: u64,
    #[serde(rename = "CurrentURI")]
    pub current_uri: String,
    pub current_method: String,
    /// Milliseconds since 1970; 0 without a request.
    pub request_started_at: u64,
    pub request_count: u64,
    /// Bytes.
    pub memory_usage: u64,
    pub engine: Engine,
    pub pool: String,
    pub worker: Option<String>,
    /// `starting`, `backoff`, `idle`, `busy`, `stuck` or `leaving`.
    pub activity: String,
    /// How long the request has been running, by the server's clock; 0 without one.
    pub running_milliseconds: u64,
}

impl ThreadList {
    /// Running times are up to `now`.
    pub fn new(threads: Threads, now: SystemTime) -> Self {
        Self {
            thread_debug_states: threads.threads.into_iter().map(|thread| thread.state(now)).collect(),
            reserved_thread_count: threads.reserved,
        }
    }
}

impl Thread {
    fn state(self, now: SystemTime) -> ThreadState {
        let name = match (self.engine, &self.worker) {
            (Engine::Native, _) => format!("Native Thread - {}", self.pool),
            (Engine::Php, Some(file)) => format!("Worker PHP Thread - {file}"),
            (Engine::Php, None) => "Regular PHP Thread".to_owned(),
        };
        let (state, activity) = self.activity.names();
        let (is_waiting, waiting) = match self.activity {
            Activity::Idle(since) => (true, since),
            _ => (false, Duration::ZERO),
        };
        let current = self.activity.current();
        let is_busy = current.is_some();
        let started_at = current.as_ref().map(|current| current.started_at);
        let (current_method, current_uri) =
            current.map_or_else(Default::default, |current| (current.method, current.uri));
        ThreadState {
            index: self.index,
            name,
            state: state.to_owned(),
            is_waiting,
            is_busy,
            waiting_since_milliseconds: waiting.as_millis() as u64,
            current_uri,
            current_method,
            request_started_at: started_at.map_or(0, since_1970),
            request_count: self.requests,
            memory_usage: self.memory,
            engine: self.engine,
            pool: self.pool,
            worker: self.worker,
            activity: activity.to_owned(),
            running_milliseconds: started_at.map_or(0, |at| {
                // The clock may have been set back meanwhile.
                now.duration_since(at).unwrap_or_default().as_millis() as u64
            }),
        }
    }
}

impl Activity {
    /// FrankenPHP's name of the state, and ours.
    fn names(&self) -> (&'static str, &'static str) {
        match self {
            Self::Starting => ("booting", "starting"),
            Self::Backoff => ("booting", "backoff"),
            Self::Idle(_) => ("ready", "idle"),
            Self::Busy(_) => ("ready", "busy"),
            Self::Stuck(_) => ("ready", "stuck"),
            Self::Leaving(_) => ("shutting down", "leaving"),
        }
    }

    fn current(self) -> Option<Current> {
        match self {
            Self::Busy(current) | Self::Stuck(current) => Some(current),
            Self::Leaving(current) => current,
            Self::Starting | Self::Backoff | Self::Idle(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::UNIX_EPOCH;

    const STARTED: u64 = 1_790_337_784_000;

    fn state(worker: Option<&str>, activity: Activity) -> ThreadState {
        let thread = Thread {
            index: 3,
            engine: Engine::Php,
            pool: "classic".into(),
            worker: worker.map(Into::into),
            activity,
            requests: 42,
            memory: 2_097_152,
        };
        thread.state(UNIX_EPOCH + Duration::from_millis(STARTED + 1_500))
    }

    fn current() -> Current {
        let started_at = UNIX_EPOCH + Duration::from_millis(STARTED);
        Current { method: "GET".into(), uri: "/slow?a=1".into(), started_at }
    }

    #[test]
    fn a_busy_worker_is_listed_as_frankenphp_does() {
        let json = serde_json::to_value(state(Some("/app/worker.php"), Activity::Busy(current()))).unwrap();
        let expected = serde_json::json!({
            "Index": 3, "Name": "Worker PHP Thread - /app/worker.php", "State": "ready",
            "IsWaiting": false, "IsBusy": true, "WaitingSinceMilliseconds": 0,
            "CurrentURI": "/slow?a=1", "CurrentMethod": "GET", "RequestStartedAt": STARTED,
            "RequestCount": 42, "MemoryUsage": 2_097_152,
            "Engine": "php", "Pool": "classic", "Worker": "/app/worker.php", "Activity": "busy", "RunningMilliseconds": 1_500,
        });
        assert_eq!(json, expected);
    }

    #[test]
    fn an_idle_thread_has_no_request() {
        let state = state(None, Activity::Idle(Duration::from_millis(1_234)));
        assert_eq!(state.name, "Regular PHP Thread");
        assert_eq!((state.is_waiting, state.is_busy, state.waiting_since_milliseconds), (true, false, 1_234));
        assert_eq!((state.current_uri.as_str(), state.request_started_at), ("", 0));
    }

    #[test]
    fn a_thread_that_leaves_after_its_request_is_busy() {
        let leaving = state(None, Activity::Leaving(Some(current())));
        assert_eq!((leaving.state.as_str(), leaving.is_busy), ("shutting down", true));
        assert!(!state(None, Activity::Leaving(None)).is_busy);
    }

    #[test]
    fn a_clock_that_was_set_back_makes_no_running_time() {
        let started_at = UNIX_EPOCH + Duration::from_millis(STARTED + 60_000);
        let state = state(None, Activity::Stuck(Current { started_at, ..current() }));
        assert_eq!(state.running_milliseconds, 0);
    }
}
