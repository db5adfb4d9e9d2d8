//! How long a response is good (RFC 9111 §4.2), as `Cache-Control` says it, and how old it is.

use super::super::case::{Case, Expected, Group, get, observed, optimal, required};

/// Whether what these fields say is used once more, right away.
fn reused(case: Case, fields: &str) -> Case {
    case.step(get().says(fields)).step(get().cached())
}

fn not_reused(case: Case, fields: &str) -> Case {
    case.step(get().says(fields)).step(get().forwarded())
}

/// What is good for a second is asked for two seconds after its end.
fn over(case: Case, fields: &str) -> Case {
    case.step(get().says(fields)).step(get().after(3).forwarded())
}

pub fn lifetimes() -> Group {
    Group {
        name: "Lifetimes in Cache-Control",
        cases: vec![
            observed(
                "nothing-said",
                "9111 §3",
                "Is a response without a lifetime and without a validator asked for again?",
            )
            .step(get())
            .step(get().forwarded()),
            reused(
                optimal("max-age", "9111 §5.2.2.1", "What has a `max-age` is used again"),
                "Cache-Control: max-age=3600",
            )
            .needs("nothing-said"),
            over(
                required("max-age-over", "9111 §4.2", "What is older than its `max-age` is not used unasked"),
                "Cache-Control: max-age=1",
            )
            .needs("max-age"),
            not_reused(
                required("max-age-0", "9111 §4.2", "`max-age=0` is over at once"),
                "Cache-Control: max-age=0",
            )
            .needs("max-age"),
            reused(
                optimal("max-age-31-bits", "9111 §1.2.2", "`max-age=2147483647` is a long time"),
                "Cache-Control: max-age=2147483647",
            ),
            reused(
                optimal("max-age-32-bits", "9111 §1.2.2", "`max-age=2147483648` is one too"),
                "Cache-Control: max-age=2147483648",
            ),
            reused(
                optimal("max-age-64-bits", "9111 §1.2.2", "So is one of more than 64 bits"),
                "Cache-Control: max-age=99999999999999999999",
            ),
            not_reused(
                required("max-age-below-age", "9111 §4.2.3", "The `Age` that a response comes with counts"),
                "Cache-Control: max-age=3600 | Age: 7200",
            )
            .needs("max-age"),
            not_reused(
                observed("max-age-old-date", "9111 §4.2.3", "Does the age that its `Date` tells count?"),
                "Cache-Control: max-age=3600 | Date: {start-7200}",
            )
            .needs("max-age"),
            reused(
                optimal(
                    "max-age-before-expires",
                    "9111 §5.3",
                    "`max-age` counts, and `Expires` in the past does not",
                ),
                "Cache-Control: max-age=3600 | Expires: {start-7200} | Date: {start}",
            ),
            reused(
                optimal("max-age-bad-expires", "9111 §5.3", "`max-age` counts, whatever `Expires` says"),
                "Cache-Control: max-age=3600 | Expires: 0",
            ),
            not_reused(
                required(
                    "max-age-0-expires",
                    "9111 §5.3",
                    "`max-age=0` counts, and `Expires` in the future does not",
                ),
                "Cache-Control: max-age=0 | Expires: {start+3600} | Date: {start}",
            )
            .needs("max-age"),
            reused(
                optimal("s-maxage", "9111 §5.2.2.10", "`s-maxage` alone is a lifetime"),
                "Cache-Control: s-maxage=3600",
            ),
            over(
                required(
                    "s-maxage-shorter",
                    "9111 §5.2.2.10",
                    "`s-maxage` counts instead of a longer `max-age`",
                ),
                "Cache-Control: max-age=3600, s-maxage=1",
            )
            .needs("s-maxage"),
            over(
                required("s-maxage-shorter-first", "9111 §5.2.2.10", "The same, whichever is first"),
                "Cache-Control: s-maxage=1, max-age=3600",
            )
            .needs("s-maxage"),
            over(
                required("s-maxage-shorter-lines", "9111 §5.2.2.10", "The same on two lines"),
                "Cache-Control: max-age=3600 | Cache-Control: s-maxage=1",
            )
            .needs("s-maxage"),
            over_is_kept(
                optimal(
                    "s-maxage-longer",
                    "9111 §5.2.2.10",
                    "`s-maxage` counts instead of a shorter `max-age`",
                ),
                "Cache-Control: max-age=1, s-maxage=3600",
            ),
            reused(
                optimal(
                    "s-maxage-past",
                    "9111 §5.2.2.10",
                    "It counts beside `max-age=0` and `Expires` in the past",
                ),
                "Cache-Control: max-age=0, s-maxage=3600 | Expires: {start-10}",
            ),
            reused(
                optimal(
                    "shared-by-others",
                    "9111 §4.2.3",
                    "An `Age` below the lifetime leaves the rest of it",
                ),
                "Cache-Control: max-age=3600 | Age: 1800",
            ),
        ],
    }
}

fn over_is_kept(case: Case, fields: &str) -> Case {
    case.step(get().says(fields)).step(get().after(3).cached())
}

pub fn parsing() -> Group {
    let two = |id: &str, fields: &str, question: &str| {
        let case = observed(id, "9111 §4.2.1", question).needs("max-age");
        case.step(get().says(fields)).step(get().after(3).cached())
    };
    let over_1 = |id: &str, text: &str, demand: &str| {
        over(required(id, "9111 §5.2", demand).needs("max-age"), &format!("Cache-Control: {text}"))
    };
    let odd = |id: &str, text: &str, question: &str| {
        reused(observed(id, "9111 §4.2.1", question).needs("max-age"), &format!("Cache-Control: {text}"))
    };
    Group {
        name: "How Cache-Control is read",
        cases: vec![
            reused(
                optimal("cc-case", "9111 §5.2", "Names of directives have no case"),
                "Cache-Control: MaX-aGe=3600",
            ),
            reused(
                optimal("cc-unknown", "9111 §5.2.3", "What is not known is passed over"),
                "Cache-Control: foobar, max-age=3600",
            ),
            reused(
                optimal("cc-unknown-value", "9111 §5.2.3", "So it is with a value"),
                "Cache-Control: foo=bar, baz=\"a, b\", max-age=3600",
            ),
            reused(
                optimal("cc-empty-members", "9110 §5.6.1", "Empty members of a list are none"),
                "Cache-Control: ,, max-age=3600, ,",
            ),
            reused(
                optimal(
                    "cc-no-spaces",
                    "9110 §5.6.1",
                    "Members are parted by a comma, with or without spaces",
                ),
                "Cache-Control: public,max-age=3600,foo",
            ),
            reused(
                optimal("cc-lines", "9110 §5.3", "Several lines are one list"),
                "Cache-Control: public | Cache-Control: max-age=3600",
            ),
            reused(
                required("cc-leading-zeros", "9111 §1.2.2", "`max-age=003600` is an hour").needs("max-age"),
                "Cache-Control: max-age=003600",
            ),
            odd("cc-quoted", "max-age=\"3600\"", "Is a quoted number of seconds one?"),
            over_1(
                "cc-in-quotes-first",
                "extension=\"max-age=3600\", max-age=1",
                "What stands in quotes is no directive",
            ),
            over_1(
                "cc-in-quotes-last",
                "max-age=1, extension=\"max-age=3600\"",
                "The same behind the real one",
            ),
            over_1(
                "cc-in-quotes-escaped",
                "extension=\"\\\", max-age=3600\", max-age=1",
                "A quote behind a backslash ends no text",
            ),
            not_reused(
                required("cc-single-quotes", "9110 §5.6.4", "Single quotes quote nothing").needs("max-age"),
                "Cache-Control: max-age='3600'",
            ),
            not_reused(
                required("cc-negative", "9111 §1.2.2", "`max-age=-3600` is no lifetime").needs("max-age"),
                "Cache-Control: max-age=-3600",
            ),
            not_reused(
                required("cc-other-name", "9111 §5.2", "`xmax-age` is not `max-age`").needs("max-age"),
                "Cache-Control: xmax-age=3600",
            ),
            not_reused(
                required("cc-longer-name", "9111 §5.2", "Nor is `max-agex`").needs("max-age"),
                "Cache-Control: max-agex=3600",
            ),
            two(
                "cc-two-long-short",
                "Cache-Control: max-age=1800, max-age=1",
                "Of two, does the first, longer one count?",
            ),
            two(
                "cc-two-long-short-lines",
                "Cache-Control: max-age=1800 | Cache-Control: max-age=1",
                "The same on two lines?",
            ),
            two(
                "cc-two-short-long",
                "Cache-Control: max-age=1, max-age=1800",
                "Of two, does the second, longer one count?",
            ),
            two(
                "cc-two-short-long-lines",
                "Cache-Control: max-age=1 | Cache-Control: max-age=1800",
                "The same on two lines?",
            ),
            odd("cc-space-before", "max-age =3600", "May there be a space before the equals sign?"),
            odd("cc-space-behind", "max-age= 3600", "May there be one behind it?"),
            odd("cc-decimal", "max-age=3600.0", "Is `3600.0` a number of seconds?"),
            odd("cc-decimal-half", "max-age=3600.5", "Is `3600.5`?"),
            odd("cc-letter-first", "max-age=a3600", "Is `a3600`?"),
            odd("cc-letter-last", "max-age=3600a", "Is `3600a`?"),
            odd("cc-semicolon", "public; max-age=3600", "Are members parted by a semicolon?"),
        ],
    }
}

pub fn age() -> Group {
    let fresh = |case: Case, age: &str| {
        reused(case.needs("max-age"), &format!("Cache-Control: max-age=3600 | {age}"))
    };
    let old = |case: Case, age: &str| {
        not_reused(case.needs("max-age"), &format!("Cache-Control: max-age=3600 | {age}"))
    };
    let must = |id: &str, demand: &str| required(id, "9111 §5.1", demand);
    Group {
        name: "Age",
        cases: vec![
            fresh(must("age-text", "An `Age` that is no number is ignored"), "Age: abc"),
            fresh(must("age-negative", "So is a negative one"), "Age: -7200"),
            fresh(must("age-decimal", "So is `7200.0`"), "Age: 7200.0"),
            old(must("age-31-bits", "`Age: 2147483647` is old"), "Age: 2147483647"),
            old(must("age-32-bits", "So is `2147483648`"), "Age: 2147483648"),
            old(must("age-more", "And a number of more than 64 bits"), "Age: 99999999999999999999"),
            old(must("age-list-old", "Of a list the first member counts: `7200, 0` is old"), "Age: 7200, 0"),
            fresh(must("age-list-new", "`0, 7200` is not"), "Age: 0, 7200"),
            old(must("age-lines-old", "Of two lines the first counts: 7200 and 0"), "Age: 7200 | Age: 0"),
            fresh(must("age-lines-new", "0 and 7200"), "Age: 0 | Age: 7200"),
            fresh(must("age-twice", "`0, 0` is new"), "Age: 0, 0"),
            fresh(must("age-twice-old", "Twice 1800 is 1800"), "Age: 1800 | Age: 1800"),
            old(
                observed("age-parameter", "9111 §5.1", "Is an `Age` with a parameter one?"),
                "Age: 7200;foo=bar",
            ),
            must("age-said", "What comes from the cache says its age")
                .needs("max-age")
                .step(get().says("Cache-Control: max-age=3600 | Date: {start}"))
                .step(
                    get()
                        .after(2)
                        .given(Expected::Cached)
                        .then(Expected::AgeFrom(2))
                        .then(Expected::AgeUpTo(60)),
                ),
            must("age-added", "The `Age` that it came with is a part of it")
                .needs("max-age")
                .step(get().says("Cache-Control: max-age=3600 | Date: {start} | Age: 30"))
                .step(
                    get()
                        .after(2)
                        .given(Expected::Cached)
                        .then(Expected::AgeFrom(32))
                        .then(Expected::AgeUpTo(90)),
                ),
            must("age-added-expires", "Also where `Expires` is the lifetime")
                .needs("expires")
                .step(get().says("Expires: {start+3600} | Date: {start} | Age: 30"))
                .step(
                    get()
                        .after(2)
                        .given(Expected::Cached)
                        .then(Expected::AgeFrom(32))
                        .then(Expected::AgeUpTo(90)),
                ),
            required("date-kept", "9110 §6.6.1", "`Date` stays what the server behind has said")
                .needs("max-age")
                .step(get().says("Cache-Control: max-age=3600 | Date: {start}"))
                .step(get().after(2).given(Expected::Cached).field("Date: {start}")),
            required("date-kept-expires", "9110 §6.6.1", "Also where `Expires` is the lifetime")
                .needs("expires")
                .step(get().says("Expires: {start+3600} | Date: {start}"))
                .step(get().after(2).given(Expected::Cached).field("Date: {start}")),
            observed("expires-kept", "9111 §5.3", "Does `Expires` stay as it was?")
                .needs("expires")
                .step(get().says("Expires: {start+3600} | Date: {start}"))
                .step(get().after(2).given(Expected::Cached).field("Expires: {start+3600}")),
        ],
    }
}

pub fn expires() -> Group {
    let past = |id: &str, date: &str, demand: &str| {
        let case = required(id, "9111 §5.3", demand).needs("expires");
        not_reused(case, &format!("Expires: {date} | Date: {{start}}"))
    };
    let future = |id: &str, date: &str, demand: &str| {
        reused(optimal(id, "9111 §5.3", demand), &format!("Expires: {date} | Date: {{start}}"))
    };
    let aged = |id: &str, fields: &str, demand: &str| {
        not_reused(required(id, "9111 §4.2.3", demand).needs("expires"), fields)
    };
    Group {
        name: "Expires",
        cases: vec![
            future("expires", "{start+3600}", "`Expires` is a lifetime").needs("nothing-said"),
            past("expires-past", "{start-3600}", "What has expired is not used unasked"),
            past("expires-now", "{start}", "What expires at its `Date` has no time"),
            past("expires-0", "0", "`Expires: 0` is the past"),
            past("expires-minus-1", "-1", "So is `-1`"),
            past("expires-empty", "", "So is nothing"),
            over(
                required("expires-over", "9111 §4.2", "It is over when it is over").needs("expires"),
                "Expires: {start+1} | Date: {start}",
            ),
            aged(
                "expires-before-date",
                "Expires: {start+300} | Date: {start+400}",
                "The lifetime is the distance from `Date`, whatever the clock here says",
            ),
            reused(
                optimal("expires-bad-date", "9110 §6.6.1", "A `Date` that cannot be read is as none"),
                "Expires: {start+3600} | Date: foo",
            ),
            aged(
                "expires-age-slow",
                "Date: {start-10} | Expires: {start+10} | Age: 25",
                "`Age` counts, the clock behind is slow",
            ),
            aged(
                "expires-age-fast",
                "Date: {start+10} | Expires: {start+20} | Age: 15",
                "`Age` counts, the clock behind is fast",
            ),
            future("expires-2038", "Tue, 19 Jan 2038 14:14:08 GMT", "Dates have more than 31 bits"),
            future("expires-2286", "Sun, 21 Nov 2286 04:46:39 GMT", "And more than that"),
            future("expires-rfc850", "Thursday, 18-Aug-50 02:01:18 GMT", "The form of RFC 850 is understood"),
            future("expires-asctime", "Thu Aug 18 02:01:18 2050", "So is that of `asctime`"),
            future(
                "expires-case-day",
                "THU, 18 Aug 2050 02:01:18 GMT",
                "The name of a day in capitals is understood",
            ),
            future("expires-case-month", "Thu, 18 AUG 2050 02:01:18 GMT", "So is that of a month"),
            future("expires-case-zone", "Thu, 18 Aug 2050 02:01:18 gMT", "And that of the zone"),
            past("expires-utc", "Thu, 18 Aug 2050 02:01:18 UTC", "No zone but `GMT` is one"),
            past("expires-zone", "Thu, 18 Aug 2050 02:01:18 AEST", "Nor is another"),
            past("expires-offset", "Thu, 18 Aug 2050 02:01:18 +0000", "Nor a number"),
            past("expires-short-year", "Thu, 18 Aug 50 02:01:18 GMT", "A year has four digits"),
            past("expires-no-comma", "Thu 18 Aug 2050 02:01:18 GMT", "There is a comma behind the day"),
            past("expires-spaces", "Thu, 18  Aug  2050 02:01:18 GMT", "There is one space between parts"),
            past("expires-dashes", "Thu, 18-Aug-2050 02:01:18 GMT", "And no dash"),
            past("expires-dots", "Thu, 18 Aug 2050 02.01.18 GMT", "Times have colons"),
            past("expires-short-hour", "Thu, 18 Aug 2050 2:01:18 GMT", "And hours two digits"),
            past("expires-iso", "2050-08-18T02:01:18Z", "ISO 8601 is another form"),
            not_reused(
                required("expires-twice", "9111 §4.2.1", "Two dates that cannot be read are no better")
                    .needs("expires"),
                "Expires: Thu, 18 Aug 2050 2:01:18 GMT | Expires: Thu, 18 Aug 2050 2:01:19 GMT",
            ),
        ],
    }
}
