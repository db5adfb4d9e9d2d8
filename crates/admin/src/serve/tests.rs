//! Clients that stall, on a clock that only moves when nothing else does.

use super::*;
use crate::address::Address;
use crate::certificate::Certificate;
use crate::control::{
    Adapted, Change, ProfileWish, Readiness, Refusal, Reload, Reloaded, Restarted, Upgraded,
};
use crate::guard::Access;
use crate::listener;
use crate::pool::Pool;
use crate::statistics::Statistics;
use crate::thread::{ThreadStack, Threads};
use futures_util::future::BoxFuture;
use regent_metrics::AdminRequest;
use regent_net::Inherited;
use std::num::NonZeroU16;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// A server without PHP, whose metrics are long.
struct Bare;

const LONG: usize = 1 << 20;

impl Control for Bare {
    fn answered(&self, _: AdminRequest<'_>) {}

    fn threads(&self) -> BoxFuture<'_, Result<Threads, Refusal>> {
        Box::pin(async { Ok(Threads { threads: Vec::new(), reserved: 0 }) })
    }

    fn stack(&self, index: u16) -> BoxFuture<'_, Result<ThreadStack, Refusal>> {
        Box::pin(async move { Err(Refusal::UnknownThread(index)) })
    }

    fn profile(&self, _: ProfileWish) -> BoxFuture<'_, Result<regent_profile::Profile, Refusal>> {
        Box::pin(async { Ok(regent_profile::Profile::default()) })
    }

    fn pools(&self) -> BoxFuture<'_, Result<Vec<Pool>, Refusal>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn add<'a>(&'a self, pool: &'a str, _: NonZeroU16) -> BoxFuture<'a, Result<Change, Refusal>> {
        Box::pin(async move { Err(Refusal::UnknownPool(pool.to_owned())) })
    }

    fn remove<'a>(&'a self, pool: &'a str, count: NonZeroU16) -> BoxFuture<'a, Result<Change, Refusal>> {
        self.add(pool, count)
    }

    fn restart_workers(&self) -> BoxFuture<'_, Result<Restarted, Refusal>> {
        Box::pin(async { Ok(Restarted { restarted: 0 }) })
    }

    fn reload(&self, _: Reload) -> BoxFuture<'_, Result<Reloaded, Refusal>> {
        Box::pin(async { Ok(Reloaded { changed: false, warnings: Vec::new(), before: None }) })
    }

    fn restart_native(&self) -> BoxFuture<'_, Result<Restarted, Refusal>> {
        Box::pin(async { Ok(Restarted { restarted: 0 }) })
    }

    fn adapt(&self, _: String) -> BoxFuture<'_, Result<Adapted, Refusal>> {
        Box::pin(async { Err(Refusal::Configuration("there is no language".into())) })
    }

    fn upgrade(&self, _: Option<Duration>) -> BoxFuture<'_, Result<Upgraded, Refusal>> {
        Box::pin(async { Ok(Upgraded { process: 1 }) })
    }

    fn readiness(&self) -> BoxFuture<'_, Readiness> {
        Box::pin(async { Readiness::NotReady("there is no PHP".into()) })
    }

    fn metrics(&self) -> BoxFuture<'_, String> {
        Box::pin(async { "a".repeat(LONG) })
    }

    fn statistics(&self) -> BoxFuture<'_, Result<Statistics, Refusal>> {
        Box::pin(std::future::pending())
    }

    fn upstreams(&self) -> Vec<crate::Upstream> {
        Vec::new()
    }

    fn authority(&self) -> BoxFuture<'_, Option<crate::CertificateAuthority>> {
        Box::pin(async { None })
    }

    fn tasks(&self) -> Vec<crate::Task> {
        Vec::new()
    }

    fn order(&self, task: &str, _: crate::TaskOrder) -> Result<u16, Refusal> {
        Err(Refusal::UnknownTask(task.to_owned()))
    }

    fn cache(&self) -> crate::CacheFigures {
        crate::CacheFigures::default()
    }

    fn purge(&self, _: crate::CachePurge) -> BoxFuture<'_, Result<crate::Purged, Refusal>> {
        Box::pin(async { Ok(crate::Purged { purged: 0 }) })
    }

    fn certificates(&self) -> BoxFuture<'_, Vec<Certificate>> {
        Box::pin(async { Vec::new() })
    }

    fn configuration(&self) -> Arc<serde_json::Value> {
        Arc::default()
    }

    fn stop(&self) {}
}

/// A connection to it, and its task, which ends when the listener is done with it. Without the last part it would be told
/// to end.
fn connect() -> (DuplexStream, JoinHandle<()>, GracefulShutdown) {
    let (client, server) = tokio::io::duplex(1024);
    let listeners =
        listener::bind(&Address::Tcp { host: "localhost".into(), port: 0 }, &Inherited::default()).unwrap();
    let site = Arc::new(Site {
        guard: Guard::new(&listeners, Access::default()),
        shared: Shared::new(Arc::new(Bare)),
    });
    let graceful = GracefulShutdown::new();
    let task = tokio::spawn(converse(server, site, graceful.watcher()));
    (client, task, graceful)
}

/// How long the listener bears with a client that sends this and then does nothing; all that it answers is read.
async fn patience(request: &str) -> (Duration, String) {
    let (mut client, ended, _running) = connect();
    let started = Instant::now();
    client.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    ended.await.unwrap();
    // clock: virtual in all tests that call this.
    (started.elapsed(), answer)
}

fn is_about(measured: Duration, expected: Duration) -> bool {
    measured >= expected && measured < expected + Duration::from_millis(50)
}

#[tokio::test(start_paused = true)]
async fn a_head_that_does_not_end_ends_the_connection() {
    for head in ["", "GET / HTTP/1.1\r\nHost: loc"] {
        let (elapsed, _) = patience(head).await;
        assert!(is_about(elapsed, HEAD_PATIENCE), "{head:?} {elapsed:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn silence_after_a_call_ends_the_connection() {
    let (elapsed, answer) = patience("GET /regent/live HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200 ") && is_about(elapsed, HEAD_PATIENCE), "{elapsed:?} {answer}");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_come_is_answered_408() {
    let head = "PATCH /config/apps/frankenphp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{";
    let (elapsed, answer) = patience(head).await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(elapsed < HEAD_PATIENCE + Duration::from_secs(6), "{elapsed:?}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_not_taken_ends_the_connection() {
    let (mut client, ended, _running) = connect();
    let started = Instant::now();
    client.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    tokio::time::timeout(Duration::from_secs(3600), ended).await.expect("it ends").unwrap();
    assert!(is_about(started.elapsed(), WRITE_PATIENCE), "{:?}", started.elapsed());
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).await.unwrap();
    assert!(answer.len() < LONG);
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_gets_all_of_it() {
    let (mut client, _, _running) = connect();
    client.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await.unwrap();
    let (mut received, mut buffer) = (0, [0; 64 * 1024]);
    loop {
        tokio::time::sleep(WRITE_PATIENCE / 2).await;
        match client.read(&mut buffer).await.unwrap() {
            0 => break,
            length => received += length,
        }
    }
    assert!(received > LONG);
}
