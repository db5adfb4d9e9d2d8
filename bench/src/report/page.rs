//! A report as data: what a suite found out, before it becomes HTML, Markdown, SVG and data files.

use serde::{Deserialize, Serialize};

use crate::statistics::Spread;

/// One report: a page of sections. All texts are plain; the renderers escape them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Page {
    /// File stem of what is written: `sweep` becomes `sweep.html`, `sweep.md`.
    pub name: String,
    pub title: String,
    /// Under the title: what was measured, on what machine, when.
    pub introduction: Vec<String>,
    pub sections: Vec<Section>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Section {
    pub heading: String,
    pub paragraphs: Vec<String>,
    pub tables: Vec<Table>,
    pub figures: Vec<Figure>,
    /// Small print: how to read it, what is not known.
    pub notes: Vec<String>,
    /// Long texts that are folded away in HTML and left out of Markdown, such as configuration files: name and text.
    pub attachments: Vec<(String, String)>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Table {
    pub caption: String,
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// The cells of a row with their columns; those that the row lacks are empty.
    pub fn cells(&self, row: usize) -> impl Iterator<Item = (&Column, &str)> {
        let cells = &self.rows[row];
        let cell = move |(index, column)| (column, cells.get(index).map_or("", String::as_str));
        self.columns.iter().enumerate().map(cell)
    }

    /// Whether the row is the first with its value in the first column, in a table in which neighbours share one.
    pub fn starts_group(&self, row: usize) -> bool {
        let first = |row: usize| self.rows[row].first();
        let grouped = self.rows.windows(2).any(|pair| pair[0].first() == pair[1].first());
        grouped && (row == 0 || first(row) != first(row - 1))
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Column {
    pub heading: String,
    pub alignment: Alignment,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Alignment {
    Left,
    Right,
}

/// One plot, drawn to `NAME.svg`, with a two-column data file for each of its series.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Figure {
    /// File stem, unique in the page.
    pub name: String,
    pub title: String,
    pub x: Axis,
    pub y: Axis,
    pub series: Vec<Series>,
    /// Horizontal lines across the plot, such as the limit of 3 s: value and label.
    pub limits: Vec<(f64, String)>,
}

impl Figure {
    /// Whether it is drawn as in the benchmark that the sweep repeats: red crosses, as there is nothing to tell them from.
    pub fn is_single_trend(&self) -> bool {
        matches!(self.series.as_slice(), [series] if series.style == Style::Trend)
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Axis {
    pub label: String,
    /// `ms`, `requests/s`, … ; empty for none. In the first line of the data files, too.
    pub unit: String,
    pub scale: Scale,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// From zero.
    Linear,
    /// Values of zero and less are left out of the plot (not of the data file).
    Logarithmic,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Series {
    /// For the legend.
    pub label: String,
    /// Whose colour and marker: the same identity looks the same in all figures, see `palette`.
    pub identity: String,
    pub style: Style,
    pub points: Vec<Point>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Style {
    /// Each point a cross, with the Bézier curve whose control points they are as the trend (gnuplot's
    /// `smooth bezier`).
    Trend,
    /// Points with markers and error bars (smallest to largest), joined by straight lines.
    Line,
    /// A step line without markers: threads over time.
    Steps,
    /// A straight line without markers, for long series: latency over time.
    Thin,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Point {
    pub x: f64,
    pub y: Spread,
}
