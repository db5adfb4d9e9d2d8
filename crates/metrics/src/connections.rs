//! Connections of clients, by the protocol that they speak, and how their handshakes end.

use crate::counter::Counter;
use crate::families::{Labels, counter, gauge, labels};
use prometheus::proto::MetricFamily;
use std::sync::{Arc, Mutex, PoisonError};

/// What a connection speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.0 and HTTP/1.1.
    H1,
    H2,
    H3,
}

/// What a handshake of TLS goes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandshakeTransport {
    Tcp,
    Quic,
}

/// Whether a client had a ticket of an earlier connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandshakeKind {
    Full,
    Resumed,
}

/// Why there is no connection after a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandshakeFailure {
    /// It took too long.
    Timeout,
    /// Too many were under way, and it was the oldest.
    Displaced,
    /// The client named no site, or none that there is.
    UnknownName,
    /// None has been obtained yet.
    NoCertificate,
    /// The name may have no certificate on demand.
    NotAllowed,
    /// The client sent HTTP without TLS.
    PlainHttp,
    ClientLeft,
    /// Protocols, ciphers or certificates do not fit, or the client broke the rules.
    Failed,
}

impl Protocol {
    const ALL: [Self; 3] = [Self::H1, Self::H2, Self::H3];

    fn label(self) -> &'static str {
        ["h1", "h2", "h3"][self as usize]
    }
}

impl HandshakeTransport {
    const ALL: [Self; 2] = [Self::Tcp, Self::Quic];

    fn label(self) -> &'static str {
        ["tcp", "quic"][self as usize]
    }
}

impl HandshakeKind {
    const ALL: [Self; 2] = [Self::Full, Self::Resumed];

    fn label(self) -> &'static str {
        ["full", "resumed"][self as usize]
    }
}

impl HandshakeFailure {
    const ALL: [Self; 8] = [
        Self::Timeout,
        Self::Displaced,
        Self::UnknownName,
        Self::NoCertificate,
        Self::NotAllowed,
        Self::PlainHttp,
        Self::ClientLeft,
        Self::Failed,
    ];

    fn label(self) -> &'static str {
        const LABELS: [&str; HandshakeFailure::ALL.len()] = [
            "timeout",
            "displaced",
            "unknown_name",
            "no_certificate",
            "not_allowed",
            "plain_http",
            "client_left",
            "failed",
        ];
        LABELS[self as usize]
    }
}

/// One for each I/O thread, from [`Registry::connection_meter`](crate::Registry::connection_meter). It can go to a thread but
/// not be shared by several.
pub struct ConnectionMeter(Arc<Figures>);

/// A connection that is open as long as this lives.
pub struct OpenConnection<'a> {
    of: &'a ConnectionMeter,
    protocol: Protocol,
}

/// Of one I/O thread.
#[derive(Default)]
struct Figures {
    protocols: [ProtocolFigures; Protocol::ALL.len()],
    handshakes: [HandshakeFigures; HandshakeTransport::ALL.len()],
    quic_retries: Counter,
    quic_refused: Counter,
}

#[derive(Default)]
struct ProtocolFigures {
    opened: Counter,
    closed: Counter,
    requests: Counter,
}

#[derive(Default)]
struct HandshakeFigures {
    done: [Counter; HandshakeKind::ALL.len()],
    failed: [Counter; HandshakeFailure::ALL.len()],
}

impl ConnectionMeter {
    pub fn open(&self, protocol: Protocol) -> OpenConnection<'_> {
        self.0.protocols[protocol as usize].opened.add(1);
        OpenConnection { of: self, protocol }
    }

    pub fn handshake_done(&self, transport: HandshakeTransport, kind: HandshakeKind) {
        self.0.handshakes[transport as usize].done[kind as usize].add(1);
    }

    pub fn handshake_failed(&self, transport: HandshakeTransport, failure: HandshakeFailure) {
        self.0.handshakes[transport as usize].failed[failure as usize].add(1);
    }

    /// A client of QUIC has to prove its address first.
    pub fn quic_retried(&self) {
        self.0.quic_retries.add(1);
    }

    /// A client of QUIC was refused before its handshake.
    pub fn quic_refused(&self) {
        self.0.quic_refused.add(1);
    }
}

impl OpenConnection<'_> {
    pub fn request(&self) {
        self.of.0.protocols[self.protocol as usize].requests.add(1);
    }
}

impl Drop for OpenConnection<'_> {
    fn drop(&mut self) {
        self.of.0.protocols[self.protocol as usize].closed.add(1);
    }
}

/// Of all I/O threads.
#[derive(Default)]
pub(crate) struct ConnectionFamily(Mutex<Vec<Arc<Figures>>>);

impl ConnectionFamily {
    pub fn meter(&self) -> ConnectionMeter {
        let figures = Arc::<Figures>::default();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&figures));
        ConnectionMeter(figures)
    }

    pub fn families(&self) -> Vec<MetricFamily> {
        let threads = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let sum =
            |of: &dyn Fn(&Figures) -> u64| threads.iter().map(|figures| of(figures)).sum::<u64>() as f64;
        let by_protocol = |of: fn(&ProtocolFigures) -> u64| {
            let series = Protocol::ALL.map(|protocol| {
                let value = sum(&|figures| of(&figures.protocols[protocol as usize]));
                (labels(&[("protocol", protocol.label())]), value)
            });
            series.to_vec()
        };
        vec![
            counter(
                "regent_connections_total",
                "Connections of clients that were served, by protocol.",
                by_protocol(|figures| figures.opened.get()),
            ),
            gauge(
                "regent_connections",
                "Connections of clients that are open, by protocol.",
                // A thread may have opened and closed one between the two looks.
                by_protocol(|figures| {
                    let closed = figures.closed.get();
                    figures.opened.get().saturating_sub(closed)
                }),
            ),
            counter(
                "regent_http_requests_total",
                "Requests of all kinds, by protocol.",
                by_protocol(|figures| figures.requests.get()),
            ),
            counter(
                "regent_tls_handshakes_total",
                "Handshakes that have led to a connection, by transport and kind.",
                by_transport(HandshakeKind::ALL, ("kind", HandshakeKind::label), |transport, kind| {
                    sum(&|figures| figures.handshakes[transport as usize].done[kind as usize].get())
                }),
            ),
            counter(
                "regent_tls_handshake_failures_total",
                "Handshakes that have led to no connection, by transport and reason.",
                by_transport(
                    HandshakeFailure::ALL,
                    ("reason", HandshakeFailure::label),
                    |transport, reason| {
                        sum(&|figures| figures.handshakes[transport as usize].failed[reason as usize].get())
                    },
                ),
            ),
            counter(
                "regent_quic_retries_total",
                "Clients of QUIC that had to prove their addresses first.",
                [(vec![], sum(&|figures| figures.quic_retries.get()))],
            ),
            counter(
                "regent_quic_refused_total",
                "Clients of QUIC that were refused before their handshakes.",
                [(vec![], sum(&|figures| figures.quic_refused.get()))],
            ),
        ]
    }
}

fn by_transport<T: Copy, const N: usize>(
    all: [T; N],
    (name, label): (&str, fn(T) -> &'static str),
    value: impl Fn(HandshakeTransport, T) -> f64,
) -> Vec<(Labels, f64)> {
    let series = |transport: HandshakeTransport| {
        all.map(|each| {
            (labels(&[(name, label(each)), ("transport", transport.label())]), value(transport, each))
        })
    };
    HandshakeTransport::ALL.into_iter().flat_map(series).collect()
}

#[cfg(test)]
mod tests {
    use crate::{Gauges, HandshakeFailure, HandshakeKind, HandshakeTransport, Protocol, Registry, render};
    use std::time::Instant;

    #[test]
    fn figures_of_all_threads_are_added_up() {
        let registry = Registry::new(Instant::now());
        let (one, other) = (registry.connection_meter(), registry.connection_meter());
        let open = one.open(Protocol::H2);
        open.request();
        open.request();
        drop(other.open(Protocol::H2));
        other.handshake_done(HandshakeTransport::Quic, HandshakeKind::Resumed);
        one.handshake_failed(HandshakeTransport::Tcp, HandshakeFailure::PlainHttp);
        one.quic_retried();
        let text = render(&registry, &Gauges::default());
        for line in [
            "regent_connections_total{protocol=\"h2\"} 2",
            "regent_connections{protocol=\"h2\"} 1",
            "regent_connections{protocol=\"h3\"} 0",
            "regent_http_requests_total{protocol=\"h2\"} 2",
            "regent_tls_handshakes_total{kind=\"resumed\",transport=\"quic\"} 1",
            "regent_tls_handshake_failures_total{reason=\"plain_http\",transport=\"tcp\"} 1",
            "regent_quic_retries_total 1",
            "regent_quic_refused_total 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in {text}");
        }
    }

    #[test]
    fn every_label_stands_at_its_number() {
        for (number, failure) in HandshakeFailure::ALL.into_iter().enumerate() {
            assert_eq!(failure as usize, number);
        }
        assert_eq!(HandshakeFailure::Failed.label(), "failed");
        assert_eq!(HandshakeFailure::NotAllowed.label(), "not_allowed");
    }
}
