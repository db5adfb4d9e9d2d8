//! Parameters of a change: what is not understood is refused, so that nothing else is done than what was meant.

use crate::cache::CachePurge;
use crate::control::{Force, Language};
use crate::failure::Failure;
use regent_profile::{Format, Measure};
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::time::Duration;

/// `worker=FILE&count=N`
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Selection {
    /// A worker's file or name, or a native service's name; `None`: the pool of classic requests.
    pub worker: Option<String>,
    pub count: NonZeroU16,
}

impl Selection {
    pub fn parse(query: Option<&str>) -> Result<Self, Failure> {
        let (mut worker, mut count) = (None, None);
        for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            match &*name {
                "worker" => set(&mut worker, "worker", value.into_owned())?,
                "count" => set(&mut count, "count", parse_count(&value)?)?,
                _ => return Err(unknown(&name, "there are `worker` and `count`")),
            }
        }
        Ok(Self { worker, count: count.unwrap_or(NonZeroU16::MIN) })
    }
}

/// `index=N`
pub(crate) fn thread(query: Option<&str>) -> Result<u16, Failure> {
    let mut index = None;
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        match &*name {
            "index" => set(&mut index, "index", parse_index(&value)?)?,
            _ => return Err(unknown(&name, "there is `index`")),
        }
    }
    index.ok_or(Failure::NoIndex)
}

fn parse_index(text: &str) -> Result<u16, Failure> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits).ok_or_else(|| Failure::Index(text.to_owned()))
}

/// `task=NAME`
pub(crate) fn task(query: Option<&str>) -> Result<String, Failure> {
    let mut task = None;
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        match &*name {
            "task" => set(&mut task, "task", value.into_owned())?,
            _ => return Err(unknown(&name, "there is `task`")),
        }
    }
    task.ok_or(Failure::NoTask)
}

/// `timeout=SECONDS`
pub(crate) fn upgrade(query: Option<&str>) -> Result<Option<Duration>, Failure> {
    let mut timeout = None;
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        match &*name {
            "timeout" => set(&mut timeout, "timeout", parse_seconds("timeout", &value)?)?,
            _ => return Err(unknown(&name, "there is `timeout`")),
        }
    }
    Ok(timeout)
}

fn parse_seconds(parameter: &'static str, text: &str) -> Result<Duration, Failure> {
    let seconds: Option<NonZeroU16> = text.parse().ok().filter(|_| !text.starts_with('+'));
    let seconds = seconds.ok_or_else(|| Failure::Seconds { parameter, text: text.to_owned() })?;
    Ok(Duration::from_secs(seconds.get().into()))
}

/// `config=FILE&adapter=json&force=true&wait=30`
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ReloadQuery {
    /// `None`: the file that the server was started with.
    pub config: Option<PathBuf>,
    /// What it is written in; `None`: its name says it.
    pub adapter: Option<Language>,
    pub force: Force,
    /// For the end of the requests that began before; `None`: not at all.
    pub wait: Option<Duration>,
}

impl ReloadQuery {
    pub fn parse(query: Option<&str>) -> Result<Self, Failure> {
        let (mut config, mut adapter, mut force, mut wait) = (None, None, None, None);
        for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            match &*name {
                "config" => set(&mut config, "config", parse_path(&value)?)?,
                "adapter" => set(&mut adapter, "adapter", parse_adapter(&value)?)?,
                "force" => set(&mut force, "force", parse_force(&value)?)?,
                "wait" => set(&mut wait, "wait", parse_seconds("wait", &value)?)?,
                _ => return Err(unknown(&name, "there are `config`, `adapter`, `force` and `wait`")),
            }
        }
        Ok(Self { config, adapter: adapter.flatten(), force: force.unwrap_or(Force::No), wait })
    }
}

/// A relative one would be looked for in the server's directory, not in that of whoever asks.
fn parse_path(text: &str) -> Result<PathBuf, Failure> {
    let path = PathBuf::from(text);
    if path.is_absolute() { Ok(path) } else { Err(Failure::ConfigPath(text.to_owned())) }
}

/// As Caddy's option: empty, the name of the file says it.
fn parse_adapter(text: &str) -> Result<Option<Language>, Failure> {
    match text {
        "" => Ok(None),
        "caddyfile" => Ok(Some(Language::Caddyfile)),
        "json" => Ok(Some(Language::Json)),
        _ => Err(Failure::Adapter(text.to_owned())),
    }
}

fn parse_force(text: &str) -> Result<Force, Failure> {
    match text {
        "true" => Ok(Force::Yes),
        "false" => Ok(Force::No),
        _ => Err(Failure::Force(text.to_owned())),
    }
}

/// `worker=FILE&path=/shop&seconds=10&hertz=99&format=html`
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ProfileQuery {
    /// `None`: all pools of PHP.
    pub worker: Option<String>,
    pub path: String,
    pub seconds: u32,
    pub hertz: u32,
    pub format: Format,
}

/// Who waits longer has forgotten what for.
const MOST_SECONDS: u32 = 300;
const MOST_HERTZ: u32 = 1000;

impl ProfileQuery {
    pub fn parse(query: Option<&str>) -> Result<Self, Failure> {
        let (mut worker, mut path, mut seconds, mut hertz, mut format) = (None, None, None, None, None);
        for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            match &*name {
                "worker" => set(&mut worker, "worker", value.into_owned())?,
                "path" => set(&mut path, "path", value.into_owned())?,
                "seconds" => set(&mut seconds, "seconds", number("seconds", &value, MOST_SECONDS)?)?,
                "hertz" => set(&mut hertz, "hertz", number("hertz", &value, MOST_HERTZ)?)?,
                "format" => set(&mut format, "format", parse_format(&value)?)?,
                _ => {
                    return Err(unknown(
                        &name,
                        "there are `worker`, `path`, `seconds`, `hertz` and `format`",
                    ));
                }
            }
        }
        Ok(Self {
            worker,
            path: path.unwrap_or_default(),
            seconds: seconds.unwrap_or(10),
            // Not a hundred: much that programs do by the clock would be seen too often, or never.
            hertz: hertz.unwrap_or(99),
            format: format.unwrap_or(Format::Html),
        })
    }
}

fn number(name: &'static str, text: &str, most: u32) -> Result<u32, Failure> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|number| digits && (1..=most).contains(number));
    number.ok_or_else(|| Failure::Number { name, value: text.to_owned(), least: 1, most })
}

fn parse_format(text: &str) -> Result<Format, Failure> {
    Ok(match text {
        "html" => Format::Html,
        "svg" => Format::Svg,
        "folded" => Format::Folded(Measure::Wall),
        "folded-cpu" => Format::Folded(Measure::Cpu),
        "speedscope" => Format::Speedscope,
        "json" => Format::Json,
        _ => return Err(Failure::Format(text.to_owned())),
    })
}

/// `url=URL`, `prefix=URL`, `tag=TAG` as often as there are tags, or `all=true`: one of them.
pub(crate) fn purge(query: Option<&str>) -> Result<CachePurge, Failure> {
    let (mut purge, mut tags) = (None, Vec::new());
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        let one = match &*name {
            "tag" if !value.is_empty() => {
                tags.push(value.into_owned());
                continue;
            }
            "url" if has_scheme(&value) => CachePurge::Url(value.into_owned()),
            "prefix" if has_scheme(&value) => CachePurge::Prefix(value.into_owned()),
            "all" if value == "true" => CachePurge::Everything,
            "url" | "prefix" | "tag" | "all" => return Err(Failure::Purge),
            _ => return Err(unknown(&name, "there are `url`, `prefix`, `tag` and `all`")),
        };
        if purge.replace(one).is_some() {
            return Err(Failure::Purge);
        }
    }
    match (purge, tags.is_empty()) {
        (Some(purge), true) => Ok(purge),
        (None, false) => Ok(CachePurge::Tags(tags)),
        _ => Err(Failure::Purge),
    }
}

fn has_scheme(url: &str) -> bool {
    url.starts_with("http://") || url.starts_with("https://")
}

/// Refuses parameters, for changes that have none.
pub(crate) fn none(query: Option<&str>) -> Result<(), Failure> {
    match form_urlencoded::parse(query.unwrap_or_default().as_bytes()).next() {
        None => Ok(()),
        Some((name, _)) => Err(unknown(&name, "there are none")),
    }
}

fn set<T>(slot: &mut Option<T>, name: &'static str, value: T) -> Result<(), Failure> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(Failure::RepeatedParameter(name)),
    }
}

/// Digits only: `+5` is a number to the standard library.
fn parse_count(text: &str) -> Result<NonZeroU16, Failure> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits).ok_or_else(|| Failure::Count(text.to_owned()))
}

fn unknown(name: &str, known: &'static str) -> Failure {
    Failure::UnknownParameter { name: name.to_owned(), known }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(query: &str) -> String {
        let failure = Selection::parse(Some(query)).unwrap_err();
        assert_eq!(failure.status(), 400, "{query}");
        failure.to_string()
    }

    #[test]
    fn one_classic_thread_is_the_default() {
        let one = Selection { worker: None, count: NonZeroU16::MIN };
        assert_eq!(Selection::parse(None).unwrap(), one);
        assert_eq!(Selection::parse(Some("")).unwrap(), one);
    }

    #[test]
    fn values_are_decoded() {
        let selection = Selection::parse(Some("count=3&worker=%2Fapp%2Fa+b.php")).unwrap();
        assert_eq!(selection.worker.as_deref(), Some("/app/a b.php"));
        assert_eq!(selection.count.get(), 3);
    }

    #[test]
    fn what_is_no_count_is_refused() {
        for text in ["0", "-1", "x", "1000000000", "65536", "", "1.5", "%2B5", "%205", "١"] {
            assert!(error(&format!("count={text}")).contains("from 1 to 65535"), "{text}");
        }
        error("count");
    }

    #[test]
    fn what_is_unknown_or_repeated_is_refused() {
        assert!(error("counts=3").contains("`counts` is not known"));
        assert!(error("count=1&count=1").contains("comes twice"));
        assert!(error("worker=a&worker=b").contains("comes twice"));
        none(Some("x=1")).unwrap_err();
        none(None).unwrap();
    }

    #[test]
    fn a_profile_is_of_ten_seconds_unless_it_says_otherwise() {
        let parse = |query| ProfileQuery::parse(query).map_err(|failure| failure.to_string());
        let usual = parse(None).unwrap();
        assert_eq!((usual.seconds, usual.hertz, usual.format), (10, 99, Format::Html));
        let other =
            parse(Some("seconds=300&hertz=1000&path=%2Fa%26b&format=folded-cpu&worker=w.php")).unwrap();
        assert_eq!((other.seconds, other.hertz, &*other.path), (300, 1000, "/a&b"));
        assert_eq!(other.format, Format::Folded(Measure::Cpu));
        for (query, hint) in [
            ("seconds=0", "1 to 300"),
            ("seconds=301", "1 to 300"),
            ("hertz=-1", "1 to 1000"),
            ("hertz=%2B5", "1 to 1000"),
            ("format=png", "`speedscope`"),
            ("format=html&format=html", "twice"),
            ("pool=x", "not known"),
        ] {
            let error = parse(Some(query)).unwrap_err();
            assert!(error.contains(hint), "{query}: {error}");
        }
    }

    #[test]
    fn a_purge_says_one_thing() {
        let parse = |query| purge(Some(query)).map_err(|failure| failure.to_string());
        assert_eq!(parse("url=https%3A%2F%2Fh%2Fa"), Ok(CachePurge::Url("https://h/a".into())));
        assert_eq!(parse("prefix=http://h/"), Ok(CachePurge::Prefix("http://h/".into())));
        assert_eq!(parse("tag=a&tag=b"), Ok(CachePurge::Tags(vec!["a".into(), "b".into()])));
        assert_eq!(parse("all=true"), Ok(CachePurge::Everything));
        for wrong in ["", "url=/a", "prefix=", "tag=", "all=1", "all=true&tag=a", "url=http://a&url=http://b"]
        {
            assert!(parse(wrong).unwrap_err().contains("name what is to be purged"), "{wrong}");
        }
        assert!(parse("key=a").unwrap_err().contains("not known"));
    }

    #[test]
    fn a_reload_is_of_an_absolute_file_and_forced_only_by_saying_so() {
        let parse = |query| ReloadQuery::parse(Some(query)).map_err(|failure| failure.to_string());
        assert_eq!(
            ReloadQuery::parse(None).unwrap(),
            ReloadQuery { config: None, adapter: None, force: Force::No, wait: None }
        );
        let full = parse("config=%2Fetc%2FCaddyfile&adapter=json&force=true&wait=30").unwrap();
        let expected = ReloadQuery {
            config: Some("/etc/Caddyfile".into()),
            adapter: Some(Language::Json),
            force: Force::Yes,
            wait: Some(Duration::from_secs(30)),
        };
        assert_eq!(full, expected);
        for (query, hint) in [
            ("config=Caddyfile", "no absolute path"),
            ("config=", "no absolute path"),
            ("adapter=yaml", "`caddyfile` or `json`"),
            ("force=1", "neither"),
            ("force=true&force=true", "twice"),
            ("wait=0", "wait"),
            ("wait=30s", "wait"),
            ("file=/a", "not known"),
        ] {
            let error = parse(query).unwrap_err();
            assert!(error.contains(hint), "{query}: {error}");
        }
    }
}
