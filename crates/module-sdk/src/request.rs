//! A request, as a handler sees it.

use crate::abi::{self, Api, Text};
use crate::error::{Error, Result, check_io};
use serde::de::DeserializeOwned;
use serde_path_to_error::Segment;
use std::borrow::Cow;
use std::fmt::{self, Display, Write as _};
use std::io::{self, Read};
use std::str::FromStr;

/// How large a body may be that is read as a whole, in bytes; larger ones are refused with 413.
const LARGEST_BODY: usize = 8 << 20;
/// Of the client's input that a reason repeats, in characters: enough to recognise it.
const LONGEST_QUOTE: usize = 60;

/// A request. Its body is read through [`Read`], in parts; reading fails when the client has gone.
///
/// Values of parameters, of the query and of header fields have the type that is asked for: any that [`FromStr`] makes. What
/// is not of that type is an error, which the client gets with status 400 and the reason.
pub struct Request {
    api: &'static Api,
    raw: *mut abi::Request,
}

impl Request {
    /// `raw` is valid as long as the request is.
    pub(crate) fn new(api: &'static Api, raw: *mut abi::Request) -> Self {
        Self { api, raw }
    }

    pub fn method(&self) -> Cow<'_, str> {
        self.text(self.api.method)
    }

    /// Decoded, without the query, as the routes see it.
    pub fn path(&self) -> Cow<'_, str> {
        self.text(self.api.path)
    }

    /// As the client sent it: path and query.
    pub fn target(&self) -> Cow<'_, str> {
        self.text(self.api.target)
    }

    /// Behind the question mark, as it was sent; empty if there is none.
    pub fn query_string(&self) -> Cow<'_, str> {
        self.text(self.api.query)
    }

    /// A parameter of the route's path.
    ///
    /// # Errors
    /// 400: it is no `T`. 500: the route has no such parameter.
    pub fn parameter<T: FromStr<Err: Display>>(&self, name: &str) -> Result<T> {
        // SAFETY: the request is valid as long as `self` is; what is passed in is copied at once.
        let value = unsafe { (self.api.parameter)(self.raw, Text::new(name.as_bytes())) };
        let value = parse(Subject("path parameter", name), self.bytes(value))?;
        value.ok_or_else(|| Error::failed(format!("the route's path has no parameter `{name}`")))
    }

    /// The first field of that name in the query, if there is one.
    ///
    /// # Errors
    /// 400: it is no `T`.
    pub fn query<T: FromStr<Err: Display>>(&self, name: &str) -> Result<Option<T>> {
        parse(Subject("query field", name), self.query_value(name, 0))
    }

    /// The first field of that name in the query.
    ///
    /// # Errors
    /// 400: it is not there, or is no `T`.
    pub fn required_query<T: FromStr<Err: Display>>(&self, name: &str) -> Result<T> {
        self.query(name)?.ok_or_else(|| Error::missing(Subject("query field", name)))
    }

    /// All fields of that name in the query.
    ///
    /// # Errors
    /// 400: one of them is no `T`.
    pub fn query_all<T: FromStr<Err: Display>>(&self, name: &str) -> Result<Vec<T>> {
        let values = (0..).map_while(|index| self.query_value(name, index));
        values.filter_map(|value| parse(Subject("query field", name), Some(value)).transpose()).collect()
    }

    /// A header field, if there is one; several of one name are joined by `, `.
    ///
    /// # Errors
    /// 400: it is no `T`.
    pub fn header<T: FromStr<Err: Display>>(&self, name: &str) -> Result<Option<T>> {
        // SAFETY: as above.
        let value = unsafe { (self.api.header)(self.raw, Text::new(name.as_bytes())) };
        parse(Subject("header", name), self.bytes(value))
    }

    /// All header fields, names in lower case.
    pub fn headers(&self) -> Vec<(Cow<'_, str>, Cow<'_, str>)> {
        let (mut all, mut cursor, mut name, mut value) = (Vec::new(), 0, Text::NONE, Text::NONE);
        // SAFETY: as above.
        while unsafe { (self.api.next_header)(self.raw, &mut cursor, &mut name, &mut value) } == abi::OK {
            all.push((self.lossy(name), self.lossy(value)));
        }
        all
    }

    /// What is known of the connection, by CGI's names: `REMOTE_ADDR`, `SERVER_NAME`, `REQUEST_SCHEME` …
    pub fn variable(&self, name: &str) -> Option<Cow<'_, str>> {
        // SAFETY: as above.
        let value = unsafe { (self.api.variable)(self.raw, Text::new(name.as_bytes())) };
        self.bytes(value).map(String::from_utf8_lossy)
    }

    /// Bytes of the body, if the client said so beforehand.
    pub fn body_length(&self) -> Option<u64> {
        // SAFETY: as above.
        let length = unsafe { (self.api.body_length)(self.raw) };
        (length != u64::MAX).then_some(length)
    }

    /// The rest of the body, of at most `limit` bytes.
    ///
    /// # Errors
    /// 413: it is larger. The client has gone.
    pub fn body(&mut self, limit: usize) -> Result<Vec<u8>> {
        let mut body = Vec::new();
        self.by_ref().take(limit as u64 + 1).read_to_end(&mut body)?;
        if body.len() > limit {
            return Err(Error::refused(413, format!("the body is larger than {limit} bytes")));
        }
        Ok(body)
    }

    /// The body, of at most 8 MiB, as a value in JSON.
    ///
    /// # Errors
    /// 400: it is not JSON, or not such a value; the reason has the place. 413: it is larger. The client has gone.
    pub fn json<T: DeserializeOwned>(&mut self) -> Result<T> {
        let body = self.body(LARGEST_BODY)?;
        let mut json = serde_json::Deserializer::from_slice(&body);
        let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
            let place = pointer(error.path());
            Error::bad_request(format!("JSON value `{place}`: {}", error.inner()))
        })?;
        json.end().map_err(|error| Error::bad_request(format!("the body is not JSON: {error}")))?;
        Ok(value)
    }

    /// Whether nobody waits for the answer any more.
    pub fn is_gone(&self) -> bool {
        // SAFETY: as above.
        unsafe { (self.api.is_gone)(self.raw) != 0 }
    }

    fn query_value(&self, name: &str, index: usize) -> Option<&[u8]> {
        // SAFETY: as above.
        let value = unsafe { (self.api.query_value)(self.raw, Text::new(name.as_bytes()), index) };
        self.bytes(value)
    }

    fn text(&self, get: unsafe extern "C" fn(*mut abi::Request) -> Text) -> Cow<'_, str> {
        // SAFETY: as above.
        self.lossy(unsafe { get(self.raw) })
    }

    fn lossy(&self, text: Text) -> Cow<'_, str> {
        String::from_utf8_lossy(self.bytes(text).unwrap_or_default())
    }

    fn bytes(&self, text: Text) -> Option<&[u8]> {
        // SAFETY: the host gave it for this request, and it is borrowed for no longer than `self`, which ends before the
        // handler returns.
        unsafe { text.bytes() }
    }
}

impl Read for Request {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // SAFETY: the request is valid as long as `self` is; the buffer is ours to be written.
        let count = unsafe { (self.api.read_body)(self.raw, buffer.as_mut_ptr().cast(), buffer.len()) };
        usize::try_from(count).or_else(|_| {
            check_io(i32::try_from(count).unwrap_or(abi::ERROR))?;
            Ok(0)
        })
    }
}

/// What a value is called in a reason.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a>(pub &'static str, pub &'a str);

impl Display for Subject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}`", self.0, self.1)
    }
}

pub(crate) fn parse<T: FromStr<Err: Display>>(
    subject: Subject<'_>,
    value: Option<&[u8]>,
) -> Result<Option<T>> {
    let Some(value) = value else { return Ok(None) };
    let text =
        std::str::from_utf8(value).map_err(|_| Error::bad_request(format!("{subject} is not UTF-8")))?;
    let parsed = text.parse().map_err(|error| {
        let quote: String = text.chars().take(LONGEST_QUOTE).collect();
        Error::bad_request(format!("{subject} is `{quote}`: {error}"))
    })?;
    Ok(Some(parsed))
}

/// A JSON pointer (RFC 6901).
fn pointer(path: &serde_path_to_error::Path) -> String {
    path.iter().fold(String::new(), |mut pointer, segment| {
        let _ = match segment {
            Segment::Seq { index } => write!(pointer, "/{index}"),
            Segment::Map { key } => write!(pointer, "/{}", key.replace('~', "~0").replace('/', "~1")),
            Segment::Enum { variant } => write!(pointer, "/{variant}"),
            // Within what is no JSON.
            Segment::Unknown => Ok(()),
        };
        pointer
    })
}

#[cfg(test)]
mod tests {
    use crate::fake_host::{Asked, FakeHost, owned};
    use crate::{App, Result, module};
    use serde::Deserialize;
    use std::collections::HashMap;

    #[derive(Debug, Deserialize)]
    struct Order {
        articles: Vec<HashMap<String, u8>>,
    }

    struct Reader;

    impl module::Setup for Reader {
        fn setup(app: &mut App) -> Result<()> {
            app.get("/path/{id}", |request| Ok(request.parameter::<u8>("id")?.to_string()));
            app.get("/mistaken", |request| request.parameter::<String>("nothing"));
            app.get("/query", |request| {
                let page: u8 = request.query("page")?.unwrap_or(1);
                Ok(format!("{page} {:?}", request.query_all::<i8>("id")?))
            });
            app.get("/required", |request| request.required_query::<String>("q"));
            app.post("/json", |request| Ok(format!("{:?}", request.json::<Order>()?.articles)));
            app.post("/body", |request| Ok(request.body(4)?.len().to_string()));
            Ok(())
        }
    }

    /// The answer, or the problem.
    fn ask(method: &str, route: &str, asked: Asked) -> String {
        let asked = FakeHost::start::<Reader>(&[]).ask(method, route, asked);
        match &*asked.problem {
            "" => asked.answer,
            problem => format!("{} {problem}", asked.status),
        }
    }

    fn query(fields: &[(&str, &str)]) -> Asked {
        Asked { query: owned(fields), ..Asked::default() }
    }

    #[test]
    fn values_have_their_type_or_are_refused() {
        let path = |id: &str| {
            let parameters = owned(&[("id", id)]);
            ask("GET", "/path/{id}", Asked { parameters, ..Asked::default() })
        };
        assert_eq!(path("255"), "255");
        assert_eq!(path("256"), "400 path parameter `id` is `256`: number too large to fit in target type");
        let long = path(&"ä".repeat(100));
        assert!(long.contains(&format!("`{}`: invalid", "ä".repeat(60))), "{long}");
        assert_eq!(ask("GET", "/query", query(&[])), "1 []");
        assert_eq!(ask("GET", "/query", query(&[("id", "3"), ("page", "2"), ("id", "-4")])), "2 [3, -4]");
        assert!(
            ask("GET", "/query", query(&[("id", "3"), ("id", "x")]))
                .starts_with("400 query field `id` is `x`")
        );
        assert_eq!(ask("GET", "/required", query(&[])), "400 query field `q` is missing");
        assert_eq!(ask("GET", "/required", query(&[("q", "")])), "");
    }

    #[test]
    fn a_parameter_that_the_route_does_not_have_is_the_modules_mistake() {
        let host = FakeHost::start::<Reader>(&[]);
        assert_eq!(host.ask("GET", "/mistaken", Asked::default()).result, crate::abi::ERROR);
        assert_eq!(host.log(), ["GET /mistaken: the route's path has no parameter `nothing`"]);
    }

    #[test]
    fn json_is_refused_with_the_place() {
        let json = |body: &str| ask("POST", "/json", Asked { body: body.into(), ..Asked::default() });
        assert_eq!(json(r#"{"articles": [{"a": 1}]}"#), r#"[{"a": 1}]"#);
        let wrong = json(r#"{"articles": [{"a": 1}, {"b/c~": -1}]}"#);
        assert!(
            wrong.starts_with("400 JSON value `/articles/1/b~1c~0`: invalid value: integer `-1`"),
            "{wrong}"
        );
        assert!(json("{}").starts_with("400 JSON value ``: missing field `articles`"));
        assert!(json(r#"{"articles": []} x"#).starts_with("400 the body is not JSON: trailing characters"));
        assert!(json("").starts_with("400 JSON value ``: EOF while parsing"));
    }

    #[test]
    fn a_body_beyond_the_limit_is_refused() {
        let body = |body: &[u8]| ask("POST", "/body", Asked { body: body.into(), ..Asked::default() });
        assert_eq!(body(b"1234"), "4");
        assert_eq!(body(b"12345"), "413 the body is larger than 4 bytes");
    }
}
