//! A directory, as templates of pages that list them find it under `.` (Caddy's fileserver/browsetplcontext.go).

use crate::arguments::{Call, Map, string};
use crate::times::{self, KIND};
use crate::{go_time, humanize};
use gotmpl::{Result, Value};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::sync::Arc;

/// What a receiver is that stands for a file or a directory.
pub(crate) const ITEM: &str = "item";
/// Bytes of memory that an item takes, which is mostly its time.
const BYTES_OF_ITEM: usize = 4096;

/// A directory that is listed.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    /// The path of the request, encoded, without a slash at its end.
    pub path: String,
    /// Those that are shown.
    pub items: Vec<Item>,
    pub offset: usize,
    /// 0: all are shown.
    pub limit: usize,
    /// Of all of them: directories, and files.
    pub directories: usize,
    pub files: usize,
    /// Bytes of all files, with links for what they are themselves.
    pub size: u64,
    /// The same with what links lead to.
    pub size_with_targets: u64,
    pub sort: String,
    pub order: String,
    pub layout: String,
}

/// A file or a directory.
#[derive(Debug, Clone, Default)]
pub struct Item {
    /// With a slash behind that of a directory.
    pub name: String,
    pub size: u64,
    /// Relative, encoded.
    pub url: String,
    /// Seconds since 1970.
    pub modified: i64,
    /// The permissions.
    pub mode: u32,
    pub is_directory: bool,
    pub is_link: bool,
    /// Where a link leads, if that is shown.
    pub target: String,
}

impl Listing {
    /// Bytes that it takes as a value.
    pub(crate) fn cost(&self) -> usize {
        self.items.len() * BYTES_OF_ITEM
    }

    /// What it adds to `.`.
    pub(crate) fn fields(&self) -> Map {
        let mut fields = self.facts();
        let facts = Value::Map(Arc::new(fields.clone()));
        let items: Vec<Value> = self.items.iter().map(|item| item.value(&facts)).collect();
        fields.insert("Items".into(), Value::List(items.into()));
        fields
    }

    /// All but the items, which have it as their `.Tpl`.
    fn facts(&self) -> Map {
        let name = decoded(self.path.rsplit('/').next().unwrap_or_default());
        let int = |number: usize| Value::Int(i64::try_from(number).unwrap_or(i64::MAX));
        let bytes = |count: u64| Value::Int(i64::try_from(count).unwrap_or(i64::MAX));
        let people = |count: u64| string(humanize::binary_bytes(count));
        map([
            ("Name", string(if name.is_empty() { "/".to_owned() } else { name })),
            ("Path", string(self.path.as_str())),
            ("CanGoUp", Value::Bool(self.path.len() > 1)),
            ("Offset", int(self.offset)),
            ("Limit", int(self.limit)),
            ("NumDirs", int(self.directories)),
            ("NumFiles", int(self.files)),
            ("TotalFileSize", bytes(self.size)),
            ("TotalFileSizeFollowingSymlinks", bytes(self.size_with_targets)),
            ("HumanTotalFileSize", people(self.size)),
            ("HumanTotalFileSizeFollowingSymlinks", people(self.size_with_targets)),
            ("Sort", string(self.sort.as_str())),
            ("Order", string(self.order.as_str())),
            ("Layout", string(self.layout.as_str())),
            ("Breadcrumbs", self.breadcrumbs()),
        ])
    }

    /// The directories on the way here, each with the relative link to it.
    fn breadcrumbs(&self) -> Value {
        let parts: Vec<&str> = self.path.strip_suffix('/').unwrap_or(&self.path).split('/').collect();
        let crumb = |(index, part): (usize, &&str)| {
            let text = if index == 0 && part.is_empty() { "/".to_owned() } else { decoded(part) };
            let link = "../".repeat(parts.len() - index - 1);
            Value::Map(Arc::new(map([("Link", string(link)), ("Text", string(text))])))
        };
        Value::List(parts.iter().enumerate().map(crumb).collect::<Vec<_>>().into())
    }
}

impl Item {
    fn value(&self, listing: &Value) -> Value {
        let time = Timestamp::from_second(self.modified).unwrap_or(Timestamp::UNIX_EPOCH);
        Value::Map(Arc::new(map([
            (KIND, string(ITEM)),
            ("Name", string(self.name.as_str())),
            ("Size", Value::Int(i64::try_from(self.size).unwrap_or(i64::MAX))),
            ("HumanSize", string(humanize::binary_bytes(self.size))),
            ("URL", string(self.url.as_str())),
            ("ModTime", times::value(&time.to_zoned_datetime(TimeZone::UTC))),
            ("Mode", string(self.mode())),
            ("IsDir", Value::Bool(self.is_directory)),
            ("IsSymlink", Value::Bool(self.is_link)),
            ("SymlinkPath", string(self.target.as_str())),
            ("Tpl", listing.clone()),
        ])))
    }

    /// As Go prints a mode: `-rw-r--r--`.
    fn mode(&self) -> String {
        let kind = match (self.is_link, self.is_directory) {
            (true, _) => 'L',
            (false, true) => 'd',
            (false, false) => '-',
        };
        // Links have all of them.
        let mode = if self.is_link { 0o777 } else { self.mode };
        let permission = |(at, letter): (usize, char)| match mode >> (8 - at) & 1 {
            1 => letter,
            _ => '-',
        };
        let permissions = "rwxrwxrwx".chars().enumerate().map(permission);
        std::iter::once(kind).chain(permissions).collect()
    }
}

/// `.HasExt ".jpg" ".png"` and `.HumanModTime LAYOUT`.
pub(crate) fn item_method(call: &Call<'_>, item: &Map) -> Result<Value> {
    match call.name {
        "HasExt" => {
            let name = item.get("Name").and_then(Value::as_str).unwrap_or_default().to_lowercase();
            for index in 0..call.args.len() {
                if name.ends_with(&call.text(index)?.to_lowercase()) {
                    return Ok(Value::Bool(true));
                }
            }
            Ok(Value::Bool(false))
        }
        "HumanModTime" => {
            let time = item.get("ModTime").and_then(times::of_value);
            let layout = call.text(0)?;
            Ok(string(time.map_or(String::new(), |time| go_time::format(&time, &layout))))
        }
        _ => call.fail("a file of a listing has no method of this name"),
    }
}

fn map<const N: usize>(entries: [(&str, Value); N]) -> Map {
    entries.into_iter().map(|(key, value)| (key.into(), value)).collect()
}

/// A segment of a path without its percent-encoding.
fn decoded(segment: &str) -> String {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    while let [first, others @ ..] = rest {
        let code = (*first == b'%').then(|| others.get(..2)).flatten();
        let code = code.and_then(|code| u8::from_str_radix(std::str::from_utf8(code).ok()?, 16).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &others[2..] } else { others };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
