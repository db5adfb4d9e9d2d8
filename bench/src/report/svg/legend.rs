//! Which line is which: above the plot, in as many rows as it takes.

use super::marks::Drawn;
use super::{FONT, LINE, MARGIN, WIDTH, letters, text_lines};

/// Width of the sample of a line, and the space after it and after the text.
const SAMPLE: f64 = 34.0;
const AFTER_SAMPLE: f64 = 7.0;
const AFTER_TEXT: f64 = 20.0;
const ROW: f64 = LINE + 3.0;
/// Between the legend and the plot.
const BELOW: f64 = 12.0;

#[derive(Debug)]
pub struct Legend {
    drawing: String,
    bottom: f64,
}

impl Legend {
    /// Entries from left to right, and in a new row where the next has no room. A label wider than the picture has
    /// several lines.
    pub fn of(drawn: &[Drawn], top: f64) -> Self {
        let most = WIDTH - 2.0 * MARGIN;
        let (mut x, mut y, mut rows) = (MARGIN, top, 1.0_f64);
        let mut drawing = String::new();
        for entry in drawn {
            let lines = letters::lines(entry.label(), FONT, most - SAMPLE - AFTER_SAMPLE);
            let text = lines.iter().map(|line| letters::width(line, FONT)).fold(0.0, f64::max);
            let width = SAMPLE + AFTER_SAMPLE + text;
            if x > MARGIN && x + width > MARGIN + most {
                (x, y, rows) = (MARGIN, y + rows * ROW, 1.0);
            }
            drawing += &entry.sample(x, y + ROW / 2.0, SAMPLE);
            drawing += &text_lines(&lines, x + SAMPLE + AFTER_SAMPLE, y + ROW / 2.0 + 4.5, ROW, "");
            rows = rows.max(lines.len() as f64);
            x += width + AFTER_TEXT;
        }
        let bottom = if drawn.is_empty() { top } else { y + rows * ROW };
        Self { drawing, bottom: bottom + BELOW }
    }

    /// Where the plot may begin.
    pub fn bottom(&self) -> f64 {
        self.bottom
    }

    pub fn draw(&self) -> String {
        format!("<g class=\"legend\">\n{}</g>\n", self.drawing)
    }
}
