//! What is counted and measured of every request, and how it is read.
//!
//! Each I/O thread writes with a [`Recorder`] of its own: relaxed atomics that no other thread writes. A [`Registry`]
//! knows the names and all recorders, and gives out plain data at any time: a [`Report`] for people, [`render`] for
//! Prometheus.
#![forbid(unsafe_code)]

mod administration;
mod bounds;
mod cache;
mod circuits;
mod connections;
mod counter;
mod exposition;
mod families;
mod figures;
mod gauges;
mod histogram;
mod history;
mod http;
mod names;
mod php;
mod rate_zones;
mod reading;
mod recorder;
mod registry;
mod report;
mod snapshot;
mod tasks;
mod threads;
mod traces;

pub use administration::{AdminRequest, ReloadOutcome};
pub use connections::{
    ConnectionMeter, HandshakeFailure, HandshakeKind, HandshakeTransport, OpenConnection, Protocol,
};
pub use exposition::{CONTENT_TYPE, families, render};
pub use gauges::{
    CacheDiskGauges, CacheGauges, CertificateGauge, CircuitGauge, Gauges, LaneGauges, MemoryGauges, PhpGauge,
    PoolGauges, RateZoneGauge, Threads, TraceGauges, UpstreamGauge,
};
pub use histogram::Histogram;
pub use http::{HostLabel, Hosts, HttpLabels, HttpMeter, HttpRequest, MAX_OBSERVED_HOSTS, Outcome, ScopeId};
pub use names::{MAX_POOLS, MAX_ROUTES, PoolId, RouteId, Serves, Standing};
pub use recorder::{Recorder, Request};
pub use registry::{Direction, Registry};
pub use report::{
    Answers, Deadlines, LastMinute, Latency, Period, PoolLatencies, PoolReport, Report, RouteLatencies,
    RouteReport, Shed,
};
pub use snapshot::Snapshot;
pub use tasks::TaskEnd;

pub use prometheus::proto::MetricFamily;
pub use regent_dispatch::admission::Reason;
