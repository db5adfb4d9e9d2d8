//! `circuit { … }` | `off`, in `frankenphp`: what becomes of requests that kill their engine again and again. They get 503 for
//! a while, until one of them is let through to see.
//!
//! | option | default | meaning |
//! |---|---|---|
//! | `failures N` | 3 | deaths of the engine by a route, or by a worker that boots, after which its circuit opens; of a script as a whole, three times as many |
//! | `within DURATION` | 1m | the time in which there have to be so many |
//! | `pause DURATION` | 10s | how long it is open at first; twice as long each time that the request that was let through has killed again |
//! | `max_pause DURATION` | 5m | at most |
//!
//! More about it: [pages that crash](crashes.md#pages-that-crash).
//!
//! ```caddyfile
//! {
//!     frankenphp {
//!         circuit {
//!             failures 5
//!             within 10m
//!         }
//!     }
//! }
//! ```

use crate::call::Call;
use crate::context::Context;
use crate::model::Circuit;
use crate::problems::{error, unknown_option};
use crate::values;
use regent_caddyfile::Error;

const SYNTAX: &str = "circuit { failures N; within | pause | max_pause DURATION }, or circuit off";
const OPTIONS: &[&str] = &["failures", "max_pause", "pause", "within"];

pub(super) fn parse(cx: &mut Context<'_>, call: &Call<'_>) -> Result<Option<Circuit>, Error> {
    match call.args {
        [] => {}
        [off] if off.text == "off" => return call.without_block(SYNTAX).map(|()| None),
        _ => return Err(call.wrong_arguments(0, SYNTAX)),
    }
    let mut circuit = Circuit::default();
    let mut pause = None;
    for option in call.options() {
        if option.name() == "pause" {
            pause = Some(option.name);
        }
        let result = apply(&option, &mut circuit);
        cx.check(result);
    }
    match pause {
        Some(pause) if circuit.pause > circuit.max_pause => {
            Err(error(pause, "`pause` is longer than `max_pause`; make it shorter, or `max_pause` longer"))
        }
        _ => {
            circuit.pause = circuit.pause.min(circuit.max_pause);
            Ok(Some(circuit))
        }
    }
}

fn apply(option: &Call<'_>, circuit: &mut Circuit) -> Result<(), Error> {
    match option.name() {
        "failures" => {
            circuit.failures = values::integer(option.one("failures N")?, 1..=1000, "failures")?;
        }
        "within" => circuit.within = values::positive_duration(option.one("within DURATION")?)?,
        "pause" => circuit.pause = values::positive_duration(option.one("pause DURATION")?)?,
        "max_pause" => circuit.max_pause = values::positive_duration(option.one("max_pause DURATION")?)?,
        _ => return Err(unknown_option(option.name, "circuit", OPTIONS, &[])),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{config, file_errors};
    use crate::model::Circuit;
    use std::time::Duration;

    fn text(arguments: &str) -> String {
        format!("{{\nfrankenphp {{\ncircuit {arguments}\n}}\n}}\n:80 {{\n}}")
    }

    fn parsed(arguments: &str) -> Option<Circuit> {
        config(&text(arguments)).global.php.circuit
    }

    #[test]
    fn options() {
        let seconds = Duration::from_secs;
        let all = Circuit { failures: 5, within: seconds(600), pause: seconds(1), max_pause: seconds(60) };
        assert_eq!(parsed("{\nfailures 5\nwithin 10m\npause 1s\nmax_pause 1m\n}"), Some(all));
        assert_eq!((parsed("off"), parsed("")), (None, Some(Circuit::default())));
        assert_eq!(config(":80 {\n}").global.php.circuit, Some(Circuit::default()), "it is on by default");
    }

    #[test]
    fn a_bound_below_the_usual_pause_shortens_it() {
        assert_eq!(parsed("{\nmax_pause 2s\n}").map(|circuit| circuit.pause), Some(Duration::from_secs(2)));
    }

    #[test]
    fn mistakes() {
        for arguments in
            ["on", "off {\npause 1s\n}", "5", "{\nfailures 0\n}", "{\npause 0\n}", "{\nwithin 5\n}"]
        {
            assert_eq!(file_errors(&text(arguments)).len(), 1, "{arguments}");
        }
        let found = file_errors(&text("{\nfailure 3\n}"));
        assert!(found[0].contains("did you mean `failures`?"), "{found:?}");
        let found = file_errors(&text("{\nmax_pause 5s\npause 1m\n}"));
        assert!(found[0].contains("`pause` is longer than `max_pause`"), "{found:?}");
    }
}
