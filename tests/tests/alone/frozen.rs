//! Machines that sleep, and wake in any order.
#![forbid(unsafe_code)]

use regent_tests::Setup;
use regent_tests::process::signal;
use rustix::process::Signal;
use std::time::Duration;

/// A machine that was asleep, or a control group that was frozen, may wake in any order.
#[test]
fn an_engine_that_was_frozen_with_its_server_is_left_alone() {
    let server = Setup::new().file("index.php", "<?php echo 'ok';").start();
    let engine = server.engine();
    for _ in 0..2 {
        server.signal(Signal::STOP);
        assert!(signal(engine, Signal::STOP));
        #[expect(
            clippy::disallowed_methods,
            reason = "longer than an engine may hang; both sleep meanwhile, for any time"
        )]
        std::thread::sleep(Duration::from_secs(3));
        server.signal(Signal::CONT);
        #[expect(
            clippy::disallowed_methods,
            reason = "a look at the engine, of five that it may fail, leaves no trace"
        )]
        std::thread::sleep(Duration::from_millis(300));
        assert!(signal(engine, Signal::CONT));
        assert_eq!(server.get("/").expect(200).text(), "ok");
    }
    assert_eq!(server.engine(), engine);
    server.stop();
}
