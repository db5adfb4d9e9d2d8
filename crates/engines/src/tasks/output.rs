//! What tasks print, line by line into the server's log.

use super::TaskPlan;
use crate::engine_log::LogPace;
use std::future::poll_fn;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Bytes of a line; what is longer is several.
const MOST_LINE: usize = 8 * 1024;

#[derive(Clone, Copy)]
pub(super) enum Stream {
    Out,
    Error,
}

/// Reads to the end. A script that prints faster than can be logged waits.
pub(super) async fn follow(plan: TaskPlan, stream: Stream, mut from: impl AsyncRead + Unpin) {
    let mut pace = LogPace::default();
    let mut buffer = [0; 4096];
    let mut line = Vec::new();
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        for byte in &buffer[..count] {
            match byte {
                b'\n' => log(&plan, stream, &mut line, &mut pace).await,
                byte => {
                    line.push(*byte);
                    if line.len() == MOST_LINE {
                        log(&plan, stream, &mut line, &mut pace).await;
                    }
                }
            }
        }
    }
    log(&plan, stream, &mut line, &mut pace).await;
}

async fn log(plan: &TaskPlan, stream: Stream, line: &mut Vec<u8>, pace: &mut LogPace) {
    let text = String::from_utf8_lossy(line);
    let text = text.trim_end();
    if !text.is_empty() {
        poll_fn(|context| pace.poll_ready(context)).await;
        let (task, number) = (plan.task.name.as_str(), plan.number);
        match stream {
            Stream::Out => tracing::info!(target: "task", task, number, "{text}"),
            Stream::Error => tracing::warn!(target: "task", task, number, "{text}"),
        }
        pace.count();
    }
    line.clear();
}
