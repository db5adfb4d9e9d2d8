//! What happens on one connection: a request goes out, an answer comes in and is judged.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::io::Errno;

use super::connection::{Phase, Request};
use super::engine::Engine;
use super::plan::Connections;
use super::poller::{Interest, Readiness};
use super::response::{Answer, Persistence, Verdict};
use super::tally::End;

/// After so many reads from one connection it is the turn of the others.
const READS_AT_ONCE: usize = 16;

/// Whether a shortage of local ports has been explained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ports {
    #[default]
    Sufficed,
    RanOut,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exchange {
    UnderWay,
    Over,
}

impl Engine<'_> {
    /// Sends the request on the place's connection, and opens one before if there is none.
    pub(super) fn start_request(&mut self, place: usize, request: Request, now: Duration) -> Result<()> {
        self.busy += 1;
        self.under_way += 1;
        let connection = &mut self.connections[place];
        connection.head.clear();
        self.mix.write_head(request.kind, &mut connection.head);
        connection.begin(request);
        let is_open = connection.socket().is_some();
        self.set_deadlines(place, now);
        if is_open { self.send(place) } else { self.connect(place) }
    }

    /// Serves a connection that something happened to.
    pub(super) fn on_event(&mut self, place: usize, readiness: Readiness) -> Result<()> {
        if self.is_about_connection(place) && self.is_sending(place) {
            self.send(place)?;
        }
        // The connection may be another one by now: this event is not about it.
        if self.is_about_connection(place) && readiness.is_readable() {
            self.receive(place, readiness)?;
        }
        Ok(())
    }

    /// Ends the request as given up, or the wait for the server to close behind its answer.
    pub(super) fn give_up(&mut self, place: usize, end: End) -> Result<()> {
        if self.connections[place].phase() != Phase::Closing {
            return self.end(place, end);
        }
        self.close(place);
        self.release(place);
        Ok(())
    }

    pub(super) fn close(&mut self, place: usize) {
        if self.connections[place].close().is_some() {
            self.open -= 1;
        }
    }

    /// Closes after the server, and gives the place to the next request.
    fn hang_up(&mut self, place: usize) {
        if self.reuses_sockets {
            self.connections[place].hang_up();
            self.open -= 1;
        } else {
            self.close(place);
        }
        self.release(place);
    }

    fn connect(&mut self, place: usize) -> Result<()> {
        let target = self.plan.targets[self.opened % self.plan.targets.len()];
        self.opened += 1;
        let connection = &mut self.connections[place];
        connection
            .open(&target, self.plan.source, self.poller.round())
            .context("a socket could not be made")?;
        self.open += 1;
        self.tally.note_connections(self.open);
        if let Err(error) = connection.connect(&target) {
            self.explain(error, &target);
            return self.end(place, End::Connect);
        }
        // On loopback the connection is made already, as a rule.
        match connection.send() {
            Ok(()) | Err(Errno::AGAIN) => self.watch(place),
            Err(_) => self.on_send_error(place),
        }
    }

    /// Of a connection that was opened just now.
    fn watch(&mut self, place: usize) -> Result<()> {
        let interest = self.interest(place);
        let connection = &mut self.connections[place];
        let watched = connection.watched.replace(interest);
        let socket = connection.socket().expect("invariant: it was opened just now");
        match watched {
            None => self.poller.add(socket, place, interest),
            Some(watched) if watched != interest => self.poller.watch_again(socket, place, interest),
            Some(_) => Ok(()),
        }
    }

    fn watch_again(&mut self, place: usize) -> Result<()> {
        let interest = self.interest(place);
        let connection = &mut self.connections[place];
        connection.watched = Some(interest);
        let socket = connection.socket().expect("invariant: an exchange has a socket");
        self.poller.watch_again(socket, place, interest)
    }

    fn interest(&self, place: usize) -> Interest {
        if self.is_sending(place) { Interest::ReadAndWrite } else { Interest::Read }
    }

    fn is_sending(&self, place: usize) -> bool {
        matches!(self.connections[place].phase(), Phase::Connecting | Phase::Sending)
    }

    /// Whether an event of this round is about the connection that the place has now.
    fn is_about_connection(&self, place: usize) -> bool {
        self.connections[place].was_open_before(self.poller.round())
    }

    fn send(&mut self, place: usize) -> Result<()> {
        match self.connections[place].send() {
            Ok(()) => Ok(()),
            Err(Errno::AGAIN) => self.watch_again(place),
            Err(_) => self.on_send_error(place),
        }
    }

    fn on_send_error(&mut self, place: usize) -> Result<()> {
        let connection = &mut self.connections[place];
        if connection.phase() == Phase::Connecting {
            return self.end(place, End::Connect);
        }
        if connection.is_unsent() {
            // Closed by the server between two requests, as it may.
            self.close(place);
            return self.connect(place);
        }
        // The server takes no more of the body; perhaps it has said why.
        connection.stop_sending();
        self.receive(place, Readiness::ENDED)
    }

    fn receive(&mut self, place: usize, readiness: Readiness) -> Result<()> {
        for _ in 0..READS_AT_ONCE {
            match self.connections[place].receive(&mut self.buffer) {
                Ok(0) => return self.on_end(place),
                Ok(length) => {
                    let exchange = self.take(place, length, readiness)?;
                    // A short read took everything; what comes later is an edge of its own.
                    let is_drained = length < self.buffer.len() && !readiness.is_ended();
                    if exchange == Exchange::Over || is_drained {
                        return Ok(());
                    }
                }
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(_) => return self.on_broken(place),
            }
        }
        self.watch_again(place)
    }

    /// Takes what was received into the buffer.
    fn take(&mut self, place: usize, length: usize, readiness: Readiness) -> Result<Exchange> {
        let connection = &mut self.connections[place];
        match connection.phase() {
            // Unasked for: no answer after this could be trusted.
            Phase::Idle => {
                self.close(place);
                return Ok(Exchange::Over);
            }
            Phase::Closing => return Ok(Exchange::UnderWay),
            Phase::Connecting | Phase::Sending | Phase::Receiving => {}
        }
        let kind = connection.request().kind;
        self.tally.add_bytes(kind, length);
        match connection.response.take(&self.buffer[..length], self.mix.expected(kind)) {
            Ok(None) => return Ok(Exchange::UnderWay),
            Ok(Some((answer, used))) if used == length => self.on_answer(place, answer, readiness)?,
            // Not HTTP, or more than one answer.
            Ok(Some(_)) | Err(_) => self.end(place, End::Wrong)?,
        }
        Ok(Exchange::Over)
    }

    fn on_answer(&mut self, place: usize, answer: Answer, readiness: Readiness) -> Result<()> {
        self.count(place, judge(&answer))?;
        let is_ended = readiness.is_ended() || !self.connections[place].is_sent();
        match (answer.persistence, self.plan.connections) {
            (Persistence::Kept, Connections::KeepAlive) if !is_ended => self.release(place),
            // The side that closes first keeps the port for a minute: leave that to the server, who said it would.
            (Persistence::Closed, _) if !is_ended => self.connections[place].await_close(),
            (Persistence::Closed, _) => self.hang_up(place),
            _ => {
                self.close(place);
                self.release(place);
            }
        }
        Ok(())
    }

    /// The server has closed its side.
    fn on_end(&mut self, place: usize) -> Result<()> {
        let connection = &self.connections[place];
        let kind = connection.request().kind;
        match connection.phase() {
            Phase::Receiving | Phase::Sending => match connection.response.end(self.mix.expected(kind)) {
                Some(answer) => {
                    self.count(place, judge(&answer))?;
                    self.hang_up(place);
                    Ok(())
                }
                None => self.end(place, End::Broken),
            },
            Phase::Closing => {
                self.hang_up(place);
                Ok(())
            }
            _ => self.on_broken(place),
        }
    }

    fn on_broken(&mut self, place: usize) -> Result<()> {
        match self.connections[place].phase() {
            Phase::Idle => {
                self.close(place);
                Ok(())
            }
            Phase::Connecting => self.end(place, End::Connect),
            Phase::Sending | Phase::Receiving => self.end(place, End::Broken),
            Phase::Closing => self.give_up(place, End::Broken),
        }
    }

    /// Ends the request and its connection.
    fn end(&mut self, place: usize, end: End) -> Result<()> {
        self.count(place, end)?;
        self.close(place);
        self.release(place);
        Ok(())
    }

    fn count(&mut self, place: usize, end: End) -> Result<()> {
        let now = self.now();
        self.under_way -= 1;
        let Request { kind, start, .. } = self.connections[place].request();
        // An answer that was read late, after the moment at which it should have been given up.
        let is_late = end.is_answer() && now.saturating_sub(start) > self.plan.timeout;
        self.tally.add(kind, start, now, if is_late { End::Timeout } else { end })
    }

    /// Gives the place to the next request.
    fn release(&mut self, place: usize) {
        self.connections[place].rest();
        self.busy -= 1;
        self.free.push_back(place);
    }

    fn explain(&mut self, error: Errno, target: &SocketAddr) {
        if error == Errno::ADDRNOTAVAIL && self.ports == Ports::Sufficed {
            self.ports = Ports::RanOut;
            eprintln!(
                "regent-bench: every local port towards {target} is in use or in TIME_WAIT (EADDRNOTAVAIL), and \
                 requests fail; spread the load over more addresses (127.0.0.2, …), or keep connections alive"
            );
        }
    }
}

fn judge(answer: &Answer) -> End {
    match (answer.status, answer.body) {
        (200..300, Verdict::Expected) => End::Right(answer.status),
        (200..300, Verdict::Unexpected) => End::Wrong,
        (status, _) => End::Status(status),
    }
}
