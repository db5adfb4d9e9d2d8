//! The terminal, borrowed: it is given back whatever happens.

use super::table::{Line, Span, Tone};
use anyhow::{Result, bail};
use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::style::{Attribute, Color, Print, ResetColor, SetAttribute, SetForegroundColor};
use crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, DisableLineWrap, EnableLineWrap, EndSynchronizedUpdate,
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size,
};
use crossterm::{execute, queue};
use std::io::{self, IsTerminal, Stdout, Write};

/// A screen of its own, in which keys come at once and unseen. Dropped, the terminal is as it was; in a panic, before
/// its message is printed.
pub struct Screen {
    out: Stdout,
}

impl Screen {
    pub fn open() -> Result<Self> {
        if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
            bail!("this needs a terminal; use --once to print the figures as text");
        }
        enable_raw_mode()?;
        // From here on a failure gives it back.
        let mut screen = Self { out: io::stdout() };
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            report(panic);
        }));
        execute!(screen.out, EnterAlternateScreen, Hide, DisableLineWrap)?;
        Ok(screen)
    }

    /// Lines that there is room for.
    pub fn height(&self) -> Result<usize> {
        Ok(size()?.1.into())
    }

    /// Shows these lines, cut off where there is no room.
    pub fn draw(&mut self, lines: &[Line]) -> Result<()> {
        let (width, height) = size()?;
        queue!(self.out, BeginSynchronizedUpdate)?;
        for (row, line) in (0..height).zip(lines) {
            queue!(self.out, MoveTo(0, row))?;
            self.draw_line(line, width.into())?;
            queue!(self.out, Clear(ClearType::UntilNewLine))?;
        }
        if lines.len() < height.into() {
            queue!(self.out, MoveTo(0, lines.len() as u16), Clear(ClearType::FromCursorDown))?;
        }
        queue!(self.out, EndSynchronizedUpdate)?;
        Ok(self.out.flush()?)
    }

    fn draw_line(&mut self, line: &Line, width: usize) -> Result<()> {
        let mut room = width;
        for Span { text, tone } in line {
            let shown: String = text.chars().take(room).collect();
            room -= shown.chars().count();
            match colour(*tone) {
                Some(colour) => queue!(self.out, SetForegroundColor(colour), Print(shown), ResetColor)?,
                None if *tone == Tone::Heading => {
                    queue!(
                        self.out,
                        SetAttribute(Attribute::Bold),
                        Print(shown),
                        SetAttribute(Attribute::Reset)
                    )?;
                }
                None => queue!(self.out, Print(shown))?,
            }
        }
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// The basic colours, which every terminal's theme has chosen to be readable. `NO_COLOR` is crossterm's to respect.
fn colour(tone: Tone) -> Option<Color> {
    match tone {
        Tone::Plain | Tone::Heading => None,
        Tone::Quiet => Some(Color::DarkGrey),
        Tone::Active => Some(Color::Blue),
        Tone::Warning => Some(Color::DarkYellow),
        Tone::Bad => Some(Color::Red),
    }
}

/// There is nobody left to tell of an error.
fn give_back() {
    let _ = execute!(io::stdout(), EnableLineWrap, Show, LeaveAlternateScreen);
    let _ = disable_raw_mode();
}
