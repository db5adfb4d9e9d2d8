//! What is around spans and metrics in a request to the collector.

use crate::batch;
use crate::message::metrics::{ExportMetricsServiceRequest, Metric, ResourceMetrics, ScopeMetrics};
use crate::message::{
    AnyValue, ExportTraceServiceRequest, InstrumentationScope, KeyValue, Resource, ResourceSpans, ScopeSpans,
    Value,
};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;
use regent_config::OtlpCompression;
use regent_traces as traces;
use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

/// Who says so.
const SCOPE: &str = "regent";
/// What all requests say of this server.
pub(crate) struct Envelope {
    resource: Resource,
    scope: InstrumentationScope,
    compression: OtlpCompression,
}

impl Envelope {
    /// `version`: that of the server.
    pub fn new(attributes: &[(String, String)], version: &str, compression: OtlpCompression) -> Self {
        let own = [
            ("process.pid", Value::Number(i64::from(std::process::id()))),
            ("service.version", Value::Text(version.to_owned())),
            ("telemetry.sdk.language", Value::Text("rust".to_owned())),
            ("telemetry.sdk.name", Value::Text(SCOPE.to_owned())),
            ("telemetry.sdk.version", Value::Text(version.to_owned())),
            ("webengine.name", Value::Text("Regent".to_owned())),
            ("webengine.version", Value::Text(version.to_owned())),
        ];
        // What the environment says goes before.
        let own = own.into_iter().filter(|(name, _)| !attributes.iter().any(|(known, _)| known == name));
        let given = attributes.iter().map(|(name, value)| pair(name.clone(), Value::Text(value.clone())));
        let attributes = given.chain(own.map(|(name, value)| pair(name.to_owned(), value))).collect();
        let scope = InstrumentationScope { name: SCOPE.to_owned(), version: version.to_owned() };
        Self { resource: Resource { attributes }, scope, compression }
    }

    /// The body of a request.
    pub fn of_spans(&self, spans: Vec<traces::Span>) -> Bytes {
        let spans = spans.into_iter().map(batch::span).collect();
        let of_scope = ScopeSpans { scope: Some(self.scope.clone()), spans };
        let resource = Some(self.resource.clone());
        let resource_spans = vec![ResourceSpans { resource, scope_spans: vec![of_scope] }];
        self.packed(&ExportTraceServiceRequest { resource_spans })
    }

    /// The body of a request.
    pub fn of_metrics(&self, metrics: Vec<Metric>) -> Bytes {
        let of_scope = ScopeMetrics { scope: Some(self.scope.clone()), metrics };
        let resource = Some(self.resource.clone());
        let resource_metrics = vec![ResourceMetrics { resource, scope_metrics: vec![of_scope] }];
        self.packed(&ExportMetricsServiceRequest { resource_metrics })
    }

    fn packed(&self, request: &impl Message) -> Bytes {
        let plain = request.encode_to_vec();
        match self.compression {
            OtlpCompression::None => plain.into(),
            OtlpCompression::Gzip => gzipped(&plain).into(),
        }
    }
}

fn gzipped(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(plain.len() / 4), Compression::fast());
    // A vector takes everything.
    encoder
        .write_all(plain)
        .and_then(|()| encoder.finish())
        .expect("invariant: writing to memory does not fail")
}

pub(crate) fn pair(key: String, value: Value) -> KeyValue {
    KeyValue { key, value: Some(AnyValue { value: Some(value) }) }
}

/// Since the Unix epoch.
pub(crate) fn nanoseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
