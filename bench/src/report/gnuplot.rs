//! The figures' data for gnuplot: two columns for each series, and a script that draws them.

use std::collections::BTreeSet;

use super::escape::file_stem;
use super::page::{Axis, Figure, Point, Scale, Series, Style};
use super::svg::palette;

/// A file of the `data` directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataFile {
    pub name: String,
    pub text: String,
}

/// `FIGURE-IDENTITY.dat` for each series (with a number for the second of an identity), and `FIGURE.gp`, which draws
/// `FIGURE.png` when gnuplot runs in their directory.
pub fn files(figure: &Figure) -> Vec<DataFile> {
    let names = names(figure);
    let data = figure
        .series
        .iter()
        .zip(&names)
        .map(|(series, name)| DataFile { name: name.clone(), text: data(figure, series) });
    let script = DataFile { name: format!("{}.gp", file_stem(&figure.name)), text: script(figure, &names) };
    data.chain([script]).collect()
}

/// Unique, also where different identities are the same as file names.
fn names(figure: &Figure) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let name = |series: &Series| {
        let stem = file_stem(&format!("{}-{}", figure.name, series.identity));
        let numbered = (2..).map(|number| format!("{stem}-{number}.dat"));
        let mut candidates = [format!("{stem}.dat")].into_iter().chain(numbered);
        let free = candidates.find(|name| !taken.contains(name)).expect("invariant: numbers do not end");
        taken.insert(free.clone());
        free
    };
    figure.series.iter().map(name).collect()
}

/// All points in their order, under the names of the columns. gnuplot leaves out what is no number.
fn data(figure: &Figure, series: &Series) -> String {
    let row = |Point { x, y }: &Point| format!("{x} {}\n", y.median);
    let rows: String = series.points.iter().map(row).collect();
    let unit = if figure.y.unit.is_empty() { &figure.y.label } else { &figure.y.unit };
    format!("# {} {}\n{rows}", one_line(&figure.x.label), one_line(unit))
}

fn script(figure: &Figure, names: &[String]) -> String {
    let looks =
        palette::looks(&figure.series.iter().map(|series| series.identity.as_str()).collect::<Vec<_>>());
    let looks = figure.series.iter().zip(names).zip(looks);
    let series = looks
        .filter(|((series, _), _)| is_visible(figure, series))
        .map(|((series, name), look)| plots(series, name, &stroke(figure, series, look)));
    let limits = figure.limits.iter().filter(|(value, _)| value.is_finite()).map(|(value, label)| {
        format!("{value:e} with lines linecolor rgb '#59636e' dashtype 3 title {}", quoted(label))
    });
    let plots: Vec<String> = series.chain(limits).collect();
    // gnuplot draws empty axes only if their ranges are given.
    let plots =
        if plots.is_empty() { "[0:1] [0:1] NaN notitle".to_owned() } else { plots.join(", \\\n     ") };
    format!(
        "set encoding utf8\nset terminal pngcairo noenhanced size 1200,720\nset output {}\nset title {}\n\
         set xlabel {}\nset ylabel {}\n{}{}set grid\nset samples 200\nset key above\nplot {plots}\n",
        quoted(&format!("{}.png", file_stem(&figure.name))),
        quoted(&figure.title),
        quoted(&title(&figure.x)),
        quoted(&title(&figure.y)),
        range("x", &figure.x),
        range("y", &figure.y),
    )
}

/// Crosses with the trend through them, except where the values are steps or too many for marks.
fn plots(series: &Series, file: &str, stroke: &str) -> String {
    let (file, title) = (quoted(file), quoted(&series.label));
    match series.style {
        Style::Steps => format!("{file} using 1:2 with steps linewidth 2 {stroke} title {title}"),
        Style::Thin => format!("{file} using 1:2 with lines {stroke} title {title}"),
        Style::Trend | Style::Line => format!(
            "{file} using 1:2 with points pointtype 2 {stroke} title {title}, \\\n     \
             {file} using 1:2 smooth bezier with lines linewidth 2 {stroke} notitle"
        ),
    }
}

/// Colour and dashes as in the SVG: red for a trend that is alone.
fn stroke(figure: &Figure, series: &Series, look: palette::Look) -> String {
    if figure.is_single_trend() {
        return "linecolor rgb '#d1001f'".to_owned();
    }
    match look.dash(series.style) {
        "" => format!("linecolor rgb '{}'", look.color()),
        dash => format!("linecolor rgb '{}' dashtype ({})", look.color(), dash.replace(' ', ",")),
    }
}

/// gnuplot warns of data without a point that it can draw, and fails when there is nothing else.
fn is_visible(figure: &Figure, series: &Series) -> bool {
    let shown = |axis: &Axis, value: f64| value.is_finite() && (axis.scale == Scale::Linear || value > 0.0);
    series.points.iter().any(|point| shown(&figure.x, point.x) && shown(&figure.y, point.y.median))
}

fn range(axis: &str, Axis { scale, .. }: &Axis) -> String {
    match scale {
        Scale::Linear => format!("set {axis}range [0:*]\n"),
        Scale::Logarithmic => format!("set logscale {axis}\n"),
    }
}

fn title(axis: &Axis) -> String {
    if axis.unit.is_empty() { axis.label.clone() } else { format!("{} ({})", axis.label, axis.unit) }
}

/// A string in which gnuplot interprets nothing.
fn quoted(text: &str) -> String {
    format!("'{}'", one_line(text).replace('\'', "''"))
}

fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::ErrorKind;
    use std::process::Command;

    use super::*;
    use crate::report::testing::{figure, hostile_page, points, sample_page, series};

    #[test]
    fn data_are_two_columns_under_their_names() {
        let data = points(&[(1.0, 8_123.5), (100.0, 0.0)]);
        let files = files(&figure("sweep", vec![series("Worker", "worker", Style::Trend, data)]));
        assert_eq!(files[0].name, "sweep-worker.dat");
        assert_eq!(files[0].text, "# connections requests/s\n1 8123.5\n100 0\n");
        assert_eq!(files[1].name, "sweep.gp");
        assert!(files[1].text.contains("'sweep-worker.dat' using 1:2 smooth bezier"), "{}", files[1].text);
    }

    #[test]
    fn each_series_has_a_file_of_its_own() {
        let same = ["fpm", "fpm", "fpm:default", "fpm-default", "../x"];
        let all = same.map(|identity| series(identity, identity, Style::Line, Vec::new())).to_vec();
        let names: Vec<String> = files(&figure("f", all)).into_iter().map(|file| file.name).collect();
        assert_eq!(
            names,
            ["f-fpm.dat", "f-fpm-2.dat", "f-fpm-default.dat", "f-fpm-default-2.dat", "f-..-x.dat", "f.gp"]
        );
    }

    #[test]
    fn a_quote_ends_no_string() {
        assert_eq!(quoted("it's\n`date`"), "'it''s `date`'");
    }

    /// Where gnuplot is not installed, this has nothing to ask.
    #[test]
    fn gnuplot_draws_them_without_a_word() {
        let broken = figure("broken", vec![series("none", "x", Style::Trend, points(&[(f64::NAN, 1.0)]))]);
        let odd = points(&[(1.0, f64::NAN), (2.0, f64::INFINITY), (3.0, 1.0)]);
        let odd = figure("odd", vec![series("odd", "x", Style::Trend, odd)]);
        let pages = [sample_page(), hostile_page()];
        for figure in
            pages.iter().flat_map(|page| page.sections.iter().flat_map(|s| &s.figures)).chain([&broken, &odd])
        {
            let directory = tempfile::tempdir().unwrap();
            let files = files(figure);
            for file in &files {
                fs::write(directory.path().join(&file.name), &file.text).unwrap();
            }
            let script = &files.last().unwrap().name;
            let output = match Command::new("gnuplot").arg(script).current_dir(&directory).output() {
                Err(error) if error.kind() == ErrorKind::NotFound => return,
                output => output.unwrap(),
            };
            assert!(output.status.success() && output.stderr.is_empty(), "{script}: {output:?}\n{files:?}");
            assert!(directory.path().join(script).with_extension("png").is_file(), "{script}");
        }
    }
}
