//! Configurations that follow each other, and the end.

use regent_rig::{Rig, Setup, get};

fn threads(count: usize) -> Setup {
    Setup::new().threads(count)
}

fn the_next_engine_serves(rig: &Rig) {
    let mut new = rig.ask("/?new");
    let call = rig.call();
    assert_eq!((call.process(), call.uri()), (1, "/?new"));
    call.answer(200, "new");
    assert_eq!(new.response().expect(200).text(), "new");
}

#[test]
fn an_engine_goes_on_if_its_part_has_not_changed() {
    let rig = threads(1).start();
    let mut client = rig.ask("/?before");
    let call = rig.call();
    rig.reload(&threads(1).site("header X-From after\n\tphp_server")).expect("it is right");
    call.answer(200, "before");
    assert_eq!(client.response().expect(200).header("x-from"), None, "it ends as it has begun");
    client.send(get("/?after"));
    let call = rig.call();
    assert_eq!(call.process(), 0);
    call.answer(200, "after");
    assert_eq!(client.response().expect(200).header("x-from"), Some("after"));
}

#[test]
fn a_new_engine_takes_what_comes_and_the_old_one_ends_what_it_has() {
    let rig = threads(1).start();
    let mut old = rig.ask("/?old");
    let held = rig.call();
    let mut waiting = rig.ask("/?waits");
    rig.wait_for_queue(1);
    rig.reload(&threads(2)).expect("it is right");
    the_next_engine_serves(&rig);
    held.answer(200, "old");
    assert_eq!(old.response().expect(200).text(), "old");
    let call = rig.call();
    assert_eq!((call.process(), call.uri()), (0, "/?waits"));
    call.answer(200, "waited");
    assert_eq!(waiting.response().expect(200).text(), "waited");
}

#[test]
fn a_configuration_that_is_wrong_changes_nothing() {
    let rig = threads(1).start();
    let error = rig.reload(&threads(1).site("no_such_directive")).expect_err("it is wrong");
    assert!(error.contains("no_such_directive"), "{error}");
    let mut client = rig.ask("/");
    let call = rig.call();
    assert_eq!(call.process(), 0);
    call.answer(200, "as before");
    assert_eq!(client.response().expect(200).text(), "as before");
}

#[test]
fn an_engine_that_was_restarted_by_hand_ends_what_it_has() {
    let rig = threads(1).start();
    let mut old = rig.ask("/?old");
    let held = rig.call();
    rig.admin().request("POST", "/regent/workers/restart").send().expect(200);
    the_next_engine_serves(&rig);
    held.answer(200, "old");
    assert_eq!(old.response().expect(200).text(), "old");
}

#[test]
fn a_server_that_stops_answers_what_runs_and_what_waits() {
    let mut rig = threads(1).start();
    let mut running = rig.ask("/?runs");
    let held = rig.call();
    let mut waiting = rig.ask("/?waits");
    rig.wait_for_queue(1);
    rig.begin_to_stop();
    held.answer(200, "ran");
    let ran = running.response().expect(200);
    assert_eq!(ran.text(), "ran");
    rig.answer("waited");
    assert_eq!(waiting.response().expect(200).text(), "waited");
    rig.wait_until_stopped();
    assert!(waiting.is_closed());
}

#[test]
fn a_server_that_stops_closes_what_is_idle() {
    let rig = threads(1).start();
    let mut client = rig.ask("/");
    rig.answer("page");
    client.response().expect(200);
    rig.wait_until_stopped();
    assert!(client.is_closed());
}
