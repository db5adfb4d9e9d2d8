//! Whether what somebody has is good still (RFC 9111 §4.3), and what a cache learns of the answer.

use super::super::case::{Case, Expected, Group, get, method, observed, optimal, required};

const FRESH: &str = "Cache-Control: max-age=3600 | Date: {start}";

/// A condition of a client on a stored response.
fn known(case: Case, stored: &str, asked: &str) -> Case {
    case.needs("max-age")
        .step(get().says(&format!("{FRESH} | {stored}")))
        .step(get().with(asked).status(304).then(Expected::Kept).then(Expected::Body("")))
}

fn unknown(case: Case, stored: &str, asked: &str) -> Case {
    case.needs("max-age")
        .step(get().says(&format!("{FRESH} | {stored}")))
        .step(get().with(asked).status(200).cached())
}

/// What a cache asks when a response is over.
fn asks(case: Case, stored: &str, condition: &'static str) -> Case {
    case.needs("max-age-over")
        .step(get().says(&format!("Cache-Control: max-age=1 | {stored}")))
        .step(get().after(3).good_still(stored).validated(condition))
}

pub fn by_tag() -> Group {
    let section = "9111 §4.3.2";
    let odd = |id: &str, stored: &str, asked: &str, question: &str| {
        known(observed(id, section, question), stored, asked).needs("etag")
    };
    let abc = "ETag: \"abc\"";
    Group {
        name: "ETag and If-None-Match",
        cases: vec![
            known(optimal("etag", section, "Who has it is told so with 304"), abc, "If-None-Match: \"abc\""),
            required("etag-in-304", "9110 §15.4.5", "A 304 has the `ETag`")
                .needs("etag")
                .step(get().says(&format!("{FRESH} | {abc}")))
                .step(get().with("If-None-Match: \"abc\"").given(Expected::Status(304)).field(abc)),
            required("304-without-body", "9110 §15.4.5", "A 304 has no body")
                .needs("etag")
                .step(get().says(&format!("{FRESH} | {abc}")))
                .step(
                    get()
                        .with("If-None-Match: \"abc\"")
                        .given(Expected::Status(304))
                        .then(Expected::Body("")),
                ),
            unknown(
                required("etag-other", section, "Who has another gets this one"),
                abc,
                "If-None-Match: \"x\"",
            ),
            unknown(
                required("etag-other-modified", "9110 §13.1.3", "Whatever `If-Modified-Since` says beside"),
                "ETag: \"abc\" | Last-Modified: {start-5000}",
                "If-None-Match: \"x\" | If-Modified-Since: {start-5000}",
            ),
            known(
                required(
                    "etag-before-modified",
                    "9110 §13.1.3",
                    "`If-None-Match` counts instead of `If-Modified-Since`",
                ),
                "ETag: \"abc\" | Last-Modified: {start-5000}",
                "If-None-Match: \"abc\" | If-Modified-Since: {start-10000}",
            )
            .needs("etag"),
            known(
                optimal("etag-weak", section, "Weak tags are compared too"),
                "ETag: W/\"abc\"",
                "If-None-Match: W/\"abc\"",
            ),
            known(
                optimal("etag-weak-strong", "9110 §13.1.2", "A weak one with a strong one"),
                "ETag: W/\"abc\"",
                "If-None-Match: \"abc\"",
            ),
            known(
                optimal("etag-strong-weak", "9110 §13.1.2", "And the other way"),
                abc,
                "If-None-Match: W/\"abc\"",
            ),
            known(
                optimal("etag-first", section, "Of several the first"),
                abc,
                "If-None-Match: \"abc\", \"1\", \"2\"",
            ),
            known(
                optimal("etag-middle", section, "One in the middle"),
                abc,
                "If-None-Match: \"1\", \"abc\", \"2\"",
            ),
            known(optimal("etag-last", section, "The last"), abc, "If-None-Match: \"1\", \"2\", \"abc\""),
            known(
                optimal("etag-lines", "9110 §5.3", "On two lines"),
                abc,
                "If-None-Match: \"1\" | If-None-Match: \"abc\"",
            ),
            known(
                optimal("etag-comma", "9110 §8.8.3", "A comma in a tag is a part of it"),
                "ETag: \"a,b\"",
                "If-None-Match: \"1\", \"a,b\"",
            ),
            known(optimal("etag-star", "9110 §13.1.2", "`*` is whatever is stored"), abc, "If-None-Match: *"),
            odd(
                "etag-beyond-ascii",
                "ETag: \"abcü\"",
                "If-None-Match: \"abcü\"",
                "May a tag have letters beyond ASCII?",
            ),
            odd("etag-unquoted-asked", abc, "If-None-Match: abc", "Is a tag found without its quotes?"),
            odd("etag-unquoted", "ETag: abc", "If-None-Match: abc", "Is one without quotes found?"),
            odd("etag-unquoted-stored", "ETag: abc", "If-None-Match: \"abc\"", "Is it with quotes?"),
            odd(
                "etag-weak-lower-case",
                "ETag: w/\"abc\"",
                "If-None-Match: w/\"abc\"",
                "May the mark of a weak one be `w/`?",
            ),
            odd("etag-weak-backslash", "ETag: W\\\"abc\"", "If-None-Match: W\\\"abc\"", "Or `W\\`?"),
            odd("etag-weak-no-slash", "ETag: W\"abc\"", "If-None-Match: W\"abc\"", "Or `W`?"),
            asks(
                optimal("asks-etag", "9111 §4.3.1", "A stale response is asked about by its `ETag`"),
                abc,
                "If-None-Match: \"abc\"",
            ),
            asks(
                optimal("asks-etag-weak", "9111 §4.3.1", "A weak one too"),
                "ETag: W/\"abc\"",
                "If-None-Match: W/\"abc\"",
            ),
            asks(
                observed("asks-etag-unquoted", "9111 §4.3.1", "One without quotes, as it is?"),
                "ETag: abc",
                "If-None-Match: abc",
            ),
            required("asks-with-vary", "9111 §4.3.1", "The question has the fields that `Vary` names")
                .needs("asks-etag")
                .step(get().with("Abc: 123").says("Cache-Control: max-age=1 | ETag: \"abc\" | Vary: Abc"))
                .step(
                    get()
                        .after(3)
                        .with("Abc: 123")
                        .good_still("ETag: \"abc\"")
                        .given(Expected::Validated("If-None-Match: \"abc\""))
                        .then(Expected::Asked("Abc: 123")),
                ),
            observed(
                "asks-with-other-variant",
                "9111 §4.3.1",
                "Is the tag of another variant asked about too?",
            )
            .needs("vary")
            .step(get().with("Abc: 123").says(&format!("{FRESH} | ETag: \"abc\" | Vary: Abc")))
            .step(get().with("Abc: 456").then(Expected::Asked("If-None-Match: \"abc\""))),
            observed(
                "etag-handed-on",
                "9111 §4.3.2",
                "Is `If-None-Match` handed on where nothing is stored?",
            )
            .step(get().with("If-None-Match: \"abc\"").then(Expected::Asked("If-None-Match: \"abc\""))),
            required(
                "validation-new",
                "9111 §4.3.3",
                "A new response to the question takes the place of the old one",
            )
            .needs("asks-etag")
            .step(get().says("Cache-Control: max-age=1 | ETag: \"abc\""))
            .step(get().after(3).says(&format!("{FRESH} | ETag: \"def\"")).forwarded())
            .step(get().then(Expected::Kept).field("ETag: \"def\"").field("Run: 2")),
            required(
                "validation-error",
                "9111 §4.3.3",
                "An error is handed to the client, or the stale one is used",
            )
            .needs("asks-etag")
            .step(get().says("Cache-Control: max-age=1, must-revalidate | ETag: \"abc\""))
            .step(get().after(3).by_status(500).status(500)),
        ],
    }
}

pub fn by_date() -> Group {
    let section = "9111 §4.3.2";
    let modified = "Last-Modified: {start-3000}";
    Group {
        name: "Last-Modified and If-Modified-Since",
        cases: vec![
            known(
                optimal("modified", section, "Who has it is told so with 304"),
                modified,
                "If-Modified-Since: {start-3000}",
            ),
            known(
                optimal("modified-later", section, "Who has something later too"),
                modified,
                "If-Modified-Since: {start-2000}",
            ),
            unknown(
                required("modified-earlier", section, "Who has something older gets this one"),
                modified,
                "If-Modified-Since: {start-4000}",
            ),
            known(
                optimal("modified-rfc850", "9110 §5.6.7", "A date in the form of RFC 850 is understood"),
                "Last-Modified: Wed, 01 Jan 2020 00:00:00 GMT",
                "If-Modified-Since: Wednesday, 01-Jan-20 00:00:00 GMT",
            ),
            unknown(
                required("modified-bad", "9110 §13.1.3", "What is no date is no condition"),
                modified,
                "If-Modified-Since: nonsense",
            ),
            known(
                optimal("modified-by-date", section, "Without `Last-Modified` it is as new as its `Date`"),
                "A: b",
                "If-Modified-Since: {start+5}",
            ),
            asks(
                optimal(
                    "asks-modified",
                    "9111 §4.3.1",
                    "A stale response is asked about by its `Last-Modified`",
                ),
                modified,
                "If-Modified-Since: {start-3000}",
            ),
            asks(
                required("asks-both", "9111 §4.3.1", "With both, the question has the `ETag`")
                    .needs("asks-etag"),
                "Last-Modified: {start-3000} | ETag: \"abc\"",
                "If-None-Match: \"abc\"",
            ),
            optimal(
                "modified-stale",
                "9111 §4.3.3",
                "After a 304 of the server behind, the client gets one too",
            )
            .needs("asks-modified")
            .step(get().says(&format!("Cache-Control: max-age=1 | {modified}")))
            .step(
                get()
                    .after(3)
                    .with("If-Modified-Since: {start-3000}")
                    .good_still(&format!("{modified} | Cache-Control: max-age=1"))
                    .status(304)
                    .then(Expected::Asked("If-Modified-Since: {start-3000}")),
            ),
            observed(
                "modified-handed-on",
                "9111 §4.3.2",
                "Is `If-Modified-Since` handed on where nothing is stored?",
            )
            .step(
                get()
                    .with("If-Modified-Since: {start-3000}")
                    .then(Expected::Asked("If-Modified-Since: {start-3000}")),
            ),
        ],
    }
}

/// A field, its value in what is stored, and another one in the 304.
struct Update(&'static str, &'static str, &'static str);

const UPDATED: [Update; 5] = [
    Update("Test-Header", "a", "b"),
    Update("X-Test-Header", "a", "b"),
    Update("Content-Foo", "a", "b"),
    Update("X-Content-Foo", "a", "b"),
    Update("Expires", "Fri, 01 Jan 2038 01:01:01 GMT", "Mon, 11 Jan 2038 11:11:11 GMT"),
];
const PERHAPS_UPDATED: [Update; 10] = [
    Update("Content-Encoding", "foo", "bar"),
    Update("Content-Location", "/foo", "/bar"),
    Update("Content-Range", "foo", "bar"),
    Update("Content-Type", "text/plain", "text/plain;charset=utf-8"),
    Update("Content-Security-Policy", "default-src 'self'", "default-src 'self' cdn.example.com"),
    Update("Clear-Site-Data", "\"cache\"", "\"cookies\""),
    Update("X-Frame-Options", "deny", "sameorigin"),
    Update("X-XSS-Protection", "1", "1; mode=block"),
    Update("Public-Key-Pins", "a", "b"),
    Update("Link", "</a>; rel=preload", "</b>; rel=preload"),
];

pub fn updates() -> Group {
    let stored =
        |Update(name, old, _): &Update| format!("Cache-Control: max-age=1 | ETag: \"abc\" | {name}: {old}");
    let newer = |Update(name, _, new): &Update| {
        format!("Cache-Control: max-age=3600 | ETag: \"abc\" | {name}: {new}")
    };
    let answered = |case: Case, update: &Update| {
        let Update(name, _, new) = update;
        case.needs("asks-etag").step(get().says(&stored(update))).step(
            get()
                .after(3)
                .good_still(&newer(update))
                .given(Expected::Validated("If-None-Match: \"abc\""))
                .field(format!("{name}: {new}")),
        )
    };
    let kept = |case: Case, update: &Update| {
        let Update(name, _, new) = update;
        case.needs("asks-etag")
            .step(get().says(&stored(update)))
            .step(get().after(3).good_still(&newer(update)).validated("If-None-Match: \"abc\""))
            .step(get().given(Expected::Cached).field(format!("{name}: {new}")))
    };
    let id = |what: &str, update: &Update| format!("update-{what}-{}", update.0.to_lowercase());
    let mut cases = vec![
        required("update-omitted", "9111 §3.2", "What a 304 does not name stays")
            .needs("asks-modified")
            .step(get().says("Cache-Control: max-age=1 | Last-Modified: {start-3000} | Test-Header: a"))
            .step(
                get()
                    .after(3)
                    .good_still("Last-Modified: {start-3000}")
                    .given(Expected::Validated("If-Modified-Since: {start-3000}"))
                    .field("Test-Header: a"),
            ),
        required(
            "update-lifetime",
            "9111 §4.3.4",
            "The `Cache-Control` of a 304 is the lifetime from now on",
        )
        .needs("asks-etag")
        .step(get().says("Cache-Control: max-age=1 | ETag: \"abc\""))
        .step(
            get()
                .after(3)
                .good_still("Cache-Control: max-age=3600 | ETag: \"abc\"")
                .validated("If-None-Match: \"abc\""),
        )
        .step(get().after(3).cached().field("Cache-Control: max-age=3600")),
        required("update-length", "9111 §3.2", "A `Content-Length` of a 304 is not that of the body")
            .needs("asks-etag")
            .step(get().by_body("0123456789").says("Cache-Control: max-age=1 | ETag: \"abc\""))
            .step(
                get()
                    .after(3)
                    .good_still("Cache-Control: max-age=3600 | ETag: \"abc\" | Content-Length: 36")
                    .given(Expected::Status(200))
                    .then(Expected::Body("0123456789")),
            ),
        required("update-age", "9111 §4.3.4", "A response that is good still is as old as the 304")
            .needs("asks-etag")
            .step(get().says("Cache-Control: max-age=1 | ETag: \"abc\" | Date: {start-50}"))
            .step(
                get()
                    .after(3)
                    .good_still("Cache-Control: max-age=3600 | ETag: \"abc\" | Date: {start+3}")
                    .then(Expected::AgeUpTo(40)),
            ),
    ];
    for update in &UPDATED {
        let demand = format!("`{}` of a 304 is in the answer", update.0);
        cases.push(answered(required(id("answer", update), "9111 §3.2", demand), update));
        let demand = format!("`{}` of a 304 is stored", update.0);
        cases.push(kept(required(id("stored", update), "9111 §3.2", demand), update));
    }
    for update in &PERHAPS_UPDATED {
        let question = format!("Is `{}` of a 304 stored?", update.0);
        cases.push(kept(observed(id("stored", update), "9111 §3.2", question), update));
    }
    Group { name: "What a 304 updates", cases }
}

pub fn by_head() -> Group {
    let stored = "Cache-Control: max-age=1 | ETag: \"abc\" | A: 1";
    let stored = |case: Case| case.needs("max-age-over").step(get().says(stored));
    let head = || method("HEAD").after(3);
    Group {
        name: "What a HEAD updates",
        cases: vec![
            stored(observed("head-handed-on", "9111 §4.3.5", "Is a HEAD for what is stale handed on?"))
                .step(head().then(Expected::AskedBy("HEAD"))),
            stored(observed("head-lifetime", "9111 §4.3.5", "Does its answer make it fresh?"))
                .step(head().says("Cache-Control: max-age=3600 | ETag: \"abc\"").status(200))
                .step(get().cached()),
            stored(observed("head-updates", "9111 §4.3.5", "Does it change fields?"))
                .step(head().says("Cache-Control: max-age=3600 | ETag: \"abc\" | A: 2").status(200))
                .step(get().given(Expected::Cached).field("A: 2")),
            stored(required(
                "head-other-tag",
                "9111 §4.3.5",
                "Another `ETag` makes what is stored no fresher",
            ))
            .needs("max-age-over")
            .step(head().says("Cache-Control: max-age=3600 | ETag: \"def\"").status(200))
            .step(get().then(Expected::NotKept)),
            stored(observed("head-410", "9111 §4.3.5", "Does a 410 keep it from being used?"))
                .step(head().by_status(410).says("Cache-Control: max-age=3600").status(410))
                .step(get().then(Expected::NotKept)),
        ],
    }
}
