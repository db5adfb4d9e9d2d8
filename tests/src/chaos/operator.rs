//! What operators do to a running server, while requests come.

use super::faults::Operation;
use super::question::Versions;
use super::site::{self, Site};
use crate::wait::try_until;
use crate::{DEADLINE, Response, Server};

/// Who looks after the server.
pub struct Operator<'a> {
    pub server: &'a mut Server,
    pub site: Site,
    versions: &'a Versions,
    /// The configuration's settings of PHP, which another engine has.
    engine: u64,
}

impl<'a> Operator<'a> {
    pub fn new(server: &'a mut Server, site: Site, versions: &'a Versions) -> Self {
        Self { server, site, versions, engine: 0 }
    }

    /// Does it, and waits until it is in force.
    ///
    /// # Errors
    /// When the server refuses it, or does something else.
    pub fn operate(&mut self, operation: Operation) -> Result<(), String> {
        match operation {
            Operation::RestartWorkers => self.post("/regent/workers/restart", 200),
            Operation::RestartNative => self.post("/regent/native/restart", 200),
            Operation::Reload => self.reload("/regent/reload"),
            Operation::ReloadEngine => {
                self.engine += 1;
                self.reload("/regent/reload")
            }
            Operation::ReloadForced => self.reload("/regent/reload?force=true"),
            Operation::ReloadWrong => self.reload_what_is_wrong(),
            Operation::Touch => self.touch(),
            Operation::Deploy => self.deploy(),
            Operation::Upgrade => self.upgrade(),
        }
    }

    fn reload(&mut self, target: &str) -> Result<(), String> {
        let round = self.versions.round.begin();
        self.server.write_caddyfile(&self.site.caddyfile(round, self.engine));
        self.post(target, 200)?;
        self.versions.round.settle();
        Ok(())
    }

    fn reload_what_is_wrong(&mut self) -> Result<(), String> {
        self.server.write_caddyfile("http://:PORT {\n\tno_such_directive\n}\n");
        let refused = self.post("/regent/reload", 400);
        self.server.write_caddyfile(&self.site.caddyfile(self.versions.round.newest(), self.engine));
        refused
    }

    fn touch(&mut self) -> Result<(), String> {
        let version = self.versions.text.begin();
        site::write_text(&self.server.root(), version);
        let wanted = format!("worker {version} 0");
        let asked = self.server.request("GET", "/worker.php?n=0");
        let seen = try_until(DEADLINE, || {
            asked.try_send().ok().filter(|answer| answer.text() == wanted).map(|_| ())
        });
        self.versions.text.settle();
        seen.ok_or_else(|| "the workers have not loaded what has changed".to_owned())
    }

    fn deploy(&mut self) -> Result<(), String> {
        let version = self.versions.release.begin();
        site::release(self.server.directory(), version);
        let answer = self.ask("/regent/reload?force=true&wait=30")?;
        if answer.status != 200 {
            return Err(describe(&answer));
        }
        self.versions.release.settle();
        // Requests that hang may still be in the release before.
        if answer.json()["before"] == "ended" {
            site::delete_release(self.server.directory(), version - 1);
        }
        Ok(())
    }

    fn upgrade(&mut self) -> Result<(), String> {
        let answer = self.ask("/regent/upgrade")?;
        let process = answer.json()["process"].as_u64().and_then(|pid| u32::try_from(pid).ok());
        let successor = process.ok_or_else(|| describe(&answer))?;
        // Until the one before has ended, it answers what it has begun.
        self.server.follow(successor);
        Ok(())
    }

    fn post(&self, target: &str, expected: u16) -> Result<(), String> {
        let answer = self.ask(target)?;
        if answer.status == expected { Ok(()) } else { Err(describe(&answer)) }
    }

    fn ask(&self, target: &str) -> Result<Response, String> {
        let request = self.server.admin().request("POST", target);
        request.try_send().map_err(|error| format!("the admin API: {error}"))
    }
}

fn describe(answer: &Response) -> String {
    format!("{} {:.300}", answer.status, answer.text())
}
