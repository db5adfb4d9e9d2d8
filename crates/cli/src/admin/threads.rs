//! `regent threads`, `regent workers` and `regent native`.

use super::client::{Client, Patience};
use super::table::{Align, Span, Table, Tone, plain_text};
use super::units;
use crate::arguments::{Native, NativeChange, Selection, Threads, ThreadsChange, Workers, WorkersChange};
use anyhow::Result;
use http::Method;
use regent_admin::{Restarted, ThreadList, ThreadStack, ThreadState};
use serde::Deserialize;
use serde_json::Value;
use std::io::{self, Write};
use std::time::Duration;

const PATH: &str = "/regent/threads";

/// What became of a pool.
#[derive(Deserialize)]
struct Changed {
    pool: String,
    total: u16,
}

/// Lists or changes the threads of a running server.
pub fn threads(options: &Threads) -> Result<()> {
    let client = Client::new(options.admin.address.clone())?;
    let answer: Value = match &options.change {
        None => client.get(PATH)?,
        Some(ThreadsChange::Add(selection)) => change(&client, Method::PUT, selection)?,
        Some(ThreadsChange::Remove(selection)) => change(&client, Method::DELETE, selection)?,
        Some(ThreadsChange::Stack { index }) => client.get(&format!("{PATH}/stack?index={index}"))?,
    };
    let text = match &options.change {
        _ if options.json => serde_json::to_string_pretty(&answer)?,
        None => list(&serde_json::from_value(answer)?),
        Some(ThreadsChange::Stack { .. }) => stack(&serde_json::from_value(answer)?),
        Some(_) => changed(&serde_json::from_value(answer)?),
    };
    print(&text)
}

/// Starts the workers of a running server anew.
pub fn workers(options: &Workers) -> Result<()> {
    let client = Client::new(options.admin.address.clone())?;
    let WorkersChange::Restart = options.change;
    let Restarted { restarted } = client.call(Method::POST, "/regent/workers/restart", Patience::Long)?;
    print(&match restarted {
        1 => "1 thread has started anew".to_owned(),
        many => format!("{many} threads have started anew"),
    })
}

/// Loads the native modules of a running server anew.
pub fn native(options: &Native) -> Result<()> {
    let client = Client::new(options.admin.address.clone())?;
    let NativeChange::Restart = options.change;
    let Restarted { restarted } = client.call(Method::POST, "/regent/native/restart", Patience::Long)?;
    print(&match restarted {
        0 => "there are no native services".to_owned(),
        1 => "the native modules were loaded anew; 1 thread runs them".to_owned(),
        many => format!("the native modules were loaded anew; {many} threads run them"),
    })
}

/// Says it on the standard output. A reader that has seen enough (`| head`) is no error.
pub fn print(text: &str) -> Result<()> {
    match writeln!(io::stdout(), "{text}") {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => Ok(result?),
    }
}

/// A table of threads, in the order that they are given.
pub fn table<'a>(threads: impl IntoIterator<Item = &'a ThreadState>) -> Table {
    let mut table = Table::new(&[
        ("#", Align::Right),
        ("POOL", Align::Left),
        ("STATE", Align::Left),
        ("FOR", Align::Right),
        ("SERVED", Align::Right),
        ("MEMORY", Align::Right),
        ("REQUEST", Align::Left),
    ]);
    for thread in threads {
        table.row(vec![
            Span::plain(thread.index.to_string()),
            Span::plain(&thread.pool),
            Span::new(&thread.activity, tone(&thread.activity)),
            Span::plain(since(thread)),
            Span::plain(thread.request_count.to_string()),
            Span::plain(units::mebibytes(thread.memory_usage)),
            Span::plain(format!("{} {}", thread.current_method, thread.current_uri).trim()),
        ]);
    }
    table
}

/// How long it has been doing what it does.
fn since(thread: &ThreadState) -> String {
    match (thread.is_busy, thread.is_waiting) {
        (true, _) => units::duration(Duration::from_millis(thread.running_milliseconds)),
        (_, true) => units::duration(Duration::from_millis(thread.waiting_since_milliseconds)),
        _ => String::new(),
    }
}

fn tone(activity: &str) -> Tone {
    match activity {
        "busy" => Tone::Active,
        "stuck" | "backoff" => Tone::Bad,
        "starting" | "leaving" => Tone::Warning,
        _ => Tone::Quiet,
    }
}

fn list(list: &ThreadList) -> String {
    let lines = table(&list.thread_debug_states).lines();
    let rows: Vec<String> = lines.iter().map(plain_text).collect();
    let count = list.thread_debug_states.len();
    format!("{}\n{count} threads; {} more may be started", rows.join("\n"), list.reserved_thread_count)
}

fn stack(ThreadStack { index, stack }: &ThreadStack) -> String {
    match stack.as_slice() {
        [] => format!("thread {index} runs no script"),
        lines => lines.iter().map(|line| units::printable(line)).collect::<Vec<_>>().join("\n"),
    }
}

fn change(client: &Client, method: Method, selection: &Selection) -> Result<Value> {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("count", &selection.count.to_string());
    if let Some(worker) = &selection.worker {
        query.append_pair("worker", worker);
    }
    client.call(method, &format!("{PATH}?{}", query.finish()), Patience::Long)
}

fn changed(Changed { pool, total }: &Changed) -> String {
    let threads = if *total == 1 { "thread" } else { "threads" };
    format!("the pool {} has {total} {threads} now", units::printable(pool))
}
