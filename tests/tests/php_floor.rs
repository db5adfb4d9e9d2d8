//! A PHP with known critical holes: what the server says of it.
#![forbid(unsafe_code)]

use regent_tests::{Setup, php, until};

const WARNING: &str = "this PHP has holes that are known";

#[test]
fn the_server_warns_of_a_php_with_known_holes_once_and_of_no_other() {
    let server = Setup::new().admin("ADMIN").file("index.php", "<?php echo PHP_VERSION;").start();
    let admin = server.admin();
    let version = server.get("/").expect(200).text().to_owned();
    admin.request("POST", "/regent/workers/restart").send().expect(200);
    until("another engine runs", || (admin.metric("regent_generations_total", &[]) >= 2.0).then_some(()));
    until("it has taken over", || {
        let statistics = admin.get("/regent/statistics").expect(200).json();
        (statistics["generations"].as_array()?.len() == 1 && statistics["generations"][0]["number"] == 2)
            .then_some(())
    });
    let warnings = usize::from(php::has_known_holes());
    assert_eq!(server.log().matches(WARNING).count(), warnings, "{}", server.log());

    let said = &admin.get("/regent/statistics").expect(200).json()["php"];
    assert_eq!(said["version"], version.as_str());
    assert_eq!(said["state"] == "below", php::has_known_holes(), "{said}");
    assert_eq!(said["floor"].is_string(), said["state"] == "below" || said["state"] == "unproven", "{said}");
    assert_eq!(admin.metric("regent_php_below_floor", &[]), warnings as f64);
    assert_eq!(admin.metric("regent_php_info", &[("version", &version)]), 1.0);
    server.stop();
}
