//! The dashboard in a real browser.
//!
//! With `REGENT_SCREENSHOTS=DIRECTORY`, pictures of it are left there: light, dark, and as wide as a telephone.

use crate::support::{HOSTILE_URI, Panics, Site};
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn threads_are_shown_and_a_hostile_uri_is_text() {
    let Some(browser) = browser() else { return };
    let site = Site::start();
    let page = browser.dump(&site, "/");
    assert!(page.contains("<title>Regent</title>"), "the hostile URI ran, or the page did not come: {page}");
    assert!(page.contains(&format!("GET {}", escaped(HOSTILE_URI))), "{page}");
    assert!(!page.contains("<img"), "a request's URI became markup: {page}");
    assert!(page.contains("POST /reports/yearly?format=pdf"), "{page}");
    assert_eq!(page.matches("state-idle").count(), 5, "{page}");
    assert!(page.contains(">hello</td>") && page.contains(">PHP</td>"), "{page}");
    assert!(page.contains(">stuck</td>") && page.contains("1 min 15 s"), "{page}");
}

#[test]
fn routes_scaling_and_plots_are_shown() {
    let Some(browser) = browser() else { return };
    let site = Site::start();
    let page = browser.dump(&site, "/regent/");
    assert!(page.contains("queue head waited 3.2 ms, 96 % blocked") && page.contains("10 → 26"), "{page}");
    assert!(page.contains(&escaped("/<b>bold</b>")) && !page.contains("<b>bold"), "{page}");
    assert!(page.contains("12 of 12, 7 wait") && page.contains(">On the CPU</th>"), "{page}");
    assert!(page.contains("opcache_reset()"), "{page}");
    let lines = page.matches("class=\"line ink-").count();
    let areas = page.matches("class=\"area ink-").count();
    assert_eq!((lines, areas), (1 + 3 + 3 + 1 + 3, 6), "{page}");
    assert!(page.contains("<p id=\"silence\" role=\"alert\" hidden=\"\">"), "{page}");
}

#[test]
fn a_php_with_known_holes_is_shown_with_the_version_that_has_none() {
    let Some(browser) = browser() else { return };
    let page = browser.dump(&Site::start(), "/");
    assert!(page.contains(", PHP 8.4.24, up for "), "{page}");
    assert!(page.contains("<p id=\"old-php\" role=\"alert\">PHP 8.4.24 has holes"), "{page}");
    assert!(page.contains("without is 8.4.28"), "{page}");
}

#[test]
fn background_scripts_are_shown_with_what_they_can_be_told() {
    let Some(browser) = browser() else { return };
    let page = browser.dump(&Site::start(), "/");
    assert!(page.contains("<section id=\"tasks-section\">"), "{page}");
    assert!(page.contains(&escaped("<b>nightly</b>")) && !page.contains("<b>nightly"), "{page}");
    assert!(page.contains("<button>restart</button><button>stop</button>"), "{page}");
    assert!(
        page.contains("<button>run</button><button>stop</button>") && page.contains("status 3"),
        "{page}"
    );
}

#[test]
fn the_stack_of_a_thread_is_shown() {
    let Some(browser) = browser() else { return };
    let site = Site::start();
    let page = browser.dump(&site, "/");
    // Of busy threads, and not of those of native modules.
    assert!(page.contains("<button value=\"0\">Stack</button>"), "{page}");
    assert!(!page.contains("open=\"\""), "{page}");
    let page = browser.dump(&site, "/#stack=0");
    assert!(page.contains("open=\"\"") && page.contains("#0 sleep()\n#1 {main} /app/a.php:3"), "{page}");
    assert!(page.contains("Thread 0 of PHP"), "{page}");
    let page = browser.dump(&site, "/#stack=7");
    assert!(page.contains("there is no thread 7 of PHP"), "{page}");
    let page = browser.dump(&site, "/#stack=<img>");
    assert!(!page.contains("open=\"\""), "{page}");
}

#[test]
fn a_server_that_refuses_is_told_of() {
    let Some(browser) = browser() else { return };
    let site = Site::start();
    // The page comes; the connection on which it asks for figures is closed without an answer.
    site.fake.state().panics = Panics::InStatistics;
    let page = browser.dump(&site, "/");
    assert!(page.contains("The server does not answer ("), "{page}");
    assert!(page.contains("class=\"stale\""), "{page}");
}

#[test]
fn pictures_are_left_where_they_are_asked_for() {
    let Some(directory) = std::env::var_os("REGENT_SCREENSHOTS") else {
        eprintln!("SKIPPED: REGENT_SCREENSHOTS names no directory to leave pictures in");
        return;
    };
    let Some(browser) = browser() else { return };
    let site = Site::start();
    let directory = Path::new(&directory);
    for (name, options) in [
        ("light", &["--window-size=1400,1500"] as &[&str]),
        ("dark", &["--window-size=1400,1500", "--blink-settings=preferredColorScheme=0"]),
        ("phone", &["--window-size=390,2900"]),
    ] {
        let picture = directory.join(format!("dashboard-{name}.png"));
        let shot = format!("--screenshot={}", picture.display());
        browser.run(&[options, &["--virtual-time-budget=90000", &shot]].concat(), &site, "/");
        assert!(std::fs::metadata(&picture).unwrap().len() > 10_000);
    }
}

/// Seconds, after which a browser that hangs is ended.
const LONGEST_RUN: &str = "180";

struct Browser(&'static str);

/// Debian's name, and Ubuntu's.
fn browser() -> Option<Browser> {
    let installed = |name: &&str| {
        Command::new(name)
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|s| s.success())
    };
    let found = ["chromium", "chromium-browser"].into_iter().find(installed);
    if found.is_none() {
        eprintln!("SKIPPED: chromium is not installed, so that nobody has looked at the dashboard");
    }
    found.map(Browser)
}

impl Browser {
    /// The page as it is after some seconds of its own time.
    fn dump(&self, site: &Site, path: &str) -> String {
        self.run(&["--virtual-time-budget=8000", "--dump-dom"], site, path)
    }

    fn run(&self, options: &[&str], site: &Site, path: &str) -> String {
        let profile = tempfile::tempdir().unwrap();
        let output = Command::new("timeout")
            .args([LONGEST_RUN, self.0])
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .args(options)
            .arg(format!("http://{}{path}", site.address))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

/// Text as the browser writes it in HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
