//! A handler, as the host calls it.

use crate::abi::{self, Api, Text};
use crate::answer::{Answer, Body};
use crate::error::{Error, Result, check};
use crate::instance::Instance;
use crate::module::guarded;
use crate::request::Request;
use crate::stream::Stream;
use std::ffi::{c_int, c_void};
use std::io::Write as _;

/// A handler with the log that its failures go to.
pub(crate) struct Endpoint<F> {
    pub handler: F,
    pub instance: Instance,
}

impl<F> Endpoint<F> {
    /// # Safety
    /// `data` is an `Endpoint<F>` that lives until cleanup; the rest is the host's, as `regent_handler` says.
    pub unsafe extern "C" fn call<A: Into<Answer>>(
        api: &'static Api,
        raw: *mut abi::Request,
        data: *mut c_void,
    ) -> c_int
    where
        F: Fn(&mut Request) -> Result<A>,
    {
        // SAFETY: the caller's promise; it is shared, as handlers are.
        let endpoint = unsafe { &*data.cast::<Self>() };
        let answered = guarded(|| {
            let mut request = Request::new(api, raw);
            let answer = (endpoint.handler)(&mut request)?;
            send(answer.into(), &mut request, api, raw)
        });
        match answered {
            Ok(()) => abi::OK,
            Err(error) => answer_error(&error, &endpoint.instance, api, raw),
        }
    }
}

fn send(answer: Answer, request: &mut Request, api: &'static Api, raw: *mut abi::Request) -> Result<()> {
    // SAFETY: the request is valid until the handler returns, and so below.
    check(unsafe { (api.set_status)(raw, answer.status.into()) }, format_args!("status {}", answer.status))?;
    for (name, value) in &answer.headers {
        add_header(api, raw, name, value)?;
    }
    let mut stream = Stream::new(api, raw);
    match answer.body {
        Body::Whole(body) => send_whole(&body, &mut stream, api, raw),
        Body::Made(make) => make(request, &mut stream),
    }
}

fn send_whole(body: &[u8], stream: &mut Stream, api: &'static Api, raw: *mut abi::Request) -> Result<()> {
    /// From here on the host would send without knowing the end.
    const UNBUFFERED: usize = 32768;
    if body.is_empty() {
        return Ok(());
    }
    if body.len() >= UNBUFFERED {
        add_header(api, raw, "Content-Length", &body.len().to_string())?;
    }
    Ok(stream.write_all(body)?)
}

fn add_header(api: &'static Api, raw: *mut abi::Request, name: &str, value: &str) -> Result<()> {
    // SAFETY: the request is valid; what is passed in is copied at once.
    let status = unsafe { (api.add_header)(raw, Text::new(name.as_bytes()), Text::new(value.as_bytes())) };
    check(status, format_args!("header `{name}`"))
}

fn answer_error(error: &Error, instance: &Instance, api: &'static Api, raw: *mut abi::Request) -> c_int {
    if error.is_gone() {
        return abi::GONE;
    }
    if let Some((status, reason)) = error.refusal() {
        // SAFETY: as above.
        if unsafe { (api.refuse)(raw, status.into(), Text::new(reason.as_bytes())) } == abi::OK {
            return abi::OK;
        }
    }
    let request = Request::new(api, raw);
    instance.error(format!("{} {}: {error}", request.method(), request.path()));
    abi::ERROR
}

#[cfg(test)]
mod tests {
    use crate::abi;
    use crate::fake_host::{Asked, FakeHost};
    use crate::{Answer, App, Error, Result, Route, module};
    use std::io::{Read, Write};

    struct Answers;

    impl module::Setup for Answers {
        fn setup(app: &mut App) -> Result<()> {
            app.get("/text", |_| Ok("text"));
            app.get("/made", |_| Ok(Answer::json(&[1])?.status(201).header("X-A", "1").header("X-A", "2")));
            app.get("/long", |_| Ok(".".repeat(40_000)));
            app.get("/refused", |_| -> Result<&str> { Err(Error::refused(409, "there already")) });
            app.get("/failed", |_| Ok("x".parse::<i32>()?.to_string()));
            app.get("/panic", |_| -> Result<&str> { panic!("at the {}", "disco") });
            app.get("/header", |_| Ok(Answer::empty(204).header("no token", "")));
            app.route(Route::any("/echo").never_blocks(), |_| {
                Ok(Answer::stream("text/plain", |request, stream| {
                    let mut body = String::new();
                    request.read_to_string(&mut body)?;
                    write!(stream, "{body}")?;
                    stream.flush()?;
                    stream.trailer("X-End", "reached")
                }))
            });
            app.get("/late", |_| {
                Ok(Answer::stream("text/plain", |_, stream| {
                    stream.flush()?;
                    Err(Error::not_found("too late"))
                }))
            });
            Ok(())
        }
    }

    fn ask(route: &str) -> Asked {
        FakeHost::start::<Answers>(&[]).ask("GET", route, Asked::default())
    }

    #[test]
    fn answers_are_sent_as_they_were_made() {
        let text = ask("/text");
        assert_eq!((text.result, text.status, &*text.answer), (abi::OK, 200, "text"));
        assert_eq!(text.header("Content-Type"), ["text/plain; charset=utf-8"]);
        assert!(text.header("Content-Length").is_empty(), "the host knows it");
        let made = ask("/made");
        assert_eq!((made.status, &*made.answer), (201, "[1]"));
        assert_eq!(made.header("X-A"), ["1", "2"]);
        let long = ask("/long");
        assert_eq!(long.header("Content-Length"), ["40000"]);
    }

    #[test]
    fn a_body_is_made_while_it_is_sent() {
        let host = FakeHost::start::<Answers>(&[]);
        let asked = host.ask("*", "/echo", Asked { body: b"body".into(), ..Asked::default() });
        assert_eq!((&*asked.answer, asked.flushes), ("body", 1));
        assert_eq!(asked.trailers, [("X-End".to_owned(), "reached".to_owned())]);
        assert_eq!(host.flags("/echo"), abi::ROUTE_INLINE);
        assert_eq!(host.flags("/text"), 0);
    }

    #[test]
    fn refusals_are_for_the_client_and_failures_for_the_log() {
        let host = FakeHost::start::<Answers>(&[]);
        let refused = host.ask("GET", "/refused", Asked::default());
        assert_eq!((refused.result, refused.status, &*refused.problem), (abi::OK, 409, "there already"));
        assert_eq!(host.log(), [""; 0]);
        for route in ["/failed", "/panic", "/header", "/late"] {
            assert_eq!(host.ask("GET", route, Asked::default()).result, abi::ERROR);
        }
        let expected = [
            "GET /failed: invalid digit found in string",
            "GET /panic: panicked: at the disco",
            "GET /header: header `no token` cannot be used",
            "GET /late: too late",
        ];
        assert_eq!(host.log(), expected);
    }

    #[test]
    fn a_client_that_has_left_is_no_failure() {
        let host = FakeHost::start::<Answers>(&[]);
        let gone = host.ask("*", "/echo", Asked { has_left: true, ..Asked::default() });
        assert_eq!(gone.result, abi::GONE);
        assert_eq!(host.log(), [""; 0]);
    }
}
