//! `stream_…`, `request_buffers` and `response_buffers`: what waits here for whom.

use crate::call::Call;
use crate::problems::error;
use crate::values::{duration, size};
use regent_caddyfile::Error;
use std::time::Duration;

/// Bytes of a connection that has left HTTP, in each direction, as in Caddy.
const STREAM_BUFFER: u32 = 32 * 1024;
/// Each connection has two.
const STREAM_BUFFERS: std::ops::RangeInclusive<u64> = 1024..=1024 * 1024;

/// What the directive says of that.
pub(super) struct Streams {
    pub timeout: Duration,
    pub buffer_size: u32,
    pub close_delay: Option<Duration>,
    pub request_buffers: u64,
    pub response_buffers: u64,
}

impl Default for Streams {
    fn default() -> Self {
        Self {
            timeout: Duration::ZERO,
            buffer_size: STREAM_BUFFER,
            close_delay: None,
            request_buffers: 0,
            response_buffers: 0,
        }
    }
}

impl Streams {
    pub const OPTIONS: &[&str] = &[
        "request_buffers",
        "response_buffers",
        "stream_buffer_size",
        "stream_close_delay",
        "stream_timeout",
    ];

    pub fn read(&mut self, option: &Call<'_>) -> Result<(), Error> {
        match option.name() {
            "request_buffers" => self.request_buffers = buffers(option)?,
            "response_buffers" => self.response_buffers = buffers(option)?,
            "stream_buffer_size" => self.buffer_size = stream_buffer(option)?,
            "stream_close_delay" => {
                self.close_delay = Some(duration(option.one("stream_close_delay DURATION")?)?);
            }
            _ => self.timeout = duration(option.one("stream_timeout DURATION")?)?,
        }
        Ok(())
    }
}

fn buffers(option: &Call<'_>) -> Result<u64, Error> {
    let token = option.one(&format!("{} SIZE | unlimited", option.name()))?;
    if token.text == "unlimited" { Ok(u64::MAX) } else { size(token) }
}

fn stream_buffer(option: &Call<'_>) -> Result<u32, Error> {
    let token = option.one("stream_buffer_size SIZE")?;
    let bytes = size(token)?;
    let fits = u32::try_from(bytes).ok().filter(|_| STREAM_BUFFERS.contains(&bytes));
    fits.ok_or_else(|| error(token, format!("`{}` must be from 1KiB to 1MiB", token.text)))
}
