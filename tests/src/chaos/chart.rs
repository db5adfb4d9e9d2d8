//! The timeline as SVG: faults above, latency and failures below, memory at the bottom, over one axis of time.

use super::faults::FAULTS;
use super::injector::{Injection, Outcome};
use super::timeline::Second;
use super::usage::Usage;
use std::fmt::Write;
use std::time::Duration;

/// Pixels.
const WIDTH: f64 = 1180.0;
const LEFT: f64 = 250.0;
const RIGHT: f64 = 20.0;
const ROW: f64 = 15.0;
const LATENCY: f64 = 220.0;
const FAILURES: f64 = 90.0;
const MEMORY: f64 = 90.0;
const GAP: f64 = 46.0;
/// Milliseconds at the ends of the latency's axis, which is logarithmic.
const LEAST: f64 = 0.1;
const MOST: f64 = 10_000.0;

const MARKS: [(f64, &str); 6] =
    [(0.1, "0.1 ms"), (1.0, "1 ms"), (10.0, "10 ms"), (100.0, "100 ms"), (1000.0, "1 s"), (10_000.0, "10 s")];
/// The curves of the latency by their class.
const CURVES: [(&str, Figure); 3] =
    [("max", |second| second.max), ("p99", |second| second.p99), ("p50", |second| second.p50)];

/// Of a second.
type Figure = fn(&Second) -> f64;

/// What is drawn.
pub struct Timeline<'a> {
    pub seconds: &'a [Second],
    pub injections: &'a [Injection],
    pub usages: &'a [Usage],
    /// Parts of the run, by their beginnings.
    pub phases: &'a [(Duration, &'static str)],
}

/// A chart in the making.
struct Canvas {
    svg: String,
    /// Of the run.
    seconds: f64,
    /// Where the next part begins.
    top: f64,
}

impl Timeline<'_> {
    /// The picture, to be set within the page of [`super::report`], whose style it needs.
    pub fn svg(&self) -> String {
        let seconds = (self.seconds.len() as f64).max(1.0);
        let mut canvas = Canvas { svg: String::new(), seconds, top: 24.0 };
        self.draw_phases(&mut canvas);
        self.draw_faults(&mut canvas);
        self.draw_latency(&mut canvas);
        self.draw_failures(&mut canvas);
        self.draw_memory(&mut canvas);
        let height = canvas.top;
        format!(
            "<svg class=\"timeline\" viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" aria-label=\"Faults, latency, failures and \
             memory over time\">\n{}</svg>\n",
            canvas.svg
        )
    }

    fn shown(&self) -> Vec<usize> {
        let is_there = |fault: &usize| self.injections.iter().any(|injection| injection.fault == *fault);
        (0..FAULTS.len()).filter(is_there).collect()
    }

    fn draw_phases(&self, canvas: &mut Canvas) {
        let height = ROW * self.shown().len() as f64 + LATENCY + FAILURES + MEMORY + 3.0 * GAP + 18.0;
        for (begin, name) in self.phases {
            let x = canvas.x(begin.as_secs_f64());
            canvas.line("phase", x, 14.0, x, canvas.top + height);
            canvas.text("start", x + 3.0, 12.0, name);
        }
    }

    fn draw_faults(&self, canvas: &mut Canvas) {
        let rows = self.shown();
        let legend = "faults; one in outline got no answer: it ran in an engine that another one has killed, or is not as expected";
        canvas.top += 14.0;
        canvas.text("start", LEFT, canvas.top, legend);
        canvas.top += 4.0;
        for fault in &rows {
            let y = canvas.top;
            let fault_of = &FAULTS[*fault];
            canvas.line("grid", LEFT, y + ROW, WIDTH - RIGHT, y + ROW);
            canvas.text("end", LEFT - 8.0, y + ROW - 4.0, fault_of.name);
            for injection in self.injections.iter().filter(|injection| injection.fault == *fault) {
                let (from, until) = (injection.from.as_secs_f64(), injection.until.as_secs_f64());
                let (x, end) = (canvas.x(from), canvas.x(until));
                let class = if injection.outcome == Outcome::AsExpected {
                    fault_of.kind.to_string()
                } else {
                    "failed".to_owned()
                };
                let title = format!("{} at {from:.1} s, {:.2} s", fault_of.name, until - from);
                canvas.bar(&class, x, y + 2.0, (end - x).max(3.0), ROW - 4.0, &title);
            }
            canvas.top += ROW;
        }
        canvas.top += GAP;
    }

    fn draw_latency(&self, canvas: &mut Canvas) {
        let top = canvas.top;
        let y = |milliseconds: f64| {
            let share = (milliseconds.clamp(LEAST, MOST) / LEAST).log10() / (MOST / LEAST).log10();
            top + LATENCY * (1.0 - share)
        };
        canvas.text(
            "start",
            LEFT,
            top - 8.0,
            "latency of the requests that were answered: p50, p99, greatest of each second",
        );
        for (milliseconds, label) in MARKS {
            canvas.line("grid", LEFT, y(milliseconds), WIDTH - RIGHT, y(milliseconds));
            canvas.text("end", LEFT - 8.0, y(milliseconds) + 4.0, label);
        }
        canvas.line("limit", LEFT, y(3000.0), WIDTH - RIGHT, y(3000.0));
        canvas.text("end", LEFT - 8.0, y(3000.0) + 4.0, "limit 3 s");
        for (class, of) in CURVES {
            let drawn = self.seconds.iter().enumerate().filter(|(_, second)| second.requests > 0);
            let points = drawn.map(|(at, second)| (at as f64 + 0.5, y(of(second))));
            canvas.curve(class, points.collect());
        }
        canvas.top += LATENCY + GAP;
    }

    fn draw_failures(&self, canvas: &mut Canvas) {
        let (top, bottom) = (canvas.top, canvas.top + FAILURES);
        let most =
            self.seconds.iter().map(|second| second.excused + second.lost).max().unwrap_or(0).max(5) as f64;
        canvas.text(
            "start",
            LEFT,
            top - 8.0,
            "requests that failed in each second: lost (red), and those that ran in an engine that was made to die (amber)",
        );
        for count in [0.0, most] {
            let y = bottom - FAILURES * count / most;
            canvas.line("grid", LEFT, y, WIDTH - RIGHT, y);
            canvas.text("end", LEFT - 8.0, y + 4.0, &format!("{count:.0}"));
        }
        let width = ((WIDTH - LEFT - RIGHT) / canvas.seconds).max(1.5);
        for (at, second) in self.seconds.iter().enumerate() {
            let mut floor = bottom;
            for (class, count) in [("lost", second.lost), ("excused", second.excused)] {
                if count > 0 {
                    let height = FAILURES * count as f64 / most;
                    floor -= height;
                    let title = format!("{count} {class} in second {at}");
                    canvas.bar(class, canvas.x(at as f64), floor, width, height, &title);
                }
            }
        }
        canvas.top += FAILURES + GAP;
    }

    fn draw_memory(&self, canvas: &mut Canvas) {
        let (top, bottom) = (canvas.top, canvas.top + MEMORY);
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let most = self.usages.iter().map(|usage| mib(usage.resident)).fold(16.0, f64::max).ceil();
        let of_descriptors = self.usages.iter().map(|usage| usage.descriptors).max().unwrap_or(1) as f64;
        let label = format!(
            "the server's memory (blue, at most {most:.0} MiB resident) and descriptors (grey, at most {of_descriptors})"
        );
        canvas.text("start", LEFT, top - 8.0, &label);
        canvas.line("grid", LEFT, bottom, WIDTH - RIGHT, bottom);
        // Another process begins another curve.
        for process in self.usages.chunk_by(|one, other| one.pid == other.pid) {
            let at = |usage: &Usage| usage.at.as_secs_f64();
            let memory =
                process.iter().map(|usage| (at(usage), bottom - MEMORY * mib(usage.resident) / most));
            let descriptors = process
                .iter()
                .map(|usage| (at(usage), bottom - MEMORY * usage.descriptors as f64 / of_descriptors));
            canvas.curve("descriptors", descriptors.collect());
            canvas.curve("memory", memory.collect());
        }
        canvas.top += MEMORY;
        canvas.time_axis();
        canvas.top += 30.0;
    }
}

impl Canvas {
    fn x(&self, second: f64) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * (second / self.seconds).min(1.0)
    }

    fn line(&mut self, class: &str, x1: f64, y1: f64, x2: f64, y2: f64) {
        self.add(format_args!(
            "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
        ));
    }

    fn text(&mut self, anchor: &str, x: f64, y: f64, text: &str) {
        let text = escape(text);
        self.add(format_args!("<text text-anchor=\"{anchor}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>"));
    }

    fn bar(&mut self, class: &str, x: f64, y: f64, width: f64, height: f64, title: &str) {
        let title = escape(title);
        self.add(format_args!(
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"><title>{title}</title></rect>"
        ));
    }

    /// Through these points: seconds, and pixels from the top.
    fn curve(&mut self, class: &str, points: Vec<(f64, f64)>) {
        let mut path = String::new();
        for (second, y) in points {
            let _ = write!(path, "{:.1},{y:.1} ", self.x(second));
        }
        self.add(format_args!("<polyline class=\"{class}\" points=\"{}\"/>", path.trim_end()));
    }

    fn time_axis(&mut self) {
        const STEPS: [f64; 6] = [1.0, 2.0, 5.0, 10.0, 30.0, 60.0];
        let step = STEPS.into_iter().find(|step| self.seconds / step <= 16.0).unwrap_or(120.0);
        let mut second = 0.0;
        while second <= self.seconds {
            let x = self.x(second);
            self.line("grid", x, self.top, x, self.top + 4.0);
            self.text("middle", x, self.top + 17.0, &format!("{second:.0} s"));
            second += step;
        }
    }

    fn add(&mut self, element: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.svg, "{element}");
    }
}

/// Text as it stands in HTML and SVG.
pub fn escape(text: &str) -> String {
    text.chars().fold(String::new(), |mut out, character| {
        match character {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            // XML has no form for other control characters.
            character if character.is_control() && character != '\n' => out.push('\u{fffd}'),
            character => out.push(character),
        }
        out
    })
}
