//! `server_timing [MATCHER] { … }`: tells clients where the time of a request went, in the response field `Server-Timing`.
//!
//! `queue` is the wait for a thread, `php` and `native` the time on it, `upstream` that until an upstream's response, `cache` says
//! what the [cache](#cache) did, and `total` is all until the response's head leaves; in milliseconds, as far as they are known then:
//! of a response that is streamed, the time until it began. What an application writes into the field itself stays.
//!
//! | option | meaning |
//! |---|---|
//! | `queue_wait` | the wait for a thread in a field of its own too, `X-Queue-Wait`, for balancers |
//!
//! ```caddyfile
//! @staff remote_ip 10.0.0.0/8
//! server_timing @staff
//! ```

use super::Directive;
use crate::call::Call;
use crate::context::Context;
use crate::matchers::Scope;
use crate::model::{Handler, TimingFields};
use crate::problems::unknown_option;
use regent_caddyfile::Error;

pub(super) const DIRECTIVE: Directive = super::handler("server_timing", parse);

fn parse(cx: &mut Context<'_>, _scope: &Scope<'_>, call: &Call<'_>) -> Result<Handler, Error> {
    call.no_arguments("server_timing [MATCHER] { queue_wait }")?;
    let mut fields = TimingFields::ServerTiming;
    for option in call.options() {
        let result = match option.name() {
            "queue_wait" => option.exactly::<0>("queue_wait").map(|_| fields = TimingFields::WithQueueWait),
            _ => Err(unknown_option(option.name, "server_timing", &["queue_wait"], &[])),
        };
        cx.check(result);
    }
    Ok(Handler::ServerTiming(fields))
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{errors, handler};
    use crate::model::{Handler, TimingFields};

    #[test]
    fn one_field_or_two() {
        assert_eq!(handler("server_timing /x"), Handler::ServerTiming(TimingFields::ServerTiming));
        let both = handler("server_timing {\nqueue_wait\n}");
        assert_eq!(both, Handler::ServerTiming(TimingFields::WithQueueWait));
        assert_eq!(errors("server_timing x\nserver_timing {\nqueue_wait x\nqueue\n}").len(), 3);
    }
}
