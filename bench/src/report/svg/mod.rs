//! A figure as self-contained SVG: nothing is loaded, light and dark pages suit it, and it says what it shows to those
//! who do not see it.

mod bezier;
mod domain;
mod frame;
mod legend;
mod letters;
mod limits;
mod marks;
pub mod palette;
mod simplify;
mod ticks;

use self::frame::Frame;
use self::legend::Legend;
use self::marks::Drawn;
use self::palette::{Scheme, looks};
use super::escape::xml;
use super::page::{Axis, Figure, Scale};

/// Of all figures, in pixels; the height depends on the title and the legend.
const WIDTH: f64 = 800.0;
/// Between the picture's edge and what is in it.
const MARGIN: f64 = 20.0;
const FONT: f64 = 13.0;
const LINE: f64 = 18.0;
const TITLE_FONT: f64 = 16.0;
const TITLE_LINE: f64 = 22.0;

/// A file of its own, also as an image of a web page: the reader's colour scheme chooses between light and dark.
pub fn document(figure: &Figure) -> String {
    let style = format!("<style>{}</style>\n", style());
    render(figure, "figure", &style)
}

/// A part of an HTML document whose style sheet has [`style`]. The identifier is unique in the document.
pub fn inline(figure: &Figure, id: &str) -> String {
    render(figure, id, "")
}

/// The style sheet of all figures, without characters that XML would want escaped.
pub fn style() -> String {
    let (light, dark) = (palette::style(Scheme::Light), palette::style(Scheme::Dark));
    format!(
        "{}{light}@media (prefers-color-scheme:dark){{{}{dark}}}",
        STYLE.replace('\n', ""),
        DARK.replace('\n', "")
    )
}

const STYLE: &str = "\
.plot{color:#1f2328;font:13px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}
.plot text{fill:currentColor}
.plot .title{font-size:16px;font-weight:600}
.plot .label{fill:#59636e}
.plot .background{fill:#fff}
.plot .axis{stroke:#818b98;fill:none}
.plot .grid{stroke:#d9dee4}
.plot .faint{stroke:#eef1f4}
.plot .limit{stroke:#59636e;stroke-width:1.5;stroke-dasharray:2 4}
.plot .limit-label{font-style:italic;paint-order:stroke;stroke:#fff;stroke-width:4px;stroke-linejoin:round}
.plot .alone{color:#d1001f}
.plot .alone .cross{stroke-width:1.6;opacity:1}
.plot .ink{color:#1f2328}
.plot .line{fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round}
.plot .thin{fill:none;stroke:currentColor;stroke-width:1.1;stroke-linejoin:round;opacity:.8}
.plot .cross{fill:none;stroke:currentColor;stroke-width:1.3;opacity:.75}
.plot .bar{fill:none;stroke:currentColor;stroke-width:1.3}
.plot .full{fill:currentColor;stroke:none}
.plot .hollow{fill:#fff;stroke:currentColor;stroke-width:1.6}
";

const DARK: &str = "\
.plot{color:#e6edf3}
.plot .label{fill:#9aa4af}
.plot .background{fill:#0d1117}
.plot .axis{stroke:#6e7681}
.plot .grid{stroke:#2a313a}
.plot .faint{stroke:#1a2029}
.plot .limit{stroke:#9aa4af}
.plot .limit-label{stroke:#0d1117}
.plot .alone{color:#ff6369}
.plot .ink{color:#e6edf3}
.plot .hollow{fill:#0d1117}
";

fn render(figure: &Figure, id: &str, style: &str) -> String {
    let identities: Vec<&str> = figure.series.iter().map(|series| series.identity.as_str()).collect();
    let looks = looks(&identities);
    let drawn: Vec<Drawn> =
        figure.series.iter().zip(looks).map(|(series, look)| Drawn::of(figure, series, look)).collect();
    let title = letters::lines(&figure.title, TITLE_FONT, WIDTH - 2.0 * MARGIN);
    let title_bottom = MARGIN + title.len() as f64 * TITLE_LINE;
    let legend = Legend::of(&drawn, title_bottom);
    let frame = Frame::of(figure, &drawn, legend.bottom());

    let height = px(frame.picture_height());
    let id = xml(id);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" role=\"img\" aria-labelledby=\"{id}-title {id}-description\">\n\
         <title id=\"{id}-title\">{}</title>\n<desc id=\"{id}-description\">{}</desc>\n{style}\
         <rect class=\"background\" width=\"{WIDTH}\" height=\"{height}\"/>\n",
        xml(&figure.title),
        xml(&description(figure, &drawn)),
    );
    svg += &text_lines(&title, MARGIN, MARGIN + TITLE_FONT - 4.0, TITLE_LINE, " class=\"title\"");
    svg += &legend.draw();
    svg += &frame.draw();
    if drawn.iter().all(Drawn::is_empty) {
        svg += &frame.draw_absence();
    }
    svg += &limits::lines(figure, &frame);
    svg += &drawn.iter().map(|drawn| drawn.draw(&frame)).collect::<String>();
    svg += &limits::labels(figure, &drawn, &frame);
    svg + "</svg>\n"
}

fn description(figure: &Figure, drawn: &[Drawn]) -> String {
    let series: Vec<String> = drawn.iter().map(Drawn::describe).collect();
    format!("{} over {}. {}", axis_title(&figure.y), axis_title(&figure.x), series.join("; "))
}

/// What stands beside an axis.
fn axis_title(axis: &Axis) -> String {
    let scale = match axis.scale {
        Scale::Linear => "",
        Scale::Logarithmic => ", logarithmic",
    };
    match (axis.label.as_str(), axis.unit.as_str()) {
        (label, "") => format!("{label}{scale}"),
        ("", unit) => format!("{unit}{scale}"),
        (label, unit) => format!("{label} ({unit}){scale}"),
    }
}

/// Lines of text below each other, the baseline of the first at `y`. Attributes begin with a space.
fn text_lines(lines: &[String], x: f64, y: f64, height: f64, attributes: &str) -> String {
    let line = |(index, line): (usize, &String)| {
        let y = px(y + index as f64 * height);
        format!("<text x=\"{}\" y=\"{y}\"{attributes}>{}</text>\n", px(x), xml(line))
    };
    lines.iter().enumerate().map(line).collect()
}

/// A coordinate, to a tenth of a pixel.
fn px(value: f64) -> String {
    // Adding zero makes −0 a plain 0.
    ((value * 10.0).round() / 10.0 + 0.0).to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::report::page::{Point, Series, Style};
    use crate::report::testing::{axis, figure, points, series};
    use crate::statistics::Spread;

    fn parsed(svg: &str) -> roxmltree::Document<'_> {
        roxmltree::Document::parse(svg).unwrap_or_else(|error| panic!("{error}\n{svg}"))
    }

    fn count(svg: &str, class: &str) -> usize {
        let document = parsed(svg);
        let has = |node: &roxmltree::Node| {
            node.attribute("class").is_some_and(|classes| classes.split(' ').any(|c| c == class))
        };
        document.descendants().filter(has).count()
    }

    fn tiny() -> Figure {
        Figure {
            limits: vec![(3.0, "limit of 3 s".to_owned())],
            ..figure(
                "tiny",
                vec![
                    series("Regent worker", "worker", Style::Line, points(&[(1.0, 1.0), (2.0, 4.0)])),
                    series(
                        "php-fpm, default",
                        "fpm:default",
                        Style::Steps,
                        points(&[(1.0, 2.0), (2.0, 3.0)]),
                    ),
                ],
            )
        }
    }

    #[test]
    fn a_small_figure() {
        insta::assert_snapshot!(document(&tiny()));
    }

    #[test]
    fn a_single_series_is_red_crosses_with_a_trend() {
        let data = points(&[(1.0, 1.0), (2.0, 4.0), (3.0, 2.0)]);
        let svg = document(&figure("f", vec![series("all", "worker", Style::Trend, data)]));
        // Three and one in the legend.
        assert_eq!((count(&svg, "cross"), count(&svg, "alone")), (4, 2), "{svg}");
        assert_eq!(count(&svg, "ink"), 2, "the trend and its legend");
    }

    #[test]
    fn series_of_a_comparison_have_their_servers_colours() {
        let data = points(&[(1.0, 1.0), (2.0, 4.0)]);
        let trend = |identity| series(identity, identity, Style::Trend, data.clone());
        let svg = document(&figure("f", vec![trend("classic"), trend("worker")]));
        assert_eq!((count(&svg, "alone"), count(&svg, "h0"), count(&svg, "h1")), (0, 4, 4), "{svg}");
    }

    #[test]
    fn it_has_a_name_a_description_and_both_colour_schemes() {
        let svg = document(&tiny());
        let document = parsed(&svg);
        let root = document.root_element();
        assert_eq!(root.attribute("role"), Some("img"));
        let text = |id: &str| {
            document.descendants().find(|node| node.attribute("id") == Some(id)).and_then(|node| node.text())
        };
        let texts: Vec<_> = root.attribute("aria-labelledby").unwrap().split(' ').map(text).collect();
        assert_eq!(texts[0], Some("Title of tiny"));
        assert!(texts[1].unwrap().contains("Regent worker: 2 points, from 1 to 4"), "{texts:?}");
        assert!(svg.contains("prefers-color-scheme:dark") && !svg.contains("href") && !svg.contains("url("));
    }

    #[test]
    fn hostile_texts_stay_texts() {
        let evil = "</text><script>alert(1)</script>\u{0}\u{1b}&amp;\"'";
        let svg = document(&Figure {
            title: evil.to_owned(),
            x: axis(evil, evil, Scale::Linear),
            y: axis(evil, evil, Scale::Linear),
            series: vec![series(evil, evil, Style::Line, points(&[(1.0, 1.0)]))],
            limits: vec![(1.0, evil.to_owned())],
            ..figure(evil, Vec::new())
        });
        let document = parsed(&svg);
        assert!(!document.descendants().any(|node| node.has_tag_name("script")));
        assert!(document.descendants().any(|node| node.text().is_some_and(|text| text.contains("<script>"))));
    }

    #[test]
    fn a_figure_without_points_says_so() {
        let none = points(&[(1.0, f64::NAN)]);
        let svg = document(&figure("none", vec![series("a", "worker", Style::Line, none)]));
        assert!(svg.contains(">no values<") && !document(&tiny()).contains("no values"), "{svg}");
    }

    #[test]
    fn a_long_series_is_drawn_in_two_points_for_each_pixel_column() {
        let data: Vec<(f64, f64)> = (0..50_000).map(|i| (f64::from(i), f64::from(i * 7919 % 1000))).collect();
        let svg = document(&figure("long", vec![series("latency", "worker", Style::Thin, points(&data))]));
        assert!(svg.len() < 40_000, "{}", svg.len());
    }

    #[test]
    fn the_legend_ends_above_the_plot() {
        let many = (0..30).map(|i| {
            series(
                &format!("A server with quite a long name {i}"),
                &format!("s{i}"),
                Style::Line,
                points(&[(1.0, 1.0)]),
            )
        });
        let figure = figure("many", many.collect());
        let svg = document(&figure);
        let document = parsed(&svg);
        let number =
            |node: &roxmltree::Node, name: &str| node.attribute(name).unwrap().parse::<f64>().unwrap();
        let legend = document.descendants().find(|n| n.attribute("class") == Some("legend")).unwrap();
        let lowest = legend
            .descendants()
            .filter(|node| node.has_tag_name("text"))
            .map(|node| {
                assert!(
                    number(&node, "x") + letters::width(node.text().unwrap(), FONT) <= WIDTH - MARGIN + 0.1
                );
                number(&node, "y")
            })
            .fold(0.0, f64::max);
        let axis = document.descendants().find(|n| n.attribute("class") == Some("axis")).unwrap();
        let top: f64 = axis.attribute("d").unwrap()[1..].split([' ', 'V']).nth(1).unwrap().parse().unwrap();
        assert!(lowest > 100.0 && lowest < top, "{lowest} {top}");
    }

    fn any_value() -> impl Strategy<Value = f64> {
        prop_oneof![
            4 => -10.0..10_000.0,
            2 => any::<f64>(),
            1 => proptest::sample::select(vec![
                f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 1.0, f64::MAX, f64::MIN_POSITIVE, 1e-320, 1e100,
            ]),
        ]
    }

    fn any_point() -> impl Strategy<Value = Point> {
        (any_value(), any_value(), any_value(), any_value())
            .prop_map(|(x, median, min, max)| Point { x, y: Spread { median, min, max } })
    }

    fn any_series() -> impl Strategy<Value = Series> {
        let style = proptest::sample::select(vec![Style::Trend, Style::Line, Style::Steps, Style::Thin]);
        let identity = proptest::sample::select(vec!["worker", "fpm:default", "", "other", ":"]);
        (any::<String>(), identity, style, proptest::collection::vec(any_point(), 0..12)).prop_map(
            |(label, identity, style, points)| Series { label, identity: identity.to_owned(), style, points },
        )
    }

    fn any_axis() -> impl Strategy<Value = Axis> {
        let scale = proptest::sample::select(vec![Scale::Linear, Scale::Logarithmic]);
        (any::<String>(), "[a-z/%<&]{0,4}", scale).prop_map(|(label, unit, scale)| Axis {
            label,
            unit,
            scale,
        })
    }

    prop_compose! {
        fn any_figure()(
            title in any::<String>(),
            (x, y) in (any_axis(), any_axis()),
            series in proptest::collection::vec(any_series(), 0..4),
            limits in proptest::collection::vec((any_value(), any::<String>()), 0..3),
        ) -> Figure {
            Figure { name: "any".to_owned(), title, x, y, series, limits }
        }
    }

    /// Attributes that hold numbers or paths of them.
    fn has_broken_number(document: &roxmltree::Document) -> bool {
        let geometry = ["x", "y", "d", "width", "height", "viewBox", "transform"];
        let broken = |text: &str| text.contains("NaN") || text.contains("inf");
        document
            .descendants()
            .flat_map(|node| node.attributes())
            .any(|a| geometry.contains(&a.name()) && broken(a.value()))
    }

    proptest! {
        #[test]
        fn any_figure_is_well_formed_and_all_its_coordinates_are_numbers(figure in any_figure()) {
            let svg = document(&figure);
            let document = parsed(&svg);
            prop_assert!(!has_broken_number(&document), "{svg}");
        }
    }
}
