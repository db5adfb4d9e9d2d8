//! The program that sets the records of the DNS challenge.

use super::error::OrderError;
use super::options::DnsHook;
use std::process::{Output, Stdio};
use std::time::Duration;
use tokio::process::Command;

/// Of one call. A record may take minutes until all servers of a zone have it.
const TIMEOUT: Duration = Duration::from_secs(300);
/// Of what the program has written, in an error.
const TOLD: usize = 500;

/// A record that is there until [`Self::remove`].
pub(super) struct Record<'a> {
    hook: &'a DnsHook,
    fqdn: String,
    value: String,
}

impl<'a> Record<'a> {
    /// `name`: that of the authorization, so without `*.`.
    pub async fn set(hook: &'a DnsHook, name: &str, value: String) -> Result<Self, OrderError> {
        let record = Self { hook, fqdn: format!("_acme-challenge.{name}."), value };
        match record.call("present").await {
            Ok(()) => Ok(record),
            Err(error) => {
                // It may have got half way.
                record.remove().await;
                Err(error)
            }
        }
    }

    /// A record that stays does no harm but to the eye.
    pub async fn remove(self) {
        if let Err(error) = self.call("cleanup").await {
            tracing::warn!(%error, fqdn = self.fqdn, "a record of a DNS challenge was not removed");
        }
    }

    async fn call(&self, action: &str) -> Result<(), OrderError> {
        let mut command = Command::new(&self.hook.program);
        command.args(&self.hook.arguments).args([action, &self.fqdn, &self.value]);
        command.stdin(Stdio::null()).kill_on_drop(true);
        let failed = |reason: String| OrderError::DnsHook { program: self.hook.program.clone(), reason };
        let late = || failed(format!("did not end within {} s", TIMEOUT.as_secs()));
        let output = tokio::time::timeout(TIMEOUT, command.output()).await.map_err(|_| late())?;
        let output = output.map_err(|error| failed(format!("cannot be run: {error}")))?;
        let told = told(&output);
        tracing::info!(program = %self.hook.program.display(), action, fqdn = self.fqdn, status = %output.status, output = told, "called the program for the DNS challenge");
        if output.status.success() {
            Ok(())
        } else {
            Err(failed(format!("failed ({}): {told}", output.status)))
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
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    fn hook(directory: &Path, script: &str) -> DnsHook {
        let program = directory.join("hook");
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        DnsHook { program, arguments: vec!["zone".into()] }
    }

    #[tokio::test]
    async fn the_program_sets_and_removes_the_record() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let hook = hook(directory.path(), &format!("echo \"$@\" >> {}", log.display()));
        let record = Record::set(&hook, "a.test", "value".into()).await.unwrap();
        record.remove().await;
        let calls = std::fs::read_to_string(log).unwrap();
        assert_eq!(
            calls,
            "zone present _acme-challenge.a.test. value\nzone cleanup _acme-challenge.a.test. value\n"
        );
    }

    #[tokio::test]
    async fn a_failure_has_the_words_of_the_program() {
        let directory = tempfile::tempdir().unwrap();
        let failing = hook(directory.path(), "echo no such zone >&2; exit 3");
        let error =
            Record::set(&failing, "a.test", "value".into()).await.map(|_| ()).unwrap_err().to_string();
        assert!(error.ends_with("failed (exit status: 3): no such zone"), "{error}");
        let missing = DnsHook { program: directory.path().join("none"), arguments: Vec::new() };
        let error =
            Record::set(&missing, "a.test", "value".into()).await.map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("cannot be run"), "{error}");
    }
}
