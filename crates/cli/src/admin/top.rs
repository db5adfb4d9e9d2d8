//! `regent top`: a running server, live.

use super::client::Client;
use super::frame::{Room, Snapshot, frame};
use super::keys::{Keys, Seen};
use super::screen::Screen;
use super::table::{Line, Span, Tone, plain_text};
use super::threads::print;
use crate::arguments::Top;
use anyhow::Result;
use regent_admin::Address;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::time::{Duration, SystemTime};

const PERIOD: Duration = Duration::from_secs(1);
/// How long a key, a signal or new figures may go unnoticed.
const GLANCE: Duration = Duration::from_millis(50);

/// Shows the figures once, or until `q`, Escape or Ctrl-C.
///
/// # Errors
/// When no server answers at first. Later it is shown, and asked for again.
pub fn top(options: &Top) -> Result<()> {
    let client = Client::new(options.admin.address.clone())?;
    let first = ask(&client)?;
    if options.once {
        let lines = frame(client.address(), &first, Room::Unlimited);
        return print(&lines.iter().map(plain_text).collect::<Vec<_>>().join("\n"));
    }
    watch(client, first)
}

fn ask(client: &Client) -> Result<Snapshot> {
    Ok(Snapshot {
        statistics: client.get("/regent/statistics")?,
        threads: client.get("/regent/threads")?,
        taken_at: SystemTime::now(),
    })
}

fn watch(client: Client, first: Snapshot) -> Result<()> {
    let mut view = View { address: client.address().clone(), snapshot: first, silence: None };
    let news = ask_on(client);
    let mut screen = Screen::open()?;
    let keys = Keys::new()?;
    screen.draw(&view.lines(screen.height()?))?;
    loop {
        let seen = keys.glance(GLANCE)?;
        if seen == Seen::End {
            return Ok(());
        }
        if view.take_in(&news) || seen == Seen::Resize {
            screen.draw(&view.lines(screen.height()?))?;
        }
    }
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
}

impl View {
    /// Whether there was news.
    fn take_in(&mut self, news: &Receiver<Result<Snapshot>>) -> bool {
        match news.try_recv() {
            Ok(Ok(snapshot)) => (self.snapshot, self.silence) = (snapshot, None),
            Ok(Err(error)) => self.silence = Some(format!("{error:#}")),
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => return false,
        }
        true
    }

    fn lines(&self, height: usize) -> Vec<Line> {
        let bottom = match &self.silence {
            Some(reason) => Span::new(format!("No answer, these are the last figures: {reason}"), Tone::Bad),
            None => Span::new("q: quit", Tone::Quiet),
        };
        let room = height.saturating_sub(1);
        let mut lines = frame(&self.address, &self.snapshot, Room::Lines(room));
        lines.resize(room, Line::new());
        lines.push(vec![bottom]);
        lines
    }
}
