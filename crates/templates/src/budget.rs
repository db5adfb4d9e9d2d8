//! What a page may cost.

use gotmpl::{Result, TemplateError};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Bytes of all texts and lists that functions make for one page, freed ones too.
const BYTES: u64 = 256 << 20;
/// Calls of functions, passes of loops and calls of templates.
const STEPS: u64 = 1_000_000;
/// Lists and maps: each can hold the one before, and what is nested is freed level by level, on the stack.
const CONTAINERS: u64 = 20_000;
/// How long it may take.
const TIME: Duration = Duration::from_secs(10);

pub(crate) struct Budget {
    bytes: AtomicU64,
    steps: AtomicU64,
    containers: AtomicU64,
    until: Instant,
}

impl Budget {
    pub(crate) fn new() -> Self {
        Self {
            bytes: BYTES.into(),
            steps: STEPS.into(),
            containers: CONTAINERS.into(),
            until: Instant::now() + TIME,
        }
    }

    pub(crate) fn step(&self) -> Result<()> {
        let left = take(&self.steps, 1, "it takes more than 1,000,000 steps")?;
        if left.is_multiple_of(256) && Instant::now() > self.until {
            return Err(exceeded("it takes more than 10 seconds"));
        }
        Ok(())
    }

    pub(crate) fn container(&self) -> Result<()> {
        take(&self.containers, 1, "it makes more than 20,000 lists and maps").map(|_| ())
    }

    /// Before something of so many bytes is made.
    pub(crate) fn bytes(&self, count: usize) -> Result<()> {
        take(&self.bytes, count as u64, "its texts take more than 256 MiB").map(|_| ())
    }

    /// The text that `write` writes, as far as the budget goes.
    pub(crate) fn text(&self, write: impl FnOnce(&mut Text<'_>) -> fmt::Result) -> Result<String> {
        let mut text = Text { budget: self, text: String::new(), error: None };
        match write(&mut text) {
            Ok(()) => Ok(text.text),
            Err(fmt::Error) => {
                Err(text.error.unwrap_or_else(|| TemplateError::Exec("a value cannot be printed".into())))
            }
        }
    }
}

/// What is left of the account.
fn take(account: &AtomicU64, count: u64, message: &str) -> Result<u64> {
    let left = account.load(Ordering::Relaxed).checked_sub(count).ok_or_else(|| exceeded(message))?;
    // One thread renders a page; the type is atomic for the sake of the functions' own.
    account.store(left, Ordering::Relaxed);
    Ok(left)
}

fn exceeded(message: &str) -> TemplateError {
    TemplateError::Exec(format!("the page exceeds a limit: {message}"))
}

/// A text that pays for what is written.
pub(crate) struct Text<'a> {
    budget: &'a Budget,
    text: String,
    error: Option<TemplateError>,
}

impl fmt::Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if let Err(error) = self.budget.step_of_printing(text.len()) {
            self.error = Some(error);
            return Err(fmt::Error);
        }
        self.text.push_str(text);
        Ok(())
    }
}

impl Budget {
    /// A value that holds another many times is printed as often, which costs time though it may print nothing.
    fn step_of_printing(&self, bytes: usize) -> Result<()> {
        self.bytes(bytes.max(16))
    }
}
