//! Topic selectors: which topics does somebody mean?

use crate::template;
use regex_lite::{Regex, RegexBuilder};
use std::sync::OnceLock;

/// Bytes that a compiled template may take.
const MOST_PROGRAM: usize = 256 * 1024;

/// A topic, a URI template, or `*` for all topics.
#[derive(Debug)]
pub(crate) struct Selector {
    text: Box<str>,
    /// Compiled when it is first needed, since most are never. `None` in it: it is no template, or too large a one.
    template: OnceLock<Option<Regex>>,
}

impl Selector {
    pub fn new(text: &str) -> Self {
        Self { text: text.into(), template: OnceLock::new() }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it may fit other topics than the one that is written like it.
    pub fn is_pattern(&self) -> bool {
        self.is_all() || self.text.contains('{')
    }

    /// Takes time that grows with the product of both lengths at most.
    pub fn fits(&self, topic: &str) -> bool {
        if self.is_all() || *self.text == *topic {
            return true;
        }
        // What stands before the first variable tells most topics apart.
        let Some((start, _)) = self.text.split_once('{') else { return false };
        topic.starts_with(start) && self.template().is_some_and(|template| template.is_match(topic))
    }

    fn is_all(&self) -> bool {
        &*self.text == "*"
    }

    fn template(&self) -> Option<&Regex> {
        let compile = || {
            let pattern = template::pattern(&self.text)?;
            RegexBuilder::new(&pattern).size_limit(MOST_PROGRAM).build().ok()
        };
        self.template.get_or_init(compile).as_ref()
    }
}

/// Whether one of the selectors fits one of the topics.
pub(crate) fn any_fits(selectors: &[Selector], topics: &[String]) -> bool {
    selectors.iter().any(|selector| topics.iter().any(|topic| selector.fits(topic)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_is_a_topic_a_template_or_everything() {
        let fits = |selector: &str, topic: &str| Selector::new(selector).fits(topic);
        assert!(fits("*", "anything at all") && fits("a", "a") && fits("/b/{id}", "/b/1"));
        assert!(!fits("a", "b") && !fits("/b/{id}", "/c/1") && !fits("a*", "ab"));
    }

    #[test]
    fn a_template_fits_its_own_text() {
        assert!(Selector::new("/b/{id}").fits("/b/{id}"));
        assert!(Selector::new("/b/{").fits("/b/{"));
    }

    #[test]
    fn a_template_that_would_take_too_much_memory_is_only_a_text() {
        let huge = "{a:9999}".repeat(20);
        assert!(Selector::new(&huge).fits(&huge));
        assert!(!Selector::new(&huge).fits("a"));
    }

    #[test]
    fn all_that_a_template_may_be_fits_into_its_memory() {
        let names: Vec<_> = ('a'..'q').map(String::from).collect();
        assert!(Selector::new(&format!("/x{{?{}}}", names.join(","))).fits("/x?b=1&d=2&p=%20"));
    }

    #[test]
    fn a_template_that_makes_other_engines_go_back_and_forth_is_fast() {
        let selector = Selector::new(&"{+a}".repeat(16));
        assert!(!selector.fits(&format!("{}\n", "a".repeat(1000))));
    }
}
