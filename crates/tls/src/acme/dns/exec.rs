//! The program that sets the records of the DNS challenge.

use crate::acme::error::OrderError;
use crate::acme::options::DnsHook;
use std::process::{Output, Stdio};
use std::time::Duration;
use tokio::process::{Child, Command};

/// Of one call. A record may take minutes until all servers of a zone have it.
const TIMEOUT: Duration = Duration::from_secs(300);
/// Of what the program has written, in an error.
const TOLD: usize = 500;

const CLEANUP: &str = "cleanup";

pub(super) async fn present(hook: &DnsHook, fqdn: &str, value: &str) -> Result<(), OrderError> {
    call(hook, "present", fqdn, value).await
}

pub(super) async fn clean_up(hook: &DnsHook, fqdn: &str, value: &str) -> Result<(), OrderError> {
    call(hook, CLEANUP, fqdn, value).await
}

/// The program runs when this returns.
pub(super) fn clean_up_later(hook: &DnsHook, fqdn: &str, value: &str) {
    match command(hook, CLEANUP, fqdn, value).stdout(Stdio::null()).stderr(Stdio::null()).spawn() {
        Ok(child) => drop(tokio::spawn(see_off(child, fqdn.to_owned()))),
        Err(error) => {
            tracing::warn!(%error, fqdn, "a record of a DNS challenge was not removed");
        }
    }
}

async fn call(hook: &DnsHook, action: &str, fqdn: &str, value: &str) -> Result<(), OrderError> {
    let mut command = command(hook, action, fqdn, value);
    command.kill_on_drop(true);
    let failed = |reason: String| OrderError::DnsHook { program: hook.program.clone(), reason };
    let late = || failed(format!("did not end within {} s", TIMEOUT.as_secs()));
    let output = tokio::time::timeout(TIMEOUT, command.output()).await.map_err(|_| late())?;
    let output = output.map_err(|error| failed(format!("cannot be run: {error}")))?;
    let told = told(&output);
    tracing::info!(program = %hook.program.display(), action, fqdn, status = %output.status, output = told, "called the program for the DNS challenge");
    if output.status.success() { Ok(()) } else { Err(failed(format!("failed ({}): {told}", output.status))) }
}

fn command(hook: &DnsHook, action: &str, fqdn: &str, value: &str) -> Command {
    let mut command = Command::new(&hook.program);
    command.args(&hook.arguments).args([action, fqdn, value]).stdin(Stdio::null());
    command
}

async fn see_off(mut child: Child, fqdn: String) {
    match tokio::time::timeout(TIMEOUT, child.wait()).await {
        Ok(Ok(status)) if status.success() => {
            tracing::info!(fqdn, "removed the record of a DNS challenge that was cut off");
        }
        ended => {
            tracing::warn!(?ended, fqdn, "a record of a DNS challenge was not removed");
            // It has ended otherwise.
            let _ = child.start_kill();
        }
    }
}

/// The end of its output, where the reason of a failure is.
fn told(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    let text = String::from_utf8_lossy(&text);
    let text = text.trim();
    let skipped = text.chars().count().saturating_sub(TOLD);
    text.chars().skip(skipped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acme::dns::Record;
    use crate::acme::options::{DnsChallenge, DnsProvider};
    use crate::tests::write_program;
    use std::path::Path;
    use std::sync::Arc;

    fn challenge(hook: DnsHook) -> DnsChallenge {
        DnsChallenge {
            provider: DnsProvider::Exec(hook),
            propagation_delay: Duration::ZERO,
            propagation_timeout: None,
            resolvers: Vec::new(),
            override_domain: None,
            ttl: None,
        }
    }

    fn hook(directory: &Path, script: &str) -> DnsChallenge {
        let program = directory.join("hook");
        write_program(&program, &format!("#!/bin/sh\n{script}\n"));
        challenge(DnsHook { program, arguments: vec!["zone".into()] })
    }

    #[tokio::test]
    async fn the_program_sets_and_removes_the_record() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let hook = hook(directory.path(), &format!("echo \"$@\" >> {}", log.display()));
        let record = Record::set(&hook, &Arc::default(), "a.test", "value".into()).await.unwrap();
        record.remove().await;
        let calls = std::fs::read_to_string(log).unwrap();
        assert_eq!(
            calls,
            "zone present _acme-challenge.a.test. value\nzone cleanup _acme-challenge.a.test. value\n"
        );
    }

    #[tokio::test]
    async fn the_record_of_an_order_that_was_cut_off_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let done = directory.path().join("done");
        let hook = hook(directory.path(), &format!("[ $2 = present ] || echo \"$@\" > {}", done.display()));
        let record = Record::set(&hook, &Arc::default(), "a.test", "value".into()).await.unwrap();
        drop(record);
        let removed = async {
            while !std::fs::read_to_string(&done).is_ok_and(|call| call.ends_with('\n')) {
                // clock: a round of a loop that ends with an event.
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), removed).await.expect("it is called");
        let call = std::fs::read_to_string(&done).unwrap();
        assert_eq!(call, "zone cleanup _acme-challenge.a.test. value\n");
    }

    #[tokio::test]
    async fn a_failure_has_the_words_of_the_program() {
        let directory = tempfile::tempdir().unwrap();
        let failing = hook(directory.path(), "echo no such zone >&2; exit 3");
        let error = Record::set(&failing, &Arc::default(), "a.test", "value".into())
            .await
            .map(|_| ())
            .unwrap_err()
            .to_string();
        assert!(error.ends_with("failed (exit status: 3): no such zone"), "{error}");
        let missing = challenge(DnsHook { program: directory.path().join("none"), arguments: Vec::new() });
        let error = Record::set(&missing, &Arc::default(), "a.test", "value".into())
            .await
            .map(|_| ())
            .unwrap_err()
            .to_string();
        assert!(error.contains("cannot be run"), "{error}");
    }
}
