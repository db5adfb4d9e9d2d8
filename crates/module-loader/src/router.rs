//! Which handler a request is for: routes by path and method.
//!
//! Paths are trees of segments. `matchit` and its like are not used, since here one place may have parameters of
//! different names, `{rest...}` may be empty, paths need not be UTF-8, and a route that lacks the method does not
//! hide one behind it that has it.

use crate::abi::Handler;
use rustc_hash::FxHashMap;
use std::ffi::c_void;

/// Parameters of one route.
const MOST_PARAMETERS: usize = 8;

/// A route as a module has added it.
pub struct Route {
    pub handler: Handler,
    pub data: *mut c_void,
    pub execution: Execution,
    /// Names of the parameters, in the order of the path.
    parameters: Vec<String>,
}

// SAFETY: `data` is only passed back to the handler, which regent.h says is called on many threads.
unsafe impl Send for Route {}
// SAFETY: as above.
unsafe impl Sync for Route {}

/// Where a handler may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Execution {
    /// In the engine.
    Engine,
    /// It never blocks: on the thread that serves the connections too.
    Inline,
}

/// All routes of an instance.
#[derive(Default)]
pub struct Router {
    root: Node,
    routes: Vec<Route>,
}

/// What a request is for.
pub enum Found<'r, 'p> {
    Route(&'r Route, Captures<'p>),
    /// OPTIONS, and no route for it; these methods have one.
    Options(String),
    /// There are routes for these methods only.
    OtherMethods(String),
    Nothing,
}

/// The parts of a path that stand for parameters.
#[derive(Debug, Clone, Copy, Default)]
pub struct Captures<'p> {
    values: [&'p [u8]; MOST_PARAMETERS],
    count: usize,
}

/// Why a route cannot be added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RouteError {
    Duplicate,
    /// What is wrong with method or path.
    Invalid(String),
}

#[derive(Default)]
struct Node {
    literals: FxHashMap<Vec<u8>, Node>,
    parameter: Option<Box<Node>>,
    /// Routes that end here.
    end: Endpoint,
    /// Routes whose last parameter takes the rest of the path.
    rest: Endpoint,
}

/// Indices of routes.
#[derive(Default)]
struct Endpoint {
    methods: Vec<(String, usize)>,
    every: Option<usize>,
}

enum Segment<'a> {
    Literal(&'a str),
    Parameter(&'a str),
    Rest(&'a str),
}

impl Route {
    pub fn new(handler: Handler, data: *mut c_void, execution: Execution) -> Self {
        Self { handler, data, execution, parameters: Vec::new() }
    }

    /// The value of a parameter of this route.
    pub fn parameter<'p>(&self, name: &[u8], captures: &Captures<'p>) -> Option<&'p [u8]> {
        let index = self.parameters.iter().position(|parameter| parameter.as_bytes() == name)?;
        captures.values[..captures.count].get(index).copied()
    }
}

impl Router {
    /// `method`: `None` for every method.
    pub fn add(&mut self, method: Option<&str>, path: &str, mut route: Route) -> Result<(), RouteError> {
        if method.is_some_and(|method| !crate::fields::is_name(method.as_bytes())) {
            return Err(RouteError::Invalid(format!("{:?} is no method", method.unwrap_or_default())));
        }
        let segments = parse(path).map_err(RouteError::Invalid)?;
        let index = self.routes.len();
        let endpoint = self.root.endpoint(&segments, &mut route.parameters);
        endpoint.add(method, index)?;
        self.routes.push(route);
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.routes.is_empty()
    }

    pub fn find<'p>(&self, method: &[u8], path: &'p [u8]) -> Found<'_, 'p> {
        let mut captures = Captures::default();
        let mut found = None;
        self.each_endpoint(path, &mut captures, &mut |endpoint| {
            found = endpoint.find(method);
            found.is_some()
        });
        match found {
            Some(index) => Found::Route(&self.routes[index], captures),
            None => self.find_other_methods(method, path),
        }
    }

    #[cold]
    fn find_other_methods<'p>(&self, method: &[u8], path: &'p [u8]) -> Found<'_, 'p> {
        let mut methods = Vec::new();
        self.each_endpoint(path, &mut Captures::default(), &mut |endpoint| {
            methods.extend(endpoint.methods.iter().map(|(method, _)| method.as_str()));
            false
        });
        if methods.is_empty() {
            return Found::Nothing;
        }
        if methods.contains(&"GET") {
            methods.push("HEAD");
        }
        methods.push("OPTIONS");
        methods.sort_unstable();
        methods.dedup();
        let methods = methods.join(", ");
        if method == b"OPTIONS" { Found::Options(methods) } else { Found::OtherMethods(methods) }
    }

    /// Visits the endpoints of a path, in the order of precedence, until one will do.
    fn each_endpoint<'r, 'p>(
        &'r self,
        path: &'p [u8],
        captures: &mut Captures<'p>,
        visit: &mut impl FnMut(&'r Endpoint) -> bool,
    ) {
        if let Some(path) = path.strip_prefix(b"/") {
            self.root.visit(Some(path), captures, visit);
        }
    }
}

impl Node {
    /// Where a path ends; the nodes on the way are made.
    fn endpoint(&mut self, segments: &[Segment<'_>], parameters: &mut Vec<String>) -> &mut Endpoint {
        match segments {
            [] => &mut self.end,
            [Segment::Literal(text), rest @ ..] => {
                self.literals.entry(text.as_bytes().to_vec()).or_default().endpoint(rest, parameters)
            }
            [Segment::Parameter(name), rest @ ..] => {
                parameters.push((*name).to_owned());
                self.parameter.get_or_insert_default().endpoint(rest, parameters)
            }
            [Segment::Rest(name), ..] => {
                parameters.push((*name).to_owned());
                &mut self.rest
            }
        }
    }

    /// Each node is visited at most once for a path, since it is always the same number of segments from the root: no
    /// path takes longer than there are routes. `path`: what is left, `None` behind the last segment.
    fn visit<'r, 'p>(
        &'r self,
        path: Option<&'p [u8]>,
        captures: &mut Captures<'p>,
        visit: &mut impl FnMut(&'r Endpoint) -> bool,
    ) -> bool {
        let Some(path) = path else { return visit(&self.end) };
        let (segment, left) = match path.iter().position(|byte| *byte == b'/') {
            Some(slash) => (&path[..slash], Some(&path[slash + 1..])),
            None => (path, None),
        };
        if self.literals.get(segment).is_some_and(|node| node.visit(left, captures, visit)) {
            return true;
        }
        if let (Some(node), false) = (&self.parameter, segment.is_empty())
            && captures.with(segment, |captures| node.visit(left, captures, visit))
        {
            return true;
        }
        !self.rest.is_empty() && captures.with(path, |_| visit(&self.rest))
    }
}

impl<'p> Captures<'p> {
    /// Keeps the value if what follows is found.
    fn with(&mut self, value: &'p [u8], found: impl FnOnce(&mut Self) -> bool) -> bool {
        self.values[self.count] = value;
        self.count += 1;
        let found = found(self);
        if !found {
            self.count -= 1;
        }
        found
    }
}

impl Endpoint {
    fn add(&mut self, method: Option<&str>, index: usize) -> Result<(), RouteError> {
        match method {
            None if self.every.is_some() => return Err(RouteError::Duplicate),
            None => self.every = Some(index),
            Some(method) if self.methods.iter().any(|(other, _)| other == method) => {
                return Err(RouteError::Duplicate);
            }
            Some(method) => self.methods.push((method.to_owned(), index)),
        }
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.every.is_none() && self.methods.is_empty()
    }

    /// HEAD is GET without a body (RFC 9110 §9.3.2).
    fn find(&self, method: &[u8]) -> Option<usize> {
        let of = |wanted: &[u8]| {
            self.methods.iter().find(|(method, _)| method.as_bytes() == wanted).map(|(_, index)| *index)
        };
        of(method).or_else(|| if method == b"HEAD" { of(b"GET") } else { None }).or(self.every)
    }
}

fn parse(path: &str) -> Result<Vec<Segment<'_>>, String> {
    let Some(segments) = path.strip_prefix('/') else {
        return Err(format!("the path {path:?} does not begin with /"));
    };
    let segments: Vec<_> = segments.split('/').map(segment).collect::<Result<_, _>>()?;
    let names: Vec<&str> = segments.iter().filter_map(Segment::name).collect();
    if names.len() > MOST_PARAMETERS {
        return Err(format!("{path} has more than {MOST_PARAMETERS} parameters"));
    }
    if let Some((_, twice)) = names.iter().enumerate().find(|(index, name)| names[..*index].contains(name)) {
        return Err(format!("{path} has two parameters named {twice}"));
    }
    let rest = segments.iter().position(|segment| matches!(segment, Segment::Rest(_)));
    if rest.is_some_and(|index| index + 1 < segments.len()) {
        return Err(format!("{path} goes on after the parameter that takes the rest"));
    }
    Ok(segments)
}

fn segment(text: &str) -> Result<Segment<'_>, String> {
    let Some(inner) = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) else {
        return match text.contains(['{', '}', '?', '#']) {
            false => Ok(Segment::Literal(text)),
            true => Err(format!("the segment {text:?} is neither a literal nor {{a parameter}}")),
        };
    };
    let (name, make): (_, fn(_) -> _) = match inner.strip_suffix("...") {
        Some(name) => (name, Segment::Rest),
        None => (inner, Segment::Parameter),
    };
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return Err(format!("{name:?} is no name for a parameter: letters, digits and _ are allowed"));
    }
    Ok(make(name))
}

impl<'a> Segment<'a> {
    fn name(&self) -> Option<&'a str> {
        match self {
            Self::Literal(_) => None,
            Self::Parameter(name) | Self::Rest(name) => Some(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::{Api, RawRequest};
    use std::ffi::c_int;

    unsafe extern "C-unwind" fn nothing(_: *const Api, _: RawRequest, _: *mut c_void) -> c_int {
        0
    }

    fn route(number: usize) -> Route {
        Route::new(nothing, std::ptr::without_provenance_mut(number), Execution::Engine)
    }

    /// Routes of "METHOD /path", "* /path" for every method.
    fn router(routes: &[&str]) -> Router {
        let mut router = Router::default();
        for (number, line) in routes.iter().enumerate() {
            let (method, path) = line.split_once(' ').unwrap();
            router.add((method != "*").then_some(method), path, route(number)).unwrap();
        }
        router
    }

    /// The number of the route that is found, and the values of its parameters.
    fn find(router: &Router, method: &str, path: &str) -> Option<(usize, Vec<String>)> {
        match router.find(method.as_bytes(), path.as_bytes()) {
            Found::Route(route, captures) => {
                let value = |name: &String| {
                    String::from_utf8(route.parameter(name.as_bytes(), &captures).unwrap().to_vec()).unwrap()
                };
                Some((route.data.addr(), route.parameters.iter().map(value).collect()))
            }
            _ => None,
        }
    }

    fn found(number: usize, values: &[&str]) -> Option<(usize, Vec<String>)> {
        Some((number, values.iter().map(|value| (*value).to_owned()).collect()))
    }

    #[test]
    fn a_literal_goes_before_a_parameter_and_a_parameter_before_the_rest() {
        let router = router(&["GET /users/{id}", "GET /users/me", "GET /users/{rest...}", "GET /"]);
        assert_eq!(find(&router, "GET", "/users/me"), found(1, &[]));
        assert_eq!(find(&router, "GET", "/users/7"), found(0, &["7"]));
        assert_eq!(find(&router, "GET", "/users/7/posts/8"), found(2, &["7/posts/8"]));
        assert_eq!(find(&router, "GET", "/users/"), found(2, &[""]));
        assert_eq!(find(&router, "GET", "/users"), None);
        assert_eq!(find(&router, "GET", "/"), found(3, &[]));
        assert_eq!(find(&router, "GET", ""), None);
        assert_eq!(find(&router, "GET", "*"), None);
    }

    #[test]
    fn a_literal_that_leads_nowhere_does_not_hide_a_parameter() {
        let router = router(&["GET /a/{x}/c", "GET /a/b/d", "POST /a/b/c", "GET /{y...}"]);
        assert_eq!(find(&router, "GET", "/a/b/c"), found(0, &["b"]));
        assert_eq!(find(&router, "POST", "/a/b/c"), found(2, &[]));
        assert_eq!(find(&router, "GET", "/a/b/e"), found(3, &["a/b/e"]));
    }

    #[test]
    fn parameters_of_one_place_may_have_different_names() {
        let router = router(&["GET /users/{id}", "POST /users/{name}", "GET /users/{id}/{what}"]);
        assert_eq!(find(&router, "POST", "/users/x"), found(1, &["x"]));
        assert_eq!(find(&router, "GET", "/users/x/y"), found(2, &["x", "y"]));
        assert_eq!(find(&router, "GET", "/users/x/"), None);
    }

    #[test]
    fn head_is_gets_and_every_method_comes_last() {
        let router = router(&["GET /a", "* /a", "HEAD /b", "GET /b", "* /c"]);
        assert_eq!(find(&router, "HEAD", "/a"), found(0, &[]));
        assert_eq!(find(&router, "PURGE", "/a"), found(1, &[]));
        assert_eq!(find(&router, "HEAD", "/b"), found(2, &[]));
        assert_eq!(find(&router, "OPTIONS", "/c"), found(4, &[]));
        assert_eq!(find(&router, "get", "/b"), None);
    }

    #[test]
    fn other_methods_are_named() {
        let router = router(&["GET /a", "POST /a", "DELETE /{x}"]);
        let Found::OtherMethods(methods) = router.find(b"PUT", b"/a") else { panic!() };
        assert_eq!(methods, "DELETE, GET, HEAD, OPTIONS, POST");
        let Found::Options(methods) = router.find(b"OPTIONS", b"/b") else { panic!() };
        assert_eq!(methods, "DELETE, OPTIONS");
        assert!(matches!(router.find(b"OPTIONS", b"/b/c"), Found::Nothing));
    }

    #[test]
    fn duplicates_are_refused_whatever_their_parameters_are_called() {
        let mut router = router(&["GET /a/{x}", "* /b", "GET /c/{x...}"]);
        let mut add = |method, path| router.add(method, path, route(9));
        assert_eq!(add(Some("GET"), "/a/{y}"), Err(RouteError::Duplicate));
        assert_eq!(add(None, "/b"), Err(RouteError::Duplicate));
        assert_eq!(add(Some("GET"), "/c/{y...}"), Err(RouteError::Duplicate));
        assert_eq!(add(Some("POST"), "/a/{y}"), Ok(()));
    }

    #[test]
    fn routes_that_cannot_be_are_refused() {
        let many: String = (0..9).map(|number| format!("/{{p{number}}}")).collect();
        let bad = [
            "",
            "a",
            "/{",
            "/a{x}",
            "/{x}b",
            "/{}",
            "/{...}",
            "/{a b}",
            "/{x...}/y",
            "/{x}/{x}",
            "/a?b",
            &many,
        ];
        for path in bad {
            let error = router(&[]).add(None, path, route(0)).unwrap_err();
            assert!(matches!(error, RouteError::Invalid(_)), "{path}");
        }
        assert!(router(&[]).add(Some("G ET"), "/", route(0)).is_err());
    }

    #[test]
    fn bytes_that_are_not_utf8_are_parameters_too() {
        let router = router(&["GET /{x}"]);
        let Found::Route(route, captures) = router.find(b"GET", b"/\xFF\0") else { panic!() };
        assert_eq!(route.parameter(b"x", &captures), Some(&b"\xFF\0"[..]));
        assert_eq!(route.parameter(b"y", &captures), None);
    }
}
