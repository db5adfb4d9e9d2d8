//! What an HTTP/2 connection is doing, and since when: the base of its time-outs and of the limits on its frames.

use crate::allowance::Allowance;
use crate::h2::failure::{Flood, Stalled};
use crate::h2::frames::{Event, FrameHead, FrameScanner, Kind};
use crate::timeouts::{Stall, Timeouts};
use regent_net::CoarseInstant;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Resets of streams at once and a second. A response that was taken whole pays for one. A browser resets what a page
/// still loads when it leaves that.
const RESETS: (u32, u32) = (200, 10);

/// Frames that ask for nothing, at once and a second. A request pays for two: browsers send `PRIORITY_UPDATE` with each.
const CONTROL_FRAMES: (u32, u32) = (1000, 100);
const CONTROL_FRAMES_OF_REQUEST: u32 = 2;

/// How long a client without streams may take to confirm that it was told of the end.
const GOODBYE: Duration = Duration::from_secs(2);

/// Heads whose times are kept until their requests are accepted.
const MOST_SLOW_HEADS: usize = 100;

/// Shared by the connection, its streams and what they run on, all on one thread.
#[derive(Debug)]
pub(super) struct Activity {
    frames: RefCell<FrameScanner>,
    /// The first `SETTINGS` are awaited.
    preface: Stall,
    /// A header block has begun and not ended.
    head: Stall,
    /// When the first bytes came of a header block that did not come whole.
    head_begun: Cell<Option<Instant>>,
    slow_heads: RefCell<VecDeque<(u32, Duration)>>,
    /// The client takes nothing of what there is to send.
    blocked: Stall,
    /// There are no streams.
    idle: Stall,
    /// All that is left to do is to send what responses have left behind.
    flushing: Stall,
    /// The client was told that the connection ends, and has no streams.
    goodbye: Stall,
    /// The connection closes. Also what a client takes in small bites comes to an end.
    closing: Stall,
    resets: Allowance,
    control_frames: Allowance,
    flood: Cell<Option<Flood>>,
    is_first: Cell<bool>,
    breaks_preface: Cell<bool>,
}

/// What a connection has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Load {
    /// Requests are being answered.
    Requests,
    /// Responses were handed to the h2 crate whole, and are not sent whole.
    Rests,
    Nothing,
}

/// Whether a connection goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Course {
    GoesOn,
    /// With its streams.
    Ends,
    /// Now.
    Closes,
}

/// Why a connection has to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expired {
    /// Nothing was begun.
    Idle,
    Stalled(Stalled),
}

impl Activity {
    pub fn new() -> Self {
        let (resets, control_frames) = (RESETS, CONTROL_FRAMES);
        let activity = Self {
            frames: RefCell::new(FrameScanner::new()),
            preface: Stall::default(),
            head: Stall::default(),
            head_begun: Cell::new(None),
            slow_heads: RefCell::default(),
            blocked: Stall::default(),
            idle: Stall::default(),
            flushing: Stall::default(),
            goodbye: Stall::default(),
            closing: Stall::default(),
            resets: Allowance::new(resets.0, resets.1),
            control_frames: Allowance::new(control_frames.0, control_frames.1),
            flood: Cell::new(None),
            is_first: Cell::new(true),
            breaks_preface: Cell::new(false),
        };
        activity.preface.begin();
        activity
    }

    /// Bytes came from the client.
    pub fn received(&self, bytes: &[u8]) {
        self.frames.borrow_mut().scan(bytes, |event| match event {
            Event::Begun(head) => self.frame_begun(head),
            Event::Ended(head) => self.frame_ended(head),
        });
        // Most heads come whole, and cost no look at the exact clock.
        if self.head.has_begun() && self.head_begun.get().is_none() {
            self.head_begun.set(Some(Instant::now()));
        }
    }

    /// The stream below took bytes.
    pub fn written(&self) {
        self.blocked.end();
        self.flushing.end();
    }

    /// Nothing that it has taken waits for its socket. (That the client gives room to what still waits here is not said.)
    pub fn flushed(&self) {
        self.blocked.end();
    }

    /// It took none.
    pub fn write_blocked(&self) {
        self.blocked.begin();
    }

    /// A request was accepted. Returns how long its head took to come, from its first byte; nothing if it came whole.
    pub fn accepted(&self, stream: u32) -> Duration {
        self.control_frames.give(CONTROL_FRAMES_OF_REQUEST);
        let mut heads = self.slow_heads.borrow_mut();
        let mut head_time = Duration::ZERO;
        // Streams are accepted in order: what came before is of trailers, or was refused.
        while let Some(&(slow, time)) = heads.front()
            && slow <= stream
        {
            heads.pop_front();
            head_time = if slow == stream { time } else { head_time };
        }
        head_time
    }

    /// A response was sent whole.
    pub fn completed(&self) {
        self.resets.give(1);
    }

    /// The server reset a stream, or had to refuse its request, and the client is to blame.
    pub fn offended(&self) {
        self.charge(&self.resets, Flood::Resets);
    }

    /// What is too much of what the client has sent.
    pub fn flood(&self) -> Option<Flood> {
        self.flood.get()
    }

    /// Whether the first frame was not `SETTINGS` (RFC 9113 §3.4).
    pub fn breaks_preface(&self) -> bool {
        self.breaks_preface.get()
    }

    /// To be called whenever the connection has nothing to do at the moment.
    pub fn rests(&self, load: Load, course: Course) {
        turn(&self.idle, load == Load::Nothing);
        turn(&self.flushing, load == Load::Rests);
        turn(&self.goodbye, load == Load::Nothing && course == Course::Ends);
        turn(&self.closing, course == Course::Closes);
    }

    /// Whether the connection must end now, or else how long to wait before looking again.
    pub fn check(
        &self,
        timeouts: &Timeouts,
        course: Course,
        now: CoarseInstant,
    ) -> Result<Duration, Expired> {
        let limits = [
            (self.blocked.left(timeouts.write, now), Expired::Stalled(Stalled::Reading)),
            (self.flushing.left(timeouts.write, now), Expired::Stalled(Stalled::Reading)),
            (self.closing.left(timeouts.write, now), Expired::Stalled(Stalled::Reading)),
            (self.preface.left(timeouts.head, now), Expired::Stalled(Stalled::Preface)),
            (self.head.left(timeouts.head, now), Expired::Stalled(Stalled::Head)),
            (self.goodbye.left(GOODBYE, now), Expired::Idle),
            (self.idle.left(timeouts.idle, now), Expired::Idle),
        ];
        let mut wait = Self::longest_sleep(timeouts, course);
        for (left, expired) in limits {
            if left.is_zero() {
                return Err(expired);
            }
            wait = wait.min(left);
        }
        Ok(wait)
    }

    /// Whatever begins from now on ends no sooner.
    pub fn longest_sleep(timeouts: &Timeouts, course: Course) -> Duration {
        let goodbye = if course == Course::GoesOn { Duration::MAX } else { GOODBYE };
        timeouts.idle.min(timeouts.head).min(timeouts.write).min(goodbye)
    }

    fn frame_begun(&self, head: FrameHead) {
        if self.is_first.take() && (head.kind != Kind::Settings || head.is_acknowledgement()) {
            self.breaks_preface.set(true);
        }
        match head.kind {
            Kind::Headers => self.head.begin(),
            Kind::Reset => self.charge(&self.resets, Flood::Resets),
            Kind::Settings | Kind::Ping if head.is_acknowledgement() => {}
            Kind::Settings | Kind::Ping | Kind::Priority | Kind::Unknown => {
                self.charge(&self.control_frames, Flood::ControlFrames);
            }
            _ => {}
        }
    }

    fn frame_ended(&self, head: FrameHead) {
        match head.kind {
            Kind::Settings => self.preface.end(),
            Kind::Headers | Kind::Continuation if head.ends_headers() => {
                self.head.end();
                if let Some(begun) = self.head_begun.take() {
                    self.keep_head_time(head.stream, begun.elapsed());
                }
            }
            _ => {}
        }
    }

    fn keep_head_time(&self, stream: u32, time: Duration) {
        let mut heads = self.slow_heads.borrow_mut();
        if heads.len() < MOST_SLOW_HEADS {
            heads.push_back((stream, time));
        }
    }

    fn charge(&self, allowance: &Allowance, flood: Flood) {
        if !allowance.take() {
            self.flood.set(Some(flood));
        }
    }
}

fn turn(stall: &Stall, stands: bool) {
    match stands {
        true => stall.begin(),
        false => stall.end(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::h2::frames::PREFACE;

    const PATIENCE: Timeouts = Timeouts {
        idle: Duration::from_secs(100),
        head: Duration::from_secs(10),
        write: Duration::from_secs(60),
    };

    const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    const HEADERS: u8 = 1;
    const CONTINUATION: u8 = 9;

    fn greeted() -> Activity {
        let activity = Activity::new();
        activity.received(&[PREFACE, &SETTINGS].concat());
        activity
    }

    /// A frame with one byte of a header block.
    fn block(kind: u8, flags: u8, stream: u8) -> [u8; 10] {
        [0, 0, 1, kind, flags, 0, 0, 0, stream, 0x82]
    }

    fn after(activity: &Activity, seconds: u64) -> Result<Duration, Expired> {
        activity.check(&PATIENCE, Course::GoesOn, CoarseInstant::now().after(Duration::from_secs(seconds)))
    }

    #[test]
    fn a_client_has_its_time_to_begin() {
        let activity = Activity::new();
        activity.received(PREFACE);
        assert!(after(&activity, 9).is_ok());
        assert_eq!(after(&activity, 11), Err(Expired::Stalled(Stalled::Preface)));
        activity.received(&SETTINGS);
        assert!(after(&activity, 11).is_ok() && !activity.breaks_preface());
    }

    /// With TLS the last bytes of a response leave by a flush, and no write follows.
    #[test]
    fn a_flush_that_went_through_ends_a_stall() {
        let activity = greeted();
        activity.write_blocked();
        assert_eq!(after(&activity, 61), Err(Expired::Stalled(Stalled::Reading)));
        activity.flushed();
        assert!(after(&activity, 61).is_ok());
    }

    #[test]
    fn a_header_block_has_its_time_whatever_comes_of_it() {
        let activity = greeted();
        activity.received(&block(HEADERS, 0, 1));
        assert!(after(&activity, 9).is_ok());
        activity.received(&block(CONTINUATION, 0, 1)[..3]);
        assert_eq!(after(&activity, 11), Err(Expired::Stalled(Stalled::Head)));
        activity.received(&block(CONTINUATION, 0, 1)[3..]);
        assert_eq!(after(&activity, 11), Err(Expired::Stalled(Stalled::Head)));
        activity.received(&block(CONTINUATION, 4, 1));
        assert!(after(&activity, 11).is_ok());
    }

    #[test]
    fn a_head_that_comes_whole_takes_no_time() {
        let activity = greeted();
        activity.received(&block(HEADERS, 4, 1));
        activity.received(&[block(HEADERS, 0, 3), block(CONTINUATION, 4, 3)].concat());
        assert_eq!(activity.accepted(1) + activity.accepted(3), Duration::ZERO);
    }

    #[test]
    fn a_head_in_parts_takes_from_the_first_to_the_last() {
        let activity = greeted();
        for stream in [1, 3, 5] {
            activity.received(&block(HEADERS, 0, stream));
            let begun = activity.head_begun.get().expect("it is not whole");
            // clock: until it has gone on at all.
            while begun.elapsed().is_zero() {}
            activity.received(&block(CONTINUATION, 4, stream));
        }
        // The first was refused.
        assert!(!activity.accepted(3).is_zero() && !activity.accepted(5).is_zero());
        assert!(activity.slow_heads.borrow().is_empty());
    }

    #[test]
    fn heads_that_nobody_accepts_fill_no_memory() {
        let activity = greeted();
        for _ in 0..1000 {
            activity.received(&block(HEADERS, 0, 1));
            activity.received(&block(CONTINUATION, 4, 1));
        }
        assert_eq!(activity.slow_heads.borrow().len(), MOST_SLOW_HEADS);
    }

    /// Whatever the client takes meanwhile.
    #[test]
    fn an_end_has_its_time() {
        let activity = greeted();
        activity.rests(Load::Nothing, Course::Closes);
        activity.written();
        assert!(after(&activity, 59).is_ok());
        assert_eq!(after(&activity, 61), Err(Expired::Stalled(Stalled::Reading)));
    }

    #[test]
    fn what_was_not_sent_has_its_time_while_nothing_of_it_is_taken() {
        let activity = greeted();
        activity.rests(Load::Rests, Course::GoesOn);
        assert!(after(&activity, 59).is_ok());
        assert_eq!(after(&activity, 61), Err(Expired::Stalled(Stalled::Reading)));
        activity.written();
        assert!(after(&activity, 61).is_ok());
        activity.rests(Load::Requests, Course::GoesOn);
        assert!(after(&activity, 1000).is_ok(), "a service may take its time");
        activity.rests(Load::Nothing, Course::GoesOn);
        assert_eq!(after(&activity, 101), Err(Expired::Idle));
    }
}
