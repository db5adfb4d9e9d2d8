//! Names and passwords.
#![forbid(unsafe_code)]

use regent_tests::{Setup, regent_command};
use std::process::Stdio;

/// ada:secret
const RIGHT: &str = "Basic YWRhOnNlY3JldA==";
/// ada:wrong
const WRONG: &str = "Basic YWRhOndyb25n";

/// Of "secret".
fn hash(setup: &Setup, arguments: &[&str]) -> String {
    let mut command = regent_command(setup.directory());
    command.args(["hash-password", "--plaintext", "secret"]).args(arguments).stdin(Stdio::null());
    let output = command.output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_password_may_be_hashed_by_argon2id() {
    let setup = Setup::new();
    let hash = hash(&setup, &["--algorithm", "argon2id", "--argon2id-memory", "64"]);
    assert!(hash.starts_with("$argon2id$v=19$m=64,t=1,p=1$"), "{hash}");
    let server = setup.site(&format!("basic_auth argon2id Staff {{\nada {hash}\n}}\nrespond in")).start();
    let answer = |credentials: &str| server.request("GET", "/").header("Authorization", credentials).send();
    assert_eq!(answer(WRONG).expect(401).header("WWW-Authenticate"), Some("Basic realm=\"Staff\""));
    for _ in 0..2 {
        assert_eq!(answer(RIGHT).expect(200).text(), "in");
    }
    server.stop();
}

#[test]
fn a_password_is_asked_for_and_its_user_told() {
    let setup = Setup::new();
    let hash = hash(&setup, &["--bcrypt-cost", "5"]);
    let site = format!(
        "header /admin/* X-Once 1
        request_header +X-Added 1
        basic_auth /admin/* {{
            ada {hash}
        }}
        handle_errors {{
            respond \"error {{err.status_code}}\"
        }}
        php_server {{
            env REMOTE_USER {{http.auth.user.id}}
        }}"
    );
    let script = "<?php echo $_SERVER['REMOTE_USER'], ' ', $_SERVER['HTTP_X_ADDED'], ' ', file_get_contents('php://input');";
    let server =
        setup.site(&site).file("admin/index.php", script).file("index.php", "<?php echo 'open';").start();
    assert_eq!(server.get("/").expect(200).text(), "open");
    for credentials in [None, Some(WRONG), Some("Bearer x")] {
        let request = server.request("GET", "/admin/");
        let request =
            credentials.into_iter().fold(request, |request, field| request.header("Authorization", field));
        let answer = request.send().expect(401);
        assert_eq!(answer.header("WWW-Authenticate"), Some("Basic realm=\"restricted\""));
        assert_eq!(answer.text(), "error 401");
    }
    for _ in 0..2 {
        let request = server.request("POST", "/admin/").header("Authorization", RIGHT);
        let answer = request.body("text/plain", "body").send().expect(200);
        assert_eq!((answer.text().as_str(), answer.header("X-Once")), ("ada 1 body", Some("1")));
    }
    server.stop();
}
