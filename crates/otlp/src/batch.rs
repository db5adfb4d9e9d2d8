//! Finished spans as the protocol has them.

use crate::envelope::{nanoseconds, pair};
use crate::message::{KeyValue, Span, SpanKind, Status, StatusCode, Value};
use regent_traces as traces;

/// Of [`Span::flags`]: the trace is sampled; it is known whether the parent is of another process; it is.
const SAMPLED: u32 = 0x1;
const KNOWS_WHERE_THE_PARENT_IS: u32 = 0x100;
const PARENT_IS_REMOTE: u32 = 0x200;

pub(crate) fn span(span: traces::Span) -> Span {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envelope::Envelope;
    use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest as Official;
    use opentelemetry_proto::tonic::common::v1::any_value::Value as OfficialValue;
    use prost::Message;
    use regent_config::OtlpCompression;
    use regent_traces::{Attribute, SpanId, TraceId};
    use std::io::Read;
    use std::time::{Duration, UNIX_EPOCH};

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
        for compression in [OtlpCompression::None, OtlpCompression::Gzip] {
            let body = Envelope::new(&given, "1.2.3", compression).of_spans(vec![span.clone(), example()]);
            let mut plain = Vec::new();
            match compression {
                OtlpCompression::None => plain.extend_from_slice(&body),
                OtlpCompression::Gzip => {
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
