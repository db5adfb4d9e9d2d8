//! Requests as bytes, and which is next.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use fastrand::Rng;

use super::connection::Request;
use super::plan::{Connections, Expect, Kind, Plan, Window};
use super::target::Target;

/// The kinds of a plan, ready to be sent.
#[derive(Debug)]
pub struct Mix {
    kinds: Vec<Prepared>,
    random: Rng,
}

/// A kind of request.
#[derive(Debug)]
struct Prepared {
    before_target: String,
    target: Target,
    after_target: String,
    body_bytes: u64,
    expect: Expect,
    weight: u32,
    window: Option<Window>,
}

impl Mix {
    pub fn new(plan: &Plan) -> Result<Self> {
        ensure!(!plan.mix.is_empty(), "the plan has no kinds of requests");
        let prepare = |kind: &Kind| {
            Prepared::new(kind, plan).with_context(|| format!("the requests {:?} are impossible", kind.name))
        };
        let kinds = plan.mix.iter().map(prepare).collect::<Result<Vec<_>>>()?;
        ensure!(kinds.iter().any(|kind| kind.weight > 0), "no kind of request has a weight");
        Ok(Self { kinds, random: Rng::with_seed(plan.seed) })
    }

    /// What the body of a right answer to the kind is.
    pub fn expected(&self, kind: usize) -> &Expect {
        &self.kinds[kind].expect
    }

    /// A request of the kind that starts at this moment.
    pub fn request(&self, kind: usize, start: Duration) -> Request {
        Request { kind, start, body_bytes: self.kinds[kind].body_bytes }
    }

    /// Draws the kind of the next request; `None` while the windows let none be sent.
    pub fn choose(&mut self, now: Duration) -> Option<usize> {
        if let [only] = &self.kinds[..] {
            return only.may_be_sent(now).then_some(0);
        }
        let weights =
            self.kinds.iter().map(|kind| if kind.may_be_sent(now) { u64::from(kind.weight) } else { 0 });
        let total = weights.clone().sum();
        if total == 0 {
            return None;
        }
        let mut drawn = self.random.u64(0..total);
        weights.enumerate().find_map(|(index, weight)| match drawn.checked_sub(weight) {
            Some(rest) => {
                drawn = rest;
                None
            }
            None => Some(index),
        })
    }

    /// The next moment at which other kinds may be sent.
    pub fn next_window(&self, now: Duration) -> Option<Duration> {
        let next = |window: &Window| window.period.saturating_mul(periods(now, window).saturating_add(1));
        self.kinds.iter().filter_map(|kind| kind.window.as_ref()).map(next).min()
    }

    /// Writes the head of a request of the kind.
    pub fn write_head(&mut self, index: usize, out: &mut Vec<u8>) {
        let kind = &self.kinds[index];
        out.extend_from_slice(kind.before_target.as_bytes());
        kind.target.write(&mut self.random, out);
        out.extend_from_slice(kind.after_target.as_bytes());
    }
}

impl Prepared {
    fn new(kind: &Kind, plan: &Plan) -> Result<Self> {
        ensure!(plan.host.bytes().all(|byte| byte.is_ascii_graphic()), "the host {:?} is not one", plan.host);
        if let Some(Window { period, of, phase }) = kind.window {
            ensure!(period > Duration::ZERO && phase < of, "a window has a period, and a phase below `of`");
        }
        Ok(Self {
            before_target: format!("{} ", kind.method),
            target: Target::parse(&kind.target)?,
            after_target: format!(
                " HTTP/1.1\r\nHost: {}\r\n{}{}\r\n",
                plan.host,
                body_fields(kind)?,
                connection_field(plan.connections)
            ),
            body_bytes: kind.body_bytes,
            expect: kind.expect.clone(),
            weight: kind.weight,
            window: kind.window,
        })
    }

    fn may_be_sent(&self, now: Duration) -> bool {
        self.window.as_ref().is_none_or(|window| periods(now, window) % window.of == window.phase)
    }
}

/// How many of the window's periods are over.
fn periods(now: Duration, window: &Window) -> u32 {
    u32::try_from(now.as_nanos() / window.period.as_nanos()).unwrap_or(u32::MAX)
}

fn body_fields(kind: &Kind) -> Result<String> {
    match (kind.method.as_str(), kind.body_bytes) {
        ("GET", 0) => Ok(String::new()),
        ("POST" | "PUT", bytes) => {
            Ok(format!("Content-Type: application/octet-stream\r\nContent-Length: {bytes}\r\n"))
        }
        ("GET", _) => bail!("a GET has no body; use POST or PUT"),
        (method, _) => bail!("the method {method:?} is none of GET, POST and PUT"),
    }
}

fn connection_field(connections: Connections) -> &'static str {
    match connections {
        Connections::KeepAlive => "",
        Connections::PerRequest => "Connection: close\r\n",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::tests::plan;

    fn kind(name: &str, weight: u32) -> Kind {
        Kind { name: name.to_owned(), weight, ..plan().mix.remove(0) }
    }

    fn mix_of(kinds: Vec<Kind>) -> Result<Mix> {
        Mix::new(&Plan { mix: kinds, ..plan() })
    }

    fn head(kind: Kind, connections: Connections) -> String {
        let plan = Plan { mix: vec![kind], connections, host: "example.test:80".to_owned(), ..plan() };
        let mut out = Vec::new();
        Mix::new(&plan).expect("valid").write_head(0, &mut out);
        String::from_utf8(out).expect("ASCII")
    }

    #[test]
    fn heads_are_what_a_server_expects() {
        assert_eq!(
            head(kind("a", 1), Connections::KeepAlive),
            "GET / HTTP/1.1\r\nHost: example.test:80\r\n\r\n"
        );
        let upload = Kind { method: "PUT".to_owned(), body_bytes: 7, ..kind("b", 1) };
        assert_eq!(
            head(upload, Connections::PerRequest),
            "PUT / HTTP/1.1\r\nHost: example.test:80\r\nContent-Type: application/octet-stream\r\n\
             Content-Length: 7\r\nConnection: close\r\n\r\n"
        );
    }

    #[test]
    fn kinds_are_drawn_by_weight() {
        let mut mix = mix_of(vec![kind("a", 1), kind("b", 0), kind("c", 3)]).expect("valid");
        let mut drawn = [0; 3];
        (0..4000).for_each(|_| drawn[mix.choose(Duration::ZERO).expect("always open")] += 1);
        assert!((900..1100).contains(&drawn[0]) && drawn[1] == 0, "{drawn:?}");
    }

    #[test]
    fn windows_open_and_close() {
        let window = |phase| Some(Window { period: Duration::from_secs(10), of: 3, phase });
        let kinds =
            vec![Kind { window: window(0), ..kind("a", 1) }, Kind { window: window(1), ..kind("b", 9) }];
        let mut mix = mix_of(kinds).expect("valid");
        for (second, open) in
            [(0, Some(0)), (9, Some(0)), (10, Some(1)), (19, Some(1)), (20, None), (30, Some(0))]
        {
            assert_eq!(mix.choose(Duration::from_secs(second)), open, "{second}");
        }
        assert_eq!(mix.next_window(Duration::from_secs(20)), Some(Duration::from_secs(30)));
    }

    #[test]
    fn impossible_kinds_are_errors() {
        let window = Some(Window { period: Duration::from_secs(1), of: 2, phase: 2 });
        for wrong in [
            Kind { body_bytes: 1, ..kind("a", 1) },
            Kind { method: "HEAD".to_owned(), ..kind("a", 1) },
            Kind { target: "x".to_owned(), ..kind("a", 1) },
            Kind { window, ..kind("a", 1) },
            kind("a", 0),
        ] {
            assert!(mix_of(vec![wrong.clone()]).is_err(), "{wrong:?}");
        }
        assert!(mix_of(Vec::new()).is_err());
    }
}
