//! What HTTP asks of a shared cache, as cases that any cache can be put through: requests to it, a server behind it that says
//! what a case has it say, and what is expected of what comes back.
//!
//! The matters are those of the public suite at cache-tests.fyi, the cases are our own.

mod case;
mod cases;
mod origin;
mod page;
mod run;

pub use case::{Case, Group, Level};
pub use cases::groups;
pub use origin::Origin;
pub use page::{Column, page, recorded};
pub use run::{Outcome, run_all};

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn every_case_has_an_id_of_its_own_and_needs_what_is_there() {
        let groups = groups();
        let cases: Vec<&Case> = groups.iter().flat_map(|group| &group.cases).collect();
        let by_id: BTreeMap<&str, &Case> = cases.iter().map(|case| (case.id.as_str(), *case)).collect();
        assert_eq!(by_id.len(), cases.len(), "two cases have one id");
        for case in cases {
            let last = case.steps.last().expect("a case has steps");
            assert!(!last.then.is_empty(), "{} expects nothing", case.id);
            for id in &case.needs {
                assert!(by_id.contains_key(id), "{} needs {id}, which is no case", case.id);
            }
        }
    }
}
