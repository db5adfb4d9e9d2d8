//! A flame graph as a picture (SVG), for pages and mails in which nothing can be clicked: what the page of
//! [`super::flame_graph`] shows at first.

use crate::{Profile, Stack};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Pixels.
const WIDTH: f64 = 1200.0;
const ROW: usize = 17;
const HEADING: usize = 26;
/// Narrower bars are left out, and with them what they have called.
const LEAST_WIDTH: f64 = 1.5;
/// Of a letter, on the average.
const LETTER: f64 = 6.3;
/// Without room for so many letters a bar has no name.
const LEAST_LETTERS: usize = 3;

/// The functions that one has called, each with its own; keys are labels.
#[derive(Default)]
struct Node {
    weight: u64,
    is_php: bool,
    callees: BTreeMap<String, Node>,
}

pub fn svg(profile: &Profile, title: &str) -> String {
    let root = tree(profile);
    let height = HEADING + root.height() * ROW;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"Verdana, sans-serif\" \
         font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    let seconds = profile.duration.as_secs_f64();
    let heading = format!("{title}: wall time, {} samples in {seconds:.0} s", root.weight);
    // Writing to a string does not fail.
    let _ = writeln!(svg, "<text x=\"4\" y=\"16\" font-size=\"13\">{}</text>", text(&heading, usize::MAX));
    root.draw_callees(&mut svg, 0.0, height, root.weight);
    svg.push_str("</svg>\n");
    svg
}

fn tree(profile: &Profile) -> Node {
    let mut root = Node::default();
    for stack in &profile.stacks {
        root.weight += stack.samples;
        let mut at = &mut root;
        for depth in 0..stack.functions.len() {
            at = at.callees.entry(label(profile, stack, depth)).or_default();
            at.weight += stack.samples;
            let function = profile.functions.get(stack.functions[depth] as usize);
            at.is_php = function.is_some_and(|function| !function.file.is_empty());
        }
    }
    root.leave_out(root.weight);
    root
}

/// Of a file only its name and its directory's.
fn label(profile: &Profile, stack: &Stack, depth: usize) -> String {
    let label = profile.label(stack, depth);
    match (label.split_once(' '), profile.functions.get(stack.functions[depth] as usize)) {
        (Some((what, _)), Some(function)) if function.name.is_empty() => {
            let parts: Vec<&str> = function.file.rsplit('/').take(2).collect();
            format!("{what} {}", parts.into_iter().rev().collect::<Vec<_>>().join("/"))
        }
        _ => label,
    }
}

impl Node {
    /// What would be too narrow to be seen.
    fn leave_out(&mut self, whole: u64) {
        self.callees.retain(|_, callee| width(callee.weight, whole) >= LEAST_WIDTH);
        self.callees.values_mut().for_each(|callee| callee.leave_out(whole));
    }

    /// In rows, without its own.
    fn height(&self) -> usize {
        self.callees.values().map(|callee| callee.height() + 1).max().unwrap_or(0)
    }

    /// From `left` on, with their lower edges at `bottom`.
    fn draw_callees(&self, svg: &mut String, mut left: f64, bottom: usize, whole: u64) {
        for (label, callee) in &self.callees {
            callee.draw(svg, label, left, bottom, whole);
            callee.draw_callees(svg, left, bottom - ROW, whole);
            left += width(callee.weight, whole);
        }
    }

    fn draw(&self, svg: &mut String, label: &str, left: f64, bottom: usize, whole: u64) {
        let (width, top) = (width(self.weight, whole), bottom - ROW);
        let _ = write!(
            svg,
            "<rect x=\"{left:.1}\" y=\"{top}\" width=\"{:.1}\" height=\"{}\" fill=\"{}\"/>",
            width - 0.5,
            ROW - 1,
            colour(label, self.is_php)
        );
        let letters = ((width - 4.0) / LETTER) as usize;
        if letters >= LEAST_LETTERS {
            let (x, y) = (left + 2.0, bottom - 5);
            let _ = write!(svg, "<text x=\"{x:.1}\" y=\"{y}\">{}</text>", text(label, letters));
        }
        svg.push('\n');
    }
}

fn width(weight: u64, whole: u64) -> f64 {
    WIDTH * weight as f64 / whole.max(1) as f64
}

/// Warm for PHP code, cold for what is not; the same name always has the same.
fn colour(label: &str, is_php: bool) -> String {
    let hash = label.bytes().fold(7_u32, |hash, byte| (hash * 31 + u32::from(byte)) % 997);
    let share = |least: u32, range: u32| least + hash % range;
    if is_php {
        format!("#f{:x}{:02x}40", hash % 16, share(0x88, 0x48))
    } else {
        format!("#{:02x}c{:x}d8", share(0x70, 0x30), hash % 16)
    }
}

/// As much of it as there is room for, as text of XML.
fn text(label: &str, letters: usize) -> String {
    let is_whole = label.chars().count() <= letters;
    let shown = label.chars().take(if is_whole { letters } else { letters - 1 });
    let mut text = String::new();
    for letter in shown.chain((!is_whole).then_some('…')) {
        match letter {
            '<' => text.push_str("&lt;"),
            '>' => text.push_str("&gt;"),
            '&' => text.push_str("&amp;"),
            // XML has no others.
            letter if letter.is_control() || matches!(letter, '\u{FFFE}' | '\u{FFFF}') => text.push('?'),
            letter => text.push(letter),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Function;
    use crate::tests::example;

    #[test]
    fn a_bar_is_as_wide_as_its_share_and_stands_on_its_caller() {
        let svg = svg(&example(), "a site");
        let wide = |part: f64| format!("width=\"{:.1}\"", WIDTH * part / 41.0 - 0.5);
        let line = |name: &str| svg.lines().find(|line| line.contains(&format!(">{name}<"))).unwrap();
        assert!(line("{main} srv/index.php").contains(&wide(41.0)));
        assert!(line("App::run").contains(&wide(40.0)) && line("sleep").contains(&wide(30.0)));
        let top = |name: &str| {
            let (_, rest) = line(name).split_once(" y=\"").unwrap();
            rest.split_once('"').unwrap().0.parse::<usize>().unwrap()
        };
        assert_eq!(
            (top("sleep") + ROW, top("App::run") + ROW),
            (top("App::run"), top("{main} srv/index.php"))
        );
    }

    #[test]
    fn nothing_breaks_out_of_the_picture() {
        let mut profile = example();
        let name = "</text><script>\u{0}&\u{FFFF}".to_owned();
        profile.functions[1] = Function { name, file: "x".into() };
        let svg = svg(&profile, "<x>");
        assert!(svg.contains("&lt;/text&gt;&lt;script&gt;?&amp;?<") && svg.contains("&lt;x&gt;"), "{svg}");
        assert!(!svg.contains("<script") && !svg.contains('\0'));
    }

    #[test]
    fn what_is_too_narrow_is_left_out() {
        let mut profile = example();
        profile.stacks[0].samples = 100_000;
        let svg = svg(&profile, "x");
        assert_eq!(svg.matches("<rect").count(), 1 + 3, "{svg}");
        assert!(super::svg(&Profile::default(), "nothing").ends_with("</svg>\n"));
    }
}
