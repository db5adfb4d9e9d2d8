//! Values: variables become placeholders, sizes and times those of a Caddyfile.

use regex::Regex;

/// nginx' variables that a Caddyfile has a word for.
const VARIABLES: &[(&str, &str)] = &[
    ("args", "{query}"),
    ("query_string", "{query}"),
    ("is_args$args", "{?query}"),
    ("is_args", ""),
    ("document_root", "{http.vars.root}"),
    ("realpath_root", "{http.vars.root}"),
    ("document_uri", "{path}"),
    ("uri", "{path}"),
    ("request_uri", "{uri}"),
    ("host", "{host}"),
    ("http_host", "{hostport}"),
    ("server_name", "{host}"),
    ("hostname", "{system.hostname}"),
    ("scheme", "{scheme}"),
    ("request_method", "{method}"),
    ("remote_addr", "{remote_host}"),
    ("binary_remote_addr", "{remote_host}"),
    ("remote_port", "{remote_port}"),
    ("remote_user", "{http.auth.user.id}"),
    ("server_port", "{port}"),
    ("request_id", "{http.request.uuid}"),
    ("ssl_client_s_dn", "{tls_client_subject}"),
];

/// A text with placeholders. `groups` names the matcher whose groups `$1` and the like are; `None`: there is none.
///
/// The error is the variable that there is no word for.
pub(super) fn placeholders(text: &str, groups: Option<&str>) -> Result<String, String> {
    // Together they are what they are in nearly all files.
    let text =
        text.replace("$is_args$args", "${is_args$args}").replace("$is_args$query_string", "${is_args$args}");
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find('$') {
        out.push_str(&literal(&rest[..at]));
        let (name, behind) = name_of(&rest[at + 1..]);
        rest = behind;
        if name.is_empty() {
            out.push('$');
            continue;
        }
        out.push_str(&placeholder(name, groups).ok_or_else(|| format!("${name}"))?);
    }
    out.push_str(&literal(rest));
    Ok(out)
}

/// Braces of a text are none of a placeholder.
fn literal(text: &str) -> String {
    text.replace('{', "\\{").replace('}', "\\}")
}

fn name_of(text: &str) -> (&str, &str) {
    if let Some(inner) = text.strip_prefix('{') {
        return inner.split_once('}').unwrap_or((inner, ""));
    }
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    // `$1abc` is the first group before a text.
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(if digits > 0 { digits } else { end })
}

fn placeholder(name: &str, groups: Option<&str>) -> Option<String> {
    if name.parse::<u8>().is_ok() {
        return Some(format!("{{re.{}.{name}}}", groups?));
    }
    if let Some((_, word)) = VARIABLES.iter().find(|(variable, _)| *variable == name) {
        return Some((*word).to_owned());
    }
    let of = |prefix: &str, space: &str| {
        let field = name.strip_prefix(prefix)?;
        Some(format!("{{{space}.{}}}", field.replace('_', "-")))
    };
    let cookie = || Some(format!("{{http.request.cookie.{}}}", name.strip_prefix("cookie_")?));
    let argument = || Some(format!("{{query.{}}}", name.strip_prefix("arg_")?));
    cookie().or_else(argument).or_else(|| of("http_", "header"))
}

/// `20m` as `20MiB`; `None`: it is no size.
pub(super) fn size(text: &str) -> Option<String> {
    let (number, unit) = split(text)?;
    let unit = match unit {
        "" => "",
        "k" | "K" => "KiB",
        "m" | "M" => "MiB",
        "g" | "G" => "GiB",
        _ => return None,
    };
    Some(format!("{number}{unit}"))
}

/// `300`, `5m`, `30d` as a duration of a Caddyfile.
pub(super) fn duration(text: &str) -> Option<String> {
    let (number, unit) = split(text)?;
    match unit {
        "" | "s" => Some(format!("{number}s")),
        "ms" | "m" | "h" | "d" => Some(text.to_owned()),
        _ => None,
    }
}

/// `expires` as seconds.
pub(super) fn seconds(text: &str) -> Option<u64> {
    if text == "max" {
        return Some(315_360_000);
    }
    let (number, unit) = split(text)?;
    let factor = match unit {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        "M" => 30 * 86_400,
        "y" => 365 * 86_400,
        _ => return None,
    };
    number.checked_mul(factor)
}

fn split(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

/// A regular expression that Rust's `regex` takes; `None`: it looks around itself, or is none.
pub(super) fn pattern(text: &str, is_insensitive: bool) -> Option<String> {
    // Slashes need no backslash.
    let text = text.replace("\\/", "/");
    let pattern = if is_insensitive { format!("(?i){text}") } else { text };
    Regex::new(&pattern).is_ok().then_some(pattern)
}

/// Whether the pattern is for all scripts, and not for some that it names.
pub(super) fn is_of_all_scripts(pattern: &str) -> bool {
    Regex::new(pattern).is_ok_and(|regexp| regexp.is_match("/any-directory/below/any-script.php"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_become_placeholders() {
        for (text, expected) in [
            ("/index.php?$args", "/index.php?{query}"),
            ("/index.php$is_args$args", "/index.php{?query}"),
            ("https://$host$request_uri", "https://{host}{uri}"),
            ("$http_x_own/$arg_page/$cookie_sid", "{header.x-own}/{query.page}/{http.request.cookie.sid}"),
            ("/a/$1b/${2}c", "/a/{re.x.1}b/{re.x.2}c"),
            ("cost: 5$", "cost: 5$"),
            ("a{b}", "a\\{b\\}"),
        ] {
            assert_eq!(placeholders(text, Some("x")).as_deref(), Ok(expected), "{text}");
        }
        assert_eq!(placeholders("$my_own", None), Err("$my_own".to_owned()));
        assert_eq!(placeholders("$1", None), Err("$1".to_owned()));
    }

    #[test]
    fn sizes_and_times() {
        assert_eq!(size("20m").as_deref(), Some("20MiB"));
        assert_eq!(size("0").as_deref(), Some("0"));
        assert_eq!(size("x"), None);
        assert_eq!(duration("300").as_deref(), Some("300s"));
        assert_eq!(duration("1d").as_deref(), Some("1d"));
        assert_eq!(seconds("30d"), Some(2_592_000));
        assert_eq!(seconds("-1"), None);
    }
}
