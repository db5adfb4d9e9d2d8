//! A module while it is made ready.

use crate::abi::{self, Api, Text};
use crate::answer::Answer;
use crate::endpoint::Endpoint;
use crate::error::{Error, Result, check};
use crate::instance::Instance;
use crate::interface::Interface;
use crate::request::{Request, Subject, parse};
use crate::route::Route;
use std::any::Any;
use std::ffi::CString;
use std::fmt::Display;
use std::ptr;
use std::str::FromStr;
use std::sync::Arc;

/// A module while it is made ready for one service: takes its routes, and knows its configuration.
pub struct App {
    api: &'static Api,
    raw: *mut abi::Instance,
    instance: Instance,
    kept: Vec<Arc<dyn Any + Send + Sync>>,
    /// The first route or interface that could not be used.
    problem: Option<Error>,
}

/// What lives until cleanup.
pub(crate) struct Kept {
    pub instance: Instance,
    pub values: Vec<Arc<dyn Any + Send + Sync>>,
}

impl App {
    /// `raw` is valid until cleanup has returned, and the `App` is used within init.
    pub(crate) fn new(api: &'static Api, raw: *mut abi::Instance) -> Self {
        Self { api, raw, instance: Instance::new(api, raw), kept: Vec::new(), problem: None }
    }

    pub(crate) fn finish(self) -> Result<Kept> {
        match self.problem {
            Some(problem) => Err(problem),
            None => Ok(Kept { instance: self.instance, values: self.kept }),
        }
    }

    /// Adds a handler for GET, and thereby HEAD. A route that cannot be used, because there is one already or its path is
    /// none, fails the module when `init` has returned.
    pub fn get<A: Into<Answer> + 'static>(
        &mut self,
        path: &str,
        handler: impl Fn(&mut Request) -> Result<A> + Send + Sync + 'static,
    ) {
        self.route(Route::new("GET", path), handler);
    }

    /// Adds a handler for POST, as [`App::get`] does.
    pub fn post<A: Into<Answer> + 'static>(
        &mut self,
        path: &str,
        handler: impl Fn(&mut Request) -> Result<A> + Send + Sync + 'static,
    ) {
        self.route(Route::new("POST", path), handler);
    }

    /// Adds a handler for PUT, as [`App::get`] does.
    pub fn put<A: Into<Answer> + 'static>(
        &mut self,
        path: &str,
        handler: impl Fn(&mut Request) -> Result<A> + Send + Sync + 'static,
    ) {
        self.route(Route::new("PUT", path), handler);
    }

    /// Adds a handler for PATCH, as [`App::get`] does.
    pub fn patch<A: Into<Answer> + 'static>(
        &mut self,
        path: &str,
        handler: impl Fn(&mut Request) -> Result<A> + Send + Sync + 'static,
    ) {
        self.route(Route::new("PATCH", path), handler);
    }

    /// Adds a handler for DELETE, as [`App::get`] does.
    pub fn delete<A: Into<Answer> + 'static>(
        &mut self,
        path: &str,
        handler: impl Fn(&mut Request) -> Result<A> + Send + Sync + 'static,
    ) {
        self.route(Route::new("DELETE", path), handler);
    }

    /// Adds a handler for another method, for all, or with a promise; otherwise as [`App::get`] does.
    pub fn route<A: Into<Answer> + 'static>(
        &mut self,
        route: Route,
        handler: impl Fn(&mut Request) -> Result<A> + Send + Sync + 'static,
    ) {
        if let Err(problem) = self.try_route(route, handler) {
            self.problem.get_or_insert(problem);
        }
    }

    /// A `config` line of the site's configuration, if there is one: the first of that name.
    ///
    /// # Errors
    /// It is no `T`.
    pub fn config<T: FromStr<Err: Display>>(&self, name: &str) -> Result<Option<T>> {
        // SAFETY: the instance is valid; what is passed in is copied at once.
        let value = unsafe { (self.api.configuration)(self.raw, Text::new(name.as_bytes())) };
        // SAFETY: it is parsed at once, within init.
        parse(Subject("config", name), unsafe { value.bytes() })
    }

    /// All `config` lines, in order.
    pub fn configuration(&self) -> Vec<(String, String)> {
        let (mut all, mut cursor, mut name, mut value) = (Vec::new(), 0, Text::NONE, Text::NONE);
        // SAFETY: the instance is valid.
        while unsafe { (self.api.next_configuration)(self.raw, &mut cursor, &mut name, &mut value) }
            == abi::OK
        {
            // SAFETY: it is copied at once, within init.
            let [name, value] = [name, value].map(|text| unsafe { text.bytes() }.unwrap_or_default());
            all.push((
                String::from_utf8_lossy(name).into_owned(),
                String::from_utf8_lossy(value).into_owned(),
            ));
        }
        all
    }

    /// The log and the figures, for handlers and threads.
    pub fn instance(&self) -> Instance {
        self.instance.clone()
    }

    /// Offers functions to modules that need this one. If there are such already, the module fails when `init` has returned.
    pub fn offer<T: Interface + Send>(&mut self, functions: T) {
        let kept = Arc::new(functions);
        let name = Text::new(T::NAME.as_bytes());
        // SAFETY: the instance is valid; the struct lives until cleanup, in `kept`.
        let status = unsafe { (self.api.offer)(self.raw, name, T::VERSION, Arc::as_ptr(&kept).cast()) };
        self.kept.push(kept);
        if let Err(problem) = check(status, format_args!("interface `{}`", T::NAME)) {
            self.problem.get_or_insert(problem);
        }
    }

    /// What a module that this one needs offers.
    pub fn find<T: Interface>(&self) -> Option<&'static T> {
        // SAFETY: the instance is valid.
        let found = unsafe { (self.api.find)(self.raw, Text::new(T::NAME.as_bytes()), T::VERSION) };
        // SAFETY: who implements `Interface` has promised that this is a `T`, and that it is not used after cleanup, until
        // which the host keeps it.
        unsafe { found.cast::<T>().as_ref() }
    }

    fn try_route<A: Into<Answer> + 'static>(
        &mut self,
        route: Route,
        handler: impl Fn(&mut Request) -> Result<A> + Send + Sync + 'static,
    ) -> Result<()> {
        let method = route.method.map(CString::new).transpose()?;
        let path = CString::new(route.path)?;
        let endpoint = Arc::new(Endpoint { handler, instance: self.instance.clone() });
        let raw = abi::Route {
            size: size_of::<abi::Route>(),
            method: method.as_ref().map_or(ptr::null(), |method| method.as_ptr()),
            path: path.as_ptr(),
            flags: route.flags,
            handler: handler_of(&endpoint),
            data: Arc::as_ptr(&endpoint).cast_mut().cast(),
        };
        // Before the host knows of it, so that it lives in any case.
        self.kept.push(endpoint);
        // SAFETY: the instance is valid; the endpoint lives until cleanup, in `kept`.
        let status = unsafe { (self.api.route)(self.raw, &raw) };
        let method = method.as_ref().map_or("*".into(), |method| method.to_string_lossy());
        check(status, format_args!("route {method} {}", path.to_string_lossy()))
    }
}

fn handler_of<F, A>(_: &Arc<Endpoint<F>>) -> abi::Handler
where
    F: Fn(&mut Request) -> Result<A> + Send + Sync + 'static,
    A: Into<Answer>,
{
    Endpoint::<F>::call::<A>
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_host::{Asked, FakeHost};
    use crate::{Statistics, module};
    use std::sync::Mutex;

    #[repr(C)]
    struct Doubler {
        double: extern "C" fn(u32) -> u32,
    }

    // SAFETY: only this module uses it, and its function lets no panic out.
    unsafe impl Interface for Doubler {
        const NAME: &'static str = "doubler";
        const VERSION: u32 = 3;
    }

    extern "C" fn double(number: u32) -> u32 {
        number.wrapping_mul(2)
    }

    struct Configured;

    impl module::Setup for Configured {
        fn setup(app: &mut App) -> Result<()> {
            let size: u8 = app.config("size")?.unwrap_or(7);
            if size == 0 {
                panic!("no size");
            }
            app.get("/size", move |_| Ok(size.to_string()));
            if app.configuration().len() > 1 {
                app.get("/size", |_| Ok("twice"));
                app.get("NUL\0", |_| Ok("later problems are not told"));
            }
            app.offer(Doubler { double });
            let doubler = app.find::<Doubler>().expect("it was offered");
            assert_eq!((doubler.double)(21), 42);
            Ok(())
        }
    }

    /// Leaves its instance behind.
    struct Outlived;

    static LEFT: Mutex<Option<Instance>> = Mutex::new(None);

    impl module::Setup for Outlived {
        fn setup(app: &mut App) -> Result<()> {
            *LEFT.lock().unwrap() = Some(app.instance());
            Ok(())
        }
    }

    fn size(config: &[(&str, &str)]) -> Result<String, String> {
        let host = FakeHost::try_start::<Configured>(config)?;
        Ok(host.ask("GET", "/size", Asked::default()).answer)
    }

    #[test]
    fn what_fails_in_init_fails_the_module_with_a_reason() {
        assert_eq!(size(&[]), Ok("7".into()));
        assert_eq!(size(&[("size", "9")]), Ok("9".into()));
        assert_eq!(
            size(&[("size", "-1")]),
            Err("config `size` is `-1`: invalid digit found in string".into())
        );
        assert_eq!(size(&[("size", "0")]), Err("panicked: no size".into()));
        assert_eq!(size(&[("size", "1"), ("more", "x")]), Err("route GET /size cannot be used".into()));
    }

    #[test]
    fn an_instance_outlives_its_module_and_does_nothing_then() {
        let host = FakeHost::start::<Outlived>(&[]);
        let instance = LEFT.lock().unwrap().take().unwrap();
        instance.info("before");
        let figures = instance.statistics();
        assert_eq!((figures.requests, figures.answers.successful, figures.answers.broken_off), (10, 5, 1));
        let log = host.stop();
        instance.info("after");
        assert_eq!(instance.statistics(), Statistics::default());
        assert_eq!(log, ["before"]);
    }
}
