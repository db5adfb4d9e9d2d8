//! What the server's log says of its engines: deaths, who ran then, new generations.

use super::{Clock, Engine};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// A line of the log that matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logged {
    pub at: Duration,
    pub event: Event,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// An engine is dead, for this reason.
    Died(Engine, String),
    /// The request of the load with this number ran in it.
    Ran(u64),
    /// So many more did, of which the log does not tell.
    RanMore(u64),
    /// Another generation has taken a living one's place.
    TakenOver(Engine),
}

/// Reads the log as it grows.
#[derive(Debug)]
pub struct LogReader {
    clock: Clock,
    /// Bytes that were read.
    position: usize,
    events: Vec<Logged>,
    /// Errors and warnings by their message: how many there were.
    troubles: BTreeMap<String, usize>,
}

impl LogReader {
    pub fn new(clock: Clock) -> Self {
        Self { clock, position: 0, events: Vec::new(), troubles: BTreeMap::new() }
    }

    /// Where to go on reading.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Takes what has been logged since.
    pub fn read(&mut self, text: &str) {
        // Its last line may not be whole yet.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        self.position += whole;
        for line in text[..whole].lines() {
            let Ok(line) = serde_json::from_str::<Value>(line) else { continue };
            let message = line["msg"].as_str().unwrap_or_default();
            if matches!(line["level"].as_str(), Some("warn" | "error")) {
                *self.troubles.entry(trouble(message, &line)).or_default() += 1;
            }
            let at = self.clock.of_log(line["ts"].as_f64().unwrap_or_default());
            self.events.extend(event(message, &line).map(|event| Logged { at, event }));
        }
    }

    pub fn events(&self) -> &[Logged] {
        &self.events
    }

    /// When the last engine of this kind died, that is not before this time.
    pub fn death_since(&self, engine: Engine, time: Duration) -> Option<Duration> {
        let is_one = |logged: &&Logged| matches!(&logged.event, Event::Died(of, _) if *of == engine);
        self.events.iter().rev().find(is_one).map(|logged| logged.at).filter(|at| *at >= time)
    }

    /// Whether another generation has taken over since.
    pub fn has_taken_over_since(&self, engine: Engine, time: Duration) -> bool {
        self.events.iter().any(|logged| logged.at >= time && logged.event == Event::TakenOver(engine))
    }

    pub fn troubles(&self) -> &BTreeMap<String, usize> {
        &self.troubles
    }
}

/// The message, and why a request was not answered: whatever an engine does, few reasons are as they should be.
fn trouble(message: &str, line: &Value) -> String {
    let message: String = message.chars().take(120).collect();
    match line["reason"].as_str().filter(|_| message.starts_with("a request was not answered")) {
        Some(reason) => format!("{message}: {reason}"),
        None => message,
    }
}

fn event(message: &str, line: &Value) -> Option<Event> {
    let engine = || match line["engine"].as_str() {
        Some("PHP") => Some(Engine::Php),
        Some("native modules") => Some(Engine::Native),
        _ => None,
    };
    match message {
        "the engine has died" => {
            Some(Event::Died(engine()?, line["reason"].as_str().unwrap_or_default().to_owned()))
        }
        "this request was running when the engine died" => {
            line["uri"].as_str().and_then(number).map(Event::Ran)
        }
        "more requests were running when the engine died" => line["more"].as_u64().map(Event::RanMore),
        "the new generation has taken over" => engine().map(Event::TakenOver),
        _ => None,
    }
}

/// The number of a request of the load.
fn number(uri: &str) -> Option<u64> {
    let (_, query) = uri.split_once('?')?;
    query.split('&').find_map(|pair| pair.strip_prefix("n=")?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_death_and_who_ran_are_read_in_parts() {
        let clock = Clock::start();
        let mut reader = LogReader::new(clock);
        let text = "{\"level\":\"error\",\"ts\":4e9,\"msg\":\"the engine has died\",\"engine\":\"PHP\",\"reason\":\"signal 11\"}\n\
                    no JSON\n\
                    {\"level\":\"error\",\"ts\":4e9,\"msg\":\"this request was running when the engine died\",\"uri\":\"/classic.php?ms=20&n=17\"}\n\
                    {\"level\":\"error\",\"ts\":4e9,\"msg\":\"more requests were running when the engine died\",\"more\":3}\n";
        let (first, _) = text.split_at(60);
        reader.read(first);
        assert_eq!(reader.events(), []);
        reader.read(&text[reader.position()..]);
        let events: Vec<&Event> = reader.events().iter().map(|logged| &logged.event).collect();
        assert_eq!(
            events,
            [&Event::Died(Engine::Php, "signal 11".into()), &Event::Ran(17), &Event::RanMore(3)]
        );
        assert!(reader.death_since(Engine::Php, clock.now()).is_some());
        assert!(reader.death_since(Engine::Native, Duration::ZERO).is_none());
        assert_eq!(reader.troubles().len(), 3);
    }
}
