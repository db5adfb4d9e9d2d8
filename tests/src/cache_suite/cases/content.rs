//! What is stored of a response, what makes it void, parts of it, fields for certain caches, and answers before the answer.

use super::super::case::{Case, Expected, Group, Manner, get, method, observed, optimal, required};

const FRESH: &str = "Cache-Control: max-age=3600 | Date: {start}";

const STORED: [(&str, &str); 19] = [
    ("Test-Header", "a value"),
    ("X-Test-Header", "a value"),
    ("Content-Foo", "a value"),
    ("X-Content-Foo", "a value"),
    ("Content-Encoding", "foo"),
    ("Content-Language", "de"),
    ("Content-Location", "/bar"),
    ("Content-MD5", "N7UdGUp1E+RbVvZSTy1R8g=="),
    ("Content-Range", "foo"),
    ("Content-Security-Policy", "default-src 'self' cdn.example.com"),
    ("Content-Type", "text/plain;charset=utf-8"),
    ("Clear-Site-Data", "\"cookies\""),
    ("ETag", "\"ghijkl\""),
    ("Expires", "Mon, 11 Jan 2038 11:11:11 GMT"),
    ("Last-Modified", "Wed, 01 Jan 2020 00:00:00 GMT"),
    ("Link", "</style.css>; rel=preload"),
    ("Public-Key-Pins", "a value"),
    ("X-Frame-Options", "sameorigin"),
    ("X-XSS-Protection", "1; mode=block"),
];
const UNSTORED: [&str; 6] =
    ["Keep-Alive", "Proxy-Authenticate", "Proxy-Authentication-Info", "Proxy-Connection", "TE", "Upgrade"];

pub fn fields() -> Group {
    let stored = |(name, value): (&str, &str)| {
        required(format!("stores-{}", name.to_lowercase()), "9111 §3.1", format!("`{name}` is stored"))
            .needs("max-age")
            .step(get().says(&format!("{FRESH} | {name}: {value}")))
            .step(get().given(Expected::Cached).field(format!("{name}: {value}")))
    };
    let unstored = |name: &str| {
        required(format!("stores-no-{}", name.to_lowercase()), "9111 §3.1", format!("`{name}` is not"))
            .needs("max-age")
            .step(get().says(&format!("{FRESH} | {name}: a")))
            .step(get().given(Expected::Cached).without(name))
    };
    let mut cases: Vec<Case> = STORED.into_iter().map(stored).collect();
    cases.extend(UNSTORED.into_iter().map(unstored));
    cases.push(
        required(
            "stores-no-connection-options",
            "9111 §3.1",
            "Fields that `Connection` names are not stored",
        )
        .needs("max-age")
        .step(get().says(&format!("{FRESH} | Connection: a, b | A: 1 | B: 2 | C: 3")))
        .step(get().given(Expected::Cached).given(Expected::Field("C: 3".into())).without("A").without("B")),
    );
    cases.push(
        required("stores-lines", "9110 §5.3", "Several lines of a field are stored, in their order")
            .needs("max-age")
            .step(get().says(&format!("{FRESH} | Foo: 1 | Bar: x | Foo: 2")))
            .step(get().given(Expected::Cached).field("Foo: 1, 2")),
    );
    cases.push(
        required("stores-no-part", "9111 §3.3", "A body that breaks off is not used as a whole one")
            .needs("max-age")
            .step(get().says(FRESH).in_manner(Manner::BreaksOff))
            .step(get().status(200).forwarded()),
    );
    cases.push(
        observed("attachment", "9111 §3", "Is an attachment with a lifetime used again?")
            .needs("max-age")
            .step(get().says(&format!("{FRESH} | Content-Disposition: attachment; filename=example.txt")))
            .step(get().cached()),
    );
    Group { name: "Which fields are stored", cases }
}

pub fn invalidation() -> Group {
    let methods = ["POST", "PUT", "DELETE", "PATCH", "M-SEARCH"];
    let own = |name: &&str| {
        required(format!("void-{name}"), "9111 §4.4", format!("A {name} that succeeds makes its URL void"))
            .needs("max-age")
            .step(get().says(FRESH))
            .step(method(name).sends("abc").forwarded())
            .step(get().forwarded())
    };
    let failed = |name: &&str| {
        optimal(format!("void-{name}-failed"), "9111 §4.4", format!("A {name} that fails does not"))
            .needs("max-age")
            .step(get().says(FRESH))
            .step(method(name).sends("abc").by_status(500).status(500))
            .step(get().cached())
    };
    let named = |name: &str, field: &str| {
        let id = format!("void-{name}-{}", field.to_lowercase());
        let url = format!("{field}: /{id}/other");
        observed(id, "9111 §4.4", format!("Does it make the URL of its `{field}` void ({name})?"))
            .needs("max-age")
            .step(get().at("/other").says(FRESH))
            .step(get().at("/other").cached())
            .step(method(name).sends("abc").says(&url).forwarded())
            .step(get().at("/other").forwarded())
    };
    let foreign = |field: &str| {
        let id = format!("void-foreign-{}", field.to_lowercase());
        let url = format!("{field}: http://elsewhere.test/{id}/other");
        required(id, "9111 §4.4", format!("A `{field}` of another host makes nothing void here"))
            .needs("max-age")
            .step(get().at("/other").says(FRESH))
            .step(method("POST").sends("abc").says(&url).forwarded())
            .step(get().at("/other").cached())
    };
    let safe = |name: &&str| {
        optimal(
            format!("void-not-{name}"),
            "9111 §4.4",
            format!("{name} changes nothing, and makes nothing void"),
        )
        .needs("max-age")
        .step(get().says(FRESH))
        .step(method(name).status(200))
        .step(get().cached())
    };
    let mut cases: Vec<Case> = methods.iter().map(own).collect();
    cases.extend(methods.iter().map(failed));
    for name in methods {
        cases.extend(["Location", "Content-Location"].map(|field| named(name, field)));
    }
    cases.extend(["Location", "Content-Location"].map(foreign));
    cases.extend(["OPTIONS", "HEAD"].iter().map(safe));
    Group { name: "What makes a response void", cases }
}

pub fn ranges() -> Group {
    let whole = |case: Case| {
        case.needs("max-age")
            .step(get().by_body("0123456789A").says("Cache-Control: max-age=3600 | ETag: \"abc\""))
    };
    let part_of_whole = |id: &str, range: &str, body: &'static str, demand: &str| {
        whole(optimal(id, "9110 §14.2", demand))
            .step(get().with(&format!("Range: {range}")).cached().status(206).then(Expected::Body(body)))
    };
    let part_says = "Cache-Control: max-age=3600 | Content-Range: bytes 5-9/10 | ETag: \"abc\"";
    let part = |case: Case| {
        case.needs("max-age")
            .step(get().with("Range: bytes=-5").by_status(206).by_body("56789").says(part_says))
    };
    let part_of_part = |id: &str, range: &str, body: &'static str, demand: &str| {
        part(optimal(id, "9111 §3.3", demand))
            .step(get().with(&format!("Range: {range}")).cached().status(206).then(Expected::Body(body)))
    };
    Group {
        name: "Parts",
        cases: vec![
            part_of_whole("range", "bytes=0-1", "01", "A part of what is stored is cut out of it"),
            part_of_whole("range-from", "bytes=1-", "123456789A", "To its end"),
            part_of_whole("range-last", "bytes=-1", "A", "Its last bytes"),
            part_of_whole("range-beyond", "bytes=8-99", "89A", "As far as it goes"),
            whole(required("range-says", "9110 §14.4", "`Content-Range` says which part it is"))
                .needs("range")
                .step(
                    get()
                        .with("Range: bytes=2-4")
                        .given(Expected::Status(206))
                        .field("Content-Range: bytes 2-4/11"),
                ),
            whole(required("range-fields", "9111 §3.4", "The part has the fields of what is stored"))
                .needs("range")
                .step(get().with("Range: bytes=0-1").given(Expected::Status(206)).field("ETag: \"abc\"")),
            whole(optimal("range-none", "9110 §15.5.17", "What has no such part is answered with 416"))
                .step(get().with("Range: bytes=100-").status(416)),
            whole(required("range-unit", "9110 §14.2", "A unit that is not known is ignored"))
                .step(get().with("Range: lines=0-1").status(200).then(Expected::Body("0123456789A"))),
            whole(required("range-syntax", "9110 §14.2", "So is what is no range"))
                .step(get().with("Range: bytes=a-b").status(200).then(Expected::Body("0123456789A"))),
            whole(optimal("if-range", "9110 §13.1.5", "`If-Range` with its tag gets the part"))
                .step(get().with("Range: bytes=0-1 | If-Range: \"abc\"").cached().status(206)),
            whole(required("if-range-other", "9110 §13.1.5", "With another one it gets the whole"))
                .needs("range")
                .step(
                    get()
                        .with("Range: bytes=0-1 | If-Range: \"x\"")
                        .status(200)
                        .then(Expected::Body("0123456789A")),
                ),
            whole(required("if-range-weak", "9110 §13.1.5", "With a weak one too"))
                .needs("range")
                .step(get().with("Range: bytes=0-1 | If-Range: W/\"abc\"").status(200)),
            part(required("part-not-whole", "9111 §3.3", "A stored part is not used as the whole"))
                .step(get().by_body("0123456789").status(200).then(Expected::Body("0123456789"))),
            part_of_part("part-again", "bytes=-5", "56789", "A part that was handed on is used again"),
            part_of_part("part-of-part", "bytes=6-8", "678", "And smaller parts of it"),
            part_of_part("part-of-part-from", "bytes=6-", "6789", "To its end"),
            part_of_part("part-of-part-last", "bytes=-1", "9", "Its last byte"),
            optimal("part-completed", "9111 §3.4", "What is missing of a part is fetched")
                .needs("max-age")
                .step(
                    get()
                        .with("Range: bytes=0-4")
                        .by_status(206)
                        .by_body("01234")
                        .says("Cache-Control: max-age=3600 | Content-Range: bytes 0-4/10 | ETag: \"abc\""),
                )
                .step(get().then(Expected::Asked("Range: bytes=5-"))),
        ],
    }
}

pub fn targeted() -> Group {
    let section = "9213 §2.1";
    let used = |case: Case, fields: &str| case.step(get().says(fields)).step(get().cached());
    let over_kept = |case: Case, fields: &str| case.step(get().says(fields)).step(get().after(3).cached());
    let unused = |id: &str, fields: &str, demand: &str| {
        let case = required(id, section, demand).needs("cdn");
        case.step(get().says(fields)).step(get().forwarded())
    };
    let over = |id: &str, fields: &str, question: &str| {
        let case = observed(id, section, question).needs("cdn");
        case.step(get().says(fields)).step(get().after(3).forwarded())
    };
    let long = "Cache-Control: max-age=3600 | Expires: {start+3600} | Date: {start}";
    Group {
        name: "CDN-Cache-Control",
        cases: vec![
            used(
                optimal("cdn", section, "Its `max-age` is a lifetime").needs("nothing-said"),
                "CDN-Cache-Control: max-age=3600",
            ),
            used(optimal("cdn-32-bits", section, "A long one too"), "CDN-Cache-Control: max-age=2147483648"),
            used(optimal("cdn-more", section, "And a longer one"), "CDN-Cache-Control: max-age=99999999999"),
            used(
                optimal("cdn-unknown", section, "What is not known is passed over"),
                "CDN-Cache-Control: foobar, max-age=3600",
            ),
            used(
                optimal("cdn-parameter", section, "Parameters are ignored"),
                "CDN-Cache-Control: max-age=3600;foo=bar",
            ),
            used(
                optimal("cdn-before-expires", section, "It counts, and `Expires` in the past does not"),
                "CDN-Cache-Control: max-age=3600 | Expires: {start-10000} | Date: {start}",
            ),
            used(
                optimal("cdn-bad-expires", section, "Whatever `Expires` says"),
                "CDN-Cache-Control: max-age=3600 | Expires: 0",
            ),
            over_kept(
                optimal("cdn-longer", section, "It counts instead of a shorter `Cache-Control`"),
                "Cache-Control: max-age=1 | CDN-Cache-Control: max-age=3600",
            ),
            required("cdn-shorter", section, "And of a longer one")
                .needs("cdn")
                .step(get().says("Cache-Control: max-age=3600 | CDN-Cache-Control: max-age=1"))
                .step(get().after(3).forwarded()),
            used(
                required("cdn-before-no-store", section, "And of `no-store`").needs("cdn"),
                "Cache-Control: no-store | CDN-Cache-Control: max-age=3600",
            ),
            unused("cdn-0", "CDN-Cache-Control: max-age=0", "`max-age=0` is over at once"),
            unused(
                "cdn-0-expires",
                "CDN-Cache-Control: max-age=0 | Expires: {start+3600} | Date: {start}",
                "Whatever `Expires` says",
            ),
            unused(
                "cdn-age",
                "CDN-Cache-Control: max-age=3600 | Age: 7200",
                "The `Age` that it comes with counts",
            ),
            unused("cdn-private", &format!("{long} | CDN-Cache-Control: private"), "`private` is not stored"),
            unused(
                "cdn-no-cache",
                &format!("{long} | CDN-Cache-Control: no-cache"),
                "`no-cache` is not used unasked",
            ),
            unused(
                "cdn-no-store",
                &format!("{long} | CDN-Cache-Control: no-store"),
                "`no-store` is not stored",
            ),
            unused(
                "cdn-bad",
                "CDN-Cache-Control: max-age=3600, &&&&& | Cache-Control: no-store",
                "What is no structured field is as none",
            ),
            unused(
                "cdn-text",
                "CDN-Cache-Control: max-age=\"3600\" | Cache-Control: no-store",
                "A text is no number of seconds",
            ),
            over(
                "cdn-space-before",
                "Cache-Control: max-age=1 | CDN-Cache-Control: max-age =100",
                "Is it ignored with a space before the equals sign?",
            ),
            over(
                "cdn-space-behind",
                "Cache-Control: max-age=1 | CDN-Cache-Control: max-age= 100",
                "With one behind it?",
            ),
            over("cdn-case", "Cache-Control: max-age=1 | CDN-Cache-Control: MaX-aGe=100", "In another case?"),
            observed("cdn-handed-on", section, "Does the client get it?").step(
                get()
                    .says("Cache-Control: max-age=3600 | CDN-Cache-Control: foo")
                    .field("CDN-Cache-Control: foo"),
            ),
            observed("cdn-age-sent", section, "Is there an `Age` beyond the `max-age` for the client?")
                .needs("cdn")
                .step(
                    get().says("Cache-Control: max-age=1 | CDN-Cache-Control: max-age=3600 | Date: {start}"),
                )
                .step(get().after(3).given(Expected::Cached).then(Expected::AgeFrom(2))),
        ],
    }
}

pub fn interim() -> Group {
    let link = "Link: </style.css>; rel=preload";
    let with = |case: Case, status: u16, fields: &'static str| {
        case.step(
            get().says(FRESH).in_manner(Manner::Interim(status, fields)).then(Expected::Interim(status)),
        )
    };
    Group {
        name: "Answers before the answer",
        cases: vec![
            optimal("interim-102", "9110 §15.2", "A 102 reaches the client")
                .step(get().says(FRESH).in_manner(Manner::Interim(102, "")).then(Expected::Interim(102))),
            optimal("interim-103", "8297 §2", "A 103 reaches the client")
                .step(get().says(FRESH).in_manner(Manner::Interim(103, link)).then(Expected::Interim(103))),
            optimal("interim-final-stored", "9111 §3", "The response behind it is stored")
                .step(get().says(FRESH).in_manner(Manner::Interim(103, link)).status(200))
                .step(get().cached()),
            with(
                required("interim-not-stored", "9111 §3", "It is not itself").needs("interim-final-stored"),
                103,
                link,
            )
            .step(get().given(Expected::Cached).then(Expected::NoInterim)),
            required("interim-fields", "9111 §3", "Nor are its fields")
                .needs("interim-final-stored")
                .step(get().says(FRESH).in_manner(Manner::Interim(103, "X-Early: 1")).status(200))
                .step(get().given(Expected::Cached).without("X-Early")),
        ],
    }
}
