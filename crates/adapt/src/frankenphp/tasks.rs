//! `task`: scripts that run beside the pools.

use crate::words::{self, Line};
use regent_config::{DaysBy, Restart, Schedule, Task, TaskTime, escaped};

pub(super) fn line(task: &Task) -> Line {
    let Task { name, file, arguments, num, when, env, timeout, stop_timeout } = task;
    let words = std::iter::once(file.display().to_string()).chain(arguments.iter().cloned());
    let mut lines =
        vec![Line::new(["name"]).word(escaped(name)), Line::new(["num"]).word(num.to_string()), time(when)];
    lines.extend(env.iter().map(|(name, value)| Line::new(["env", name]).word(escaped(value))));
    lines.extend(timeout.map(|limit| Line::new(["timeout"]).word(words::duration(limit))));
    lines.push(Line::new(["stop_timeout"]).word(words::duration(*stop_timeout)));
    Line::new(["task"]).words(words.map(|word| escaped(&word))).block(lines)
}

fn time(time: &TaskTime) -> Line {
    match time {
        TaskTime::Always(rule) => Line::new(["restart", restart(*rule)]),
        TaskTime::Every(interval) => Line::new(["every"]).word(words::duration(*interval)),
        TaskTime::Schedule(schedule) => Line::new(["schedule"]).word(self::schedule(schedule)),
    }
}

fn restart(rule: Restart) -> &'static str {
    match rule {
        Restart::Always => "always",
        Restart::OnFailure => "on_failure",
        Restart::Never => "never",
    }
}

/// As crontab(5) has it. Of the two fields for days, one that begins with an asterisk says nothing, even if it has a step.
fn schedule(schedule: &Schedule) -> String {
    let Schedule { minutes, hours, days, months, weekdays, days_by } = *schedule;
    let (days, weekdays) = (u64::from(days), u64::from(weekdays));
    let mut of_month = field(days, 1, 31);
    let mut of_week = field(weekdays, 0, 6);
    match days_by {
        DaysBy::Both if !of_month.starts_with('*') && !of_week.starts_with('*') => {
            let stepped = step(days, 1, 31);
            match stepped {
                Some(stepped) => of_month = stepped,
                None => of_week = step(weekdays, 0, 6).unwrap_or(of_week),
            }
        }
        DaysBy::Either => {
            of_month = list(days, 1, 31);
            of_week = list(weekdays, 0, 6);
        }
        DaysBy::Both => {}
    }
    let (hours, months) = (field(u64::from(hours), 0, 23), field(u64::from(months), 1, 12));
    format!("{} {hours} {of_month} {months} {of_week}", field(minutes, 0, 59))
}

fn field(bits: u64, least: u32, most: u32) -> String {
    let is_full = (least..=most).all(|value| bits >> value & 1 == 1);
    if is_full { "*".to_owned() } else { list(bits, least, most) }
}

fn list(bits: u64, least: u32, most: u32) -> String {
    let values = (least..=most).filter(|value| bits >> value & 1 == 1);
    values.map(|value| value.to_string()).collect::<Vec<_>>().join(",")
}

/// `*/STEP`, if that is what the bits are.
fn step(bits: u64, least: u32, most: u32) -> Option<String> {
    (2..=most).find_map(|step| {
        let stepped =
            (least..=most).step_by(usize::try_from(step).ok()?).fold(0, |all, value| all | 1_u64 << value);
        (stepped == bits).then(|| format!("*/{step}"))
    })
}
