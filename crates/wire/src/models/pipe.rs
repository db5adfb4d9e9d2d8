//! Bodies through rings of two bytes: every byte arrives, in order, and nobody sleeps for ever. The bytes are cells, so
//! that loom also reports a byte that is read before it was published or overwritten before it was read.

use super::doorbell::IoThread;
use super::{Bound, explore};
use crate::area::Area;
use crate::layout::{BodyState, SlotControl};
use crate::pipe;
use crate::ring::{Reader, Writer};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread::{self, JoinHandle};
use std::cell::Cell;

/// A slot whose rings have two bytes.
struct Slot {
    control: SlotControl,
    request: [UnsafeCell<u8>; 2],
    response: [UnsafeCell<u8>; 2],
    io: IoThread,
}

// SAFETY: loom checks every access to the cells.
unsafe impl Send for Slot {}
// SAFETY: as above.
unsafe impl Sync for Slot {}

impl Slot {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            control: SlotControl::default(),
            request: [(); 2].map(|()| UnsafeCell::new(0)),
            response: [(); 2].map(|()| UnsafeCell::new(0)),
            io: IoThread::new(64),
        })
    }

    fn request_writer<'a>(&'a self, written: &'a Cell<u64>) -> Writer<'a> {
        let control = &self.control;
        Writer {
            tail: &control.request_tail,
            head: &control.request_head,
            area: Area(&self.request),
            written,
        }
    }

    fn request_reader<'a>(&'a self, read: &'a Cell<u64>) -> Reader<'a> {
        let control = &self.control;
        Reader { tail: &control.request_tail, head: &control.request_head, area: Area(&self.request), read }
    }

    fn response_writer<'a>(&'a self, written: &'a Cell<u64>) -> Writer<'a> {
        let control = &self.control;
        Writer {
            tail: &control.response_tail,
            head: &control.response_head,
            area: Area(&self.response),
            written,
        }
    }

    fn response_reader<'a>(&'a self, read: &'a Cell<u64>) -> Reader<'a> {
        let control = &self.control;
        Reader {
            tail: &control.response_tail,
            head: &control.response_head,
            area: Area(&self.response),
            read,
        }
    }

    /// Server: sends all of the body, waiting for room as an I/O thread does.
    fn send_all(&self, body: &[u8]) {
        let written = Cell::new(0);
        let ring = self.request_writer(&written);
        let mut sent = pipe::send(&self.control, &ring, body).unwrap();
        if sent < body.len() {
            self.io.serve(|_| {
                sent += pipe::send(&self.control, &ring, &body[sent..]).unwrap();
                sent == body.len()
            });
        }
    }

    /// Engine: reads until the body ends or the buffer is full.
    fn receive(&self, size: usize) -> Result<Vec<u8>, pipe::BodyBroken> {
        let read = Cell::new(0);
        let mut body = vec![0; size];
        let ring = self.request_reader(&read);
        let count = pipe::receive(&self.control, &ring, &mut body, || self.io.mark(0))?;
        body.truncate(count);
        Ok(body)
    }

    /// Engine: writes bytes one by one, waiting for room.
    fn respond(&self, body: &[u8]) -> Result<(), pipe::ClientGone> {
        let written = Cell::new(0);
        let ring = self.response_writer(&written);
        let publish = || {
            ring.publish();
            self.io.mark(0);
        };
        for byte in body {
            pipe::wait_for_room(&self.control, &ring, 1, publish)?;
            ring.put(&[*byte]);
        }
        publish();
        Ok(())
    }

    /// Server: reads so many bytes.
    fn read_all(&self, size: usize) -> Vec<u8> {
        let read = Cell::new(0);
        let ring = self.response_reader(&read);
        let mut body = Vec::new();
        self.io.serve(|_| {
            let mut part = vec![0; ring.available().unwrap()];
            ring.peek(0, &mut part);
            if !part.is_empty() {
                pipe::advance(&self.control, &ring, part.len());
            }
            body.extend(part);
            body.len() == size
        });
        body
    }
}

fn engine<T: 'static>(slot: &Arc<Slot>, run: impl FnOnce(&Slot) -> T + 'static) -> JoinHandle<T> {
    let slot = Arc::clone(slot);
    thread::spawn(move || run(&slot))
}

#[test]
fn a_request_body_larger_than_the_ring_arrives() {
    explore(Bound::Preemptions(4), || {
        let slot = Slot::new();
        let engine = engine(&slot, |slot| slot.receive(3));
        slot.send_all(b"abc");
        assert_eq!(engine.join().unwrap().unwrap(), b"abc");
    });
}

#[test]
fn an_engine_that_waits_for_the_body_hears_of_its_end() {
    explore(Bound::Preemptions(6), || {
        let slot = Slot::new();
        let engine = engine(&slot, |slot| slot.receive(8));
        slot.send_all(b"a");
        pipe::set_body(&slot.control, BodyState::Complete);
        assert_eq!(engine.join().unwrap().unwrap(), b"a");
    });
}

#[test]
fn an_engine_that_waits_for_the_body_hears_that_it_broke() {
    explore(Bound::Everything, || {
        let slot = Slot::new();
        let engine = engine(&slot, |slot| slot.receive(8));
        pipe::set_body(&slot.control, BodyState::Broken);
        assert!(engine.join().unwrap().is_err());
    });
}

#[test]
fn an_engine_that_waits_for_the_body_hears_that_the_client_left() {
    explore(Bound::Everything, || {
        let slot = Slot::new();
        let engine = engine(&slot, |slot| slot.receive(8));
        pipe::give_up(&slot.control);
        assert!(engine.join().unwrap().is_err());
    });
}

#[test]
fn a_response_larger_than_the_ring_arrives() {
    explore(Bound::Preemptions(5), || {
        let slot = Slot::new();
        let engine = engine(&slot, |slot| slot.respond(b"abc"));
        assert_eq!(slot.read_all(3), b"abc");
        assert!(engine.join().unwrap().is_ok());
    });
}

/// Nobody reads: the engine must not wait for room any longer.
#[test]
fn an_engine_that_waits_for_room_hears_that_the_client_left() {
    explore(Bound::Everything, || {
        let slot = Slot::new();
        let engine = engine(&slot, |slot| slot.respond(b"abc"));
        pipe::give_up(&slot.control);
        assert!(engine.join().unwrap().is_err());
    });
}
