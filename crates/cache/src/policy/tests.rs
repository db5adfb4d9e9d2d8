use super::*;
use http::HeaderValue;
use proptest::prelude::*;

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 + seconds)
}

fn headers(fields: &[(&'static str, &str)]) -> HeaderMap {
    let field = |(name, value): &(&'static str, &str)| {
        (HeaderName::from_static(name), HeaderValue::try_from(*value).unwrap())
    };
    fields.iter().map(field).collect()
}

fn policy() -> Policy {
    Policy { targeted: vec![HeaderName::from_static("cdn-cache-control")], ..Policy::default() }
}

fn judge(
    policy: &Policy,
    request: &[(&'static str, &str)],
    status: u16,
    fields: &[(&'static str, &str)],
) -> Judged {
    let (request, headers) = (headers(request), headers(fields));
    let status = StatusCode::from_u16(status).unwrap();
    policy.judge(&Question { request: &request, status, headers: &headers, asked: at(0), now: at(0) })
}

fn lifetime(status: u16, fields: &[(&'static str, &str)]) -> Result<u64, Ground> {
    judge(&policy(), &[], status, fields).map(|terms| terms.lifetime.as_secs())
}

#[test]
fn a_lifetime_is_that_of_the_most_special_field() {
    let expires = httpdate::fmt_http_date(at(30));
    let now = httpdate::fmt_http_date(at(0));
    let later = httpdate::fmt_http_date(at(10));
    for (fields, want) in [
        (&[("cache-control", "max-age=60")][..], Ok(60)),
        (&[("cache-control", "max-age=60, s-maxage=5")], Ok(5)),
        (&[("cache-control", "max-age=60"), ("expires", &expires)], Ok(60)),
        (&[("expires", &expires)], Ok(30)),
        (&[("expires", &expires), ("date", &now)], Ok(30)),
        (&[("expires", &expires), ("date", &later)], Ok(20)),
        (&[("expires", "0")], Err(Ground::Expired)),
        (&[("expires", "0"), ("etag", "\"a\"")], Ok(0)),
        (&[("cdn-cache-control", "max-age=7"), ("cache-control", "no-store")], Ok(7)),
        (&[("cdn-cache-control", "no-store"), ("cache-control", "max-age=60")], Err(Ground::NoStore)),
        (&[("cdn-cache-control", "max-age=,"), ("cache-control", "max-age=60")], Ok(60)),
        (&[("cdn-cache-control", "public"), ("expires", &expires)], Err(Ground::Lifetime)),
        (&[("cache-control", "max-age=60"), ("age", "60")], Err(Ground::Expired)),
        (&[("cache-control", "max-age=60"), ("age", "59")], Ok(60)),
        (&[("cache-control", "max-age=x")], Err(Ground::Expired)),
        (&[("cache-control", "max-age=0, stale-while-revalidate=5")], Ok(0)),
        (&[("etag", "\"a\"")], Err(Ground::Lifetime)),
        (&[], Err(Ground::Lifetime)),
    ] {
        assert_eq!(lifetime(200, fields), want, "{fields:?}");
    }
}

#[test]
fn what_is_for_one_client_is_never_stored() {
    for (request, fields, want) in [
        (&[][..], &[("cache-control", "private, max-age=60")][..], Err(Ground::Private)),
        (&[], &[("cache-control", "max-age=60, private=\"x\"")], Err(Ground::Private)),
        (&[], &[("cache-control", "no-store, max-age=60")], Err(Ground::NoStore)),
        (&[("cache-control", "no-store")], &[("cache-control", "max-age=60")], Err(Ground::NoStore)),
        (&[], &[("cache-control", "public, max-age=60"), ("set-cookie", "a=b")], Err(Ground::SetCookie)),
        (&[], &[("cache-control", "max-age=60"), ("vary", "Accept, *")], Err(Ground::Vary)),
        (&[("authorization", "Basic eA==")], &[("cache-control", "max-age=60")], Err(Ground::Authorization)),
        (&[("authorization", "x")], &[("cache-control", "public, max-age=60")], Ok(())),
        (&[("authorization", "x")], &[("cache-control", "s-maxage=60")], Ok(())),
        (&[("authorization", "x")], &[("cache-control", "max-age=60, must-revalidate")], Ok(())),
    ] {
        assert_eq!(judge(&policy(), request, 200, fields).map(drop), want, "{request:?} {fields:?}");
    }
}

#[test]
fn a_status_is_kept_as_it_asks_to_be() {
    let fresh = [("cache-control", "max-age=60")];
    for status in [200, 301, 302, 307, 404, 410, 500, 503] {
        assert_eq!(lifetime(status, &fresh), Ok(60), "{status}");
    }
    for status in [206, 304] {
        assert_eq!(lifetime(status, &fresh), Err(Ground::Status), "{status}");
    }
    let by_default = Policy { default_ttl: Some(Duration::from_secs(9)), ..policy() };
    for (status, want) in
        [(200, Ok(9)), (404, Ok(9)), (302, Err(Ground::Lifetime)), (500, Err(Ground::Lifetime))]
    {
        assert_eq!(
            judge(&by_default, &[], status, &[]).map(|terms| terms.lifetime.as_secs()),
            want,
            "{status}"
        );
    }
    let understood = [("cache-control", "must-understand, no-store, max-age=60")];
    assert_eq!(lifetime(200, &understood), Ok(60));
    assert_eq!(lifetime(299, &understood), Err(Ground::Status));
}

#[test]
fn lifetimes_are_guessed_only_when_asked_for() {
    let modified = httpdate::fmt_http_date(at(0) - Duration::from_secs(1000));
    let fields = [("last-modified", &*modified)];
    assert_eq!(lifetime(200, &fields), Err(Ground::Lifetime));
    let guessing = Policy { guesses: true, ..policy() };
    assert_eq!(judge(&guessing, &[], 200, &fields).map(|terms| terms.lifetime.as_secs()), Ok(100));
    assert_eq!(judge(&guessing, &[], 302, &fields).map(drop), Err(Ground::Lifetime));
}

#[test]
fn an_age_is_the_greatest_that_is_known() {
    let date = httpdate::fmt_http_date(at(0));
    let request = HeaderMap::new();
    let age = |fields: &[(&'static str, &str)], asked, now| {
        let headers = headers(fields);
        let question = Question { request: &request, status: StatusCode::OK, headers: &headers, asked, now };
        policy().judge(&question).unwrap().age(now + Duration::from_secs(5)).as_secs()
    };
    let fresh = ("cache-control", "max-age=600");
    assert_eq!(age(&[fresh], at(0), at(0)), 5);
    assert_eq!(age(&[fresh], at(0), at(3)), 8, "it may be as old as the request");
    assert_eq!(age(&[fresh, ("age", "20")], at(0), at(3)), 28);
    assert_eq!(age(&[fresh, ("date", &date)], at(40), at(40)), 45);
    assert_eq!(age(&[fresh, ("age", "-1")], at(0), at(0)), 5, "what cannot be read is not there");
}

#[test]
fn what_is_stale_is_used_as_far_as_it_may_be() {
    let request = HeaderMap::new();
    let terms = |fields: &[(&'static str, &str)], policy: &Policy| judge(policy, &[], 200, fields).unwrap();
    let own =
        terms(&[("cache-control", "max-age=10, stale-while-revalidate=5, stale-if-error=20")], &policy());
    for (second, want) in [
        (0, Reuse::Fresh),
        (9, Reuse::Fresh),
        (10, Reuse::Refreshing),
        (14, Reuse::Refreshing),
        (15, Reuse::Validated),
    ] {
        assert_eq!(policy().reuse(&own, &request, at(second)), want, "{second}");
    }
    assert!(own.may_replace_error(at(29)) && !own.may_replace_error(at(30)));
    assert!(!own.is_over(at(29)) && own.is_over(at(30)));
    let usual = Policy { stale_if_error: Duration::from_secs(100), ..policy() };
    assert!(terms(&[("cache-control", "max-age=10")], &usual).may_replace_error(at(109)));
    for strict in ["must-revalidate", "proxy-revalidate"] {
        let fields = format!("max-age=10, {strict}");
        let strict = terms(&[("cache-control", &fields)], &usual);
        assert!(!strict.may_replace_error(at(10)) && strict.may_replace_error(at(9)));
    }
    let asked = terms(&[("cache-control", "no-cache, max-age=10"), ("etag", "\"a\"")], &usual);
    assert_eq!(policy().reuse(&asked, &request, at(0)), Reuse::Validated);
    assert!(!asked.may_replace_error(at(10)));
}

#[test]
fn clients_are_obeyed_only_when_that_is_configured() {
    let stored = judge(&policy(), &[], 200, &[("cache-control", "max-age=60")]).unwrap();
    let obeying = Policy { obeys_clients: true, ..policy() };
    for (request, want) in [
        (&[("cache-control", "no-cache")][..], Reuse::Validated),
        (&[("cache-control", "max-age=0")], Reuse::Validated),
        (&[("cache-control", "max-age=30")], Reuse::Fresh),
        (&[("cache-control", "min-fresh=55")], Reuse::Validated),
        (&[("pragma", "no-cache")], Reuse::Validated),
        (&[("pragma", "no-cache"), ("cache-control", "max-age=30")], Reuse::Fresh),
    ] {
        let request = headers(request);
        assert_eq!(obeying.reuse(&stored, &request, at(10)), want, "{request:?}");
        assert_eq!(policy().reuse(&stored, &request, at(10)), Reuse::Fresh, "{request:?}");
    }
}

proptest! {
    #[test]
    fn nothing_is_fresh_beyond_its_lifetime(max_age in 0_u64..200, s_maxage in prop::option::of(0_u64..200), age in 0_u64..200, second in 0_u64..500) {
        let shared = s_maxage.map(|seconds| format!(", s-maxage={seconds}")).unwrap_or_default();
        let control = format!("max-age={max_age}{shared}");
        let age_field = age.to_string();
        let judged = judge(&policy(), &[], 200, &[("cache-control", &control), ("age", &age_field), ("etag", "\"a\"")]);
        let terms = judged.unwrap();
        let is_fresh = policy().reuse(&terms, &HeaderMap::new(), at(second)) == Reuse::Fresh;
        prop_assert_eq!(is_fresh, age + second < s_maxage.unwrap_or(max_age));
    }
}

#[test]
fn an_age_of_any_number_of_digits_is_one() {
    for (age, want) in [
        ("59", Some(1)),
        ("60", None),
        ("99999999999999999999", None),
        ("99999999999999999999, 0", None),
        ("-1", Some(60)),
        ("60.0", Some(60)),
        ("", Some(60)),
    ] {
        let judged = judge(&policy(), &[], 200, &[("cache-control", "max-age=60"), ("age", age)]);
        assert_eq!(judged.ok().map(|terms| terms.ttl(at(0))), want, "{age}");
    }
}
