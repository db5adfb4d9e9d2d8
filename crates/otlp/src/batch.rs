//! Spans as one request to the collector.

use crate::message::{
    AnyValue, ExportTraceServiceRequest, InstrumentationScope, KeyValue, Resource, ResourceSpans, ScopeSpans,
    Span, SpanKind, Status, StatusCode, Value,
};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;
use regent_config::TraceCompression;
use regent_traces as traces;
use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

/// Who says so.
const SCOPE: &str = "regent";
/// Of [`Span::flags`]: the trace is sampled; it is known whether the parent is of another process; it is.
const SAMPLED: u32 = 0x1;
const KNOWS_WHERE_THE_PARENT_IS: u32 = 0x100;
const PARENT_IS_REMOTE: u32 = 0x200;

/// What all batches say of this server.
pub(crate) struct Envelope {
    resource: Resource,
    compression: TraceCompression,
}

impl Envelope {
    /// `version`: that of the server.
    pub fn new(attributes: &[(String, String)], version: &str, compression: TraceCompression) -> Self {
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
        Self { resource: Resource { attributes }, compression }
    }

    /// The body of the request.
    pub fn body(&self, spans: Vec<traces::Span>, version: &str) -> Bytes {
        let scope = InstrumentationScope { name: SCOPE.to_owned(), version: version.to_owned() };
        let spans = spans.into_iter().map(span).collect();
        let request = ExportTraceServiceRequest {
            resource_spans: vec![ResourceSpans {
                resource: Some(self.resource.clone()),
                scope_spans: vec![ScopeSpans { scope: Some(scope), spans }],
            }],
        };
        let plain = request.encode_to_vec();
        match self.compression {
            TraceCompression::None => plain.into(),
            TraceCompression::Gzip => gzipped(&plain).into(),
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

fn span(span: traces::Span) -> Span {
    let remote = if span.parent_is_remote { PARENT_IS_REMOTE } else { 0 };
    Span {
        trace_id: span.trace.bytes().to_vec(),
        span_id: span.id.bytes().to_vec(),
        trace_state: span.state,
        parent_span_id: span.parent.map(|parent| parent.bytes().to_vec()).unwrap_or_default(),
        name: span.name,
        kind: kind(span.kind).into(),
        start_time_unix_nano: nanoseconds(span.began),
        end_time_unix_nano: nanoseconds(span.ended),
        attributes: span.attributes.into_iter().map(attribute).collect(),
        status: span.failure.map(|message| Status { message, code: StatusCode::Error.into() }),
        flags: SAMPLED | KNOWS_WHERE_THE_PARENT_IS | remote,
    }
}

fn kind(kind: traces::SpanKind) -> SpanKind {
    match kind {
        traces::SpanKind::Internal => SpanKind::Internal,
        traces::SpanKind::Server => SpanKind::Server,
        traces::SpanKind::Client => SpanKind::Client,
    }
}

fn attribute(attribute: traces::Attribute) -> KeyValue {
    let value = match attribute.value {
        traces::Value::Text(text) => Value::Text(text),
        traces::Value::Number(number) => Value::Number(number),
    };
    pair(attribute.name.into_owned(), value)
}

fn pair(key: String, value: Value) -> KeyValue {
    KeyValue { key, value: Some(AnyValue { value: Some(value) }) }
}

/// Since the Unix epoch.
fn nanoseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest as Official;
    use opentelemetry_proto::tonic::common::v1::any_value::Value as OfficialValue;
    use regent_traces::{Attribute, SpanId, TraceId};
    use std::io::Read;
    use std::time::Duration;

    fn example() -> traces::Span {
        let began = UNIX_EPOCH + Duration::from_nanos(1_700_000_000_123_456_789);
        traces::Span {
            trace: TraceId::random(),
            id: SpanId::random(),
            parent: Some(SpanId::random()),
            parent_is_remote: true,
            state: "a=1".to_owned(),
            kind: traces::SpanKind::Client,
            name: "GET".to_owned(),
            began,
            ended: began + Duration::from_millis(5),
            attributes: vec![
                Attribute::text("url.path", b"/\xff"),
                Attribute::number("http.response.status_code", 502_i64),
            ],
            failure: Some("502".to_owned()),
        }
    }

    /// What the protocol's own code makes of it.
    #[test]
    fn others_read_what_is_written() {
        let given =
            [("service.name".to_owned(), "shop".to_owned()), ("process.pid".to_owned(), "7".to_owned())];
        let span = example();
        for compression in [TraceCompression::None, TraceCompression::Gzip] {
            let body =
                Envelope::new(&given, "1.2.3", compression).body(vec![span.clone(), example()], "1.2.3");
            let mut plain = Vec::new();
            match compression {
                TraceCompression::None => plain.extend_from_slice(&body),
                TraceCompression::Gzip => {
                    flate2::read::GzDecoder::new(&body[..]).read_to_end(&mut plain).map(drop).unwrap();
                }
            }
            let read = Official::decode(&plain[..]).unwrap();
            let [spans] = &read.resource_spans[..] else { panic!("{read:?}") };
            let resource = &spans.resource.as_ref().unwrap().attributes;
            let of = |name: &str| {
                let mut found = resource.iter().filter(|pair| pair.key == name);
                let value = found.next().and_then(|pair| pair.value.clone()?.value);
                assert!(found.next().is_none(), "{name} is there twice");
                value
            };
            assert_eq!(of("service.name"), Some(OfficialValue::StringValue("shop".into())));
            assert_eq!(of("process.pid"), Some(OfficialValue::StringValue("7".into())));
            assert_eq!(of("webengine.version"), Some(OfficialValue::StringValue("1.2.3".into())));
            let read = &spans.scope_spans[0].spans;
            assert_eq!(read.len(), 2);
            let read = &read[0];
            assert_eq!(
                (&read.trace_id[..], &read.span_id[..]),
                (&span.trace.bytes()[..], &span.id.bytes()[..])
            );
            assert_eq!(read.parent_span_id, span.parent.unwrap().bytes());
            assert_eq!((read.name.as_str(), read.trace_state.as_str(), read.kind), ("GET", "a=1", 3));
            assert_eq!(read.start_time_unix_nano, 1_700_000_000_123_456_789);
            assert_eq!(read.end_time_unix_nano - read.start_time_unix_nano, 5_000_000);
            assert_eq!(read.flags, 0x301);
            let status = read.status.as_ref().unwrap();
            assert_eq!((status.code, status.message.as_str()), (2, "502"));
            let values: Vec<_> =
                read.attributes.iter().map(|pair| pair.value.clone().unwrap().value.unwrap()).collect();
            assert_eq!(
                values,
                [OfficialValue::StringValue("/\u{fffd}".into()), OfficialValue::IntValue(502)]
            );
        }
    }
}
