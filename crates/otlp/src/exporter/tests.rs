use super::*;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message;
use regent_config::{OtlpCollector, OtlpCompression, OtlpEndpoint, Secret};
use regent_traces::{SpanId, SpanKind, TraceId};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::{Duration, SystemTime};

/// Where nobody listens: port 1 of the last address in 127/8, all of which is this machine.
const NOBODY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 255, 255, 254)), 1);

/// Answers requests in their order with these heads, and then with 200, and passes on how many spans each had.
struct Fake {
    port: u16,
    requests: mpsc::Receiver<(String, usize)>,
}

impl Fake {
    fn answering(answers: &'static [&'static str]) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, requests) = mpsc::channel();
        std::thread::spawn(move || {
            let mut answers = answers.iter();
            for stream in listener.incoming() {
                serve(stream.unwrap(), &mut answers, &sender);
            }
        });
        Self { port, requests }
    }

    fn next(&self) -> (String, usize) {
        self.requests.recv_timeout(Duration::from_secs(60)).expect("a request")
    }
}

fn serve(
    stream: TcpStream,
    answers: &mut impl Iterator<Item = &'static &'static str>,
    sender: &mpsc::Sender<(String, usize)>,
) {
    let mut reader = BufReader::new(stream);
    loop {
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if let Some(text) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = text.trim().parse().unwrap();
            }
            if line == "\r\n" {
                break;
            }
            head.push_str(&line);
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let request = ExportTraceServiceRequest::decode(&body[..]).unwrap();
        let spans = request.resource_spans[0].scope_spans[0].spans.len();
        let answer = answers.next().copied().unwrap_or("200 OK\r\nContent-Length: 0");
        write!(reader.get_mut(), "HTTP/1.1 {answer}\r\n\r\n").unwrap();
        let _ = sender.send((head, spans));
    }
}

fn export(port: u16, batches: TraceBatches) -> TraceExport {
    let collector = OtlpCollector {
        endpoint: OtlpEndpoint {
            is_https: false,
            host: "127.0.0.1".to_owned(),
            port,
            path: "/v1/traces".to_owned(),
        },
        headers: vec![("x-team".to_owned(), Secret("one".to_owned()))],
        compression: OtlpCompression::None,
        timeout: Duration::from_secs(5),
        certificate: None,
        client: None,
        resource: Vec::new(),
    };
    TraceExport { collector, batches }
}

fn batches(queue: usize, size: usize, delay: Duration, patience: Duration) -> TraceBatches {
    TraceBatches { queue, size, delay, patience }
}

const LONG: Duration = Duration::from_secs(3600);

fn put(exporter: &Exporter, count: usize) {
    let sink = exporter.sink();
    for _ in 0..count {
        let now = SystemTime::now();
        sink.finished(Span {
            trace: TraceId::random(),
            id: SpanId::random(),
            parent: None,
            parent_is_remote: false,
            state: String::new(),
            kind: SpanKind::Server,
            name: "GET".to_owned(),
            began: now,
            ended: now,
            attributes: Vec::new(),
            failure: None,
        });
    }
}

fn lost(exporter: &Exporter) -> Vec<(Loss, u64)> {
    exporter.counts().lost().filter(|(_, spans)| *spans > 0).collect()
}

fn finish(exporter: &Exporter) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let finished =
        runtime.block_on(async { tokio::time::timeout(Duration::from_secs(60), exporter.finish()).await });
    finished.expect("it ends");
}

#[test]
fn spans_wait_for_a_batch_or_for_the_end() {
    let fake = Fake::answering(&[]);
    let exporter = Exporter::start(&export(fake.port, batches(100, 3, LONG, LONG)), "1").unwrap();
    put(&exporter, 3);
    let (head, spans) = fake.next();
    assert_eq!(spans, 3);
    assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{head}");
    assert!(
        head.contains("content-type: application/x-protobuf\r\n") && head.contains("x-team: one\r\n"),
        "{head}"
    );
    put(&exporter, 2);
    finish(&exporter);
    assert_eq!(fake.next().1, 2, "over the same connection");
    put(&exporter, 1);
    assert_eq!((exporter.counts().exported, lost(&exporter)), (5, vec![(Loss::Stopped, 1)]));
}

#[test]
fn a_batch_is_sent_again_when_the_collector_says_so() {
    let fake = Fake::answering(&[
        "429 Too Many Requests\r\nRetry-After: 0\r\nContent-Length: 0",
        "503 Service Unavailable\r\nRetry-After: 0\r\nContent-Length: 0",
        "200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\n\x0a\x02\x08\x01",
        "400 Bad Request\r\nContent-Length: 0",
    ]);
    let exporter = Exporter::start(&export(fake.port, batches(100, 2, LONG, LONG)), "1").unwrap();
    put(&exporter, 2);
    assert_eq!([fake.next().1, fake.next().1, fake.next().1], [2; 3]);
    put(&exporter, 2);
    assert_eq!(fake.next().1, 2);
    finish(&exporter);
    assert_eq!((exporter.counts().exported, lost(&exporter)), (1, vec![(Loss::Refused, 3)]));
}

#[test]
fn what_nobody_takes_is_counted_and_holds_up_nobody() {
    let mut export = export(NOBODY.port(), batches(4, 2, LONG, Duration::from_millis(1)));
    export.collector.endpoint.host = NOBODY.ip().to_string();
    let exporter = Exporter::start(&export, "1").unwrap();
    put(&exporter, 200);
    finish(&exporter);
    let lost: u64 = lost(&exporter).iter().map(|(_, spans)| spans).sum();
    assert_eq!((exporter.counts().exported, lost), (0, 200));
}

#[test]
fn a_collector_that_hangs_is_given_up_at_the_end() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut export = export(port, batches(4, 2, LONG, LONG));
    export.collector.timeout = Duration::from_millis(100);
    let exporter = Exporter::start(&export, "1").unwrap();
    put(&exporter, 2);
    let (hanging, _) = listener.accept().unwrap();
    put(&exporter, 10);
    finish(&exporter);
    drop(hanging);
    let lost: u64 = lost(&exporter).iter().map(|(_, spans)| spans).sum();
    assert_eq!((exporter.counts().exported, lost), (0, 12));
}
