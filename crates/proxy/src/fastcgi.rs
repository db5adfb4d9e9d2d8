//! Upstreams that speak FastCGI, such as php-fpm: one request for each connection (the FastCGI specification, version 1.0;
//! the crates that speak it send all of a request before they read a response, which two full buffers end).

mod fault;
mod head;
mod params;
mod record;
mod response;
mod stdin;
mod talk;

pub(crate) use fault::Fault;
pub(crate) use params::Variables;
pub(crate) use response::Stdout;

use crate::timed::Timed;
use crate::upload::{Progress, Upload};
use http::{Method, Response};
use std::rc::Rc;
use talk::Talk;

/// A request on its way to a FastCGI server.
pub(crate) struct Question<'a> {
    /// For the log.
    pub upstream: &'a str,
    pub variables: Variables<'a>,
    pub method: &'a Method,
    /// Bytes that the head of a response may have.
    pub most_head: usize,
    pub captures_stderr: bool,
}

/// Sends a request over a fresh connection, and reads the head of the response. Dropped before the end of the body, it closes
/// the connection.
pub(crate) async fn ask(
    stream: Timed,
    question: &Question<'_>,
    upload: Upload,
    progress: &Rc<Progress>,
) -> Result<Response<Stdout>, Fault> {
    let variables = question.variables.encode(&upload);
    let name = question.captures_stderr.then(|| question.upstream.to_owned());
    let mut talk = Talk::begin(stream, &variables, upload, progress, name);
    let (response, rest) = talk.head(question.most_head).await?;
    Ok(response::begin(response, rest, talk, question.method))
}
