use super::*;
use crate::acme::options::Acme;
use crate::tests::ManualClock;

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;

/// A name without a certificate.
fn managed(directory: &tempfile::TempDir) -> Arc<Managed> {
    let store = Store::new(directory.path());
    let clock: Arc<dyn Clock> = ManualClock::new();
    let acme = Acme::default();
    let ca = Arc::new(Ca::new(store.clone(), Arc::clone(&clock), "https://ca.test", &acme));
    let authorities = Arc::new([Authority { acme, ca, test_ca: None }]);
    let challenges = Challenges::new(store.clone(), Arc::clone(&clock));
    let common = Arc::new(Common {
        store,
        clock,
        challenges,
        dns_turns: Arc::default(),
        places: Semaphore::new(1),
        order_timeout: Duration::from_secs(60),
    });
    Managed::load("a.test", authorities, common)
}

fn stored(name: &str) -> Stored {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    let (chain, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let pair = ((Path::new("a.crt"), chain.as_bytes()), (Path::new("a.key"), key.as_bytes()));
    let certificate = Arc::new(Certificate::from_pem(pair.0, pair.1).unwrap());
    Stored { certificate, issuer_key: "ca".into(), renewal_info: None }
}

#[test]
fn a_task_that_panics_is_not_tried_again_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let managed = managed(&directory);
    for (task, pause) in [(Task::Order, 60), (Task::Order, 120), (Task::AskRenewal, ARI_RETRY)] {
        let now = managed.now();
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _busy = Busy { managed: &managed, task };
            panic!("as of arithmetic with what a CA has sent");
        }));
        assert!(panicked.is_err());
        let state = managed.state();
        assert_eq!(state.activity, Activity::Idle);
        let next = if task == Task::Order { state.not_before } else { state.ask_at };
        assert_eq!(next, now + pause, "{task:?}");
    }
    assert_eq!(managed.begin(managed.now()), None);
}

#[test]
fn a_clock_that_is_set_back_puts_off_no_order_for_long() {
    let directory = tempfile::tempdir().unwrap();
    let managed = managed(&directory);
    let now = managed.now();
    managed.note_failure(&OrderError::Address);
    let earlier = now - 365 * DAY;
    assert_eq!(managed.begin(earlier), None);
    assert_eq!(managed.begin(earlier + 59), None);
    assert_eq!(managed.begin(earlier + 60), Some(Task::Order));
}

#[test]
fn a_certificate_that_is_due_as_soon_as_it_is_obtained_is_replaced_once_an_hour() {
    let directory = tempfile::tempdir().unwrap();
    let managed = managed(&directory);
    managed.serve(stored("a.test"));
    let (now, mut state) = (managed.now(), managed.state());
    assert_eq!(managed.next_order(&state), now + HOUR);
    // Somebody's clock is wrong.
    let stored = state.stored.as_mut().unwrap();
    let brief = Certificate { validity: certificate_of(6 * 60), ..(*stored.certificate).clone() };
    stored.certificate = Arc::new(brief);
    assert_eq!(managed.next_order(&state), now + 2 * 60);
}

fn certificate_of(lifetime: i64) -> crate::certificate::Validity {
    crate::certificate::Validity { from: 0, until: lifetime }
}

/// As when the disk is full.
#[test]
fn a_certificate_that_was_not_stored_goes_on_being_served_after_a_reload() {
    let directory = tempfile::tempdir().unwrap();
    let (before, after) = (managed(&directory), managed(&directory));
    before.serve(stored("a.test"));
    after.continue_from(&before);
    assert!(Arc::ptr_eq(&before.slot.current().unwrap(), &after.slot.current().unwrap()));
    assert!(after.outlook().stored.is_some());
}
