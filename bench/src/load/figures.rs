//! What a program that makes load has measured.

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Requests or handshakes that were right.
    pub done: u64,
    pub failed: u64,
    pub per_second: f64,
    /// `None` of handshakes.
    pub p50_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    /// Of bodies, as they were sent, for each request.
    pub body_bytes: Option<f64>,
}
