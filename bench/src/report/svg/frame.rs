//! The plot's box: where it lies in the picture, its axes with their ticks, and where a value lies in it.

use super::domain::{Domain, Ends};
use super::marks::Drawn;
use super::ticks::{Tick, Ticks};
use super::{FONT, LINE, MARGIN, WIDTH, axis_title, letters, limits, px, text_lines};
use crate::report::escape::xml;
use crate::report::page::Figure;

const HEIGHT: f64 = 330.0;
const MOST_TICKS_ACROSS: usize = 10;
const MOST_TICKS_UP: usize = 6;
/// Between a tick and its label, and between neighbouring labels.
const GAP: f64 = 8.0;

/// The box in pixels, and what its sides stand for.
#[derive(Debug)]
pub struct Frame {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
    x: Domain,
    y: Domain,
    x_ticks: Ticks,
    y_ticks: Ticks,
    x_title: Vec<String>,
    y_title: Vec<String>,
}

impl Frame {
    /// The box that holds all series, below `above` and as wide as the labels of its axes allow.
    pub fn of(figure: &Figure, drawn: &[Drawn], above: f64) -> Self {
        let x = Domain::of(figure.x.scale, drawn.iter().flat_map(Drawn::xs), Ends::Values);
        let y = |limits: &[f64]| {
            let values = drawn.iter().flat_map(Drawn::ys).chain(limits.iter().copied());
            Domain::of(figure.y.scale, values, Ends::Round(MOST_TICKS_UP))
        };
        let y = y(&limits::in_reach(figure, &y(&[])));
        let (x_ticks, y_ticks) = (x.ticks(MOST_TICKS_ACROSS), y.ticks(MOST_TICKS_UP));
        let y_title = letters::lines(&axis_title(&figure.y), FONT, HEIGHT);
        let left = MARGIN + y_title.len() as f64 * LINE + widest(&y_ticks) + 2.0 * GAP;
        let right = WIDTH - MARGIN.max(widest(&x_ticks) / 2.0 + 4.0);
        let x_title = letters::lines(&axis_title(&figure.x), FONT, right - left);
        Self { left, top: above, right, bottom: above + HEIGHT, x, y, x_ticks, y_ticks, x_title, y_title }
    }

    pub fn picture_height(&self) -> f64 {
        self.bottom + 2.0 * LINE + GAP + self.x_title.len() as f64 * LINE
    }

    pub fn x(&self, value: f64) -> f64 {
        self.left + self.x.part(value) * (self.right - self.left)
    }

    pub fn y(&self, value: f64) -> f64 {
        self.bottom - self.y.part(value) * (self.bottom - self.top)
    }

    pub fn left(&self) -> f64 {
        self.left
    }

    pub fn right(&self) -> f64 {
        self.right
    }

    pub fn top(&self) -> f64 {
        self.top
    }

    pub fn values(&self) -> &Domain {
        &self.y
    }

    /// The grid, the axes and their labels.
    pub fn draw(&self) -> String {
        let columns = |values: &mut dyn Iterator<Item = f64>| -> String {
            values
                .map(|value| format!("M{} {}V{}", px(self.x(value)), px(self.top), px(self.bottom)))
                .collect()
        };
        let rows = |values: &mut dyn Iterator<Item = f64>| -> String {
            values
                .map(|value| format!("M{} {}H{}", px(self.left), px(self.y(value)), px(self.right)))
                .collect()
        };
        let (x, y) = (&self.x_ticks, &self.y_ticks);
        let minor = columns(&mut x.minor.iter().copied()) + &rows(&mut y.minor.iter().copied());
        let major = columns(&mut x.major.iter().map(|tick| tick.value))
            + &rows(&mut y.major.iter().map(|tick| tick.value));
        let (left, top, right, bottom) = (px(self.left), px(self.top), px(self.right), px(self.bottom));
        path("faint", &minor)
            + &path("grid", &major)
            + &path("axis", &format!("M{left} {top}V{bottom}H{right}"))
            + &self.x_labels()
            + &self.y_labels()
            + &self.titles()
    }

    /// What stands in the middle of a plot that has nothing to show.
    pub fn draw_absence(&self) -> String {
        let (x, y) = (f64::midpoint(self.left, self.right), f64::midpoint(self.top, self.bottom));
        let attributes = " class=\"label\" text-anchor=\"middle\"";
        text_lines(&["no values".to_owned()], x, y, LINE, attributes)
    }

    /// Those that do not touch the one before.
    fn x_labels(&self) -> String {
        let mut free = f64::NEG_INFINITY;
        let y = px(self.bottom + LINE);
        let mut labels = String::new();
        for Tick { value, label } in &self.x_ticks.major {
            let (x, half) = (self.x(*value), letters::width(label, FONT) / 2.0);
            if x - half >= free {
                labels += &format!(
                    "<text x=\"{}\" y=\"{y}\" text-anchor=\"middle\">{}</text>\n",
                    px(x),
                    xml(label)
                );
                free = x + half + GAP;
            }
        }
        labels
    }

    fn y_labels(&self) -> String {
        let x = px(self.left - GAP);
        let label = |tick: &Tick| {
            let y = px(self.y(tick.value) + 4.5);
            format!("<text x=\"{x}\" y=\"{y}\" text-anchor=\"end\">{}</text>\n", xml(&tick.label))
        };
        self.y_ticks.major.iter().map(label).collect()
    }

    fn titles(&self) -> String {
        let middle = f64::midpoint(self.left, self.right);
        let attributes = " class=\"label\" text-anchor=\"middle\"";
        let below = text_lines(&self.x_title, middle, self.bottom + 2.0 * LINE + 6.0, LINE, attributes);
        let (x, y) = (px(MARGIN), px(f64::midpoint(self.top, self.bottom)));
        let beside = text_lines(&self.y_title, 0.0, 10.0, LINE, attributes);
        format!("{below}<g transform=\"translate({x} {y}) rotate(-90)\">\n{beside}</g>\n")
    }
}

fn widest(ticks: &Ticks) -> f64 {
    ticks.major.iter().map(|tick| letters::width(&tick.label, FONT)).fold(0.0, f64::max)
}

/// Empty when there is nothing to draw.
fn path(class: &str, data: &str) -> String {
    if data.is_empty() { String::new() } else { format!("<path class=\"{class}\" d=\"{data}\"/>\n") }
}
