//! `regent top`: a running server, live.

use super::client::Client;
use super::fleet::fleet;
use super::frame::{Room, Snapshot, frame};
use super::live::{PERIOD, Picture, watch};
use super::table::{Line, Span, Tone, plain_text};
use super::threads::print;
use crate::arguments::Top;
use anyhow::Result;
use regent_admin::Address;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::time::SystemTime;

/// Shows the figures once, or until `q`, Escape or Ctrl-C.
///
/// # Errors
/// When no server answers at first. Later it is shown, and asked for again.
pub fn top(options: &Top) -> Result<()> {
    if !options.fleet.is_empty() {
        return fleet(&options.fleet, options.once);
    }
    let client = Client::new(options.admin.address.clone())?;
    let first = ask(&client)?;
    if options.once {
        let lines = frame(client.address(), &first, Room::Unlimited);
        return print(&lines.iter().map(plain_text).collect::<Vec<_>>().join("\n"));
    }
    let address = client.address().clone();
    watch(&mut View { address, snapshot: first, silence: None, news: ask_on(client) })
}

fn ask(client: &Client) -> Result<Snapshot> {
    Ok(Snapshot {
        statistics: client.get("/regent/statistics")?,
        threads: client.get("/regent/threads")?,
        taken_at: SystemTime::now(),
    })
}

/// Asks every second, on a thread of its own: a server that does not answer must not keep a key waiting.
fn ask_on(client: Client) -> Receiver<Result<Snapshot>> {
    let (sender, receiver): (SyncSender<_>, _) = sync_channel(1);
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(PERIOD);
            if sender.send(ask(&client)).is_err() {
                return;
            }
        }
    });
    receiver
}

/// What is on the screen.
struct View {
    address: Address,
    snapshot: Snapshot,
    /// Why the server has not answered since.
    silence: Option<String>,
    news: Receiver<Result<Snapshot>>,
}

impl Picture for View {
    fn take_in(&mut self) -> bool {
        match self.news.try_recv() {
            Ok(Ok(snapshot)) => (self.snapshot, self.silence) = (snapshot, None),
            Ok(Err(error)) => self.silence = Some(format!("{error:#}")),
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => return false,
        }
        true
    }

    fn lines(&self, room: usize) -> Vec<Line> {
        frame(&self.address, &self.snapshot, Room::Lines(room))
    }

    fn bottom(&self) -> Span {
        match &self.silence {
            Some(reason) => Span::new(format!("No answer, these are the last figures: {reason}"), Tone::Bad),
            None => Span::new("q: quit", Tone::Quiet),
        }
    }
}
