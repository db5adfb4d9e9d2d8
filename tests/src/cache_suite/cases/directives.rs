//! What else `Cache-Control` says, in responses and in requests; what is used though it is stale; lifetimes that are guessed.

use super::super::case::{Case, Expected, Group, Manner, get, observed, optimal, required};

pub fn responses() -> Group {
    let unused = |id: &str, section: &'static str, control: &str, demand: &str| {
        let fields = format!("Cache-Control: {control} | Expires: {{start+3600}} | Date: {{start}}");
        required(id, section, demand).needs("max-age").step(get().says(&fields)).step(get().forwarded())
    };
    let older = |id: &str, control: &str, question: &str| {
        observed(id, "9111 §5.2.2.5", question)
            .needs("max-age")
            .step(get().says("Cache-Control: max-age=1 | ETag: \"a\""))
            .step(get().after(3).says(&format!("Cache-Control: {control}")).forwarded())
            .step(get().in_manner(Manner::HangsUp).then(Expected::NotKept))
    };
    let listed =
        |id: &str, list: &str, question: &str| {
            observed(id, "9111 §5.2.2.4", question)
                .needs("max-age")
                .step(get().says(&format!(
                    "Cache-Control: {list} | Cache-Control: max-age=3600 | A: 1 | B: 2 | C: 3"
                )))
                .step(get().given(Expected::Cached).without("A").field("C: 3"))
        };
    Group {
        name: "Directives of responses",
        cases: vec![
            unused(
                "private",
                "9111 §5.2.2.7",
                "private, max-age=3600",
                "`private` is not stored by a shared cache",
            ),
            unused("private-case", "9111 §5.2.2.7", "max-age=3600, PrIvAtE", "Whatever its case"),
            unused("no-store", "9111 §5.2.2.5", "no-store", "`no-store` is not stored"),
            unused("no-store-case", "9111 §5.2.2.5", "No-StOrE", "Whatever its case"),
            unused("no-store-lifetime", "9111 §5.2.2.5", "max-age=3600, no-store", "Whatever its lifetime"),
            unused("no-cache", "9111 §5.2.2.4", "max-age=3600, no-cache", "`no-cache` is not used unasked"),
            unused("no-cache-case", "9111 §5.2.2.4", "max-age=3600, No-CaChE", "Whatever its case"),
            optimal("no-cache-validated", "9111 §5.2.2.4", "`no-cache` is stored, and asked about each time")
                .needs("no-cache")
                .step(get().says("Cache-Control: no-cache | ETag: \"abc\""))
                .step(get().good_still("ETag: \"abc\"").validated("If-None-Match: \"abc\"")),
            optimal("no-cache-lifetime-validated", "9111 §5.2.2.4", "The same with a lifetime")
                .needs("no-cache")
                .step(get().says("Cache-Control: no-cache, max-age=3600 | ETag: \"abc\""))
                .step(get().good_still("ETag: \"abc\"").validated("If-None-Match: \"abc\"")),
            older(
                "no-store-after-stored",
                "no-store",
                "Does a newer response that is not stored take the place of an older one?",
            ),
            older("no-store-0-after-stored", "no-store, max-age=0", "The same with `max-age=0`?"),
            listed(
                "no-cache-field",
                "no-cache=\"a\"",
                "Is a field that `no-cache` names left out of what is used again?",
            ),
            listed("no-cache-fields", "no-cache=\"a, b\"", "The same of several?"),
            listed("private-field", "private=\"a\"", "Is a field that `private` names left out?"),
            optimal("must-revalidate-fresh", "9111 §5.2.2.2", "`must-revalidate` is used while it is fresh")
                .step(get().says("Cache-Control: max-age=3600, must-revalidate | ETag: \"abc\""))
                .step(get().cached()),
            required("must-revalidate-stale", "9111 §5.2.2.2", "And asked about when it is not")
                .needs("must-revalidate-fresh")
                .step(get().says("Cache-Control: max-age=1, must-revalidate | ETag: \"abc\""))
                .step(get().after(3).good_still("ETag: \"abc\"").validated("If-None-Match: \"abc\"")),
            optimal(
                "must-understand-known",
                "9111 §5.2.2.3",
                "`must-understand` of a known status outweighs `no-store`",
            )
            .needs("no-store-lifetime")
            .step(get().says("Cache-Control: max-age=3600, no-store, must-understand"))
            .step(get().cached()),
            required("must-understand-unknown", "9111 §5.2.2.3", "Of an unknown status it does not")
                .needs("max-age")
                .step(get().by_status(599).says("Cache-Control: max-age=3600, no-store, must-understand"))
                .step(get().by_status(599).forwarded()),
        ],
    }
}

pub fn requests() -> Group {
    let asks = |id: &str, section: &'static str, stored: &str, asks: &str, question: &str| {
        observed(id, section, question)
            .needs("max-age")
            .step(get().says(&format!("Cache-Control: {stored}")))
            .step(get().after(2).with(asks).forwarded())
    };
    let uses = |id: &str, section: &'static str, stored: &str, asks: &str, question: &str| {
        observed(id, section, question)
            .needs("max-age")
            .step(get().says(&format!("Cache-Control: {stored}")))
            .step(get().after(2).with(asks).cached())
    };
    Group {
        name: "Directives of requests",
        cases: vec![
            asks(
                "asks-max-age-0",
                "9111 §5.2.1.1",
                "max-age=3600",
                "Cache-Control: max-age=0",
                "Does a client get a new response by `max-age=0`?",
            ),
            asks(
                "asks-max-age-1",
                "9111 §5.2.1.1",
                "max-age=3600",
                "Cache-Control: max-age=1",
                "By `max-age=1`, when it is older?",
            ),
            asks(
                "asks-max-age-aged",
                "9111 §5.2.1.1",
                "max-age=3600 | Age: 1800",
                "Cache-Control: max-age=600",
                "By `max-age=600`, when it was older as it came?",
            ),
            uses(
                "asks-max-stale",
                "9111 §5.2.1.2",
                "max-age=1",
                "Cache-Control: max-stale=1000",
                "Does it get a stale one by `max-stale`?",
            ),
            uses(
                "asks-max-stale-aged",
                "9111 §5.2.1.2",
                "max-age=1500 | ETag: \"a\" | Age: 2000",
                "Cache-Control: max-stale=1000",
                "The same where it was stale as it came?",
            ),
            asks(
                "asks-min-fresh",
                "9111 §5.2.1.3",
                "max-age=1500",
                "Cache-Control: min-fresh=2000",
                "A new one by `min-fresh`, when less is left?",
            ),
            asks(
                "asks-min-fresh-aged",
                "9111 §5.2.1.3",
                "max-age=1500 | Age: 1000",
                "Cache-Control: min-fresh=1000",
                "The same where it was aged as it came?",
            ),
            asks(
                "asks-no-cache",
                "9111 §5.2.1.4",
                "max-age=3600",
                "Cache-Control: no-cache",
                "A new one by `no-cache`?",
            ),
            observed("asks-no-cache-etag", "9111 §5.2.1.4", "Is it asked about by its `ETag` then?")
                .needs("max-age")
                .step(get().says("Cache-Control: max-age=3600 | ETag: \"abc\""))
                .step(
                    get()
                        .with("Cache-Control: no-cache")
                        .good_still("ETag: \"abc\" | Cache-Control: max-age=3600")
                        .validated("If-None-Match: \"abc\""),
                ),
            observed("asks-no-cache-modified", "9111 §5.2.1.4", "And by its `Last-Modified`?")
                .needs("max-age")
                .step(get().says("Cache-Control: max-age=3600 | Last-Modified: {start-10000}"))
                .step(
                    get()
                        .with("Cache-Control: no-cache")
                        .good_still("Last-Modified: {start-10000} | Cache-Control: max-age=3600")
                        .validated("If-Modified-Since: {start-10000}"),
                ),
            asks(
                "asks-no-store",
                "9111 §5.2.1.5",
                "max-age=3600",
                "Cache-Control: no-store",
                "Does `no-store` keep from using what is stored?",
            ),
            required(
                "asks-no-store-unstored",
                "9111 §5.2.1.5",
                "The response to a request with `no-store` is not stored",
            )
            .needs("max-age")
            .step(get().with("Cache-Control: no-store").says("Cache-Control: max-age=3600"))
            .step(get().forwarded()),
            observed(
                "asks-only-if-cached",
                "9111 §5.2.1.7",
                "Does `only-if-cached` get a 504 where nothing is stored?",
            )
            .step(get().with("Cache-Control: only-if-cached").status(504)),
            uses(
                "asks-pragma",
                "9111 §5.4",
                "max-age=3600",
                "Pragma: no-cache",
                "Is what is stored used for `Pragma: no-cache`?",
            ),
            uses(
                "asks-pragma-other",
                "9111 §5.4",
                "max-age=3600",
                "Pragma: foo",
                "Is it for another `Pragma`?",
            ),
            uses(
                "says-pragma",
                "9111 §5.4",
                "max-age=3600 | Pragma: no-cache",
                "A: b",
                "Is a response used that says `Pragma: no-cache`?",
            ),
            uses(
                "says-pragma-other",
                "9111 §5.4",
                "max-age=3600 | Pragma: foo",
                "A: b",
                "One that says another?",
            ),
        ],
    }
}

pub fn stale() -> Group {
    let kept = |id: &str, control: &str, manner: Manner, status: u16, question: &str| {
        observed(id, "9111 §4.2.4", question)
            .needs("max-age-over")
            .step(get().says(&format!("Cache-Control: max-age=1{control}")))
            .step(get().after(3).in_manner(manner).by_status(status).status(200).then(Expected::Kept))
    };
    let strict = |id: &str, section: &'static str, control: &str, demand: &str| {
        required(id, section, demand)
            .needs("max-age-over")
            .step(get().says(&format!("Cache-Control: {control} | ETag: \"a\"")))
            .step(get().after(3).in_manner(Manner::HangsUp).then(Expected::NotKept))
    };
    Group {
        name: "Stale responses",
        cases: vec![
            kept(
                "stale-hang-up",
                "",
                Manner::HangsUp,
                200,
                "Is a stale response used when the server behind hangs up?",
            ),
            kept("stale-503", "", Manner::Whole, 503, "When it says 503?"),
            kept(
                "if-error-hang-up",
                ", stale-if-error=60",
                Manner::HangsUp,
                200,
                "By `stale-if-error`, when it hangs up?",
            ),
            kept(
                "if-error-500",
                ", stale-if-error=60",
                Manner::Whole,
                500,
                "By `stale-if-error`, when it says 500?",
            ),
            kept(
                "if-error-503",
                ", stale-if-error=60",
                Manner::Whole,
                503,
                "By `stale-if-error`, when it says 503?",
            ),
            required("if-error-404", "5861 §4", "404 is no error that it may stand for")
                .needs("max-age-over")
                .step(get().says("Cache-Control: max-age=1, stale-if-error=60"))
                .step(get().after(3).by_status(404).then(Expected::NotKept).status(404)),
            required("if-error-over", "5861 §4", "`stale-if-error` has an end")
                .needs("max-age-over")
                .step(get().says("Cache-Control: max-age=1, stale-if-error=1 | ETag: \"a\""))
                .step(get().after(4).by_status(503).then(Expected::NotKept)),
            optimal(
                "while-revalidate",
                "5861 §3",
                "`stale-while-revalidate`: it is used while another is fetched",
            )
            .needs("max-age-over")
            .step(get().says("Cache-Control: max-age=1, stale-while-revalidate=60 | ETag: \"a\""))
            .step(get().after(3).says("Cache-Control: max-age=60").then(Expected::Kept)),
            optimal("while-revalidate-new", "5861 §3", "And then the other one is there")
                .needs("while-revalidate")
                .step(get().says("Cache-Control: max-age=1, stale-while-revalidate=60"))
                .step(get().after(3).says("Cache-Control: max-age=60").then(Expected::Kept))
                .step(get().after(2).says("Cache-Control: max-age=60").cached().field("Run: 2")),
            required("while-revalidate-over", "5861 §3", "It has an end")
                .needs("while-revalidate")
                .step(get().says("Cache-Control: max-age=1, stale-while-revalidate=1 | ETag: \"a\""))
                .step(get().after(4).says("Cache-Control: max-age=60").forwarded()),
            strict(
                "stale-must-revalidate",
                "9111 §5.2.2.2",
                "max-age=1, must-revalidate",
                "`must-revalidate` is never used stale",
            ),
            strict(
                "stale-proxy-revalidate",
                "9111 §5.2.2.8",
                "max-age=1, proxy-revalidate",
                "Nor is `proxy-revalidate`",
            ),
            strict("stale-no-cache", "9111 §5.2.2.4", "max-age=1, no-cache", "Nor is `no-cache`"),
            strict("stale-s-maxage", "9111 §5.2.2.10", "s-maxage=1", "Nor is `s-maxage`"),
            strict(
                "stale-must-revalidate-if-error",
                "9111 §5.2.2.2",
                "max-age=1, must-revalidate, stale-if-error=60",
                "`must-revalidate` counts, and not `stale-if-error`",
            ),
        ],
    }
}

pub fn heuristics() -> Group {
    let fields = "Last-Modified: {start-864000} | Date: {start}";
    let reused = |status: u16| {
        optimal(
            format!("heuristic-{status}"),
            "9111 §4.2.2",
            format!("A lifetime is guessed for {status} with `Last-Modified`"),
        )
        .step(get().by_status(status).says(fields))
        .step(get().by_status(status).cached())
    };
    let not_reused = |status: u16| {
        required(format!("heuristic-{status}"), "9111 §4.2.2", format!("None is for {status}"))
            .needs("heuristic-200")
            .step(get().by_status(status).says(fields))
            .step(get().by_status(status).forwarded())
    };
    let old = |seconds: u32| {
        observed(
            format!("heuristic-age-{seconds}"),
            "9111 §4.2.2",
            format!("Is what was modified {seconds} s before used for 2 s?"),
        )
        .step(get().says(&format!("Last-Modified: {{start-{seconds}}} | Date: {{start}}")))
        .step(get().after(2).cached())
    };
    let mut cases: Vec<Case> =
        [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501].into_iter().map(reused).collect();
    cases.extend([201, 202, 302, 303, 307, 400, 403, 500, 502, 503, 504, 599].into_iter().map(not_reused));
    cases.push(
        optimal("heuristic-public", "9111 §5.2.2.9", "It is for any status with `public`")
            .step(get().by_status(599).says(&format!("{fields} | Cache-Control: public")))
            .step(get().by_status(599).cached()),
    );
    cases.push(
        required("heuristic-no-cache", "9111 §5.2.2.4", "Not with `no-cache`")
            .needs("heuristic-200")
            .step(get().says(&format!("{fields} | Cache-Control: no-cache")))
            .step(get().forwarded()),
    );
    cases.push(
        observed("heuristic-pragma", "9111 §5.4", "Is one guessed with `Pragma: no-cache`?")
            .needs("heuristic-200")
            .step(get().says(&format!("{fields} | Pragma: no-cache")))
            .step(get().cached()),
    );
    cases.push(
        observed("heuristic-attachment", "9111 §4.2.2", "Is one guessed for an attachment?")
            .needs("heuristic-200")
            .step(get().says(&format!("{fields} | Content-Disposition: attachment; filename=example.txt")))
            .step(get().cached()),
    );
    cases.extend([5, 10, 30, 60, 300, 600, 3600, 86_400].into_iter().map(old));
    Group { name: "Guessed lifetimes", cases }
}
