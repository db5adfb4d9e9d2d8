//! A table for the terminal and for Markdown.

/// Heading and alignment of a column.
#[derive(Clone, Copy, Debug)]
pub enum Column {
    /// Aligned to the left.
    Text(&'static str),
    /// Aligned to the right.
    Number(&'static str),
}

#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(columns: Vec<Column>) -> Self {
        Self { columns, rows: Vec::new() }
    }

    /// One cell for each column.
    pub fn push(&mut self, row: Vec<String>) {
        debug_assert_eq!(row.len(), self.columns.len());
        self.rows.push(row);
    }

    /// Aligned by spaces, an empty line before each new value of the first column.
    pub fn to_text(&self) -> String {
        let headings: Vec<String> = self.columns.iter().map(|column| column.heading().to_owned()).collect();
        let widths = self.widths();
        let mut text = self.line(&headings, &widths);
        for (index, row) in self.rows.iter().enumerate() {
            if index == 0 || self.rows[index - 1].first() != row.first() {
                text.push('\n');
            }
            text += &self.line(row, &widths);
        }
        text
    }

    pub fn to_markdown(&self) -> String {
        let line = |cells: &mut dyn Iterator<Item = &str>| {
            format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
        };
        let mut text = line(&mut self.columns.iter().map(Column::heading));
        text += &line(&mut self.columns.iter().map(|column| match column {
            Column::Text(_) => "---",
            Column::Number(_) => "--:",
        }));
        for row in &self.rows {
            text += &line(&mut row.iter().map(String::as_str));
        }
        text
    }

    fn line(&self, cells: &[String], widths: &[usize]) -> String {
        let cells: Vec<String> = self
            .columns
            .iter()
            .zip(cells.iter().zip(widths))
            .map(|(column, (cell, &width))| match column {
                Column::Text(_) => format!("{cell:<width$}"),
                Column::Number(_) => format!("{cell:>width$}"),
            })
            .collect();
        cells.join("  ").trim_end().to_owned() + "\n"
    }

    /// In characters, which all have one cell of the terminal here.
    fn widths(&self) -> Vec<usize> {
        let heading = |column: &Column| column.heading().chars().count();
        let widest = |index: usize| self.rows.iter().map(|row| row[index].chars().count()).max().unwrap_or(0);
        self.columns.iter().enumerate().map(|(index, column)| heading(column).max(widest(index))).collect()
    }
}

impl Column {
    fn heading(&self) -> &'static str {
        match self {
            Self::Text(heading) | Self::Number(heading) => heading,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table =
            Table::new(vec![Column::Number("n"), Column::Text("server"), Column::Number("× fpm")]);
        for row in [["1", "a", "4.00×"], ["1", "bb", "–"], ["10", "a", "12.00×"]] {
            table.push(row.map(str::to_owned).to_vec());
        }
        table
    }

    #[test]
    fn text_is_aligned_and_grouped() {
        assert_eq!(
            table().to_text(),
            " n  server   × fpm\n\
             \n 1  a        4.00×\n 1  bb           –\n\
             \n10  a       12.00×\n"
        );
    }

    #[test]
    fn markdown_has_alignments() {
        assert_eq!(
            table().to_markdown(),
            "| n | server | × fpm |\n| --: | --- | --: |\n| 1 | a | 4.00× |\n| 1 | bb | – |\n| 10 | a | 12.00× |\n"
        );
    }
}
