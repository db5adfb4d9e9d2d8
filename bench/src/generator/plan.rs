//! What a load is: which requests, at what pace, over which connections, for how long.
//!
//! A plan is data: the suites write it, the `load` command reads it as JSON in a process of its own, and the results
//! publish it.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// One load on one server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Connections take these addresses in turn: several loopback addresses (127.0.0.1, 127.0.0.2, …) have as many
    /// ranges of ports.
    pub targets: Vec<SocketAddr>,
    /// The address that connections come from; `None` leaves it to the kernel. Connections to one target have 28,000
    /// ports for each address that they come from, and the kernel soon searches long for a free one.
    #[serde(default)]
    pub source: Option<IpAddr>,
    /// The `Host` header.
    pub host: String,
    pub pace: Pace,
    pub connections: Connections,
    pub limit: Limit,
    /// A request that takes longer is given up, closes its connection and counts as a time-out.
    #[serde(with = "seconds")]
    pub timeout: Duration,
    /// Kinds of requests; each request is of one of them, by weight. Never empty.
    pub mix: Vec<Kind>,
    /// Of the random numbers: equal plans ask for equal sequences.
    pub seed: u64,
}

/// When requests are sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Pace {
    /// So many users; each sends its next request when its last is answered (or given up), without a pause. Latency is
    /// from the moment of sending (with a connection for each request: from the call of `connect`).
    Closed { users: u32 },
    /// So many requests a second, evenly spaced, whether or not others are answered. Latency is from the *scheduled*
    /// moment. A request for which no connection is free within `most_connections` waits; its clock runs.
    Open { rate: f64, most_connections: u32 },
    /// A closed loop whose number of users goes in straight lines through the stages, from 0. A user that is taken
    /// away finishes its request.
    Ramp { stages: Vec<Stage> },
}

/// A straight line to a number of users.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    #[serde(with = "seconds")]
    pub duration: Duration,
    pub users: u32,
}

/// How long a connection lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Connections {
    KeepAlive,
    /// A connection for each request, with `Connection: close`.
    PerRequest,
}

/// When a load ends. No new requests are sent then; those under way are waited for, up to the plan's time-out.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    #[serde(with = "seconds")]
    Duration(Duration),
    Requests(u64),
    /// At the end of a ramp.
    Stages,
}

/// Requests of one kind, and what must come back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kind {
    /// Names the kind in the outcome.
    pub name: String,
    /// Share among the kinds of the mix that may be sent now.
    pub weight: u32,
    /// `GET`, `POST` or `PUT`.
    pub method: String,
    /// Path and query. `{1-10}` is a random whole number from 1 to 10 inclusive, drawn anew for each request.
    pub target: String,
    /// Size of a request's body; 0: none.
    pub body_bytes: u64,
    /// Only while (seconds since the start ÷ `period`) mod `of` = `phase`.
    pub window: Option<Window>,
    /// The client closes the connection so long after sending, without waiting for more; counted as `left`.
    #[serde(with = "optional_seconds")]
    pub leave_after: Option<Duration>,
    pub expect: Expect,
}

/// Time windows in which a kind is sent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Window {
    #[serde(with = "seconds")]
    pub period: Duration,
    pub of: u32,
    pub phase: u32,
}

/// What the body of a right answer (status 200 to 299) is. An answer of another status is an error by status, another
/// body is a wrong one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Expect {
    /// Any body.
    Any,
    /// Just this text.
    Body(String),
    /// So many bytes.
    Bytes(u64),
}

/// Durations as seconds with a fraction.
mod seconds {
    use std::time::Duration;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(duration.as_secs_f64())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        Duration::try_from_secs_f64(f64::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

mod optional_seconds {
    use std::time::Duration;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        duration.map(|duration| duration.as_secs_f64()).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        Option::<f64>::deserialize(deserializer)?
            .map(|seconds| Duration::try_from_secs_f64(seconds).map_err(D::Error::custom))
            .transpose()
    }
}
