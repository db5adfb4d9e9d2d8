//! How bodies flow through the rings of a slot: who waits for whom, and how it hears of the other.

use crate::layout::{BodyState, SlotControl};
use crate::ring::{Corrupt, Reader, Writer};
use crate::signal::{EventCount, RoomWish};
use crate::sync::Ordering;

/// The server gave the request up: what is written is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the client has left")]
pub struct ClientGone;

/// The request body broke off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the request body broke off")]
pub struct BodyBroken;

/// Server: appends to the request body as much as there is room for, and returns how much that was. When it was not
/// all, the engine marks the slot once it has made room.
pub(crate) fn send(slot: &SlotControl, ring: &Writer<'_>, bytes: &[u8]) -> Result<usize, Corrupt> {
    let mut count = put_some(ring, bytes)?;
    if count < bytes.len() {
        RoomWish(&slot.server_waits).make();
        // It may have made room just before it could see the wish.
        count += put_some(ring, &bytes[count..])?;
    }
    EventCount::of(slot).signal();
    Ok(count)
}

/// Server: says how the request body stands.
pub(crate) fn set_body(slot: &SlotControl, state: BodyState) {
    slot.body_state.store(state as u32, Ordering::Release);
    EventCount::of(slot).signal();
}

/// Server: tells the engine that nobody waits for the response any more.
pub(crate) fn give_up(slot: &SlotControl) {
    slot.cancelled.store(1, Ordering::Release);
    EventCount::of(slot).signal();
}

/// Server: makes room in the response ring.
pub(crate) fn advance(slot: &SlotControl, ring: &Reader<'_>, bytes: usize) {
    ring.advance(bytes);
    EventCount::of(slot).signal();
}

/// Engine: whether the server gave the request up.
pub(crate) fn is_given_up(slot: &SlotControl) -> bool {
    slot.cancelled.load(Ordering::Acquire) != 0
}

/// Engine: fills the buffer from the request body unless the body ends, and returns how much came. Sleeps while the
/// ring is empty; calls `mark` when the server wants to know of room.
pub(crate) fn receive(
    slot: &SlotControl,
    ring: &Reader<'_>,
    buffer: &mut [u8],
    mark: impl Fn(),
) -> Result<usize, BodyBroken> {
    let mut filled = 0;
    while filled < buffer.len() {
        // Before the ring: what was written before the end is then seen.
        let state = BodyState::from_bits(slot.body_state.load(Ordering::Acquire));
        let available = ring.available().map_err(|_| BodyBroken)?;
        if available > 0 {
            let count = available.min(buffer.len() - filled);
            ring.peek(0, &mut buffer[filled..filled + count]);
            ring.advance(count);
            filled += count;
            if RoomWish(&slot.server_waits).take() {
                mark();
            }
        } else if state == BodyState::Complete {
            break;
        } else if state == BodyState::Broken || is_given_up(slot) {
            return Err(BodyBroken);
        } else {
            EventCount::of(slot).wait(|| {
                ring.available() != Ok(0)
                    || slot.body_state.load(Ordering::Acquire) != BodyState::Open as u32
                    || is_given_up(slot)
            });
        }
    }
    Ok(filled)
}

/// Engine: waits until so many bytes can be written to the response ring, and returns how many can. Calls `publish`
/// before it sleeps.
pub(crate) fn wait_for_room(
    slot: &SlotControl,
    ring: &Writer<'_>,
    wanted: usize,
    publish: impl Fn(),
) -> Result<usize, ClientGone> {
    let room = || ring.room().unwrap_or(0);
    while room() < wanted {
        if is_given_up(slot) {
            return Err(ClientGone);
        }
        publish();
        EventCount::of(slot).wait(|| room() >= wanted || is_given_up(slot));
    }
    Ok(room())
}

fn put_some(ring: &Writer<'_>, bytes: &[u8]) -> Result<usize, Corrupt> {
    let count = ring.room()?.min(bytes.len());
    ring.put(&bytes[..count]);
    ring.publish();
    Ok(count)
}
