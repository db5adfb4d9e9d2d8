//! Whether `num_threads` and `max_threads` leave room for the workers.

use crate::context::Context;
use crate::global::GlobalOptions;
use crate::model::MaxThreads;
use crate::problems::error;
use regent_caddyfile::{Error, Token};

/// What can only be said of the whole file: the workers must leave a thread for other requests, at start and at most,
/// and without `max_threads` they grow as far as they say.
pub(crate) fn finish_threads(cx: &mut Context<'_>, options: &mut GlobalOptions) {
    check_threads(cx, options);
    let php = &mut options.global.php;
    let growth = cx.workers.growth();
    if let (Some(threads), None, 1..) = (php.num_threads, php.max_threads, growth) {
        php.max_threads = Some(MaxThreads::Fixed(threads.saturating_add(growth)));
    }
}

fn check_threads(cx: &mut Context<'_>, options: &GlobalOptions) {
    let workers = cx.workers.least_threads();
    if let Some((token, threads)) = &options.num_threads {
        let result = leaves_a_thread(token, "num_threads", *threads, workers);
        cx.check(result);
    }
    if let Some((token, most)) = &options.max_threads {
        let result = match &options.num_threads {
            Some((_, threads)) => reaches(token, *most, *threads),
            None => leaves_a_thread(token, "max_threads", *most, workers),
        };
        cx.check(result);
        let errors = cx.workers.check_most(*most);
        cx.errors.extend(errors);
    }
}

fn leaves_a_thread(token: &Token, option: &str, threads: u16, workers: u32) -> Result<(), Error> {
    if u32::from(threads) > workers {
        return Ok(());
    }
    let least = workers + 1;
    let message =
        format!("`{option}` is {threads}, but the workers alone take {workers}: it must be at least {least}");
    Err(error(token, message))
}

fn reaches(token: &Token, most: u16, threads: u16) -> Result<(), Error> {
    if most >= threads {
        return Ok(());
    }
    Err(error(token, format!("`max_threads` is {most}, less than `num_threads`, which is {threads}")))
}
