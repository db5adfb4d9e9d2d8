//! The list of threads, with what each of them runs.

use crate::seen::{self, Seen};
use regent_admin::{Activity, Current, Thread, Threads};
use regent_engines::{EngineControl, PoolPlan, Running, ThreadListing, ThreadStage, View};
use regent_wire::{RequestLine, ThreadState, Token};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

/// All threads of the current engines. I/O threads are asked what their requests are.
pub(crate) async fn list(views: Vec<Seen<'_>>) -> Threads {
    let mut all = Threads { threads: Vec::new(), reserved: 0 };
    for (engine, view) in views {
        let of_engine = of_engine(engine, view).await;
        all.threads.extend(of_engine.threads);
        all.reserved += of_engine.reserved;
    }
    all
}

async fn of_engine(engine: &EngineControl, view: View) -> Threads {
    let lines = request_lines(engine, &view).await;
    let in_use: usize = view.pools.iter().map(|pool| usize::from(pool.size)).sum();
    let reserved = engine.most_threads.saturating_sub(in_use);
    let pools = engine.plans.iter().zip(view.pools);
    let mut threads: Vec<Thread> = pools
        .flat_map(|(plan, pool)| {
            let lines = &lines;
            pool.threads.into_iter().map(move |listing| thread(plan, &listing, lines))
        })
        .collect();
    threads.sort_unstable_by_key(|thread| thread.index);
    Threads { threads, reserved: u32::try_from(reserved).unwrap_or(u32::MAX) }
}

fn thread(plan: &PoolPlan, listing: &ThreadListing, lines: &HashMap<Token, Running>) -> Thread {
    Thread {
        index: u32::from(listing.index),
        engine: seen::engine(plan.kind),
        pool: plan.name.clone(),
        worker: plan.worker.as_ref().map(|file| file.display().to_string()),
        activity: activity(listing, lines),
        requests: listing.view.requests,
        memory: listing.view.memory,
    }
}

fn activity(listing: &ThreadListing, lines: &HashMap<Token, Running>) -> Activity {
    let current = || Current {
        started_at: SystemTime::now() - listing.since,
        ..lines.get(&listing.view.token).map_or_else(unknown, |running| known(&running.line))
    };
    match (listing.stage, listing.view.state) {
        (ThreadStage::Retiring | ThreadStage::Replaced | ThreadStage::WrittenOff, ThreadState::Busy) => {
            Activity::Leaving(Some(current()))
        }
        (
            ThreadStage::Retiring | ThreadStage::Failed | ThreadStage::Replaced | ThreadStage::WrittenOff,
            _,
        ) => Activity::Leaving(None),
        (ThreadStage::Ordered, ThreadState::Idle) => Activity::Idle(listing.since),
        (ThreadStage::Ordered, ThreadState::Busy) if listing.is_stuck => Activity::Stuck(current()),
        (ThreadStage::Ordered, ThreadState::Busy) => Activity::Busy(current()),
        (ThreadStage::Ordered, ThreadState::Backoff) => Activity::Backoff,
        (ThreadStage::Ordered, ThreadState::Absent | ThreadState::Booting) => Activity::Starting,
    }
}

fn known(line: &RequestLine) -> Current {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Current { method: text(&line.method), uri: text(&line.uri), started_at: SystemTime::UNIX_EPOCH }
}

/// Its request ended between the two questions.
fn unknown() -> Current {
    Current { method: String::new(), uri: String::new(), started_at: SystemTime::UNIX_EPOCH }
}

async fn request_lines(engine: &EngineControl, view: &View) -> HashMap<Token, Running> {
    let threads = view.pools.iter().flat_map(|pool| &pool.threads);
    let tokens: Arc<[Token]> = threads
        .filter(|thread| thread.view.state == ThreadState::Busy)
        .map(|thread| thread.view.token)
        .collect();
    engine.clients.describe(&view.backend, tokens).await
}
