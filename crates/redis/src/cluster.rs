//! Connections to the servers of a cluster, each of which has some of the keys.
//!
//! A server that does not have a key (any more) has done nothing, and says who has it: what was asked is asked there.
//! The crate `redis` has a client of clusters too. It asks again after failures, also for what may have been done, and what
//! is published twice is not to be had back.

use crate::Address;
use crate::client::first_of;
use crate::dialer::{Deadline, Dialer};
use crate::slots::{SlotTable, slot};
use redis::{Connection, ConnectionLike, ErrorKind, RedisError, RedisResult, ServerErrorKind, Value, cmd};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Servers that are about to change places may send one from here to there and back.
const MOST_REDIRECTIONS: usize = 5;
/// Of those that the configuration does not name: a cluster may have a thousand.
const MOST_LEARNT: usize = 16;

/// A cluster that is somewhere.
pub(crate) struct Cluster {
    dialer: Arc<Dialer>,
    timeout: Duration,
    seeds: Vec<Address>,
    /// Those that there were the last time, the one that said so first: all seeds may have left since they were written down.
    learnt: Mutex<Vec<Address>>,
}

/// To the servers whose keys were asked for so far.
pub(crate) struct ClusterConnection {
    dialer: Arc<Dialer>,
    timeout: Duration,
    read_timeout: Duration,
    table: SlotTable,
    nodes: HashMap<Address, Connection>,
    /// Who has the key that is spoken about.
    current: Address,
}

/// What a server says that does not have a key.
struct Redirection {
    kind: RedirectionKind,
    slot: u16,
    address: Address,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum RedirectionKind {
    Moved,
    /// The slot is on its way, and this key is there already, or nowhere.
    Ask,
}

impl Cluster {
    pub fn new(dialer: Dialer, timeout: Duration, seeds: &[Address]) -> Self {
        Self { dialer: Arc::new(dialer), timeout, seeds: seeds.to_vec(), learnt: Mutex::default() }
    }

    /// A connection to the server that has the key, which is asked of all that are known until one's word is true.
    pub fn connect(&self, key: &str) -> RedisResult<ClusterConnection> {
        let addresses = self.known();
        let deadline = Deadline::after(self.timeout, addresses.len() + 1);
        let (index, connection) = first_of(&addresses, 0, |address| self.connect_by(address, key, deadline))?;
        self.learn(&addresses[index], connection.table.nodes());
        Ok(connection)
    }

    fn connect_by(&self, asked: &Address, key: &str, deadline: Deadline) -> RedisResult<ClusterConnection> {
        let mut first = self.dialer.dial(asked, deadline)?;
        let table = SlotTable::ask(&mut first, asked)?;
        let current = table.primary(slot(key)).ok_or_else(nobody)?.clone();
        let mut connection = ClusterConnection {
            dialer: Arc::clone(&self.dialer),
            timeout: self.timeout,
            read_timeout: self.timeout,
            table,
            nodes: HashMap::from([(asked.clone(), first)]),
            current: current.clone(),
        };
        connection.reach(&current, deadline)?;
        connection.set_read_timeout(self.timeout)?;
        Ok(connection)
    }

    fn known(&self) -> Vec<Address> {
        let mut known = self.learnt.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let others = self.seeds.iter().filter(|seed| !known.contains(seed));
        let others: Vec<_> = others.cloned().collect();
        known.extend(others);
        known
    }

    fn learn(&self, asked: &Address, nodes: &[Address]) {
        let mut learnt = vec![asked.clone()];
        for node in nodes {
            if learnt.len() < MOST_LEARNT && !learnt.contains(node) {
                learnt.push(node.clone());
            }
        }
        *self.learnt.lock().unwrap_or_else(PoisonError::into_inner) = learnt;
    }
}

impl ClusterConnection {
    /// What follows goes to the server that has the key.
    pub fn about(&mut self, key: &str) -> RedisResult<()> {
        let address = self.table.primary(slot(key)).ok_or_else(nobody)?.clone();
        self.reach(&address, Deadline::after(self.timeout, 1))?;
        self.current = address;
        Ok(())
    }

    pub fn set_read_timeout(&mut self, timeout: Duration) -> RedisResult<()> {
        self.read_timeout = timeout;
        self.nodes.values().try_for_each(|node| node.set_read_timeout(Some(timeout)))
    }

    fn reach(&mut self, address: &Address, deadline: Deadline) -> RedisResult<&mut Connection> {
        if !self.nodes.contains_key(address) {
            let connection = self.dialer.dial(address, deadline)?;
            connection.set_read_timeout(Some(self.read_timeout))?;
            self.nodes.insert(address.clone(), connection);
        }
        self.nodes.get_mut(address).ok_or_else(nobody)
    }

    fn ask_current<T>(&mut self, ask: impl FnOnce(&mut Connection) -> RedisResult<T>) -> RedisResult<T> {
        let current = self.current.clone();
        ask(self.reach(&current, Deadline::after(self.timeout, 1))?)
    }

    /// Asks there instead.
    fn follow<T>(
        &mut self,
        redirection: &Redirection,
        ask: impl FnOnce(&mut Connection) -> RedisResult<T>,
    ) -> RedisResult<T> {
        let node = self.reach(&redirection.address, Deadline::after(self.timeout, 1))?;
        if redirection.kind == RedirectionKind::Ask {
            // For what comes next alone.
            () = cmd("ASKING").query(node)?;
            return ask(node);
        }
        let answer = ask(node);
        self.table.move_to(redirection.slot, redirection.address.clone());
        self.current = redirection.address.clone();
        answer
    }

    /// Nothing of it was done unless all of it was.
    fn transaction(&mut self, commands: &[u8], offset: usize, count: usize) -> RedisResult<Vec<Value>> {
        let mut answer = self.ask_current(|node| node.req_packed_commands(commands, offset, count));
        for _ in 0..MOST_REDIRECTIONS {
            // `MULTI` is one of those that the answers are of, and refers to no key.
            let redirection =
                answer.as_ref().err().and_then(|error| self.redirection_of_all(error, offset - 1));
            let Some(redirection) = redirection else { break };
            answer = self.follow(&redirection, |node| node.req_packed_commands(commands, offset, count));
        }
        answer
    }

    /// `None` too where some of the keys are here and some are there, until the slot has arrived.
    fn redirection_of_all(&self, error: &RedisError, commands: usize) -> Option<Redirection> {
        let errors = error.clone().into_server_errors()?;
        let mut redirections = errors.iter().map(|(_, error)| self.redirection(&error.clone().into()));
        let first = redirections.next()??;
        let is_same = |other: Option<Redirection>| other.is_some_and(|other| other.kind == first.kind);
        let are_all = redirections.all(is_same) && errors.len() == commands;
        (are_all || first.kind == RedirectionKind::Moved).then_some(first)
    }

    fn redirection(&self, error: &RedisError) -> Option<Redirection> {
        let kind = match error.kind() {
            ErrorKind::Server(ServerErrorKind::Moved) => RedirectionKind::Moved,
            ErrorKind::Server(ServerErrorKind::Ask) => RedirectionKind::Ask,
            _ => return None,
        };
        let (place, slot) = error.redirect_node()?;
        let (host, port) = place.rsplit_once(':')?;
        // Without a host, it is the one that was asked.
        let host = if host.is_empty() { self.current.host.as_str() } else { host };
        let host = host.trim_matches(['[', ']']).to_owned();
        Some(Redirection { kind, slot, address: Address { host, port: port.parse().ok()? } })
    }

    fn redirection_in(&self, answer: &Value) -> Option<Redirection> {
        let Value::ServerError(error) = answer else { return None };
        self.redirection(&error.clone().into())
    }
}

impl ConnectionLike for ClusterConnection {
    fn req_packed_command(&mut self, command: &[u8]) -> RedisResult<Value> {
        let mut answer = self.ask_current(|node| node.req_packed_command(command))?;
        for _ in 0..MOST_REDIRECTIONS {
            let Some(redirection) = self.redirection_in(&answer) else { break };
            answer = self.follow(&redirection, |node| node.req_packed_command(command))?;
        }
        Ok(answer)
    }

    fn req_packed_commands(
        &mut self,
        commands: &[u8],
        offset: usize,
        count: usize,
    ) -> RedisResult<Vec<Value>> {
        if offset > 0 {
            return self.transaction(commands, offset, count);
        }
        let mut answers = self.ask_current(|node| node.req_packed_commands(commands, 0, count))?;
        let redirected: Vec<_> =
            (0..answers.len()).filter(|index| self.redirection_in(&answers[*index]).is_some()).collect();
        for index in redirected {
            let command = split(commands).nth(index).ok_or_else(no_command)?;
            answers[index] = self.req_packed_command(command)?;
        }
        Ok(answers)
    }

    /// Clusters have no others.
    fn get_db(&self) -> i64 {
        0
    }

    fn check_connection(&mut self) -> bool {
        self.ask_current(|node| cmd("PING").exec(node)).is_ok_and(|()| self.is_open())
    }

    fn is_open(&self) -> bool {
        self.nodes.get(&self.current).is_some_and(ConnectionLike::is_open)
    }
}

/// The commands of a pipeline, each an array of strings as they are sent.
fn split(mut commands: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (command, rest) = commands.split_at_checked(command_length(commands)?)?;
        commands = rest;
        Some(command)
    })
}

/// `None` at the end.
fn command_length(bytes: &[u8]) -> Option<usize> {
    let (strings, mut length) = number_line(bytes, b'*')?;
    for _ in 0..strings {
        let (string, line) = number_line(bytes.get(length..)?, b'$')?;
        length += line + string + b"\r\n".len();
    }
    Some(length)
}

/// The number, and how long its line is.
fn number_line(bytes: &[u8], kind: u8) -> Option<(usize, usize)> {
    let rest = bytes.strip_prefix(&[kind])?;
    let end = rest.windows(2).position(|pair| pair == b"\r\n")?;
    let number = std::str::from_utf8(&rest[..end]).ok()?.parse().ok()?;
    Some((number, 1 + end + 2))
}

fn nobody() -> RedisError {
    (ErrorKind::Io, "no server of the cluster has the key").into()
}

fn no_command() -> RedisError {
    (ErrorKind::Client, "there are more answers than commands").into()
}

#[cfg(test)]
mod tests;
