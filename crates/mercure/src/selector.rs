//! Topic selectors: which topics does somebody mean?

use crate::template::{Template, Topic};
use std::sync::Arc;

/// A topic, a URI template, or `*` for all topics. Takes the memory of its text.
#[derive(Debug)]
pub(crate) struct Selector {
    text: Box<str>,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    All,
    Template(Template),
    /// Fits the topic that is written like it.
    Topic,
}

impl Selector {
    pub fn new(text: &str) -> Self {
        let kind = match text {
            "*" => Kind::All,
            _ => Template::of(text).map_or(Kind::Topic, Kind::Template),
        };
        Self { text: text.into(), kind }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// What every topic begins with that it fits. `None`: it fits the one that is written like it, and no other.
    pub fn prefix(&self) -> Option<&str> {
        match self.kind {
            Kind::All => Some(""),
            Kind::Template(template) => Some(&self.text[..template.prefix()]),
            Kind::Topic => None,
        }
    }

    /// What a look at a topic costs is in proportion to it.
    pub fn variables(&self) -> usize {
        if let Kind::Template(template) = self.kind { template.variables() } else { 0 }
    }

    /// Takes time that grows with the product of both lengths at most.
    pub fn fits(&self, topic: &Topic<'_>) -> bool {
        match self.kind {
            Kind::All => true,
            Kind::Topic => *self.text == *topic.text(),
            Kind::Template(template) => *self.text == *topic.text() || template.fits(&self.text, topic),
        }
    }
}

/// Whether one of the selectors fits one of the topics.
pub(crate) fn any_fits(selectors: &[Arc<Selector>], topics: &[String]) -> bool {
    topics
        .iter()
        .map(|topic| Topic::new(topic))
        .any(|topic| selectors.iter().any(|selector| selector.fits(&topic)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(selector: &str, topic: &str) -> bool {
        Selector::new(selector).fits(&Topic::new(topic))
    }

    #[test]
    fn a_selector_is_a_topic_a_template_or_everything() {
        assert!(fits("*", "anything at all") && fits("a", "a") && fits("/b/{id}", "/b/1"));
        assert!(!fits("a", "b") && !fits("/b/{id}", "/c/1") && !fits("a*", "ab"));
    }

    #[test]
    fn a_template_fits_its_own_text() {
        assert!(fits("/b/{id}", "/b/{id}"));
        assert!(fits("/b/{", "/b/{"));
    }

    #[test]
    fn what_has_too_many_variables_is_only_a_text() {
        let huge = "{a:9999}".repeat(20);
        assert!(fits(&huge, &huge));
        assert!(!fits(&huge, "a"));
        assert_eq!((Selector::new(&huge).prefix(), Selector::new(&huge).variables()), (None, 0));
    }

    #[test]
    fn all_that_a_template_may_be_is_looked_at() {
        let names: Vec<_> = ('a'..'q').map(String::from).collect();
        let selector = Selector::new(&format!("/x{{?{}}}", names.join(",")));
        assert!(selector.fits(&Topic::new("/x?b=1&d=2&p=%20")));
        assert_eq!((selector.prefix(), selector.variables()), (Some("/x"), 16));
    }
}
