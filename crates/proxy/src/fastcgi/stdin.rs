//! A request on its way to a FastCGI server.

use crate::fastcgi::record;
use crate::timed::Timed;
use crate::upload::{Progress, Upload};
use http_body::Body;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use tokio::io::{AsyncWriteExt, BufWriter, WriteHalf};
use tokio::task::{JoinHandle, spawn_local};

/// What is small goes out as one.
const BUFFER: usize = 16 * 1024;

/// How a request has been sent.
pub(super) enum Sent {
    /// All of it; or the server has taken no more, which its response explains.
    Over,
    /// The client's body could not be read: what the server has is not whole.
    Broken,
}

/// Sends on a task of its own, since a server may respond before it has read all.
pub(super) fn send(
    writer: WriteHalf<Timed>,
    variables: &[u8],
    upload: Upload,
    progress: &Rc<Progress>,
) -> JoinHandle<Sent> {
    let mut head = record::BEGIN.to_vec();
    record::params(variables, &mut head);
    let progress = Rc::clone(progress);
    spawn_local(async move {
        let sent = send_all(writer, &head, upload).await;
        match sent {
            Err(_) if progress.trouble().is_some() => Sent::Broken,
            _ => Sent::Over,
        }
    })
}

async fn send_all(writer: WriteHalf<Timed>, head: &[u8], mut upload: Upload) -> io::Result<()> {
    let mut writer = BufWriter::with_capacity(BUFFER, writer);
    writer.write_all(head).await?;
    while let Some(frame) = poll_fn(|context| Pin::new(&mut upload).poll_frame(context)).await {
        // CGI has no trailers.
        let Ok(bytes) = frame.map_err(io::Error::other)?.into_data() else { continue };
        for (header, part) in record::stdin(&bytes) {
            writer.write_all(&header).await?;
            writer.write_all(part).await?;
        }
    }
    writer.write_all(&record::END_OF_STDIN).await?;
    writer.flush().await
}
