//! A flame graph as one page: data, script and style, with nothing from elsewhere.

use crate::Profile;
use serde_json::json;

const PAGE: &str = include_str!("flame_graph/page.html");
const STYLE: &str = include_str!("flame_graph/style.css");
const SCRIPT: &str = include_str!("flame_graph/flame_graph.js");

pub fn page(profile: &Profile, title: &str) -> String {
    let data = json!({ "title": title, "profile": profile }).to_string();
    // Within <script> only `</script` and `<!--` mean something, and in JSON `<` is in texts only.
    let data = data.replace('<', "\\u003c");
    // The data last: it may hold anything, the places of the others too.
    PAGE.replace("/*STYLE*/", STYLE).replace("/*SCRIPT*/", SCRIPT).replace("/*DATA*/", &data)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::example;

    #[test]
    fn what_a_client_asked_for_cannot_end_the_data() {
        let mut profile = example();
        profile.paths.push("<!--<script>".into());
        let page = page(&profile, "</script><script>alert(1)</script>");
        assert_eq!(page.matches("</script>").count(), PAGE.matches("</script>").count());
        let (_, data) = page.split_once("type=\"application/json\">").unwrap();
        let (data, _) = data.split_once("</script>").unwrap();
        let data: serde_json::Value = serde_json::from_str(data).unwrap();
        assert_eq!(data["title"], "</script><script>alert(1)</script>");
        assert_eq!(data["profile"]["paths"][0], "/</script>");
    }

    #[test]
    fn the_page_needs_nothing_else() {
        let page = page(&example(), "x");
        assert!(!page.contains("src=") && !page.contains("href=\"h") && !page.contains("/*STYLE*/"));
    }
}
