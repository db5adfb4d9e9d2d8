//! The cases.

mod content;
mod directives;
mod freshness;
mod selection;
mod validation;

use super::case::Group;

/// All of them.
pub fn groups() -> Vec<Group> {
    vec![
        freshness::lifetimes(),
        freshness::parsing(),
        freshness::age(),
        freshness::expires(),
        directives::responses(),
        directives::stale(),
        directives::heuristics(),
        selection::methods(),
        selection::statuses(),
        directives::requests(),
        selection::vary(),
        validation::by_tag(),
        validation::by_date(),
        content::fields(),
        validation::updates(),
        validation::by_head(),
        content::invalidation(),
        content::ranges(),
        selection::personal(),
        content::targeted(),
        content::interim(),
    ]
}
