//! The description against the listener, in both directions.

use crate::support::{Panics, Response, Site};
use regent_admin::{Readiness, Refusal};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::io::{BufReader, Write};
use std::sync::Arc;
use std::thread::ScopedJoinHandle;

/// Method, path as it is described, status.
type Described = (String, String, String);

#[test]
fn what_is_described_is_what_there_is() {
    let described: BTreeSet<_> =
        operations(&description()).into_iter().map(|(method, path, _)| (method, path)).collect();
    let routed: BTreeSet<_> = regent_admin::endpoints()
        .map(|(method, path)| (method.as_str().to_ascii_lowercase(), path.to_owned()))
        .collect();
    assert_eq!(described, routed);
}

/// Every described status is answered by some request, every answered one is described, and each answer has the form
/// that is described. Bodies that do not come take their time, so all operations are asked at once.
#[test]
fn every_described_answer_is_given() {
    let description = description();
    let given: BTreeSet<Described> = std::thread::scope(|scope| {
        let description = &description;
        let ask = |(method, path, operation): (String, String, Value)| {
            scope.spawn(move || given(description, &method, &path, &operation))
        };
        let asked: Vec<_> = operations(description).into_iter().map(ask).collect();
        let join = |asked: ScopedJoinHandle<'_, Vec<Described>>| {
            asked.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        asked.into_iter().flat_map(join).collect()
    });
    assert_eq!(all_described(&description).difference(&given).collect::<Vec<_>>(), Vec::<&Described>::new());
}

fn given(description: &Value, method: &str, path: &str, operation: &Value) -> Vec<Described> {
    let given = |case: Case| {
        let answer = case.answer(method, path);
        let status = answer.status.to_string();
        let described = &operation["responses"][&status];
        assert!(
            described.is_object(),
            "{method} {path} answered {status}, which is not described: {answer:?}"
        );
        check_form(description, resolve(description, described), &answer)
            .unwrap_or_else(|problem| panic!("{method} {path} {status}: {problem}\n{}", answer.body));
        (method.to_owned(), path.to_owned(), status)
    };
    cases(method, path).into_iter().map(given).collect()
}

#[test]
fn every_schema_and_answer_is_used() {
    let text = include_str!("../openapi.json");
    for (kind, entries) in description()["components"].as_object().unwrap() {
        for name in entries.as_object().unwrap().keys() {
            assert!(text.contains(&format!("#/components/{kind}/{name}\"")), "{kind}/{name} is not used");
        }
    }
}

/// A request to an operation, and the server that it meets.
#[derive(Default)]
struct Case {
    rest: &'static str,
    fields: Vec<(&'static str, &'static str)>,
    body: String,
    server: Server,
    configuration: Configuration,
}

#[derive(Default)]
enum Configuration {
    #[default]
    There,
    Removed,
}

#[derive(Default)]
enum Server {
    #[default]
    Well,
    NotReady,
    WithoutAuthority,
    Refusing,
    Panicking,
    /// The client sends a body's announcement, and no body.
    Starved,
}

impl Case {
    fn answer(&self, method: &str, path: &str) -> Response {
        let site = Site::start();
        match self.server {
            Server::Well | Server::Starved => {}
            Server::NotReady => site.fake.state().readiness = Readiness::NotReady("PHP is starting".into()),
            Server::WithoutAuthority => site.fake.state().has_no_authority = true,
            Server::Refusing => {
                site.fake.state().refusal = Some(Refusal::Unavailable("PHP is starting; try again".into()));
            }
            Server::Panicking => site.fake.state().panics = Panics::InChanges,
        }
        if let Configuration::Removed = self.configuration {
            site.fake.state().document = Arc::default();
        }
        let method = method.to_ascii_uppercase();
        let path = path.replace("{prefix}", "regent").replace("{path}", "").replace("{file}", "");
        let target = format!("{path}{}", self.rest);
        if let Server::Starved = self.server {
            let mut client = site.connect();
            let fields = [&self.fields[..], &[("Content-Length", "10")]].concat();
            let head = site.request(&method, &target, &fields, "");
            client.write_all(head.as_bytes()).unwrap();
            return Response::read(&mut BufReader::new(client), &method);
        }
        site.send(&method, &target, &self.fields, &self.body)
    }
}

/// What there is to try with an operation; what any of them can answer is tried with each.
fn cases(method: &str, path: &str) -> Vec<Case> {
    let rest = |rest| Case { rest, ..Case::default() };
    let meets = |server| Case { server, ..Case::default() };
    let body = |body: &str| Case { body: body.into(), ..Case::default() };
    let fields = |fields: &[_]| Case { fields: fields.to_vec(), ..Case::default() };
    let mut cases = vec![fields(&[("Host", "evil.example")]), fields(&[("Host", "a"), ("Host", "b")])];
    cases.extend(match (method, path) {
        ("get", "/regent/dashboard/{file}") => {
            vec![rest("dashboard.css"), rest("dashboard.js"), rest("plot.js"), rest("other.js")]
        }
        ("get", "/config/") => vec![Case::default()],
        ("get", "/config/{path}") => vec![rest("apps/http"), rest("none/none")],
        ("get", "/id/{path}") => vec![rest("hello"), rest("none")],
        (_, "/config/" | "/config/{path}" | "/id/{path}") => changes(method, path),
        ("get", "/{prefix}/threads" | "/{prefix}/queue" | "/{prefix}/statistics") => {
            vec![Case::default(), meets(Server::Refusing)]
        }
        ("get", "/{prefix}/threads/stack") => vec![
            rest("?index=0"),
            rest("?index=1"),
            rest("?index=x"),
            Case { rest: "?index=0", ..meets(Server::Refusing) },
        ],
        ("get", "/{prefix}/profile") => vec![
            Case::default(),
            rest("?format=folded"),
            rest("?format=json"),
            rest("?format=x"),
            rest("?worker=/no/such.php"),
            rest("?path=/under-way"),
            meets(Server::Refusing),
        ],
        ("get", "/pki/ca/local" | "/pki/ca/local/certificates") => {
            vec![Case::default(), meets(Server::WithoutAuthority)]
        }
        ("get", "/{prefix}/ready") => vec![Case::default(), meets(Server::NotReady)],
        ("put" | "delete", "/{prefix}/threads") => vec![
            Case::default(),
            rest("?count=0"),
            rest("?worker=/no/such.php"),
            rest("?count=9"),
            meets(Server::Refusing),
            meets(Server::Panicking),
        ],
        ("post", "/{prefix}/workers/restart" | "/{prefix}/native/restart") => {
            vec![Case::default(), meets(Server::Refusing), meets(Server::Panicking)]
        }
        ("post", "/{prefix}/reload") => {
            vec![Case::default(), rest("?force=x"), meets(Server::Refusing), meets(Server::Panicking)]
        }
        ("post", "/{prefix}/upgrade") => {
            vec![Case::default(), rest("?timeout=x"), meets(Server::Refusing), meets(Server::Panicking)]
        }
        ("post", "/adapt") => {
            let adapt = |body: &str, server| Case {
                fields: vec![("Content-Type", "text/caddyfile")],
                body: body.into(),
                server,
                ..Case::default()
            };
            vec![
                body(":80"),
                adapt(":80", Server::Well),
                adapt("broken", Server::Well),
                adapt(&"x".repeat((16 << 20) + 1), Server::Well),
                Case { fields: vec![("Content-Type", "text/yaml")], ..Case::default() },
                adapt("", Server::Starved),
            ]
        }
        ("post", "/{prefix}/cache/purge") => {
            let all = |server| Case { rest: "?all=true", server, ..Case::default() };
            vec![Case::default(), all(Server::Well), all(Server::Refusing), all(Server::Panicking)]
        }
        ("post", "/{prefix}/tasks/run" | "/{prefix}/tasks/restart" | "/{prefix}/tasks/stop") => {
            let mut cases = vec![Case::default(), rest("?task=nightly"), rest("?task=none")];
            cases.extend(path.ends_with("run").then(|| rest("?task=queue")));
            cases
        }
        ("post", "/load") => {
            let load = |kind: &'static str, body: &str, server| Case {
                fields: vec![("Content-Type", kind)],
                body: body.into(),
                server,
                ..Case::default()
            };
            vec![
                body("{}"),
                load("text/yaml", "", Server::Well),
                load("text/caddyfile", ":80", Server::Well),
                load("text/caddyfile", "broken", Server::Well),
                load("application/json", &"x".repeat((16 << 20) + 1), Server::Well),
                load("application/json", "{}", Server::Refusing),
                load("application/json", "{}", Server::Panicking),
                load("application/json", "", Server::Starved),
            ]
        }
        _ => vec![Case::default()],
    });
    cases
}

/// Of the configuration, or of a part of it.
fn changes(method: &str, path: &str) -> Vec<Case> {
    let (rest, there, missing) = match (path, method) {
        ("/config/", _) => ("", "", ""),
        ("/id/{path}", "put") => ("hello/new", "hello/handle", "none"),
        ("/id/{path}", _) => ("hello", "", "none"),
        (_, "put") => ("apps/new", "apps/http", "apps/http/servers/srv0/routes/7"),
        _ => ("apps/http", "", "apps/none/none"),
    };
    let is_made = method == "put" && path == "/config/";
    let json = || Case {
        rest,
        fields: vec![("Content-Type", "application/json")],
        body: if method == "delete" { String::new() } else { "{}".into() },
        configuration: if is_made { Configuration::Removed } else { Configuration::There },
        ..Case::default()
    };
    let mut cases = vec![
        json(),
        Case { fields: vec![("Content-Type", "application/json"), ("If-Match", "\"/config/ 0\"")], ..json() },
        Case { server: Server::Refusing, ..json() },
        Case { server: Server::Panicking, ..json() },
    ];
    if method != "delete" {
        cases.push(Case { fields: Vec::new(), ..json() });
        cases.push(Case { body: "x".repeat((16 << 20) + 1), ..json() });
        cases.push(Case { body: String::new(), server: Server::Starved, ..json() });
    }
    if path != "/config/" {
        cases.push(Case { rest: missing, ..json() });
    }
    if method == "put" {
        cases.push(Case { rest: there, configuration: Configuration::There, ..json() });
    }
    if method == "patch" && path == "/config/{path}" {
        cases.push(Case { rest: "apps/frankenphp", body: String::new(), ..json() });
    }
    cases
}

fn description() -> Value {
    let answer = Site::start().get("/regent/openapi.json");
    assert_eq!(answer.body, include_str!("../openapi.json"));
    answer.json()
}

fn operations(description: &Value) -> Vec<(String, String, Value)> {
    let mut operations = Vec::new();
    for (path, item) in description["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap().iter().filter(|(key, _)| *key != "parameters") {
            operations.push((method.clone(), path.clone(), operation.clone()));
        }
    }
    operations
}

fn all_described(description: &Value) -> BTreeSet<Described> {
    let statuses =
        |operation: &Value| operation["responses"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let of = |(method, path, operation): (String, String, Value)| {
        statuses(&operation).into_iter().map(move |status| (method.clone(), path.clone(), status))
    };
    operations(description).into_iter().flat_map(of).collect()
}

/// Follows a `$ref`.
fn resolve<'a>(description: &'a Value, value: &'a Value) -> &'a Value {
    let Some(reference) = value["$ref"].as_str() else { return value };
    description.pointer(&reference[1..]).unwrap_or_else(|| panic!("nothing is at {reference}"))
}

fn check_form(description: &Value, described: &Value, answer: &Response) -> Result<(), String> {
    let full = answer.header("content-type").ok_or("no Content-Type")?;
    let media_type = full.split(';').next().unwrap_or(full);
    let content = &described["content"][media_type];
    if content.is_null() {
        return Err(format!("{media_type} is not described"));
    }
    if media_type != "application/json" {
        return Ok(());
    }
    check(description, &content["schema"], &answer.json()).map_err(|problem| format!("the answer{problem}"))
}

/// Whether a value has the form of a schema, as far as this description uses JSON Schema. Unlike there, an object has no
/// properties but the described ones, if any are.
fn check(description: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    let schema = resolve(description, schema);
    if let Some(alternatives) = schema["anyOf"].as_array() {
        let fits = alternatives.iter().any(|alternative| check(description, alternative, value).is_ok());
        return if fits { Ok(()) } else { Err(format!(" is {value}, which fits none of its alternatives")) };
    }
    check_value(schema, value)?;
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        check(description, &schema["items"], item).map_err(|problem| format!("[{index}]{problem}"))?;
    }
    match (schema["properties"].as_object(), value.as_object()) {
        (Some(properties), Some(object)) => check_object(description, schema, properties, object),
        _ => Ok(()),
    }
}

fn check_value(schema: &Value, value: &Value) -> Result<(), String> {
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one.as_str()],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let is = |name: &&str| match *name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        other => panic!("the type {other} is not known here"),
    };
    let is_of_type = types.is_empty() || types.iter().any(is);
    let is_allowed = schema["enum"].as_array().is_none_or(|allowed| allowed.contains(value));
    let is_constant = schema.get("const").is_none_or(|constant| constant == value);
    if is_of_type && is_allowed && is_constant {
        Ok(())
    } else {
        Err(format!(" is {value}, against {schema}"))
    }
}

fn check_object(
    description: &Value,
    schema: &Value,
    properties: &Map<String, Value>,
    object: &Map<String, Value>,
) -> Result<(), String> {
    for required in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !object.contains_key(required) {
            return Err(format!(" has no {required}"));
        }
    }
    for (name, value) in object {
        let property = properties.get(name).ok_or_else(|| format!(".{name} is not described"))?;
        check(description, property, value).map_err(|problem| format!(".{name}{problem}"))?;
    }
    Ok(())
}
