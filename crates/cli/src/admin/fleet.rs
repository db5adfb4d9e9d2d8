//! `regent top --fleet`: several servers, live, one a line.

use super::client::Client;
use super::fleet_frame::{Instance, Reading, Standing, frame};
use super::live::{PERIOD, Picture, watch};
use super::table::{Line, Span, Tone, plain_text};
use super::threads::print;
use anyhow::{Result, bail, ensure};
use regent_admin::Address;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Servers that are asked at most, each on a thread of its own.
const MOST: usize = 200;

/// Shows them once, or until `q`, Escape or Ctrl-C.
///
/// # Errors
/// When they are to be shown once and none answers.
pub fn fleet(addresses: &[Address], is_once: bool) -> Result<()> {
    ensure!(addresses.len() <= MOST, "a fleet may have {MOST} servers; name fewer of them");
    let clients = addresses.iter().cloned().map(Client::new).collect::<Result<Vec<_>>>()?;
    if is_once { print_once(clients) } else { watch(&mut View::of(clients)) }
}

fn print_once(clients: Vec<Client>) -> Result<()> {
    let asking: Vec<_> = clients
        .into_iter()
        .map(|client| std::thread::spawn(move || (client.address().clone(), ask(&client))))
        .collect();
    let mut instances = Vec::new();
    for asked in asking {
        let Ok((address, standing)) = asked.join() else { bail!("a server could not be asked") };
        instances.push(Instance { address, standing });
    }
    print(&frame(&instances, usize::MAX).iter().map(plain_text).collect::<Vec<_>>().join("\n"))?;
    let answers = instances.iter().any(|instance| matches!(instance.standing, Standing::Answers(_)));
    ensure!(answers, "none of the servers answers");
    Ok(())
}

fn ask(client: &Client) -> Standing {
    match client.get("/regent/statistics") {
        Ok(statistics) => {
            let readiness = client.get::<serde_json::Value>("/regent/ready");
            let unready = readiness.err().map(|reason| format!("{reason:#}"));
            Standing::Answers(Box::new(Reading { statistics, unready }))
        }
        Err(error) => Standing::Silent(format!("{error:#}")),
    }
}

/// What is on the screen.
struct View {
    instances: Vec<Instance>,
    news: Receiver<(usize, Standing)>,
}

impl View {
    fn of(clients: Vec<Client>) -> Self {
        let (sender, news) = channel();
        let named =
            |client: &Client| Instance { address: client.address().clone(), standing: Standing::Asked };
        let instances = clients.iter().map(named).collect();
        for (index, client) in clients.into_iter().enumerate() {
            ask_on(index, client, sender.clone());
        }
        Self { instances, news }
    }
}

/// On a thread of its own: one that does not answer must not keep the others waiting.
fn ask_on(index: usize, client: Client, news: Sender<(usize, Standing)>) {
    std::thread::spawn(move || {
        while news.send((index, ask(&client))).is_ok() {
            std::thread::sleep(PERIOD);
        }
    });
}

impl Picture for View {
    fn take_in(&mut self) -> bool {
        let mut has_news = false;
        for (index, standing) in self.news.try_iter() {
            self.instances[index].standing = standing;
            has_news = true;
        }
        has_news
    }

    fn lines(&self, room: usize) -> Vec<Line> {
        frame(&self.instances, room)
    }

    fn bottom(&self) -> Span {
        Span::new("q: quit", Tone::Quiet)
    }
}
