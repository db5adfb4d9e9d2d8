//! Plots as self-contained SVG: a line for each server over the number of connections, the spread as error bars.

use std::fmt::Write;

use super::format;
use super::rows::Row;
use crate::peers::ServerKind;
use crate::statistics::Spread;

const WIDTH: f64 = 800.0;
const HEIGHT: f64 = 480.0;
const LEFT: f64 = 90.0;
const RIGHT: f64 = 30.0;
const TOP: f64 = 96.0;
const BOTTOM: f64 = 64.0;
/// Half the length of an error bar's cap, and the radius of a marker.
const CAP: f64 = 4.0;
const RADIUS: f64 = 5.0;

/// One plot.
#[derive(Clone, Debug)]
pub struct Plot {
    file_name: &'static str,
    title: &'static str,
    unit: &'static str,
    scale: Scale,
    lines: Vec<Line>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scale {
    /// From zero.
    Linear,
    /// Whole decades.
    Logarithmic,
}

#[derive(Clone, Debug)]
struct Line {
    server: ServerKind,
    points: Vec<(u32, Spread)>,
}

/// Requests per second, from zero.
pub fn throughput(rows: &[Row]) -> Plot {
    Plot {
        file_name: "throughput.svg",
        title: "Throughput: 128-byte answer by PHP, keep-alive",
        unit: "requests per second",
        scale: Scale::Linear,
        lines: lines(rows, |row| row.throughput),
    }
}

/// The 99th percentile of the latency, logarithmic: it spans the orders of magnitude of the connections.
pub fn p99(rows: &[Row]) -> Plot {
    Plot {
        file_name: "p99.svg",
        title: "99th percentile of the latency: 128-byte answer by PHP, keep-alive",
        unit: "p99 latency in ms (logarithmic)",
        scale: Scale::Logarithmic,
        lines: lines(rows, |row| row.p99_ms),
    }
}

impl Plot {
    pub fn file_name(&self) -> &'static str {
        self.file_name
    }

    pub fn to_svg(&self) -> String {
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" \
             height=\"{HEIGHT}\" font-family=\"system-ui, 'DejaVu Sans', sans-serif\" font-size=\"13\" \
             fill=\"#222222\" role=\"img\">\n<title>{title}</title>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
             <text x=\"{LEFT}\" y=\"30\" font-size=\"17\" font-weight=\"600\">{title}</text>\n",
            title = self.title
        );
        let axes = Axes::of(self);
        axes.draw(&mut svg, self.unit);
        self.draw_legend(&mut svg);
        for line in &self.lines {
            draw_line(&mut svg, line, &axes);
        }
        svg + "</svg>\n"
    }

    fn draw_legend(&self, svg: &mut String) {
        let mut x = LEFT;
        for line in &self.lines {
            let color = color(line.server);
            put(svg, format_args!("<path d=\"M{x} 60h26\" stroke=\"{color}\" stroke-width=\"2.5\"/>"));
            put(svg, format_args!("{}", marker(line.server, x + 13.0, 60.0)));
            put(svg, format_args!("<text x=\"{}\" y=\"64.5\">{}</text>", x + 34.0, line.server));
            x += 56.0 + 7.6 * line.server.to_string().len() as f64;
        }
    }
}

/// Where values lie on the canvas.
struct Axes {
    scale: Scale,
    /// Of the values; for the logarithmic scale powers of ten.
    low: f64,
    high: f64,
    /// Labelled values.
    ticks: Vec<f64>,
    /// Numbers of connections, ascending; the axis is logarithmic.
    connections: Vec<u32>,
}

impl Axes {
    fn of(plot: &Plot) -> Self {
        let points = || plot.lines.iter().flat_map(|line| &line.points);
        let mut connections: Vec<u32> = points().map(|(connections, _)| *connections).collect();
        connections.sort_unstable();
        connections.dedup();
        let largest = points().map(|(_, spread)| spread.max).fold(0.0, f64::max);
        let smallest =
            points().map(|(_, spread)| spread.min).filter(|v| *v > 0.0).fold(f64::INFINITY, f64::min);
        let ticks = match plot.scale {
            Scale::Linear => linear_ticks(largest),
            Scale::Logarithmic => decades(smallest, largest),
        };
        let (low, high) = (ticks[0], ticks[ticks.len() - 1]);
        Self { scale: plot.scale, low, high, ticks, connections }
    }

    fn x(&self, connections: u32) -> f64 {
        let (Some(&first), Some(&last)) = (self.connections.first(), self.connections.last()) else {
            return LEFT;
        };
        let span = (f64::from(last) / f64::from(first)).ln();
        // Room for the markers at both ends; a single number lies in the middle.
        let part = if span > 0.0 { (f64::from(connections) / f64::from(first)).ln() / span } else { 0.5 };
        LEFT + 30.0 + part * (WIDTH - LEFT - RIGHT - 60.0)
    }

    fn y(&self, value: f64) -> f64 {
        let part = match self.scale {
            Scale::Linear => value / self.high,
            Scale::Logarithmic => (value.max(self.low) / self.low).ln() / (self.high / self.low).ln(),
        };
        HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM)
    }

    fn draw(&self, svg: &mut String, unit: &str) {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        for &tick in &self.ticks {
            let y = self.y(tick);
            put(svg, format_args!("<path d=\"M{LEFT} {y:.1}H{right}\" stroke=\"#dddddd\"/>"));
            let label = if tick.fract() == 0.0 { format::count(tick) } else { tick.to_string() };
            let (x, y) = (LEFT - 8.0, y + 4.5);
            put(svg, format_args!("<text x=\"{x}\" y=\"{y:.1}\" text-anchor=\"end\">{label}</text>"));
        }
        for &connections in &self.connections {
            let x = self.x(connections);
            put(svg, format_args!("<path d=\"M{x:.1} {bottom}v6\" stroke=\"#222222\"/>"));
            let label = format::count(f64::from(connections));
            let y = bottom + 21.0;
            put(svg, format_args!("<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">{label}</text>"));
        }
        put(
            svg,
            format_args!("<path d=\"M{LEFT} {TOP}V{bottom}H{right}\" stroke=\"#222222\" fill=\"none\"/>"),
        );
        let (x, y) = (f64::midpoint(LEFT, right), HEIGHT - 16.0);
        put(
            svg,
            format_args!("<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">connections (logarithmic)</text>"),
        );
        let y = f64::midpoint(TOP, bottom);
        put(
            svg,
            format_args!(
                "<text transform=\"translate(22 {y}) rotate(-90)\" text-anchor=\"middle\">{unit}</text>"
            ),
        );
    }
}

fn lines(rows: &[Row], value: impl Fn(&Row) -> Spread) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for row in rows {
        let point = (row.connections, value(row));
        match lines.iter_mut().find(|line| line.server == row.server) {
            Some(line) => line.points.push(point),
            None => lines.push(Line { server: row.server, points: vec![point] }),
        }
    }
    for line in &mut lines {
        line.points.sort_by_key(|(connections, _)| *connections);
    }
    lines
}

fn draw_line(svg: &mut String, line: &Line, axes: &Axes) {
    let color = color(line.server);
    let path: Vec<String> = line
        .points
        .iter()
        .map(|(connections, spread)| format!("{:.1},{:.1}", axes.x(*connections), axes.y(spread.median)))
        .collect();
    let path = path.join(" ");
    put(
        svg,
        format_args!("<polyline points=\"{path}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2.5\"/>"),
    );
    for (connections, spread) in &line.points {
        let (x, low, high) = (axes.x(*connections), axes.y(spread.min), axes.y(spread.max));
        let (left, cap) = (x - CAP, 2.0 * CAP);
        put(
            svg,
            format_args!(
                "<path d=\"M{left:.1} {low:.1}h{cap}M{x:.1} {low:.1}V{high:.1}M{left:.1} {high:.1}h{cap}\" \
                 stroke=\"{color}\" stroke-width=\"1.5\"/>"
            ),
        );
        put(svg, format_args!("{}", marker(line.server, x, axes.y(spread.median))));
    }
}

fn put(svg: &mut String, element: std::fmt::Arguments) {
    writeln!(svg, "{element}").expect("invariant: writing to a string does not fail");
}

/// Okabe and Ito's palette, which the common kinds of colour blindness keep apart.
fn color(server: ServerKind) -> &'static str {
    match server {
        ServerKind::Classic => "#0072b2",
        ServerKind::Worker => "#d55e00",
        ServerKind::Fpm => "#009e73",
        ServerKind::FpmKept => "#e69f00",
        ServerKind::Apache => "#cc79a7",
    }
}

/// A shape for each server, so that colour is not the only difference.
fn marker(server: ServerKind, x: f64, y: f64) -> String {
    let (color, r) = (color(server), RADIUS);
    match server {
        ServerKind::Classic => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{r}\" fill=\"{color}\"/>"),
        ServerKind::Worker => {
            let (left, top, side) = (x - r, y - r, 2.0 * r);
            format!(
                "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{side}\" height=\"{side}\" fill=\"{color}\"/>"
            )
        }
        ServerKind::Fpm => {
            let (top, width, height) = (y - 1.2 * r, 1.2 * r, 2.2 * r);
            format!("<path d=\"M{x:.1} {top:.1}l{width} {height}h-{}z\" fill=\"{color}\"/>", 2.0 * width)
        }
        ServerKind::FpmKept => {
            let (bottom, width, height) = (y + 1.2 * r, 1.2 * r, 2.2 * r);
            format!("<path d=\"M{x:.1} {bottom:.1}l{width} -{height}h-{}z\" fill=\"{color}\"/>", 2.0 * width)
        }
        ServerKind::Apache => {
            let (top, r) = (y - 1.3 * r, 1.3 * r);
            format!("<path d=\"M{x:.1} {top:.1}l{r} {r}l-{r} {r}l-{r} -{r}z\" fill=\"{color}\"/>")
        }
    }
}

/// From 0 to at least `largest` in four to ten round steps.
fn linear_ticks(largest: f64) -> Vec<f64> {
    let largest = if largest > 0.0 { largest } else { 1.0 };
    let magnitude = 10f64.powf((largest / 5.0).log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * magnitude)
        .find(|step| largest / step <= 6.0)
        .unwrap_or(10.0 * magnitude);
    (0..=(largest / step).ceil() as u32).map(|index| f64::from(index) * step).collect()
}

/// Powers of ten from at most `smallest` to at least `largest`, two or more.
fn decades(smallest: f64, largest: f64) -> Vec<f64> {
    let smallest = if smallest.is_finite() { smallest } else { 0.1 };
    let first = smallest.log10().floor() as i32;
    let last = (largest.max(smallest).log10().ceil() as i32).max(first + 1);
    // Dividing gives 0.001 its shortest decimal form, multiplying by 10^-3 does not.
    (first..=last).map(|power| if power < 0 { 1.0 / 10f64.powi(-power) } else { 10f64.powi(power) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::Sample;
    use crate::report::rows::summarize;

    fn rows() -> Vec<Row> {
        let mut samples = Vec::new();
        for round in 1..=3 {
            for connections in [1, 10, 100] {
                let noise = f64::from(round * 500);
                samples.push(Sample::made_up(ServerKind::Worker, connections, round, 90_000.0 + noise, 1.5));
                samples.push(Sample::made_up(ServerKind::Fpm, connections, round, 25_000.0 + noise, 5.6));
            }
        }
        summarize(&samples, ServerKind::Fpm)
    }

    #[test]
    fn each_server_is_a_line_with_a_point_and_a_bar_for_each_number_of_connections() {
        let svg = throughput(&rows()).to_svg();
        assert_eq!(svg.matches("<polyline").count(), 2);
        // Three points and one in the legend.
        assert_eq!(svg.matches("<rect x=").count(), 4);
        assert_eq!(svg.matches("stroke-width=\"1.5\"").count(), 6);
        assert!(svg.contains("Regent worker") && svg.contains("nginx + php-fpm"), "{svg}");
        assert!(svg.contains("requests per second") && svg.contains(">connections (logarithmic)<"), "{svg}");
    }

    #[test]
    fn the_background_is_drawn_and_nothing_is_loaded() {
        let svg = p99(&rows()).to_svg();
        assert!(svg.contains("<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>"));
        assert!(
            !svg.contains("href") && !svg.contains("<style") && !svg.contains("NaN") && !svg.contains("inf")
        );
    }

    #[test]
    fn one_number_of_connections_or_no_rows_still_make_a_plot() {
        let single = summarize(&[Sample::made_up(ServerKind::Apache, 5, 1, 10.0, 1.0)], ServerKind::Fpm);
        for rows in [single.as_slice(), &[]] {
            for svg in [throughput(rows).to_svg(), p99(rows).to_svg()] {
                assert!(svg.ends_with("</svg>\n") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
            }
        }
    }

    #[test]
    fn ticks_are_round_numbers_that_hold_the_largest_value() {
        assert_eq!(
            linear_ticks(110_000.0),
            [0.0, 20_000.0, 40_000.0, 60_000.0, 80_000.0, 100_000.0, 120_000.0]
        );
        assert_eq!(linear_ticks(4.2), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(decades(0.05, 30.0), [0.01, 0.1, 1.0, 10.0, 100.0]);
        assert_eq!(decades(1.0, 1.0), [1.0, 10.0]);
        assert_eq!(decades(f64::INFINITY, 0.0), [0.1, 1.0]);
    }
}
