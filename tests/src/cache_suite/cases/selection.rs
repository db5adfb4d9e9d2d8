//! For which requests a response may be used: methods, statuses, credentials, cookies, `Vary`.

use super::super::case::{Case, Expected, Group, get, method, observed, optimal, required};

/// Statuses, most of them with rules of their own.
const STATUSES: [u16; 20] =
    [200, 203, 204, 299, 300, 301, 302, 303, 307, 308, 400, 404, 410, 451, 499, 500, 502, 503, 504, 599];

pub fn statuses() -> Group {
    let fresh = |status: u16| {
        optimal(format!("status-{status}"), "9111 §3", format!("{status} with a lifetime is used again"))
            .step(get().by_status(status).says("Cache-Control: max-age=3600 | Date: {start}"))
            .step(get().by_status(status).status(status).cached())
    };
    let stale = |status: u16| {
        required(
            format!("status-{status}-over"),
            "9111 §4.2",
            format!("{status} is not used when it is over"),
        )
        .needs("expires")
        .step(
            get()
                .by_status(status)
                .says("Expires: {start-5000} | Last-Modified: {start-100000} | Date: {start}"),
        )
        .step(get().by_status(status).forwarded())
    };
    let fresh = STATUSES.into_iter().map(fresh);
    Group { name: "Statuses", cases: fresh.chain(STATUSES.into_iter().map(stale)).collect() }
}

pub fn methods() -> Group {
    let lifetime = "Cache-Control: max-age=3600 | Date: {start}";
    let unused_after = |name: &str| {
        required(
            format!("method-{name}"),
            "9111 §4",
            format!("What a {name} was answered with is not used for a GET"),
        )
        .needs("max-age")
        .step(method(name).sends("abc").says(lifetime).forwarded())
        .step(get().forwarded())
    };
    let passes = |name: &str| {
        required(
            format!("method-{name}-passes"),
            "9111 §4",
            format!("What is stored is not used for a {name}"),
        )
        .needs("max-age")
        .step(get().says(lifetime))
        .step(method(name).sends("abc").given(Expected::Forwarded).then(Expected::Forwarded))
    };
    Group {
        name: "Methods",
        cases: vec![
            unused_after("POST"),
            unused_after("PUT"),
            unused_after("DELETE"),
            unused_after("PATCH"),
            unused_after("M-SEARCH"),
            passes("POST"),
            passes("PUT"),
            passes("DELETE"),
            passes("PATCH"),
            passes("OPTIONS"),
            optimal("head-from-get", "9110 §9.3.2", "A HEAD is answered with what a GET has stored")
                .needs("max-age")
                .step(get().says(lifetime))
                .step(method("HEAD").cached().then(Expected::Body(""))),
            required("head-unused-for-get", "9111 §4", "What a HEAD was answered with is not used for a GET")
                .needs("max-age")
                .step(method("HEAD").says(lifetime))
                .step(get().says(lifetime).status(200).then(Expected::AskedBy("GET"))),
            optimal(
                "post-content-location",
                "9111 §3",
                "A POST whose `Content-Location` is its URL is used for a GET",
            )
            .step(method("POST").sends("12345").says(
                "Cache-Control: max-age=3600 | Content-Location: /post-content-location | Date: {start}",
            ))
            .step(get().cached()),
            required("query-differs", "9111 §4", "Another query is another URL")
                .needs("max-age")
                .step(get().at("?test=1").says(lifetime))
                .step(get().at("?test=2").forwarded()),
            optimal("query-same", "9111 §4", "A URL with a query is one like others")
                .step(get().at("?test=1").says(lifetime))
                .step(get().at("?test=1").cached()),
            required("path-case", "9110 §4.2.3", "Another case of the path is another URL")
                .needs("max-age")
                .step(get().at("/a").says(lifetime))
                .step(get().at("/A").forwarded()),
        ],
    }
}

pub fn personal() -> Group {
    let with = |id: &str, control: &str, demand: &str| {
        optimal(id, "9111 §3.5", demand)
            .needs("authorization")
            .step(
                get().with("Authorization: FOO").says(&format!("Cache-Control: {control} | Date: {{start}}")),
            )
            .step(get().cached())
    };
    let lifetime = "Cache-Control: max-age=3600 | Date: {start}";
    Group {
        name: "Credentials and cookies",
        cases: vec![
            required(
                "authorization",
                "9111 §3.5",
                "The response to a request with `Authorization` is used for no other",
            )
            .needs("max-age")
            .step(get().with("Authorization: FOO").says(lifetime))
            .step(get().forwarded()),
            required("authorization-own", "9111 §3.5", "Not even for the same one")
                .needs("max-age")
                .step(get().with("Authorization: FOO").says(lifetime))
                .step(get().with("Authorization: FOO").forwarded()),
            with("authorization-public", "max-age=3600, public", "It is with `public`"),
            with(
                "authorization-must-revalidate",
                "max-age=3600, must-revalidate",
                "It is with `must-revalidate`",
            ),
            with("authorization-s-maxage", "s-maxage=3600", "It is with `s-maxage`"),
            observed(
                "authorization-sent-on",
                "9111 §3.5",
                "Does a request with `Authorization` get what is stored for all?",
            )
            .needs("max-age")
            .step(get().says(lifetime))
            .step(get().with("Authorization: FOO").cached()),
            observed("set-cookie", "9111 §7.3", "Is a response with `Set-Cookie` used again?")
                .needs("max-age")
                .step(get().says(&format!("{lifetime} | Set-Cookie: a=b")))
                .step(get().cached()),
            optimal("cookie", "9111 §4.1", "A request with a cookie gets what is stored")
                .needs("max-age")
                .step(get().says(lifetime))
                .step(get().with("Cookie: a=b").cached()),
            required("cookie-vary", "9111 §4.1", "Not with `Vary: Cookie`")
                .needs("max-age")
                .step(get().says(&format!("{lifetime} | Vary: Cookie")))
                .step(get().with("Cookie: a=b").forwarded()),
        ],
    }
}

/// What is stored for a request with these fields, and varies with those that are named.
fn varying(case: Case, vary: &str, stored_for: &str) -> Case {
    let says = format!(
        "Cache-Control: max-age=3600 | Last-Modified: {{start-3000}} | Date: {{start}} | Vary: {vary}"
    );
    case.step(get().with(stored_for).says(&says))
}

pub fn vary() -> Group {
    let section = "9111 §4.1";
    let used = |id: &str, vary: &str, stored_for: &str, asked: &str, demand: &str| {
        varying(optimal(id, section, demand).needs("max-age"), vary, stored_for)
            .step(get().with(asked).cached())
    };
    let unused = |id: &str, vary: &str, stored_for: &str, asked: &str, demand: &str| {
        varying(required(id, section, demand).needs("vary"), vary, stored_for)
            .step(get().with(asked).forwarded())
    };
    let (two, three) = ("Foo: 1 | Bar: abc", "Foo: 1 | Bar: abc | Baz: 789");
    Group {
        name: "Vary",
        cases: vec![
            used("vary", "Foo", "Foo: 1", "Foo: 1", "The same field gets the same response"),
            unused("vary-differs", "Foo", "Foo: 1", "Foo: 2", "Another value does not"),
            unused("vary-then-none", "Foo", "Foo: 1", "", "Nor does none"),
            unused("vary-none-then", "Foo", "", "Foo: 1", "Nor one where there was none"),
            used("vary-none", "Foo", "", "", "None and none are the same"),
            unused("vary-empty", "Foo", "", "Foo: ", "An empty one is not none"),
            varying(optimal("vary-both", section, "Both variants are there").needs("vary"), "Foo", "Foo: 1")
                .step(get().with("Foo: 2").says("Cache-Control: max-age=3600 | Vary: Foo").forwarded())
                .step(get().with("Foo: 1").cached())
                .step(get().with("Foo: 2").cached()),
            used(
                "vary-unnamed",
                "Foo",
                "Foo: 1 | Other: 2",
                "Foo: 1 | Other: 3",
                "What `Vary` does not name makes no difference",
            ),
            used("vary-name-case", "FOO", "Foo: 1", "foo: 1", "Names have no case"),
            unused("vary-value-case", "Foo", "Foo: a", "Foo: A", "Values have one"),
            used("vary-two", "Foo, Bar", two, two, "Two fields that are the same get it"),
            unused("vary-two-differ", "Foo, Bar", two, "Foo: 2 | Bar: abc", "Not if the first differs"),
            unused("vary-two-last-differs", "Foo, Bar", two, "Foo: 1 | Bar: abcd", "Nor the second"),
            unused("vary-two-none", "Foo, Bar", two, "", "Nor if both are missing"),
            unused(
                "vary-two-swapped",
                "Foo, Bar",
                "Foo: 1 | Bar: 2",
                "Foo: 2 | Bar: 1",
                "Nor if they are swapped",
            ),
            used("vary-three", "Foo, Bar, Baz", three, three, "So it is with three"),
            unused(
                "vary-three-differ",
                "Foo, Bar, Baz",
                three,
                "Foo: 2 | Bar: abc | Baz: 789",
                "One of them differs",
            ),
            unused(
                "vary-three-order",
                "Foo, Bar, Baz",
                three,
                "Foo: 1 | Baz: 789 | Bar: abcde",
                "In another order too",
            ),
            used(
                "vary-three-ordered",
                "Foo, Bar, Baz",
                three,
                "Baz: 789 | Bar: abc | Foo: 1",
                "Their order makes no difference",
            ),
            used(
                "vary-three-one-none",
                "Foo, Bar, Baz",
                "Foo: 1 | Baz: 789",
                "Foo: 1 | Baz: 789",
                "One that is missing in both",
            ),
            used("vary-lines", "Foo | Vary: Bar", two, two, "`Vary` on two lines is one list"),
            unused("vary-lines-differ", "Foo | Vary: Bar", two, "Foo: 1 | Bar: x", "Its second line counts"),
            used(
                "vary-combined",
                "Foo",
                "Foo: 1, 2",
                "Foo: 1 | Foo: 2",
                "Two lines of a request are one list",
            ),
            used("vary-spaces", "Foo", "Foo: 1,2", "Foo: 1, 2", "Spaces in a list make no difference"),
            used(
                "vary-language-case",
                "Accept-Language",
                "Accept-Language: en, de",
                "Accept-Language: eN, De",
                "Languages have no case",
            ),
            used(
                "vary-language-spaces",
                "Accept-Language",
                "Accept-Language: en, de",
                "Accept-Language:  en ,   de",
                "Nor do spaces between them count",
            ),
            used(
                "vary-language-order",
                "Accept-Language",
                "Accept-Language: en, de",
                "Accept-Language: de, en",
                "Nor their order, where they weigh the same",
            ),
            used(
                "vary-language-chosen",
                "Accept-Language | Content-Language: de",
                "Accept-Language: en, de",
                "Accept-Language: fr;q=0.5, de;q=1.0",
                "A response in the language that is wanted most is used",
            ),
            unused("vary-star", "*", "Foo: 1", "Foo: 1", "`*` is used for no other request"),
            unused("vary-stars", "*, *", "Foo: 1", "Foo: 1", "`*, *` is the same"),
            unused("vary-stars-lines", "* | Vary: *", "Foo: 1", "Foo: 1", "And on two lines"),
            unused("vary-empty-star", ", *", "Foo: 1", "Foo: 1", "And behind an empty member"),
            unused("vary-empty-star-lines", " | Vary: *", "Foo: 1", "Foo: 1", "And behind an empty line"),
            unused("vary-star-first", "*, Foo", "Foo: 1", "Foo: 1", "And before a name"),
            unused("vary-star-last", "Foo, *", "Foo: 1", "Foo: 1", "And behind one"),
        ],
    }
}
