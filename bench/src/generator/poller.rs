//! epoll, edge-triggered, with a timer that is exact to microseconds.
//!
//! Of epoll itself, `mio` and `polling`, this is the one that costs no system call beyond the wait: sockets are
//! registered once, and their edges alone say when to read. epoll's own time-out counts in milliseconds; the moments of
//! an open loop need the timer.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use anyhow::Result;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

/// So few that the first of a round does not wait long for the last.
const EVENTS: usize = 256;
/// No connection has this number.
const TIMER: u64 = u64::MAX;

const READABLE: EventFlags = EventFlags::IN.union(EventFlags::RDHUP).union(EventFlags::ET);

pub struct Poller {
    epoll: OwnedFd,
    timer: OwnedFd,
    /// What the timer is set to.
    alarm: Option<Duration>,
    events: Vec<Event>,
    round: u64,
}

/// What a connection is watched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    Read,
    ReadAndWrite,
}

/// What happened to a connection.
#[derive(Clone, Copy, Debug)]
pub struct Readiness(EventFlags);

impl Poller {
    pub fn new() -> Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        // Edge-triggered: the timer is set anew instead of being read.
        epoll::add(&epoll, &timer, EventData::new_u64(TIMER), EventFlags::IN | EventFlags::ET)?;
        Ok(Self { epoll, timer, alarm: None, events: Vec::with_capacity(EVENTS), round: 0 })
    }

    pub fn add(&self, socket: impl AsFd, place: usize, interest: Interest) -> Result<()> {
        Ok(epoll::add(&self.epoll, socket, EventData::new_u64(place as u64), interest.flags())?)
    }

    /// Also reports at once what is ready already.
    pub fn watch_again(&self, socket: impl AsFd, place: usize, interest: Interest) -> Result<()> {
        Ok(epoll::modify(&self.epoll, socket, EventData::new_u64(place as u64), interest.flags())?)
    }

    /// Ends the next wait at `moment`, exactly.
    pub fn set_alarm(&mut self, now: Duration, moment: Duration) -> Result<()> {
        if self.alarm != Some(moment) {
            self.alarm = Some(moment);
            // Zero would stop the timer.
            let left = moment.saturating_sub(now).max(Duration::from_nanos(1));
            let time =
                Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: left.try_into()? };
            timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &time)?;
        }
        Ok(())
    }

    /// Waits for an event, the alarm or a signal, for `timeout` (in whole ms, rounded up) at most. Returns the number of events.
    pub fn wait(&mut self, timeout: Duration) -> Result<usize> {
        self.round += 1;
        self.events.clear();
        let timeout = Timespec::try_from(timeout)?;
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut self.events), Some(&timeout)) {
            Ok(events) => Ok(events),
            Err(Errno::INTR) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    /// How often events were waited for.
    pub fn round(&self) -> u64 {
        self.round
    }

    /// An event of the last wait, with the place of its connection; `None` for the alarm.
    pub fn event(&self, index: usize) -> Option<(usize, Readiness)> {
        let Event { flags, data, .. } = self.events[index];
        (data.u64() != TIMER).then_some((data.u64() as usize, Readiness(flags)))
    }
}

impl Interest {
    fn flags(self) -> EventFlags {
        match self {
            Self::Read => READABLE,
            Self::ReadAndWrite => READABLE | EventFlags::OUT,
        }
    }
}

impl Readiness {
    /// Of a connection that broke.
    pub const ENDED: Self = Self(EventFlags::HUP);

    /// There is something to read, if only the end or an error.
    pub fn is_readable(self) -> bool {
        self.0.intersects(EventFlags::IN) || self.is_ended()
    }

    /// Nothing more will come than what is there.
    pub fn is_ended(self) -> bool {
        self.0.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR)
    }
}
