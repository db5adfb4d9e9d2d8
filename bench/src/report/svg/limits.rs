//! Horizontal lines with labels, such as the time in which an answer is due.

use super::domain::{Domain, can_show};
use super::frame::Frame;
use super::marks::Drawn;
use super::{FONT, letters, px};
use crate::report::escape::xml;
use crate::report::page::{Figure, Scale};

/// A limit beyond the measured values by more than these factors is not drawn but only named: it would squeeze them.
const LINEAR_REACH: f64 = 1.6;
const LOGARITHMIC_REACH: f64 = 30.0;
/// Pixels between a label and the side of the plot.
const EDGE: f64 = 6.0;

/// The limits that the axis of the measured values is to be extended to.
pub fn in_reach(figure: &Figure, measured: &Domain) -> Vec<f64> {
    let empty = figure.series.iter().all(|series| series.points.is_empty());
    let near = |value: f64| match figure.y.scale {
        Scale::Linear => value <= measured.high() * LINEAR_REACH && value >= measured.low() * LINEAR_REACH,
        Scale::Logarithmic => {
            value <= measured.high() * LOGARITHMIC_REACH && value >= measured.low() / LOGARITHMIC_REACH
        }
    };
    figure.limits.iter().map(|limit| limit.0).filter(|value| empty || near(*value)).collect()
}

pub fn lines(figure: &Figure, frame: &Frame) -> String {
    let drawn = figure.limits.iter().filter(|(value, _)| place(figure, frame, *value) == Place::Inside);
    let line = |(value, _): &(f64, String)| {
        let (left, y, right) = (px(frame.left()), px(frame.y(*value)), px(frame.right()));
        format!("<path class=\"limit\" d=\"M{left} {y}H{right}\"/>\n")
    };
    drawn.map(line).collect()
}

/// Each above its line, where the fewest points are and no other label is; those of limits outside of the plot, at the
/// edge beyond which they lie.
pub fn labels(figure: &Figure, drawn: &[Drawn], frame: &Frame) -> String {
    let points: Vec<(f64, f64)> = drawn.iter().flat_map(|drawn| drawn.positions(frame)).collect();
    let mut placed: Vec<Area> = Vec::new();
    let mut labels = String::new();
    for (value, label) in &figure.limits {
        let (text, baseline) = match place(figure, frame, *value) {
            Place::Nowhere => continue,
            Place::Inside => (label.clone(), (frame.y(*value) - 5.0).max(frame.top() + FONT)),
            Place::Above => (format!("↑ {label}"), frame.top() + FONT),
            Place::Below => (format!("↓ {label}"), frame.y(frame.values().low()) - 5.0),
        };
        let area = clearest(&text, baseline, frame, &points, &placed);
        let (x, y) = (px(area.left), px(baseline));
        labels += &format!("<text class=\"limit-label\" x=\"{x}\" y=\"{y}\">{}</text>\n", xml(&text));
        placed.push(area);
    }
    labels
}

/// What a label covers.
#[derive(Clone, Copy, Debug)]
struct Area {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Area {
    fn holds(&self, (x, y): (f64, f64)) -> bool {
        (self.left..=self.right).contains(&x) && (self.top..=self.bottom).contains(&y)
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }
}

/// Of the places along the line, preferably at its right end.
fn clearest(text: &str, baseline: f64, frame: &Frame, points: &[(f64, f64)], placed: &[Area]) -> Area {
    let width = letters::width(text, FONT);
    let (first, last) = (frame.left() + EDGE, (frame.right() - EDGE - width).max(frame.left() + EDGE));
    let area = |part: f64| {
        let left = first + part * (last - first);
        Area { left, right: left + width, top: baseline - FONT, bottom: baseline + 4.0 }
    };
    let covered = |area: &Area| {
        let labels = placed.iter().filter(|other| area.overlaps(other)).count();
        let points = points.iter().filter(|point| area.holds(**point)).count();
        (labels, points)
    };
    let areas = [1.0, 0.0, 0.5, 0.75, 0.25].map(area);
    areas.into_iter().min_by_key(covered).unwrap_or(areas[0])
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Inside,
    Above,
    Below,
    /// It is no number that the axis could show.
    Nowhere,
}

fn place(figure: &Figure, frame: &Frame, value: f64) -> Place {
    match value {
        v if !can_show(figure.y.scale, v) => Place::Nowhere,
        v if v > frame.values().high() => Place::Above,
        v if v < frame.values().low() => Place::Below,
        _ => Place::Inside,
    }
}

#[cfg(test)]
mod tests {
    use crate::report::page::{Figure, Style};
    use crate::report::svg::document;
    use crate::report::testing::{figure, points, series};

    fn with_limits(limits: &[f64]) -> String {
        let data = points(&[(1.0, 1.0), (2.0, 10.0)]);
        document(&Figure {
            limits: limits.iter().map(|value| (*value, format!("limit {value}"))).collect(),
            ..figure("f", vec![series("a", "worker", Style::Line, data)])
        })
    }

    #[test]
    fn a_near_limit_extends_the_axis() {
        let svg = with_limits(&[14.0]);
        assert!(
            svg.contains("class=\"limit\"") && svg.contains(">limit 14<") && svg.contains(">15<"),
            "{svg}"
        );
    }

    #[test]
    fn a_far_limit_is_named_at_the_edge() {
        let svg = with_limits(&[3_000.0, f64::NAN]);
        assert!(!svg.contains("class=\"limit\"") && svg.contains(">↑ limit 3000<"), "{svg}");
        assert!(!svg.contains("NaN"));
    }

    #[test]
    fn labels_of_near_limits_stand_beside_each_other() {
        let xs = label_xs(&with_limits(&[9.0, 9.1, 2.0]));
        assert!(xs.len() == 3 && xs[0] != xs[1], "{xs:?}");
    }

    #[test]
    fn a_label_avoids_the_points() {
        let below = label_xs(&with_limits(&[5.0]));
        let beside_the_last_point = label_xs(&with_limits(&[9.8]));
        assert!(beside_the_last_point[0] < below[0], "{below:?} {beside_the_last_point:?}");
    }

    fn label_xs(svg: &str) -> Vec<f64> {
        let labels = svg.split("limit-label\" x=\"").skip(1);
        labels.filter_map(|rest| rest.split('"').next()?.parse().ok()).collect()
    }
}
