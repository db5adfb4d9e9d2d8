//! `regent top --fleet`: several servers, one a line.
#![forbid(unsafe_code)]

use regent_tests::{Setup, own_address, regent_command};

#[test]
fn each_server_has_a_line_and_one_that_is_away_is_shown_as_such() {
    let start = || Setup::new().admin("ADMIN").file("index.php", "<?php echo 'ok';").start();
    let (first, second) = (start(), start());
    second.get("/").expect(200);
    let admin = |server: &regent_tests::Server| server.admin().address();
    let away = own_address();
    let fleet = format!("{},{},{away}", admin(&first), admin(&second));
    let top = |fleet: &str| {
        let mut command = regent_command(first.directory());
        command.args(["top", "--once", "--fleet", fleet]).output().expect("regent can be run")
    };
    let output = top(&fleet);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let line = |address: String| text.lines().find(|line| line.starts_with(&address)).expect("it has a line");
    assert!(text.starts_with("Fleet  2 of 3 ready"), "{text}");
    for server in [&first, &second] {
        let line = line(admin(server).to_string());
        assert!(
            line.contains(env!("CARGO_PKG_VERSION")) && line.contains("  ready ") && line.contains(" 0/2 "),
            "{text}"
        );
    }
    assert!(line(away.to_string()).contains("no answer"), "{text}");
    assert!(text.contains("no server's admin listener answers"), "{text}");

    let output = top(&away.to_string());
    assert!(!output.status.success(), "none answers");
    first.stop();
    second.stop();
}
