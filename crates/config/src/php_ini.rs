//! `php_ini` of the configuration in the language of php.ini.

use crate::model::PhpGlobal;

/// Words that php.ini has for "1" and for nothing, whatever their case.
const WORDS: [&str; 8] = ["on", "off", "yes", "no", "true", "false", "none", "null"];

impl PhpGlobal {
    /// The settings as they stand in php.ini, and behind `-d` of PHP's program. What is a word or an expression of its language
    /// is one there, and anything else a text that is taken as it is, whatever it holds.
    pub fn written_php_ini(&self) -> Vec<(String, String)> {
        self.php_ini.iter().map(|(name, value)| (name.clone(), written(value))).collect()
    }
}

fn written(value: &str) -> String {
    if value.is_empty() || WORDS.iter().any(|word| value.eq_ignore_ascii_case(word)) || is_quoted(value) {
        value.to_owned()
    } else if is_expression(value) {
        // `-d` takes what begins with an operator for a text.
        let begins_with_operand = value.starts_with(|c: char| c.is_ascii_alphanumeric());
        if begins_with_operand { value.to_owned() } else { format!("0|{value}") }
    } else {
        quoted(value)
    }
}

/// PHP replaces `${NAME}` within quotes, so such a text is made of two.
fn quoted(value: &str) -> String {
    let escaped = value.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", escaped.replace("${", "$\"\"{"))
}

/// A text that stands in quotes as in php.ini. None with a quote, an escape or a variable in it.
fn is_quoted(value: &str) -> bool {
    ['"', '\''].iter().any(|&quote| {
        let inner = value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
        inner.is_some_and(|inner| !inner.contains([quote, '\\']) && !inner.contains("${"))
    })
}

/// Constants and numbers with `|`, `&`, `^`, `~`, `!` and parentheses, as `zend_ini_parser.y` has them. Constants are in
/// capitals: `Tom & Jerry` is a text.
fn is_expression(value: &str) -> bool {
    let mut rest = value;
    let mut open = 0_u32;
    loop {
        rest = rest.trim_start();
        while let Some(behind) = rest.strip_prefix(['~', '!', '(']) {
            open += u32::from(rest.starts_with('('));
            rest = behind.trim_start();
        }
        let end = rest.find(|c: char| c != '_' && !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let (operand, behind) = rest.split_at(end);
        if !is_operand(operand) {
            return false;
        }
        rest = behind.trim_start();
        while let Some(behind) = rest.strip_prefix(')') {
            let Some(left) = open.checked_sub(1) else { return false };
            open = left;
            rest = behind.trim_start();
        }
        match rest.strip_prefix(['|', '&', '^']) {
            Some(behind) => rest = behind,
            None => return rest.is_empty() && open == 0,
        }
    }
}

fn is_operand(text: &str) -> bool {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let is_constant = text.starts_with(|c: char| c.is_ascii_uppercase())
        && text.bytes().all(|byte| byte == b'_' || byte.is_ascii_uppercase() || byte.is_ascii_digit());
    !text.is_empty() && (is_number || is_constant)
}

#[cfg(test)]
mod tests {
    use super::written;

    #[test]
    fn words_of_php_ini_were_taken_for_text() {
        for value in [
            "On",
            "off",
            "None",
            "NULL",
            "",
            "E_ALL",
            "E_ALL & ~E_DEPRECATED",
            "E_ALL&~(E_NOTICE|E_WARNING)",
            "30719",
        ] {
            assert_eq!(written(value), value);
        }
        assert_eq!([written("\"quoted\""), written("'quoted'")], ["\"quoted\"", "'quoted'"]);
        assert_eq!([written("~0 ^ 1"), written("!1"), written("(1)")], ["0|~0 ^ 1", "0|!1", "0|(1)"]);
    }

    #[test]
    fn texts_are_taken_as_they_are() {
        let texts = ["128M", "Tom & Jerry", "Warning!", "E_ALL &", "(E_ALL", "E_ALL)", "exec,system"];
        for value in texts.into_iter().chain(["N;/var/lib/php", "-1", "files", "a=b", "#x", "'", "it's"]) {
            assert_eq!(written(value), format!("\"{value}\""));
        }
        assert_eq!(written("x;y \"z\""), "\"x;y \\\"z\\\"\"");
        assert_eq!(written("a${HOME}b"), "\"a$\"\"{HOME}b\"");
        assert_eq!(written("\"${HOME}\""), "\"\\\"$\"\"{HOME}\\\"\"");
    }
}
