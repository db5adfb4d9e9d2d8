//! A series as it is drawn: its lines, its markers and its sample in the legend.

use super::bezier;
use super::domain::can_show;
use super::frame::Frame;
use super::palette::Look;
use super::px;
use super::simplify::simplify;
use super::ticks;
use crate::report::escape::xml;
use crate::report::format;
use crate::report::page::{Axis, Figure, Point, Series, Style};
use crate::statistics::Spread;

const CROSS: &str = "m-3.5-3.5l7 7m0-7l-7 7";
/// Half the width of an error bar's caps.
const CAP: f64 = 4.0;
/// Series of more points have no values to hover over: one element draws them all.
const MOST_WITH_VALUES: usize = 500;

/// A series with those of its points that have a place on the axes, ascending by x.
#[derive(Debug)]
pub struct Drawn<'a> {
    figure: &'a Figure,
    series: &'a Series,
    look: Look,
    points: Vec<Point>,
}

impl<'a> Drawn<'a> {
    pub fn of(figure: &'a Figure, series: &'a Series, look: Look) -> Self {
        let shown =
            |point: &&Point| can_show(figure.x.scale, point.x) && can_show(figure.y.scale, point.y.median);
        let mut points: Vec<Point> = series.points.iter().filter(shown).copied().collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        Self { figure, series, look, points }
    }

    pub fn label(&self) -> &str {
        &self.series.label
    }

    pub fn xs(&self) -> impl Iterator<Item = f64> {
        self.points.iter().map(|point| point.x)
    }

    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// The values that the axis must reach: with the ends of the error bars where there are any.
    pub fn ys(&self) -> impl Iterator<Item = f64> {
        let bars = self.series.style == Style::Line;
        self.points.iter().flat_map(move |Point { y, .. }| {
            let ends = if bars { [y.min, y.max] } else { [y.median; 2] };
            [y.median].into_iter().chain(ends)
        })
    }

    /// Of the points, in pixels.
    pub fn positions(&self, frame: &Frame) -> impl Iterator<Item = (f64, f64)> {
        self.points.iter().map(|point| (frame.x(point.x), frame.y(point.y.median)))
    }

    pub fn describe(&self) -> String {
        let label = self.label();
        match Spread::of(self.points.iter().map(|point| point.y.median)) {
            None => format!("{label}: no points"),
            Some(all) => {
                let (count, min, max) = (self.points.len(), value(all.min), value(all.max));
                format!("{label}: {count} points, from {min} to {max}")
            }
        }
    }

    pub fn draw(&self, frame: &Frame) -> String {
        if self.is_empty() {
            return String::new();
        }
        let at: Vec<(f64, f64)> = self.positions(frame).collect();
        match self.series.style {
            Style::Trend => {
                let crosses = self.group(&self.each("cross", |index| at_point(at[index], CROSS)));
                crosses + &self.trend(&straight(&bezier::curve(&at)))
            }
            Style::Line => self.group(
                &(self.line("line", &straight(&at))
                    + &self.bars(frame)
                    + &self.each(self.look.filling(), |index| at_point(at[index], self.look.marker()))),
            ),
            Style::Steps => self.group(&self.line("line", &steps(&simplify(&at)))),
            Style::Thin => self.group(&self.line("thin", &straight(&simplify(&at)))),
        }
    }

    /// What stands in the legend: as wide as `width`, around the height `y`.
    pub fn sample(&self, x: f64, y: f64, width: f64) -> String {
        let line = format!("M{} {}h{width}", px(x), px(y));
        let middle = (x + width / 2.0, y);
        match self.series.style {
            Style::Trend => {
                let cross = format!("<path class=\"cross\" d=\"{}\"/>\n", at_point(middle, CROSS));
                self.trend(&line) + &self.group(&cross)
            }
            Style::Line => {
                let (class, marker) = (self.look.filling(), at_point(middle, self.look.marker()));
                self.group(&format!("{}<path class=\"{class}\" d=\"{marker}\"/>\n", self.line("line", &line)))
            }
            Style::Steps => self.group(&self.line("line", &line)),
            Style::Thin => self.group(&self.line("thin", &line)),
        }
    }

    fn group(&self, content: &str) -> String {
        let class = if self.figure.is_single_trend() { "alone".to_owned() } else { self.look.class() };
        format!("<g class=\"{class}\">\n{content}</g>\n")
    }

    /// The trend of red crosses is dark, so that it stands out from them.
    fn trend(&self, path: &str) -> String {
        let class = if self.figure.is_single_trend() { "ink".to_owned() } else { self.look.class() };
        format!("<g class=\"{class}\">\n{}</g>\n", self.line("line", path))
    }

    /// Empty for an empty path.
    fn line(&self, class: &str, path: &str) -> String {
        let dash = if self.figure.is_single_trend() { "" } else { self.look.dash(self.series.style) };
        let dash = if dash.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dash}\"") };
        if path.is_empty() {
            String::new()
        } else {
            format!("<path class=\"{class}\"{dash} d=\"{path}\"/>\n")
        }
    }

    /// From the smallest to the largest value, where they differ.
    fn bars(&self, frame: &Frame) -> String {
        let scale = self.figure.y.scale;
        let bar = |Point { x, y }: &Point| {
            if y.min >= y.max || !can_show(scale, y.max) || !y.min.is_finite() {
                return String::new();
            }
            let (x, low, high, width) = (frame.x(*x), px(frame.y(y.min)), px(frame.y(y.max)), 2.0 * CAP);
            let (left, x) = (px(x - CAP), px(x));
            format!("M{left} {low}h{width}M{x} {low}V{high}M{left} {high}h{width}")
        };
        let path: String = self.points.iter().map(bar).collect();
        if path.is_empty() { path } else { format!("<path class=\"bar\" d=\"{path}\"/>\n") }
    }

    /// An element for each point, which shows its values when the pointer rests on it; or one for all of many points.
    fn each(&self, class: &str, path: impl Fn(usize) -> String) -> String {
        if self.points.len() > MOST_WITH_VALUES {
            let all: String = (0..self.points.len()).map(path).collect();
            return format!("<path class=\"{class}\" d=\"{all}\"/>\n");
        }
        let mark = |(index, point): (usize, &Point)| {
            format!(
                "<path class=\"{class}\" d=\"{}\"><title>{}</title></path>\n",
                path(index),
                xml(&self.values(point))
            )
        };
        self.points.iter().enumerate().map(mark).collect()
    }

    fn values(&self, Point { x, y }: &Point) -> String {
        let line = |axis: &Axis, value: &str| {
            format!("\n{}: {value} {}", axis.label, axis.unit).trim_end().to_owned()
        };
        let (x, y) = (value(*x), format::spread(y, value));
        format!("{}{}{}", self.label(), line(&self.figure.x, &x), line(&self.figure.y, &y))
    }
}

/// A value as text, of whatever magnitude.
fn value(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        whole if whole < 1e9 && whole.fract() == 0.0 => signed(value, &format::count(whole)),
        part if (1e-3..1e9).contains(&part) => signed(value, &format::significant(part)),
        _ if value.is_finite() => ticks::scientific(value),
        _ => "unknown".to_owned(),
    }
}

fn signed(value: f64, magnitude: &str) -> String {
    let sign = if value < 0.0 { "−" } else { "" };
    format!("{sign}{magnitude}")
}

fn at_point((x, y): (f64, f64), shape: &str) -> String {
    format!("M{} {}{shape}", px(x), px(y))
}

/// Empty for no points.
fn straight(points: &[(f64, f64)]) -> String {
    let texts: Vec<String> = points.iter().map(|(x, y)| format!("{} {}", px(*x), px(*y))).collect();
    if texts.is_empty() { String::new() } else { format!("M{}", texts.join("L")) }
}

/// Each value holds until the next one. Empty for no points.
fn steps(points: &[(f64, f64)]) -> String {
    let Some((first, rest)) = points.split_first() else {
        return String::new();
    };
    let rest: String = rest.iter().map(|(x, y)| format!("H{}V{}", px(*x), px(*y))).collect();
    format!("M{} {}{rest}", px(first.0), px(first.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_hold_a_value_until_the_next() {
        assert_eq!(steps(&[(0.0, 9.0), (5.0, 3.0)]), "M0 9H5V3");
        assert_eq!((steps(&[]), straight(&[])), (String::new(), String::new()));
    }

    #[test]
    fn values_have_a_sign_and_three_digits() {
        assert_eq!([0.0, -7.0, -12.34, 4321.0, 2e-7].map(value), ["0", "−7", "−12.3", "4,321", "2×10⁻⁷"]);
    }
}
