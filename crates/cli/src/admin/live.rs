//! A picture on the terminal that changes, until `q`, Escape, Ctrl-C or SIGTERM.

use super::keys::{Keys, Seen};
use super::screen::Screen;
use super::table::{Line, Span};
use anyhow::Result;
use std::time::Duration;

/// Between two looks at what is shown.
pub const PERIOD: Duration = Duration::from_secs(1);
/// How long a key, a signal or new figures may go unnoticed.
const GLANCE: Duration = Duration::from_millis(50);

pub trait Picture {
    /// Whether there was news. Does not wait for it.
    fn take_in(&mut self) -> bool;
    /// In so many lines at most.
    fn lines(&self, room: usize) -> Vec<Line>;
    /// The last line of the screen.
    fn bottom(&self) -> Span;
}

/// # Errors
/// Without a terminal.
pub fn watch(picture: &mut dyn Picture) -> Result<()> {
    let mut screen = Screen::open()?;
    let keys = Keys::new()?;
    screen.draw(&page(picture, screen.height()?))?;
    loop {
        let seen = keys.glance(GLANCE)?;
        if seen == Seen::End {
            return Ok(());
        }
        if picture.take_in() || seen == Seen::Resize {
            screen.draw(&page(picture, screen.height()?))?;
        }
    }
}

fn page(picture: &dyn Picture, height: usize) -> Vec<Line> {
    let room = height.saturating_sub(1);
    let mut lines = picture.lines(room);
    lines.resize(room, Line::new());
    lines.push(vec![picture.bottom()]);
    lines
}
