//! What there is: paths, methods, and the call that each is.

use crate::failure::Failure;
use http::Method;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Dashboard,
    DashboardFile,
    Description,
    Threads,
    ThreadStack,
    Profile,
    AddThreads,
    RemoveThreads,
    RestartWorkers,
    RestartNative,
    Queue,
    Statistics,
    Certificates,
    Upstreams,
    Authority,
    AuthorityChain,
    Tasks,
    RunTask,
    RestartTask,
    StopTask,
    Cache,
    PurgeCache,
    Ready,
    Live,
    Metrics,
    Stop,
    Configuration,
    ChangeConfiguration,
    /// The same, of the object that has an `@id`.
    Object,
    ChangeObject,
    /// `POST /load`: the body is JSON or a Caddyfile.
    Load,
    /// `POST /regent/reload`: the server reads a file.
    Reload,
    /// Another process of the program takes this one's place.
    Upgrade,
    Adapt,
}

/// A path: `{prefix}` is `regent` or `frankenphp`, `{file}` one segment, `{path}` all the rest.
struct Endpoint {
    path: &'static str,
    calls: &'static [(Method, Call)],
}

/// The first that matches is taken.
const ENDPOINTS: &[Endpoint] = &[
    Endpoint { path: "/", calls: &[(Method::GET, Call::Dashboard)] },
    Endpoint { path: "/regent/", calls: &[(Method::GET, Call::Dashboard)] },
    Endpoint { path: "/regent/dashboard/{file}", calls: &[(Method::GET, Call::DashboardFile)] },
    Endpoint { path: "/regent/openapi.json", calls: &[(Method::GET, Call::Description)] },
    Endpoint {
        path: "/{prefix}/threads",
        calls: &[
            (Method::GET, Call::Threads),
            (Method::PUT, Call::AddThreads),
            (Method::DELETE, Call::RemoveThreads),
        ],
    },
    Endpoint { path: "/{prefix}/threads/stack", calls: &[(Method::GET, Call::ThreadStack)] },
    Endpoint { path: "/{prefix}/profile", calls: &[(Method::GET, Call::Profile)] },
    Endpoint { path: "/{prefix}/workers/restart", calls: &[(Method::POST, Call::RestartWorkers)] },
    Endpoint { path: "/{prefix}/native/restart", calls: &[(Method::POST, Call::RestartNative)] },
    Endpoint { path: "/{prefix}/reload", calls: &[(Method::POST, Call::Reload)] },
    Endpoint { path: "/{prefix}/upgrade", calls: &[(Method::POST, Call::Upgrade)] },
    Endpoint { path: "/{prefix}/queue", calls: &[(Method::GET, Call::Queue)] },
    Endpoint { path: "/{prefix}/statistics", calls: &[(Method::GET, Call::Statistics)] },
    Endpoint { path: "/{prefix}/certificates", calls: &[(Method::GET, Call::Certificates)] },
    Endpoint { path: "/{prefix}/cache", calls: &[(Method::GET, Call::Cache)] },
    Endpoint { path: "/{prefix}/cache/purge", calls: &[(Method::POST, Call::PurgeCache)] },
    Endpoint { path: "/{prefix}/tasks", calls: &[(Method::GET, Call::Tasks)] },
    Endpoint { path: "/{prefix}/tasks/run", calls: &[(Method::POST, Call::RunTask)] },
    Endpoint { path: "/{prefix}/tasks/restart", calls: &[(Method::POST, Call::RestartTask)] },
    Endpoint { path: "/{prefix}/tasks/stop", calls: &[(Method::POST, Call::StopTask)] },
    Endpoint { path: "/{prefix}/ready", calls: &[(Method::GET, Call::Ready)] },
    Endpoint { path: "/{prefix}/live", calls: &[(Method::GET, Call::Live)] },
    Endpoint { path: "/metrics", calls: &[(Method::GET, Call::Metrics)] },
    Endpoint { path: "/reverse_proxy/upstreams", calls: &[(Method::GET, Call::Upstreams)] },
    Endpoint { path: "/pki/ca/local", calls: &[(Method::GET, Call::Authority)] },
    Endpoint { path: "/pki/ca/local/certificates", calls: &[(Method::GET, Call::AuthorityChain)] },
    Endpoint { path: "/stop", calls: &[(Method::POST, Call::Stop)] },
    Endpoint { path: "/load", calls: &[(Method::POST, Call::Load)] },
    Endpoint { path: "/adapt", calls: &[(Method::POST, Call::Adapt)] },
    Endpoint { path: "/config/", calls: CONFIGURATION },
    Endpoint { path: "/config/{path}", calls: CONFIGURATION },
    Endpoint {
        path: "/id/{path}",
        calls: &[
            (Method::GET, Call::Object),
            (Method::POST, Call::ChangeObject),
            (Method::PUT, Call::ChangeObject),
            (Method::PATCH, Call::ChangeObject),
            (Method::DELETE, Call::ChangeObject),
        ],
    },
];

const CONFIGURATION: &[(Method, Call)] = &[
    (Method::GET, Call::Configuration),
    (Method::POST, Call::ChangeConfiguration),
    (Method::PUT, Call::ChangeConfiguration),
    (Method::PATCH, Call::ChangeConfiguration),
    (Method::DELETE, Call::ChangeConfiguration),
];

/// A call, and what its path's `{file}` or `{path}` is; empty without one.
pub(crate) struct Found<'a> {
    pub call: Call,
    pub rest: &'a str,
    /// What is asked for, without what stands for a placeholder.
    pub form: &'a str,
}

/// All that the listener answers: methods and paths as `openapi.json` writes them. HEAD is answered wherever GET is.
pub fn endpoints() -> impl Iterator<Item = (Method, &'static str)> {
    ENDPOINTS
        .iter()
        .flat_map(|endpoint| endpoint.calls.iter().map(|(method, _)| (method.clone(), endpoint.path)))
}

pub(crate) fn find<'a>(method: &Method, path: &'a str) -> Result<Found<'a>, Failure> {
    let found = ENDPOINTS.iter().find_map(|endpoint| Some((endpoint, rest(endpoint.path, path)?)));
    let Some((endpoint, rest)) = found else {
        if path.starts_with("/debug/") {
            return Err(Failure::OfGo { path: path.to_owned() });
        }
        return Err(Failure::UnknownPath { path: path.to_owned() });
    };
    let wanted = if method == Method::HEAD { &Method::GET } else { method };
    match endpoint.calls.iter().find(|(method, _)| method == wanted) {
        Some((_, call)) => Ok(Found { call: *call, rest, form: &path[..path.len() - rest.len()] }),
        None => {
            Err(Failure::Method { method: method.clone(), path: path.to_owned(), allow: allowed(endpoint) })
        }
    }
}

/// What the path's placeholder stands for, if the path is of this form.
fn rest<'a>(form: &str, path: &'a str) -> Option<&'a str> {
    if let Some(form) = form.strip_prefix("/{prefix}") {
        let path = path.strip_prefix("/regent").or_else(|| path.strip_prefix("/frankenphp"))?;
        return (path == form).then_some("");
    }
    let (start, placeholder) = form.split_at(form.find('{').unwrap_or(form.len()));
    let rest = path.strip_prefix(start)?;
    let matches = match placeholder {
        "" => rest.is_empty(),
        "{file}" => !rest.is_empty() && !rest.contains('/'),
        _ => !rest.is_empty(),
    };
    matches.then_some(rest)
}

fn allowed(endpoint: &Endpoint) -> String {
    let mut methods: Vec<&str> = endpoint.calls.iter().map(|(method, _)| method.as_str()).collect();
    if methods.contains(&"GET") {
        methods.push("HEAD");
    }
    methods.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(method: Method, path: &str) -> Result<(Call, &str), String> {
        match find(&method, path) {
            Ok(Found { call, rest, .. }) => Ok((call, rest)),
            Err(failure) => Err(failure.to_string()),
        }
    }

    #[test]
    fn both_prefixes_are_the_same() {
        for prefix in ["/regent", "/frankenphp"] {
            assert_eq!(call(Method::PUT, &format!("{prefix}/threads")), Ok((Call::AddThreads, "")));
        }
        for path in
            ["/caddy/threads", "/regentthreads", "/regent/threads/", "/regent", "regent/threads", "//", ""]
        {
            assert!(call(Method::GET, path).unwrap_err().contains("there is no "), "{path}");
        }
    }

    #[test]
    fn parts_are_found_by_their_path_or_their_name() {
        assert_eq!(call(Method::PATCH, "/config/apps/http"), Ok((Call::ChangeConfiguration, "apps/http")));
        assert_eq!(call(Method::GET, "/config/"), Ok((Call::Configuration, "")));
        assert_eq!(call(Method::GET, "/id/site/handle/0"), Ok((Call::Object, "site/handle/0")));
        assert_eq!(call(Method::DELETE, "/id/site"), Ok((Call::ChangeObject, "site")));
        assert!(call(Method::GET, "/id/").unwrap_err().contains("there is no "));
    }

    #[test]
    fn head_is_get() {
        assert_eq!(call(Method::HEAD, "/regent/threads"), Ok((Call::Threads, "")));
        let error = call(Method::HEAD, "/stop").unwrap_err();
        assert_eq!(error, "/stop does not take HEAD; it takes POST");
    }

    #[test]
    fn another_method_is_told_what_there_is() {
        let error = call(Method::PATCH, "/regent/threads").unwrap_err();
        assert_eq!(error, "/regent/threads does not take PATCH; it takes GET, PUT, DELETE, HEAD");
    }
}
