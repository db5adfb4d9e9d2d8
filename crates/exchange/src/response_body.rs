//! The body of a response: nothing, bytes in memory, pieces of a file, or a stream of whoever makes it.
//!
//! A file is read while it is sent, without ever blocking the I/O thread: what is in the page cache is read at once
//! (`preadv2` with `RWF_NOWAIT`), the rest by the runtime's blocking threads.

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use rustix::fd::OwnedFd;
use rustix::io::{Errno, ReadWriteFlags};
use std::collections::VecDeque;
use std::future::Future;
use std::io::{self, IoSliceMut};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// Bytes read at once: small enough for the allocator's heap, large enough to amortize the calls.
const CHUNK: u64 = 64 * 1024;

/// The body of a response, whoever made it.
pub struct ResponseBody(Kind);

/// Among the extensions of a response's head: its body is an event stream (`text/event-stream`) without an end of its own or trailers,
/// of which thousands wait at a time. A front may keep less than usual for it while it is silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventStream;

enum Kind {
    Full(Bytes),
    File(Box<FileBody>),
    Stream(Pin<Box<dyn Body<Data = Bytes, Error = io::Error>>>),
}

struct FileBody {
    file: Arc<OwnedFd>,
    segments: VecDeque<Segment>,
    /// Bytes that are not sent yet.
    left: u64,
    pending: Option<JoinHandle<io::Result<Vec<u8>>>>,
    /// Whether the file system can say that it would block.
    nowait: bool,
}

/// A piece of a body.
pub enum Segment {
    Bytes(Bytes),
    File { offset: u64, len: u64 },
}

impl ResponseBody {
    pub fn empty() -> Self {
        Self(Kind::Full(Bytes::new()))
    }

    /// Bytes in memory.
    pub fn full(bytes: impl Into<Bytes>) -> Self {
        Self(Kind::Full(bytes.into()))
    }

    /// A part of a regular file.
    pub fn file(file: OwnedFd, offset: u64, len: u64) -> Self {
        Self::segments(file, [Segment::File { offset, len }].into())
    }

    /// The same of one that others read too.
    pub fn shared_file(file: Arc<OwnedFd>, offset: u64, len: u64) -> Self {
        Self::of_file(file, [Segment::File { offset, len }].into())
    }

    /// Several parts of one file, with bytes around them.
    pub fn segments(file: OwnedFd, segments: VecDeque<Segment>) -> Self {
        Self::of_file(Arc::new(file), segments)
    }

    fn of_file(file: Arc<OwnedFd>, segments: VecDeque<Segment>) -> Self {
        let left = segments.iter().map(Segment::len).sum();
        Self(Kind::File(Box::new(FileBody { file, segments, left, pending: None, nowait: true })))
    }

    /// What is made while it is sent. An error of the stream means that the response is not whole: the client must not
    /// take it for complete.
    pub fn stream(body: impl Body<Data = Bytes, Error = io::Error> + 'static) -> Self {
        Self(Kind::Stream(Box::pin(body)))
    }

    /// Bytes that are still to come; `None` if that is not known.
    pub fn len(&self) -> Option<u64> {
        match &self.0 {
            Kind::Full(bytes) => Some(bytes.len() as u64),
            Kind::File(file) => Some(file.left),
            Kind::Stream(body) => body.size_hint().exact(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }
}

impl Default for ResponseBody {
    fn default() -> Self {
        Self::empty()
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = io::Error;

    /// An error means that the announced length cannot be kept: the connection has to be closed.
    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match &mut self.get_mut().0 {
            Kind::Full(bytes) if bytes.is_empty() => Poll::Ready(None),
            Kind::Full(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Kind::File(file) => file.poll(cx).map(|chunk| chunk.map(|chunk| chunk.map(Frame::data))),
            Kind::Stream(body) => body.as_mut().poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Stream(body) => body.is_end_stream(),
            Kind::Full(_) | Kind::File(_) => self.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::File(file) => SizeHint::with_exact(file.left),
            Kind::Stream(body) => body.size_hint(),
        }
    }
}

impl FileBody {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        let result = match self.next_chunk(cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Ready(Some(result)) => result,
        };
        match &result {
            Ok(bytes) => self.left = self.left.saturating_sub(bytes.len() as u64),
            Err(_) => self.segments.clear(),
        }
        Poll::Ready(Some(result))
    }

    fn next_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        loop {
            if let Some(task) = &mut self.pending {
                let read = ready!(Pin::new(task).poll(cx));
                self.pending = None;
                let chunk = read.map_err(io::Error::other).and_then(|read| self.take_read(read?));
                return Poll::Ready(Some(chunk));
            }
            let (offset, len) = match self.segments.front() {
                None => return Poll::Ready(None),
                Some(Segment::File { offset, len }) if *len > 0 => (*offset, (*len).min(CHUNK)),
                Some(_) => match self.segments.pop_front() {
                    Some(Segment::Bytes(bytes)) if !bytes.is_empty() => return Poll::Ready(Some(Ok(bytes))),
                    _ => continue,
                },
            };
            match self.read(offset, len) {
                Ok(Some(bytes)) => return Poll::Ready(Some(self.take_read(bytes))),
                Ok(None) => {}
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
    }

    /// What can be had at once; `None`: a blocking thread has been asked.
    fn read(&mut self, offset: u64, len: u64) -> io::Result<Option<Vec<u8>>> {
        if self.nowait {
            match read_cached(&self.file, offset, len) {
                Ok(bytes) => return Ok(Some(bytes)),
                Err(Errno::AGAIN) => {}
                // The file system knows no RWF_NOWAIT.
                Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => self.nowait = false,
                Err(errno) => return Err(errno.into()),
            }
        }
        let Ok(runtime) = Handle::try_current() else {
            return read_blocking(&self.file, offset, len).map(Some);
        };
        let file = self.file.clone();
        self.pending = Some(runtime.spawn_blocking(move || read_blocking(&file, offset, len)));
        Ok(None)
    }

    /// Accounts for what was read of the first segment.
    fn take_read(&mut self, bytes: Vec<u8>) -> io::Result<Bytes> {
        if bytes.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the file became shorter while it was sent",
            ));
        }
        if let Some(Segment::File { offset, len }) = self.segments.front_mut() {
            *offset += bytes.len() as u64;
            *len = len.saturating_sub(bytes.len() as u64);
        }
        Ok(bytes.into())
    }
}

impl Segment {
    fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File { len, .. } => *len,
        }
    }
}

/// The first `len` bytes of a regular file, if all of them are in the page cache.
pub fn read_at_once(file: &OwnedFd, len: u64) -> Option<Bytes> {
    let bytes = read_cached(file, 0, len).ok()?;
    (bytes.len() as u64 == len).then(|| bytes.into())
}

/// Reads what is in the page cache; `EAGAIN` if nothing is.
fn read_cached(file: &OwnedFd, offset: u64, len: u64) -> rustix::io::Result<Vec<u8>> {
    let mut buffer = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
    let read = loop {
        match rustix::io::preadv2(file, &mut [IoSliceMut::new(&mut buffer)], offset, ReadWriteFlags::NOWAIT) {
            Err(Errno::INTR) => {}
            result => break result?,
        }
    };
    buffer.truncate(read);
    Ok(buffer)
}

fn read_blocking(file: &OwnedFd, offset: u64, len: u64) -> io::Result<Vec<u8>> {
    let mut buffer = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
    let read = rustix::io::retry_on_intr(|| rustix::io::pread(file, &mut *buffer, offset))?;
    buffer.truncate(read);
    Ok(buffer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;
    use std::fs::File;
    use std::io::Write;

    fn file_of(content: &[u8]) -> (File, OwnedFd) {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(content).unwrap();
        let fd = file.try_clone().unwrap().into();
        (file, fd)
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_large_file_arrives_whole() {
        let content: Vec<u8> = (0..300_000_u32).map(|i| i as u8).collect();
        let (_file, fd) = file_of(&content);
        let body = ResponseBody::file(fd, 10, 299_000);
        assert_eq!(body.size_hint().exact(), Some(299_000));
        assert_eq!(body.collect().await.unwrap().to_bytes(), content[10..299_010]);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn blocking_reads_give_the_same() {
        let content = vec![7; 200_000];
        let (_file, fd) = file_of(&content);
        let Kind::File(mut file) = ResponseBody::file(fd, 0, 200_000).0 else { panic!("not streamed") };
        file.nowait = false;
        let body = ResponseBody(Kind::File(file)).collect().await.unwrap().to_bytes();
        assert_eq!(body, content);
    }

    #[test]
    fn a_file_is_read_at_once_or_not_at_all() {
        let (_file, fd) = file_of(b"hello");
        assert_eq!(read_at_once(&fd, 5).unwrap(), "hello");
        assert_eq!(read_at_once(&fd, 6), None);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn segments_follow_each_other() {
        let (_file, fd) = file_of(b"0123456789");
        let text = |text: &'static str| Segment::Bytes(Bytes::from_static(text.as_bytes()));
        let body = ResponseBody::segments(
            fd,
            [
                text("<"),
                Segment::File { offset: 2, len: 3 },
                text("|"),
                Segment::File { offset: 8, len: 2 },
                text(">"),
            ]
            .into(),
        );
        assert_eq!(body.len(), Some(8));
        assert_eq!(body.collect().await.unwrap().to_bytes(), "<234|89>");
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_file_that_shrinks_is_an_error_and_not_a_short_answer() {
        let (file, fd) = file_of(&vec![1; 200_000]);
        let mut body = ResponseBody::file(fd, 0, 200_000);
        body.frame().await.unwrap().unwrap();
        file.set_len(70_000).unwrap();
        let error = loop {
            match body.frame().await.unwrap() {
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert!(body.frame().await.is_none());
    }
}
