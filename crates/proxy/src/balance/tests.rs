use super::*;
use http::Request;
use regent_config::{CookiePolicy, HashKey, OptionalKey, PassiveHealth};
use regent_exchange::Connection;
use std::time::Duration;

struct World {
    states: Vec<Arc<UpstreamState>>,
    turn: AtomicUsize,
    random: Random,
}

impl World {
    fn of(count: usize) -> Self {
        let health = PassiveHealth { fail_duration: Duration::from_secs(3600), ..PassiveHealth::default() };
        Self {
            states: (0..count)
                .map(|index| UpstreamState::new(format!("10.0.0.{index}:80"), &health))
                .collect(),
            turn: AtomicUsize::new(0),
            random: Random::default(),
        }
    }

    fn choose(&self, policy: &LbPolicy, exchange: &Exchange, tried: &[usize]) -> Option<Choice> {
        let Self { states, turn, random } = self;
        let tried: Vec<_> = tried.iter().map(|index| Arc::clone(&states[*index])).collect();
        Choices { states, tried: &tried, turn, random }.choose(policy, exchange)
    }

    /// The indexes that requests for these get, one after the other.
    fn chosen(&self, policy: &LbPolicy, uris: &[&str]) -> Vec<usize> {
        let index = |uri: &&str| self.choose(policy, &get(uri, &[]), &[]).expect("one is there").index;
        uris.iter().map(index).collect()
    }
}

fn get(uri: &str, fields: &[(&'static str, &'static str)]) -> Exchange {
    let mut request = Request::builder().uri(uri).header("host", "a");
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    let remote = "192.0.2.7:5000".parse().ok();
    Exchange::new(request.body(()).unwrap().into_parts().0, Connection { remote, ..Connection::default() })
}

#[test]
fn each_has_its_turn() {
    let world = World::of(3);
    assert_eq!(world.chosen(&LbPolicy::RoundRobin, &["/"; 4]), [0, 1, 2, 0]);
    world.states[2].fail();
    assert_eq!(world.chosen(&LbPolicy::RoundRobin, &["/"; 3]), [1, 0, 0]);
    let world = World::of(3);
    let weights = LbPolicy::WeightedRoundRobin(vec![2, 0, 1]);
    assert_eq!(world.chosen(&weights, &["/"; 6]), [0, 0, 2, 0, 0, 2]);
    world.states[0].fail();
    assert_eq!(world.chosen(&weights, &["/"; 2]), [2, 2]);
}

#[test]
fn what_is_not_available_gets_nothing() {
    let world = World::of(2);
    for policy in [LbPolicy::Random, LbPolicy::First, LbPolicy::LeastConn, LbPolicy::RandomChoose(2)] {
        let world = World::of(2);
        world.states[0].fail();
        assert_eq!(world.chosen(&policy, &["/"; 5]), [1; 5], "{policy:?}");
    }
    world.states.iter().for_each(|state| state.fail());
    assert_eq!(world.choose(&LbPolicy::First, &get("/", &[]), &[]), None);
}

#[test]
fn a_request_is_not_tried_twice_at_one_while_there_is_another() {
    let world = World::of(2);
    let first =
        |tried: &[usize]| world.choose(&LbPolicy::First, &get("/", &[]), tried).map(|choice| choice.index);
    assert_eq!((first(&[]), first(&[0]), first(&[0, 1])), (Some(0), Some(1), Some(0)));
}

#[test]
fn the_least_busy_is_chosen() {
    let world = World::of(3);
    let _busy = [world.states[0].begin(), world.states[0].begin(), world.states[2].begin()];
    assert_eq!(world.chosen(&LbPolicy::LeastConn, &["/"; 3]), [1; 3]);
    assert_eq!(world.chosen(&LbPolicy::RandomChoose(3), &["/"; 3]), [1; 3]);
}

#[test]
fn equal_keys_meet_again_and_most_stay_when_one_goes() {
    let uris: Vec<String> = (0..60).map(|number| format!("/{number}")).collect();
    let uris: Vec<&str> = uris.iter().map(String::as_str).collect();
    let policy = LbPolicy::Hash(HashKey::Uri);
    let world = World::of(3);
    let before = world.chosen(&policy, &uris);
    assert_eq!(world.chosen(&policy, &uris), before);
    assert!((0..3).all(|index| before.iter().filter(|chosen| **chosen == index).count() > 5), "{before:?}");
    world.states[1].fail();
    let after = world.chosen(&policy, &uris);
    let moved = before.iter().zip(&after).filter(|(before, after)| before != after);
    assert!(moved.into_iter().all(|(before, _)| *before == 1));
    let all_from_one = world.chosen(&LbPolicy::Hash(HashKey::RemoteIp), &uris);
    assert!(all_from_one.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn a_key_that_is_not_there_falls_back() {
    let world = World::of(3);
    let header = LbPolicy::HashOr(OptionalKey::Header("X-User".into()), Box::new(LbPolicy::First));
    let query = LbPolicy::HashOr(OptionalKey::Query("user".into()), Box::new(LbPolicy::First));
    assert_eq!(world.chosen(&header, &["/"]), [0]);
    assert_eq!(world.chosen(&query, &["/?other=1"]), [0]);
    let of = |name: &'static str| {
        world.choose(&header, &get("/", &[("x-user", name)]), &[]).map(|choice| choice.index)
    };
    let spread: std::collections::BTreeSet<_> = ["a", "b", "c", "d", "e", "f", "g"].map(of).into();
    assert!(spread.len() > 1);
    assert_eq!(
        world.chosen(&query, &["/?user=a", "/?x=1&user=a"])[0],
        world.chosen(&query, &["/?user=a"])[0]
    );
}

#[test]
fn a_cookie_leads_back_to_the_same_upstream() {
    let policy = LbPolicy::Cookie(CookiePolicy {
        name: "lb".into(),
        secret: "secret".into(),
        max_age: Some(Duration::from_secs(60)),
        fallback: Box::new(LbPolicy::Random),
    });
    let world = World::of(4);
    let Choice { index, cookie } = world.choose(&policy, &get("/", &[]), &[]).expect("one is there");
    let cookie = cookie.expect("it is new").to_str().unwrap().to_owned();
    let (pair, attributes) = cookie.split_once("; ").unwrap();
    assert_eq!(attributes, "Path=/; Max-Age=60; HttpOnly; SameSite=Lax");
    let sent: &'static str = Box::leak(format!("a=b; {pair}").into_boxed_str());
    let again = || world.choose(&policy, &get("/", &[("cookie", sent)]), &[]).expect("one is there");
    assert_eq!(again(), Choice { index, cookie: None });
    world.states[index].fail();
    assert!(again().index != index && again().cookie.is_some());
    let forged = world.choose(&policy, &get("/", &[("cookie", "lb=10.0.0.1:80")]), &[]);
    assert!(forged.expect("one is there").cookie.is_some());
}
