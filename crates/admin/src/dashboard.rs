//! The dashboard: a page and its parts, compiled in. No build step, and nothing from elsewhere.

use crate::answer::{Answer, text};
use crate::failure::Failure;

const FILES: &[(&str, &str, &str)] = &[
    ("cache.js", "text/javascript; charset=utf-8", include_str!("dashboard/cache.js")),
    ("dashboard.css", "text/css; charset=utf-8", include_str!("dashboard/dashboard.css")),
    ("dashboard.js", "text/javascript; charset=utf-8", include_str!("dashboard/dashboard.js")),
    ("page.js", "text/javascript; charset=utf-8", include_str!("dashboard/page.js")),
    ("plot.js", "text/javascript; charset=utf-8", include_str!("dashboard/plot.js")),
];

pub(crate) fn page() -> Answer {
    text("text/html; charset=utf-8", include_str!("dashboard/index.html"))
}

pub(crate) fn file(name: &str) -> Result<Answer, Failure> {
    let found = FILES.iter().find(|(known, ..)| *known == name);
    let unknown = || Failure::UnknownPath { path: format!("/regent/dashboard/{name}") };
    found.map(|(_, media_type, content)| text(media_type, *content)).ok_or_else(unknown)
}
