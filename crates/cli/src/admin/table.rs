//! Text with meaning, in columns: what a screen colours and a file holds plain.

use super::units::printable;

/// What a piece of text means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    Plain,
    Heading,
    Quiet,
    Active,
    Warning,
    Bad,
}

/// A piece of text without line ends or other control characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    pub text: String,
    pub tone: Tone,
}

pub type Line = Vec<Span>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

/// Rows below a heading, each column as wide as its widest cell.
pub struct Table {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Vec<Span>>,
}

impl Span {
    pub fn new(text: impl AsRef<str>, tone: Tone) -> Self {
        Self { text: printable(text.as_ref()), tone }
    }

    pub fn plain(text: impl AsRef<str>) -> Self {
        Self::new(text, Tone::Plain)
    }

    fn width(&self) -> usize {
        self.text.chars().count()
    }

    fn aligned(mut self, align: Align, width: usize) -> Self {
        let padding = " ".repeat(width.saturating_sub(self.width()));
        match align {
            Align::Left => self.text.push_str(&padding),
            Align::Right => self.text.insert_str(0, &padding),
        }
        self
    }
}

impl Table {
    pub fn new(columns: &[(&'static str, Align)]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row; `cells` are as many as there are columns.
    pub fn row(&mut self, cells: Vec<Span>) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells);
    }

    pub fn lines(self) -> Vec<Line> {
        let heading = self.columns.iter().map(|(name, _)| Span::new(name, Tone::Heading)).collect();
        let rows: Vec<Vec<Span>> = std::iter::once(heading).chain(self.rows).collect();
        let widest =
            |column: usize| rows.iter().map(|row: &Vec<Span>| row[column].width()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.columns.len()).map(widest).collect();
        rows.into_iter().map(|row| line(row, &self.columns, &widths)).collect()
    }
}

/// The text of a line, without the blanks at its end.
pub fn plain_text(line: &Line) -> String {
    let text: String = line.iter().map(|span| span.text.as_str()).collect();
    text.trim_end().to_owned()
}

fn line(row: Vec<Span>, columns: &[(&'static str, Align)], widths: &[usize]) -> Line {
    let mut line = Vec::with_capacity(2 * row.len());
    for ((cell, (_, align)), width) in row.into_iter().zip(columns).zip(widths) {
        if !line.is_empty() {
            line.push(Span::plain("  "));
        }
        line.push(cell.aligned(*align, *width));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(&[("POOL", Align::Left), ("REQ/S", Align::Right), ("", Align::Left)]);
        table.row(vec![Span::plain("app"), Span::plain("1234567"), Span::plain("x")]);
        table.row(vec![Span::plain("classic"), Span::plain("8"), Span::plain("")]);
        let lines: Vec<String> = table.lines().iter().map(plain_text).collect();
        assert_eq!(lines, ["POOL       REQ/S", "app      1234567  x", "classic        8"]);
    }
}
