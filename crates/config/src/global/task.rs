//! `task FILE [ARGUMENT…] { … }`, in `frankenphp`: a script that PHP's command line program runs beside the pools, such as a
//! queue's consumer or a scheduler.
//!
//! | option | default | meaning |
//! |---|---|---|
//! | `num N` | 1 | how many run at the same time |
//! | `every DURATION` | | it runs so long after each start, or at once if it took longer |
//! | `schedule "MINUTE HOUR DAY MONTH WEEKDAY"` | | it runs at these times, in UTC, as crontab has them; or `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly` |
//! | `restart always` \| `on_failure` \| `never` | always | of one that has no times: whether it is started again when it has ended |
//! | `name TEXT` | the file and its arguments | what the log calls it |
//! | `env NAME VALUE`, or a block | | environment of the script |
//! | `timeout DURATION` | none | longest time of one run; then it is told to end |
//! | `stop_timeout DURATION` | 10s | how long it may take to end when it is told to (SIGTERM), before it is killed |
//!
//! More about it: [background scripts](tasks.md).
//!
//! ```caddyfile
//! {
//!     frankenphp {
//!         task artisan queue:work {
//!             num 2
//!         }
//!         task artisan schedule:run {
//!             schedule "* * * * *"
//!         }
//!     }
//! }
//! ```

use crate::call::Call;
use crate::context::Context;
use crate::model::{DaysBy, Restart, Schedule, Task, TaskTime};
use crate::problems::{error, unknown, unknown_option};
use crate::values;
use crate::workers;
use regent_caddyfile::{Error, Token};
use std::path::Path;
use std::time::Duration;

const SYNTAX: &str = "task FILE [ARGUMENT…] { OPTION… }";
const OPTIONS: &[&str] = &["env", "every", "name", "num", "restart", "schedule", "stop_timeout", "timeout"];
const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

pub(super) fn declare(cx: &mut Context<'_>, call: &Call<'_>, tasks: &mut Vec<Task>) -> Result<(), Error> {
    let Some((file, arguments)) = call.args.split_first() else {
        return Err(call.wrong_arguments(1, SYNTAX));
    };
    let path = cx.environment.absolute(Path::new(&cx.fixed_text(file)?));
    if !path.is_file() {
        let message = format!("the task's file does not exist: {}", path.display());
        cx.warn(file, message.clone());
        cx.missing.push(error(file, message));
    }
    let arguments: Result<Vec<_>, _> = arguments.iter().map(|token| cx.fixed_text(token)).collect();
    let mut task = Task {
        name: call.args.iter().map(|token| token.text.as_str()).collect::<Vec<_>>().join(" "),
        file: path,
        arguments: arguments?,
        num: 1,
        when: TaskTime::Always(Restart::Always),
        env: Vec::new(),
        timeout: None,
        stop_timeout: Duration::from_secs(10),
    };
    let mut timed = None;
    for option in call.options() {
        let result = apply(cx, &option, &mut task, &mut timed);
        cx.check(result);
    }
    if task.num > 1 && !matches!(task.when, TaskTime::Always(_)) {
        return Err(error(call.name, "a task that runs at times runs once at a time: leave out `num`"));
    }
    if tasks.iter().any(|other| other.name == task.name) {
        let message = format!("there is another task `{}`; give one of them a `name` of its own", task.name);
        return Err(error(file, message));
    }
    tasks.push(task);
    Ok(())
}

/// `timed`: what has said when it runs.
fn apply(
    cx: &mut Context<'_>,
    option: &Call<'_>,
    task: &mut Task,
    timed: &mut Option<String>,
) -> Result<(), Error> {
    if let ("every" | "schedule" | "restart", Some(other)) = (option.name(), &*timed) {
        let message = format!("`{}` and `{other}` cannot both say when a task runs", option.name());
        return Err(error(option.name, message));
    }
    match option.name() {
        "num" => task.num = values::integer(option.one("num N")?, 1..=1000, "num")?,
        "name" => task.name = cx.fixed_text(option.one("name TEXT")?)?,
        "every" => task.when = TaskTime::Every(values::positive_duration(option.one("every DURATION")?)?),
        "schedule" => {
            let syntax = "schedule \"MINUTE HOUR DAY MONTH WEEKDAY\"";
            let words = option.some(syntax)?;
            let text = words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
            let schedule = schedule(&text).map_err(|reason| error(&words[0], reason))?;
            task.when = TaskTime::Schedule(schedule);
        }
        "restart" => {
            let rule = restart(option.one("restart always | on_failure | never")?)?;
            task.when = TaskTime::Always(rule);
        }
        "env" => {
            for (name, value) in workers::pairs(cx, option, "env NAME VALUE") {
                let value = cx.fixed_text(value);
                task.env.extend(cx.check(value).map(|value| (name, value)));
            }
        }
        "timeout" => task.timeout = Some(values::positive_duration(option.one("timeout DURATION")?)?),
        "stop_timeout" => task.stop_timeout = values::duration(option.one("stop_timeout DURATION")?)?,
        _ => return Err(unknown_option(option.name, "task", OPTIONS, &[])),
    }
    if matches!(option.name(), "every" | "schedule" | "restart") {
        *timed = Some(option.name().to_owned());
    }
    Ok(())
}

fn restart(token: &Token) -> Result<Restart, Error> {
    match token.text.as_str() {
        "always" => Ok(Restart::Always),
        "on_failure" => Ok(Restart::OnFailure),
        "never" => Ok(Restart::Never),
        _ => Err(unknown(token, "rule", &["always", "on_failure", "never"])),
    }
}

fn schedule(text: &str) -> Result<Schedule, String> {
    let text = match text {
        "@hourly" => "0 * * * *",
        "@daily" | "@midnight" => "0 0 * * *",
        "@weekly" => "0 0 * * 0",
        "@monthly" => "0 0 1 * *",
        "@yearly" | "@annually" => "0 0 1 1 *",
        text => text,
    };
    let fields: Vec<_> = text.split_ascii_whitespace().collect();
    let [minutes, hours, days, months, weekdays] = fields[..] else {
        let wrong = "is no schedule; write five fields, \"MINUTE HOUR DAY MONTH WEEKDAY\", or `@daily`";
        return Err(format!("`{text}` {wrong}"));
    };
    let weekday_bits = field(weekdays, 0, 7, &WEEKDAYS)?;
    let says = |field: &str| !field.starts_with('*');
    let schedule = Schedule {
        minutes: field(minutes, 0, 59, &[])?,
        hours: u32::try_from(field(hours, 0, 23, &[])?).unwrap_or(0),
        days: u32::try_from(field(days, 1, 31, &[])?).unwrap_or(0),
        months: u16::try_from(field(months, 1, 12, &MONTHS)?).unwrap_or(0),
        // Sunday is 7 too.
        weekdays: u8::try_from((weekday_bits | weekday_bits >> 7) & 0x7f).unwrap_or(0),
        days_by: if says(days) && says(weekdays) { DaysBy::Either } else { DaysBy::Both },
    };
    match schedule.days_by == DaysBy::Both && !has_day(&schedule) {
        true => Err(format!("`{text}` never comes: no month of it has such a day")),
        false => Ok(schedule),
    }
}

fn has_day(schedule: &Schedule) -> bool {
    const LENGTHS: [u32; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    (1..=12).any(|month| {
        schedule.months >> month & 1 == 1
            && schedule.days.trailing_zeros() <= LENGTHS[usize::try_from(month - 1).unwrap_or(0)]
    })
}

/// A list of `*`, `N`, `N-M`, each with `/STEP` or without, as bits.
fn field(text: &str, least: u32, most: u32, names: &[&str]) -> Result<u64, String> {
    let wrong = || {
        format!(
            "`{text}` is none of a schedule's fields: write `*`, numbers from {least} to {most}, `N-M`, `*/STEP`, or a list of these with commas"
        )
    };
    let number = |word: &str| {
        let named = names.iter().position(|name| word.eq_ignore_ascii_case(name));
        let number = match named {
            Some(at) => least + u32::try_from(at).unwrap_or(0),
            None => word.parse().map_err(|_| wrong())?,
        };
        if (least..=most).contains(&number) { Ok(number) } else { Err(wrong()) }
    };
    let mut bits = 0;
    for part in text.split(',') {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => {
                let step = step.parse::<u32>().ok().filter(|step| *step > 0).ok_or_else(wrong)?;
                (range, Some(step))
            }
            None => (part, None),
        };
        let (first, last) = match range.split_once('-') {
            _ if range == "*" => (least, most),
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(range)?, if step.is_some() { most } else { number(range)? }),
        };
        if first > last {
            return Err(wrong());
        }
        let step = usize::try_from(step.unwrap_or(1)).unwrap_or(1);
        (first..=last).step_by(step).for_each(|value| bits |= 1u64 << value);
    }
    Ok(bits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directives::testing::{file_errors, load};

    fn tasks(text: &str) -> Vec<Task> {
        let text = format!("{{\nfrankenphp {{\n{text}\n}}\n}}\n:80 {{\n}}");
        load(&text).unwrap_or_else(|errors| panic!("{errors}")).config.global.php.tasks
    }

    fn errors(text: &str) -> Vec<String> {
        file_errors(&format!("{{\nfrankenphp {{\n{text}\n}}\n}}\n:80 {{\n}}"))
    }

    #[test]
    fn options() {
        let found = tasks(
            "task bin/console messenger:consume --limit 5 {\nnum 3\nrestart on_failure\nenv A b\ntimeout 1m\n\
             stop_timeout 0\n}\ntask /x.php {\nevery 90s\nname tick\n}",
        );
        assert_eq!(found[0].name, "bin/console messenger:consume --limit 5");
        assert_eq!((found[0].file.as_path(), found[0].num), (Path::new("/srv/bin/console"), 3));
        assert_eq!(found[0].arguments, ["messenger:consume", "--limit", "5"]);
        assert_eq!(found[0].when, TaskTime::Always(Restart::OnFailure));
        assert_eq!(
            (found[0].timeout, found[0].stop_timeout),
            (Some(Duration::from_secs(60)), Duration::ZERO)
        );
        assert_eq!(
            (found[1].name.as_str(), &found[1].when),
            ("tick", &TaskTime::Every(Duration::from_secs(90)))
        );
    }

    #[test]
    fn schedules() {
        let all = schedule("* * * * *").unwrap();
        assert_eq!((all.minutes, all.hours, all.days), ((1 << 60) - 1, (1 << 24) - 1, !1));
        assert_eq!((all.months, all.weekdays, all.days_by), (0x1ffe, 0x7f, DaysBy::Both));
        let some = schedule("5,*/20 9-17/4 1 jan,JUL mon-fri").unwrap();
        assert_eq!(some.minutes, 1 | 1 << 5 | 1 << 20 | 1 << 40);
        assert_eq!((some.hours, some.days, some.months), (1 << 9 | 1 << 13 | 1 << 17, 2, 2 | 1 << 7));
        assert_eq!((some.weekdays, some.days_by), (0b11_1110, DaysBy::Either));
        assert_eq!(schedule("0 0 * * 7").unwrap().weekdays, 1);
        assert_eq!(schedule("@daily"), schedule("0 0 * * *"));
        for wrong in [
            "",
            "* * * *",
            "60 * * * *",
            "* 24 * * *",
            "* * 0 * *",
            "*/0 * * * *",
            "5-1 * * * *",
            "x * * * *",
            "0 0 31 2 *",
        ] {
            assert!(schedule(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn mistakes() {
        let mut found = errors(
            "task\ntask a {\nevery 1s\nschedule @daily\nnum 2\n}\ntask b {\nrestart sometimes\n}\ntask c\ntask c",
        );
        // All of them are missing too.
        found.retain(|message| !message.contains("does not exist"));
        assert_eq!(found.len(), 5, "{found:?}");
        assert!(found.iter().any(|message| message.contains("cannot both say when")), "{found:?}");
        assert!(found.iter().any(|message| message.contains("there is another task")), "{found:?}");
    }
}
