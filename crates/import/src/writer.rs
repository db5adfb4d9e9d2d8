//! A Caddyfile that is being written: lines, blocks and comments, as `regent fmt` would have them.

#[derive(Debug, Default)]
pub(crate) struct Writer {
    text: String,
    depth: usize,
}

impl Writer {
    pub fn line(&mut self, line: &str) {
        if line.is_empty() {
            self.space();
            return;
        }
        self.text.push_str(&"\t".repeat(self.depth));
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// `head {`, what `body` writes, and `}`.
    pub fn block(&mut self, head: &str, body: impl FnOnce(&mut Self)) {
        self.line(&format!("{head} {{"));
        self.depth += 1;
        body(self);
        self.depth -= 1;
        while self.text.ends_with("\n\n") {
            self.text.pop();
        }
        self.line("}");
    }

    pub fn comment(&mut self, text: &str) {
        text.lines().for_each(|line| self.line(&format!("# {line}")));
    }

    /// An empty line, unless a block has just begun or there is one.
    pub fn space(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("{\n") && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    pub fn finish(mut self) -> String {
        while self.text.ends_with("\n\n") {
            self.text.pop();
        }
        self.text
    }
}

/// A word as a Caddyfile has it: in quotes if it needs some.
pub(crate) fn word(text: &str) -> String {
    let plain = |c: char| !c.is_whitespace() && !matches!(c, '"' | '`');
    let is_plain =
        !text.is_empty() && text.chars().all(plain) && !text.starts_with('#') && text != "{" && text != "}";
    match text {
        text if is_plain => text.to_owned(),
        text if !text.contains('`') => format!("`{text}`"),
        text => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}
