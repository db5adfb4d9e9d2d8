//! Admission of a pool whose starts and clock the tests set.

use super::*;

const START: Duration = Duration::from_secs(1_000);

fn ms(value: u64) -> Duration {
    Duration::from_millis(value)
}

fn deadline(value: Duration) -> Arrival {
    Arrival { deadline: Some(value), ..Arrival::default() }
}

/// A pool of eight threads that starts 100 requests a second while 100 wait: a wait of one second.
struct Pool {
    now: Duration,
    started: u64,
    admission: Admission,
}

impl Pool {
    fn new(bounds: Bounds) -> Self {
        let mut pool = Self { now: START, started: 100, admission: Admission::new(bounds) };
        for _ in 0..100 {
            pool.admit(100, Arrival::default());
            pool.pass(ms(10), 1);
        }
        pool
    }

    fn pass(&mut self, time: Duration, starts: u64) {
        self.now += time;
        self.started += starts;
    }

    fn queue(&self, waiting: u64) -> Queue {
        Queue { waiting, started: self.started, threads: 8, idle: 0 }
    }

    fn admit(&self, waiting: u64, arrival: Arrival) -> Verdict {
        self.admission.admit(self.now, self.queue(waiting), arrival)
    }

    /// The reason, if it was shed.
    fn shed(&self, waiting: u64, arrival: Arrival) -> Option<Reason> {
        match self.admit(waiting, arrival) {
            Verdict::Admit => None,
            Verdict::Shed { reason, .. } => Some(reason),
        }
    }
}

#[test]
fn the_wait_is_the_queue_by_the_rate() {
    let pool = Pool::new(Bounds::default());
    let wait = pool.admission.estimated_wait(pool.now, pool.queue(50)).unwrap();
    assert!(wait.abs_diff(ms(500)) < ms(25), "{wait:?}");
    assert_eq!(pool.shed(90, deadline(ms(1000))), None);
    assert_eq!(pool.shed(110, deadline(ms(1000))), Some(Reason::Deadline));
}

#[test]
fn the_queue_may_take_what_the_service_and_the_past_leave() {
    let arrival = Arrival { deadline: Some(ms(1000)), elapsed: ms(300), service: Some(ms(300)) };
    let pool = Pool::new(Bounds::default());
    assert_eq!(pool.shed(35, arrival), None);
    assert_eq!(pool.shed(45, arrival), Some(Reason::Deadline));
}

#[test]
fn a_request_that_is_late_by_itself_runs_unless_the_queue_alone_breaks_its_deadline() {
    let late = Arrival { deadline: Some(ms(1000)), elapsed: ms(0), service: Some(ms(1500)) };
    let pool = Pool::new(Bounds::default());
    assert_eq!(pool.shed(90, late), None);
    assert_eq!(pool.shed(110, late), Some(Reason::Deadline));
}

#[test]
fn the_tighter_bound_is_the_reason() {
    let pool = Pool::new(Bounds { max_queue: None, max_wait: Some(ms(500)) });
    assert_eq!(pool.shed(60, deadline(ms(1000))), Some(Reason::WaitTime));
    let pool = Pool::new(Bounds { max_queue: None, max_wait: Some(ms(500)) });
    assert_eq!(pool.shed(60, deadline(ms(100))), Some(Reason::Deadline));
}

#[test]
fn max_queue_is_exact_and_no_sign_of_overload() {
    let pool = Pool::new(Bounds { max_queue: Some(100), max_wait: None });
    assert_eq!(pool.shed(99, Arrival::default()), None);
    assert_eq!(pool.shed(100, Arrival::default()), Some(Reason::QueueFull));
    assert!(!pool.admission.is_overloaded(pool.now));
}

#[test]
fn a_queue_of_none_means_that_nothing_waits() {
    let pool = Pool::new(Bounds { max_queue: Some(0), max_wait: None });
    assert_eq!(pool.shed(0, Arrival::default()), Some(Reason::QueueFull));
    let idle = Queue { idle: 1, ..pool.queue(0) };
    assert_eq!(pool.admission.admit(pool.now, idle, Arrival::default()), Verdict::Admit);
}

#[test]
fn nothing_is_shed_while_a_thread_is_idle() {
    let pool = Pool::new(Bounds { max_queue: Some(1), max_wait: Some(ms(1)) });
    let queue = Queue { idle: 1, ..pool.queue(1000) };
    assert_eq!(pool.admission.admit(pool.now, queue, deadline(ms(1))), Verdict::Admit);
}

#[test]
fn overload_lasts_until_a_second_without_shedding() {
    let mut pool = Pool::new(Bounds::default());
    let arrival = deadline(ms(1000));
    assert_eq!(pool.shed(110, arrival), Some(Reason::Deadline));
    assert_eq!(pool.shed(50, arrival), Some(Reason::Deadline), "above the low mark");
    assert_eq!(pool.shed(7, arrival), None, "below it");
    for _ in 0..99 {
        pool.pass(ms(10), 1);
        assert_eq!(pool.shed(7, arrival), None);
    }
    assert!(pool.admission.is_overloaded(pool.now));
    pool.pass(ms(10), 1);
    assert!(!pool.admission.is_overloaded(pool.now));
    assert_eq!(pool.shed(50, arrival), None);
}

#[test]
fn overload_goes_on_while_requests_are_shed() {
    let mut pool = Pool::new(Bounds::default());
    pool.admit(110, deadline(ms(1000)));
    for _ in 0..300 {
        pool.pass(ms(10), 1);
        assert_eq!(pool.shed(50, deadline(ms(1000))), Some(Reason::Deadline));
    }
}

#[test]
fn the_low_mark_is_not_below_a_round_of_the_threads() {
    // A round takes 80 ms, a tenth of the bound is 30 ms.
    let pool = Pool::new(Bounds::default());
    pool.admit(40, deadline(ms(300)));
    assert_eq!(pool.shed(8, deadline(ms(300))), None);
    assert_eq!(pool.shed(10, deadline(ms(300))), Some(Reason::Deadline));
    assert_eq!(pool.shed(8, deadline(ms(50))), Some(Reason::Deadline), "nor above the bound");
}

#[test]
fn retry_after_is_when_the_queue_has_drained() {
    let pool = Pool::new(Bounds::default());
    let retry = |waiting| match pool.admit(waiting, deadline(ms(1000))) {
        Verdict::Shed { retry_after, .. } => retry_after.as_secs(),
        Verdict::Admit => 0,
    };
    assert_eq!(retry(450), 5);
    assert_eq!(retry(110), 1);
    assert_eq!(retry(1_000_000), 30);
}

#[test]
fn a_pool_that_takes_nothing_any_more_is_noticed() {
    let mut pool = Pool::new(Bounds::default());
    assert_eq!(pool.shed(10, deadline(ms(1000))), None);
    pool.pass(ms(2000), 0);
    assert_eq!(pool.shed(10, deadline(ms(1000))), Some(Reason::Deadline));
}

#[test]
fn an_engine_that_stands_still_is_no_overload() {
    let mut pool = Pool::new(Bounds::default());
    for _ in 0..10 {
        pool.pass(ms(250), 0);
        pool.admission.forget();
        assert_eq!(pool.shed(1000, deadline(ms(3000))), None);
    }
    // Another one has taken its place.
    for _ in 0..100 {
        pool.pass(ms(10), 10);
        assert_eq!(pool.shed(1000, deadline(ms(3000))), None);
    }
}

#[test]
fn a_cold_start_is_no_overload() {
    // Ten thousand come at once. The first requests take 20 ms each, the later ones half a millisecond.
    let max_wait = Some(Duration::from_secs(3));
    let admission = Admission::new(Bounds { max_queue: None, max_wait });
    let queue = |started| Queue { waiting: 10_000 - started, started, threads: 4, idle: 0 };
    let mut started = 4;
    for millisecond in 1..1_000 {
        started += match millisecond {
            ..=300 if millisecond % 20 == 0 => 4,
            ..=300 => 0,
            _ => 8,
        };
        let verdict = admission.admit(START + ms(millisecond), queue(started), Arrival::default());
        assert_eq!(verdict, Verdict::Admit, "after {millisecond} ms");
    }
}

#[test]
fn a_new_queue_begins_anew() {
    let mut pool = Pool::new(Bounds::default());
    pool.started = 0;
    assert_eq!(pool.shed(1000, deadline(ms(1000))), None, "its engine boots");
    pool.pass(ms(1), 8);
    assert_eq!(pool.shed(1000, deadline(ms(1000))), None, "nothing is known");
}

#[test]
fn after_a_pause_nothing_is_known() {
    let mut pool = Pool::new(Bounds::default());
    let idle = Queue { idle: 8, ..pool.queue(0) };
    pool.admission.admit(pool.now, idle, Arrival::default());
    pool.pass(ms(900), 0);
    assert_eq!(pool.shed(110, deadline(ms(1000))), Some(Reason::Deadline), "a breath is no pause");
    pool.admission.admit(pool.now, idle, Arrival::default());
    pool.pass(ms(1100), 0);
    assert_eq!(pool.shed(110, deadline(ms(1000))), None);
}

#[test]
fn reasons_have_labels_of_their_own() {
    let labels: std::collections::BTreeSet<_> = Reason::ALL.iter().map(|reason| reason.label()).collect();
    assert_eq!(labels.len(), Reason::ALL.len());
    assert!(Reason::ALL.iter().all(|reason| !reason.to_string().is_empty()));
}
