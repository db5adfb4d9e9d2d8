//! Where access logs go, what they have, and what becomes of files that have grown.
#![forbid(unsafe_code)]

use regent_tests::{Server, Setup, until};
use serde_json::Value;
use std::fs;
use std::path::Path;

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// The lines of a log, once there are so many.
fn lines(server: &Server, file: &str, count: usize) -> Vec<Value> {
    let path = server.directory().join(file);
    until(&format!("{file} has {count} lines"), || {
        let text = fs::read_to_string(&path).ok()?;
        let lines: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        (lines.len() >= count).then_some(lines)
    })
}

#[test]
fn a_log_that_has_grown_is_followed_by_another_and_compressed() {
    let site = "log {
        output file DIRECTORY/logs/access.log {
            roll_size 4KiB
            roll_keep 2
        }
        format json
    }
    respond ok";
    let server = Setup::new().site(site).start();
    let directory = server.directory().join("logs");
    until("old files are compressed, and the oldest removed", || {
        server.get("/").expect(200);
        let names = names(&directory);
        let compressed =
            names.iter().filter(|name| name.starts_with("access-") && name.ends_with(".log.gz")).count();
        (compressed == 2).then_some(())
    });
    assert!(names(&directory).contains(&"access.log".to_owned()));
    server.stop();
}

#[test]
fn logs_have_names_hosts_and_fields() {
    let site = "log {
        output file DIRECTORY/all.log
        format filter {
            wrap json {
                time_format iso8601
            }
            request>remote_ip ip_mask 8
        }
        hostnames a.example
    }
    log api {
        no_hostname
        output file DIRECTORY/api.log
        format append {
            wrap json
            region eu
        }
    }
    log_name /api/* api
    log_append tenant {header.X-Tenant}
    log_append kind {http.response.header.Content-Type}
    respond ok";
    let server = Setup::new().site(site).start();
    let ask = |target: &str, host: &str| {
        server.request("GET", target).header("Host", host).header("X-Tenant", "acme").send().expect(200);
    };
    ask("/api/x", "a.example");
    ask("/other", "b.example");
    ask("/mine", "a.example");
    let all = lines(&server, "all.log", 1);
    assert_eq!(all[0]["request"]["uri"], "/mine");
    assert_eq!([&all[0]["request"]["remote_ip"], &all[0]["tenant"]], ["127.0.0.0", "acme"]);
    assert_eq!(all[0]["kind"], "text/plain; charset=utf-8");
    assert!(all[0]["ts"].as_str().unwrap().ends_with('Z'), "{:#}", all[0]);
    let api = lines(&server, "api.log", 1);
    assert_eq!([&api[0]["logger"], &api[0]["region"]], ["http.log.access.api", "eu"]);
    assert_eq!(api[0]["request"]["uri"], "/api/x");
    server.stop();
}

#[test]
fn credentials_are_logged_only_if_the_server_says_so() {
    let site = "log {\n\t\toutput file DIRECTORY/access.log\n\t\tformat json\n\t}\nrespond ok";
    for (options, shown) in [("", "REDACTED"), ("servers {\n\t\tlog_credentials\n\t}", "sid=1")] {
        let server = Setup::new().global_options(options).site(site).start();
        server.request("GET", "/mark").header("Cookie", "sid=1").send().expect(200);
        let log = server.directory().join("access.log");
        let line: Value = until("the request is logged", || {
            let text = fs::read_to_string(&log).ok()?;
            serde_json::from_str(text.lines().find(|line| line.contains("/mark"))?).ok()
        });
        assert_eq!(line["request"]["headers"]["Cookie"][0], shown);
        server.stop();
    }
}

#[test]
fn the_servers_own_log_rolls_too() {
    let text = "{
        admin off
        debug
        log {
            output file DIRECTORY/server.log {
                roll_size 1KiB
                roll_uncompressed
                roll_keep 3
            }
            format json {
                time_format rfc3339
                level_format upper
                time_key time
                message_key message
                name_key \"\"
            }
        }
    }
    http://:PORT {
        bind LOOPBACK
        error 404
    }";
    let server = Setup::new().caddyfile(text).start();
    until("a full log is followed by another", || {
        server.get("/").expect(404);
        let is_old = |name: &&String| name.starts_with("server-") && name.ends_with(".log");
        names(server.directory()).iter().find(is_old).cloned()
    });
    let log = fs::read_to_string(server.directory().join("server.log")).unwrap();
    for line in log.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        assert!(
            line["time"].as_str().unwrap().ends_with('Z') && line["level"].as_str().unwrap() != "debug",
            "{line}"
        );
        assert!(
            line["message"].is_string() && line.get("logger").is_none() && line.get("ts").is_none(),
            "{line}"
        );
    }
    server.stop();
}

#[test]
fn secrets_in_cookies_and_addresses_are_hashed() {
    let server = Setup::new()
        .global_options("servers {\nlog_credentials\n}")
        .site(
            "log {
        output file DIRECTORY/access.log
        format filter {
            wrap json
            request>headers>Cookie cookie {
                hash session
                delete ad
                replace theme hidden
            }
            request>uri query {
                hash token
            }
            request>remote_ip hash
            request>headers>User-Agent multi_regexp {
                regexp \\d+ N
                regexp N/N version
            }
        }
    }
    respond ok",
        )
        .start();
    let request = server.request("GET", "/mark?token=abc&x=1").header("User-Agent", "app 12/3");
    request.header("Cookie", "session=abc; ad=1; theme=dark; other=2").send().expect(200);
    let line = until("the log has the request", || {
        let lines = lines(&server, "access.log", 1);
        lines
            .into_iter()
            .find(|line| line["request"]["uri"].as_str().is_some_and(|uri| uri.starts_with("/mark")))
    });
    let request = &line["request"];
    assert_eq!(request["headers"]["Cookie"][0], "session=ba7816bf; theme=hidden; other=2");
    assert_eq!(request["uri"], "/mark?token=ba7816bf&x=1");
    assert_eq!(request["headers"]["User-Agent"][0], "app version");
    // Of `printf 127.0.0.1 | sha256sum`.
    assert_eq!(request["remote_ip"], "12ca17b4");
    server.stop();
}

#[test]
fn lines_go_to_the_logs_that_include_their_logger() {
    let text = "{
        admin off
        log {
            output file DIRECTORY/server.log
            format json
            exclude php http.log.access.shop
        }
        log scripts {
            output file DIRECTORY/scripts.log
            format json
            include php
        }
        log everything {
            output file DIRECTORY/all.log
            format json
        }
        frankenphp {
            num_threads 1
        }
    }
    http://:PORT {
        bind LOOPBACK
        root * ROOT
        log
        log shop
        log own {
            output file DIRECTORY/own.log
            format json
        }
        php_server
    }";
    let script = "<?php error_log('from a script'); echo 'ok';";
    let mut server = Setup::new().caddyfile(text).file("index.php", script).start();
    server.get("/seen").expect(200);
    server.signal(rustix::process::Signal::TERM);
    assert!(server.wait().success());
    let loggers = |name: &str| {
        let log = fs::read_to_string(server.directory().join(name)).unwrap();
        let logger = |line: &str| {
            let line: Value = serde_json::from_str(line).unwrap();
            let uri = line["request"]["uri"].as_str();
            let is_other = uri.is_some_and(|uri| uri != "/seen");
            (!is_other).then(|| line["logger"].as_str().unwrap().to_owned())
        };
        let mut found: Vec<_> = log.lines().filter_map(logger).collect();
        found.sort();
        found.dedup();
        found
    };
    let has = |name: &str, logger: &str| loggers(name).iter().any(|found| found == logger);
    assert!(has("server.log", "engines") && has("server.log", "http.log.access"));
    for other in ["php", "http.log.access.shop", "http.log.access.own"] {
        assert!(!has("server.log", other), "{other}");
    }
    assert_eq!(loggers("scripts.log"), ["php"]);
    for logger in ["engines", "php", "http.log.access", "http.log.access.shop", "http.log.access.own"] {
        assert!(has("all.log", logger), "{logger}");
    }
    assert_eq!(loggers("own.log"), ["http.log.access.own"]);
}

#[test]
fn times_are_written_in_a_layout_of_go() {
    let server = Setup::new()
        .site("log {\noutput file DIRECTORY/own.log\nformat json {\ntime_format \"2006-01-02T15:04:05Z07:00\"\n}\n}\nrespond x")
        .start();
    server.get("/").expect(200);
    let line = lines(&server, "own.log", 1).remove(0);
    let time = line["ts"].as_str().expect("a text");
    assert!(time.len() == 20 && time.starts_with("20") && time.ends_with('Z'), "{time}");
    server.stop();
}

#[test]
fn lines_have_the_level_that_a_route_says_and_the_server_s_log_its_filters() {
    let global = "log {
        output file DIRECTORY/server.log
        format filter {
            wrap json {
                level_format color
            }
            request>headers>X-Key delete
        }
    }
    log own {
        output file DIRECTORY/own.log {
            dir_mode 0750
        }
        format append {
            wrap json
            place here
        }
        include http.log.access
    }";
    let site = "log\nlog_level /quiet WARN\nrespond \"{http.request.duration_ms} {err.id}\"";
    let server = Setup::new().global_options(global).site(site).start();
    for target in ["/quiet", "/loud"] {
        server.request("GET", target).header("X-Key", "secret").send().expect(200);
    }
    let of_access = |file: &str| {
        until(&format!("{file} has both requests"), || {
            let text = fs::read_to_string(server.directory().join(file)).ok()?;
            let lines: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
            let of = |uri: &str| lines.iter().find(|line| line["request"]["uri"] == uri).cloned();
            Some([of("/quiet")?, of("/loud")?])
        })
    };
    let found = of_access("server.log");
    assert_eq!(
        [&found[0]["level"], &found[1]["level"]],
        ["\u{1b}[33mWARN\u{1b}[0m", "\u{1b}[34mINFO\u{1b}[0m"]
    );
    assert!(found[0]["request"]["headers"]["X-Key"].is_null(), "{:#}", found[0]);
    let found = of_access("own.log");
    assert_eq!([&found[0]["level"], &found[0]["place"]], ["warn", "here"]);
    let age: f64 = server.get("/loud").expect(200).text().trim().parse().expect("a number of milliseconds");
    assert!(age > 0.0);
    server.stop();
}

/// As GoAccess, AWStats and fail2ban read it.
#[test]
fn lines_are_those_of_apache_and_no_client_forges_one() {
    let site = "log {
        output file DIRECTORY/access.log
        format transform {combined_log}
    }
    log {
        output file DIRECTORY/own.log
        format filter {
            wrap transform `{request>client_ip} {status} {request>headers>X-Id>[0]:request>method} {nothing}` {
                placeholder none
            }
            request>client_ip ip_mask 8
        }
    }
    respond /missing 404
    respond hello";
    let global = "log {
        output file DIRECTORY/server.log
        format transform \"{level}: {msg}\"
    }";
    let server = Setup::new().global_options(global).site(site).start();
    server.raw("GET /a?x=1 HTTP/1.1\r\nHost: a\r\nReferer: https://b/\r\nUser-Agent: c \"d\"\u{9b}31m\r\nX-Id: 7\r\nConnection: close\r\n\r\n");
    server.raw("HEAD /missing HTTP/1.0\r\n\r\n");
    let text = |file: &str| fs::read_to_string(server.directory().join(file)).unwrap_or_default();
    let own = |text: &str, path: &str| -> Vec<String> {
        text.lines().filter(|line| line.contains(path)).map(str::to_owned).collect()
    };
    let missing = until("both are logged", || own(&text("access.log"), " /missing ").pop());
    let first = own(&text("access.log"), " /a?x=1 ").pop().expect("it came before");
    let (start, end) = first.split_once('[').expect("a time");
    assert_eq!(start, "127.0.0.1 - - ");
    let (time, end) = end.split_once(']').expect("its end");
    assert!(time.len() == 26 && time.ends_with(" +0000") && time.as_bytes()[2] == b'/', "{time}");
    assert_eq!(end, r#" "GET /a?x=1 HTTP/1.1" 200 5 "https://b/" "c \"d\"\u009b31m""#);
    assert!(missing.ends_with(r#" "HEAD /missing HTTP/1.0" 404 0 "-" "-""#), "{missing}");
    let masked = until("the other log has them too", || {
        Some(own(&text("own.log"), " 404 ")).filter(|lines| !lines.is_empty())
    });
    assert_eq!(masked, ["127.0.0.0 404 HEAD none"]);
    assert_eq!(own(&text("own.log"), " 200 7 "), ["127.0.0.0 200 7 none"]);
    until("the server's own log is so too", || {
        text("server.log").contains("info: PHP is running\n").then_some(())
    });
    server.stop();
}

#[test]
fn the_context_of_a_script_s_line_was_one_text_and_vanished_when_it_was_long() {
    let worker = r"<?php
        frankenphp_log('booted', FRANKENPHP_LOG_LEVEL_INFO, ['since' => 'boot']);
        while (frankenphp_handle_request(function () {
            frankenphp_log('sold', FRANKENPHP_LOG_LEVEL_WARN, [
                'user' => 7, 'tags' => ['a', 'b'], 'name' => 'J' . chr(255), 'level' => 'debug',
                'long' => str_repeat('x', 200000),
            ]);
            error_log(str_repeat('y', 200000));
        })) { }";
    let server = Setup::new()
        .php_options("num_threads 2\n\t\tworker {\n\t\t\tfile ROOT/index.php\n\t\t\tnum 1\n\t\t}")
        .file("index.php", worker)
        .start();
    server.get("/").expect(200);
    // What is logged outside of a request comes another way.
    server.wait_for_log("booted");
    server.wait_for_log("yyyy");
    let log = server.log();
    let line = |what: &str| -> serde_json::Value {
        let found = log.lines().find(|line| line.contains(what)).unwrap_or_else(|| panic!("{what} in {log}"));
        serde_json::from_str(found).expect("a line is JSON")
    };
    assert_eq!(line("booted")["since"], "boot");
    let sold = line("sold");
    assert_eq!((&sold["user"], &sold["tags"]), (&7.into(), &serde_json::json!(["a", "b"])));
    assert_eq!(
        (&sold["name"], &sold["level"], &sold["context.level"]),
        (&"J\u{fffd}".into(), &"warn".into(), &"debug".into())
    );
    for text in [&sold["long"], &line("yyyy")["msg"]] {
        let text = text.as_str().expect("a text");
        assert!(text.len() > 1000 && text.ends_with(" more bytes]"), "{}", text.len());
    }
    server.stop();
}
