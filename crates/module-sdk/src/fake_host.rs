//! A host of one module, over plain values, for tests.

use crate::abi::{self, Api, ApiHead, Text};
use crate::module::{Setup, describe};
use std::cell::RefCell;
use std::ffi::{CStr, c_int, c_uint, c_void};
use std::ptr;

type Fields = Vec<(String, String)>;

/// A module that was initialised; it is cleaned up when this is dropped.
pub struct FakeHost {
    module: abi::ModuleInfo,
    state: *mut c_void,
    instance: Box<Hosted>,
}

/// What an `abi::Instance` points at.
#[derive(Default)]
struct Hosted {
    config: Fields,
    failure: RefCell<String>,
    log: RefCell<Vec<String>>,
    routes: RefCell<Vec<Added>>,
    offers: RefCell<Vec<(String, u32, *const c_void)>>,
}

struct Added {
    method: String,
    path: String,
    flags: u32,
    handler: abi::Handler,
    data: *mut c_void,
}

/// A request, and what became of it. What an `abi::Request` points at.
#[derive(Default)]
pub struct Asked {
    pub parameters: Fields,
    pub query: Fields,
    pub headers: Fields,
    pub body: Vec<u8>,
    /// There is no more of the body, and nobody takes the answer.
    pub has_left: bool,

    pub result: c_int,
    pub status: u32,
    pub answer_headers: Fields,
    pub answer: String,
    pub trailers: Fields,
    pub flushes: u32,
    pub problem: String,

    pub method: String,
    pub path: String,
    pub read: usize,
}

impl FakeHost {
    pub fn start<S: Setup>(config: &[(&str, &str)]) -> Self {
        Self::try_start::<S>(config).unwrap_or_else(|failure| panic!("{failure}"))
    }

    /// Fails with the module's reason.
    pub fn try_start<S: Setup>(config: &[(&str, &str)]) -> Result<Self, String> {
        let mut host = Self {
            module: describe::<S>("test\0", "1.0\0", &[]),
            state: ptr::null_mut(),
            instance: Box::new(Hosted { config: owned(config), ..Hosted::default() }),
        };
        let instance = host.raw();
        // SAFETY: as regent_module_info.init wants it.
        match unsafe { (host.module.init)(&API, instance, &mut host.state) } {
            abi::OK => Ok(host),
            _ => Err(host.instance.failure.take()),
        }
    }

    /// Calls the handler of the route that was added with this method and path.
    pub fn ask(&self, method: &str, path: &str, mut asked: Asked) -> Asked {
        let routes = self.instance.routes.borrow();
        let route = routes.iter().find(|route| route.method == method && route.path == path);
        let Added { handler, data, .. } = route.expect("there is such a route");
        asked.method = method.to_owned();
        asked.path = path.to_owned();
        asked.status = 200;
        // SAFETY: as regent_handler wants it.
        asked.result = unsafe { handler(&API, (&raw mut asked).cast(), *data) };
        asked
    }

    pub fn flags(&self, path: &str) -> u32 {
        let routes = self.instance.routes.borrow();
        routes.iter().find(|route| route.path == path).expect("there is such a route").flags
    }

    pub fn log(&self) -> Vec<String> {
        self.instance.log.borrow().clone()
    }

    /// Cleans the module up, as at the end of the process; what was logged until then.
    pub fn stop(mut self) -> Vec<String> {
        self.cleanup();
        self.log()
    }

    fn cleanup(&mut self) {
        if !self.state.is_null() {
            let cleanup = self.module.cleanup.expect("it has one");
            // SAFETY: once, with the state of init.
            unsafe { cleanup(&API, self.raw(), std::mem::replace(&mut self.state, ptr::null_mut())) }
        }
    }

    fn raw(&self) -> *mut abi::Instance {
        (&raw const *self.instance).cast_mut().cast()
    }
}

impl Drop for FakeHost {
    fn drop(&mut self) {
        self.cleanup();
    }
}

impl Asked {
    pub fn header(&self, name: &str) -> Vec<&str> {
        self.answer_headers.iter().filter(|(own, _)| own == name).map(|(_, value)| &**value).collect()
    }
}

pub fn owned(fields: &[(&str, &str)]) -> Fields {
    fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn text(value: &str) -> Text {
    Text::new(value.as_bytes())
}

fn string(text: Text) -> String {
    // SAFETY: of a module that is called by a test.
    String::from_utf8(unsafe { text.bytes() }.expect("not NULL").to_vec()).expect("UTF-8")
}

fn find(fields: &Fields, name: Text, index: usize) -> Text {
    let name = string(name);
    fields.iter().filter(|(own, _)| *own == name).nth(index).map_or(Text::NONE, |(_, value)| text(value))
}

fn next(fields: &Fields, cursor: &mut usize, name: &mut Text, value: &mut Text) -> c_int {
    /// `REGENT_MISSING`: any value but OK ends the list.
    const MISSING: c_int = -5;
    let Some(field) = fields.get(*cursor) else { return MISSING };
    (*name, *value) = (text(&field.0), text(&field.1));
    *cursor += 1;
    abi::OK
}

/// # Safety
/// It is the instance of a `FakeHost` that lives.
unsafe fn hosted<'a>(instance: *mut abi::Instance) -> &'a Hosted {
    // SAFETY: the caller's promise.
    unsafe { &*instance.cast::<Hosted>() }
}

/// # Safety
/// It is the request of `FakeHost::ask`, and nobody else refers to it.
unsafe fn asked<'a>(request: *mut abi::Request) -> &'a mut Asked {
    // SAFETY: the caller's promise.
    unsafe { &mut *request.cast::<Asked>() }
}

/// `host!(|name: Type, …| -> Type { … })`: a function for the table, which is called as regent.h says.
macro_rules! host {
    (|$($name:ident: $type:ty),*| -> $result:ty $body:block) => {{
        unsafe extern "C" fn function($($name: $type),*) -> $result {
            // Some need none of what they were given.
            #[allow(unused_unsafe)]
            // SAFETY: the module passes what it was given.
            unsafe {
                $body
            }
        }
        function
    }};
}

type I = *mut abi::Instance;
type R = *mut abi::Request;

static API: Api = Api {
    head: ApiHead { size: size_of::<Api>(), abi: abi::ABI, reserved: 0 },
    configuration: host!(|instance: I, name: Text| -> Text { find(&hosted(instance).config, name, 0) }),
    next_configuration: host!(|i: I, cursor: &mut usize, name: &mut Text, value: &mut Text| -> c_int {
        next(&hosted(i).config, cursor, name, value)
    }),
    route: host!(|instance: I, route: &abi::Route| -> c_int { add_route(hosted(instance), route) }),
    fail: host!(|instance: I, reason: Text| -> c_int {
        hosted(instance).failure.replace(string(reason));
        abi::OK
    }),
    offer: host!(|instance: I, name: Text, version: u32, interface: *const c_void| -> c_int {
        hosted(instance).offers.borrow_mut().push((string(name), version, interface));
        abi::OK
    }),
    find: host!(|instance: I, name: Text, version: u32| -> *const c_void {
        let offers = hosted(instance).offers.borrow();
        let name = string(name);
        offers
            .iter()
            .find(|offer| (&offer.0, offer.1) == (&name, version))
            .map_or(ptr::null(), |offer| offer.2)
    }),
    log: host!(|instance: I, _level: c_int, message: Text| -> () {
        hosted(instance).log.borrow_mut().push(string(message));
    }),
    statistics: host!(|_instance: I, statistics: &mut abi::Statistics| -> c_int {
        *statistics = abi::Statistics {
            requests: 10,
            answers: [1, 0, 5, 0, 3, 1],
            running: 2,
            bytes: 99,
            ..*statistics
        };
        abi::OK
    }),
    method: host!(|request: R| -> Text { text(&asked(request).method) }),
    path: host!(|request: R| -> Text { text(&asked(request).path) }),
    target: host!(|request: R| -> Text { text(&asked(request).path) }),
    query: host!(|_request: R| -> Text { Text::NONE }),
    parameter: host!(|request: R, name: Text| -> Text { find(&asked(request).parameters, name, 0) }),
    query_value: host!(|r: R, name: Text, index: usize| -> Text { find(&asked(r).query, name, index) }),
    header: host!(|request: R, name: Text| -> Text { find(&asked(request).headers, name, 0) }),
    next_header: host!(|r: R, cursor: &mut usize, name: &mut Text, value: &mut Text| -> c_int {
        next(&asked(r).headers, cursor, name, value)
    }),
    variable: host!(|_request: R, _name: Text| -> Text { Text::NONE }),
    body_length: host!(|request: R| -> u64 { asked(request).body.len() as u64 }),
    read_body: host!(|request: R, buffer: *mut c_void, size: usize| -> isize {
        let request = asked(request);
        let count = size.min(request.body.len() - request.read);
        ptr::copy_nonoverlapping(request.body[request.read..].as_ptr(), buffer.cast(), count);
        request.read += count;
        if count == 0 && request.has_left { abi::GONE as isize } else { count as isize }
    }),
    json: host!(|_request: R, _pointer: Text, _value: *mut c_void| -> c_int { abi::ERROR }),
    reason: host!(|_request: R| -> Text { Text::NONE }),
    is_gone: host!(|request: R| -> c_int { asked(request).has_left.into() }),
    set_status: host!(|request: R, status: c_uint| -> c_int {
        asked(request).status = status;
        abi::OK
    }),
    set_header: host!(|_request: R, _name: Text, _value: Text| -> c_int { abi::ERROR }),
    add_header: host!(|request: R, name: Text, value: Text| -> c_int {
        let name = string(name);
        if name.contains(' ') {
            return abi::INVALID;
        }
        asked(request).answer_headers.push((name, string(value)));
        abi::OK
    }),
    write: host!(|request: R, data: *const c_void, size: usize| -> c_int {
        asked(request).answer += &string(Text { data: data.cast(), size });
        abi::OK
    }),
    flush: host!(|request: R| -> c_int {
        asked(request).flushes += 1;
        abi::OK
    }),
    add_trailer: host!(|request: R, name: Text, value: Text| -> c_int {
        asked(request).trailers.push((string(name), string(value)));
        abi::OK
    }),
    refuse: host!(|request: R, status: c_uint, reason: Text| -> c_int {
        let request = asked(request);
        if request.flushes > 0 {
            return abi::TOO_LATE;
        }
        (request.status, request.problem) = (status, string(reason));
        abi::OK
    }),
};

fn add_route(host: &Hosted, route: &abi::Route) -> c_int {
    let name = |text: *const std::ffi::c_char| {
        // SAFETY: regent.h: ends with a NUL, or is NULL.
        (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_str().expect("UTF-8").to_owned())
    };
    let method = name(route.method).unwrap_or_else(|| "*".to_owned());
    let path = name(route.path).expect("not NULL");
    let mut routes = host.routes.borrow_mut();
    if routes.iter().any(|other| (&other.method, &other.path) == (&method, &path)) {
        return abi::INVALID;
    }
    routes.push(Added { method, path, flags: route.flags, handler: route.handler, data: route.data });
    abi::OK
}
