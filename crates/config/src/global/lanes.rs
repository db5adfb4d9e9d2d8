//! `lane NAME { threads N | share N% }`, in `frankenphp`: the most threads that requests of a lane hold, at any time.
//!
//! A lane is a set of routes that share a bound, so that slow ones leave threads for fast ones; see
//! `directives/lane.rs`. A lane that is not declared here is bounded while it is slow. A share is a part of the threads
//! that the pool may have, and one thread at least.
//!
//! ```caddyfile
//! {
//!     frankenphp {
//!         lane reports {
//!             share 25%
//!         }
//!     }
//! }
//! ```

use crate::call::Call;
use crate::model::{Lane, LaneBound, LaneChoice};
use crate::problems::{error, unknown_option};
use crate::values;
use regent_caddyfile::{Error, Token};

const SYNTAX: &str = "lane NAME { threads N | share N% }";

/// Adds the lane of a line `lane NAME { … }`.
pub(super) fn declare(call: &Call<'_>, lanes: &mut Vec<Lane>) -> Result<(), Error> {
    let [name] = call.args else { return Err(call.wrong_arguments(1, SYNTAX)) };
    let LaneChoice::Named(text) = values::lane(name)? else {
        return Err(error(name, "`off` is no name of a lane: it means that a route has none"));
    };
    if lanes.iter().any(|lane| lane.name == text) {
        return Err(error(name, format!("the lane `{text}` is declared twice")));
    }
    lanes.push(Lane { name: text, bound: bound(call)? });
    Ok(())
}

fn bound(call: &Call<'_>) -> Result<LaneBound, Error> {
    let mut bounds = Vec::new();
    for option in call.options() {
        bounds.push(match option.name() {
            "threads" => {
                LaneBound::Threads(values::integer(option.one("threads N")?, 1..=u16::MAX, "threads")?)
            }
            "share" => share(option.one("share N%")?)?,
            _ => return Err(unknown_option(option.name, "lane", &["share", "threads"], &[])),
        });
    }
    match bounds.as_slice() {
        [bound] => Ok(*bound),
        _ => Err(error(call.name, format!("a lane has one bound; write: {SYNTAX}"))),
    }
}

fn share(token: &Token) -> Result<LaneBound, Error> {
    let percent = token.text.strip_suffix('%').and_then(|number| number.parse().ok());
    match percent {
        Some(percent @ 1..=100) => Ok(LaneBound::Share(percent)),
        _ => {
            let message = format!("`share` must be a whole number from 1% to 100%, not `{}`", token.text);
            Err(error(token, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{config, file_errors};
    use crate::model::{Lane, LaneBound};

    fn text(lanes: &str) -> String {
        format!("{{\nregent {{\n{lanes}\n}}\n}}\n:80 {{\n}}")
    }

    #[test]
    fn bounds() {
        let lanes = config(&text("lane a {\nthreads 2\n}\nlane b {\nshare 25%\n}")).global.php.lanes;
        let lane = |name: &str, bound| Lane { name: name.into(), bound };
        assert_eq!(lanes, [lane("a", LaneBound::Threads(2)), lane("b", LaneBound::Share(25))]);
    }

    #[test]
    fn mistakes() {
        let lanes = "lane a {\nshare 1%\n}\nlane a {\nshare 2%\n}\nlane off {\nthreads 1\n}\nlane b\n\
                     lane c {\nthreads 1\nshare 1%\n}\nlane d {\nshare 0%\n}\nlane e {\nshare 101%\n}\n\
                     lane f {\nshare 25\n}\nlane g {\nthreads 0\n}\nlane h {\nthread 1\n}\nlane {\n}";
        let found = file_errors(&text(lanes));
        assert_eq!(found[0], "the lane `a` is declared twice");
        assert_eq!(found[2], "a lane has one bound; write: lane NAME { threads N | share N% }");
        assert!(found[8].contains("did you mean `threads`?"), "{found:?}");
        assert_eq!(found.len(), 10, "{found:?}");
    }
}
