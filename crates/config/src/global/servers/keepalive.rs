//! `keepalive_idle`, `keepalive_interval`, `keepalive_count`: probes of silent connections.

use crate::call::Call;
use crate::model::Keepalive;
use crate::problems::error;
use crate::values::{duration, integer};
use regent_caddyfile::{Error, Token};
use std::time::Duration;

pub(super) const OPTIONS: &[&str] = &["keepalive_count", "keepalive_idle", "keepalive_interval"];

/// What Linux takes.
const MOST: Duration = Duration::from_secs(32_767);

#[derive(Default)]
pub(super) struct Written {
    idle: Option<Duration>,
    /// Inner `None`: no probes.
    interval: Option<Option<Duration>>,
    count: Option<u32>,
}

impl Written {
    pub fn read(&mut self, option: &Call<'_>) -> Result<(), Error> {
        match option.name() {
            "keepalive_idle" => self.idle = time(option.one("keepalive_idle DURATION")?)?,
            "keepalive_interval" => {
                let token = option.one("keepalive_interval DURATION")?;
                self.interval = match token.text.starts_with('-') {
                    true => Some(None),
                    false => time(token)?.map(Some),
                };
            }
            _ => {
                let token = option.one("keepalive_count N")?;
                self.count = Some(integer(token, 0..=127, option.name())?).filter(|count| *count > 0);
            }
        }
        Ok(())
    }

    /// `before`: what an earlier block says.
    pub fn finish(self, before: Option<Keepalive>) -> Option<Keepalive> {
        let before = before.unwrap_or_default();
        let interval = self.interval.unwrap_or(Some(before.interval))?;
        Some(Keepalive {
            idle: self.idle.unwrap_or(before.idle),
            interval,
            count: self.count.unwrap_or(before.count),
        })
    }
}

/// In whole seconds. `None`, which is written 0: the default, as in Caddy.
fn time(token: &Token) -> Result<Option<Duration>, Error> {
    let time = duration(token)?;
    if time > MOST {
        return Err(error(token, format!("`{}` is too long; the longest is 9h", token.text)));
    }
    let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
    Ok(Some(Duration::from_secs(seconds)).filter(|time| !time.is_zero()))
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{config, file_errors};
    use crate::model::Keepalive;
    use std::time::Duration;

    fn keepalive(options: &str) -> Option<Keepalive> {
        config(&format!("{{\nservers {{\n{options}\n}}\n}}\n:80 {{\nrespond x\n}}"))
            .servers
            .remove(0)
            .options
            .keepalive
    }

    #[test]
    fn probes_are_as_in_caddy() {
        assert_eq!(keepalive("name a"), Some(Keepalive::default()));
        let found = keepalive("keepalive_idle 1500ms\nkeepalive_interval 5s\nkeepalive_count 3");
        let expected = Keepalive { idle: Duration::from_secs(2), interval: Duration::from_secs(5), count: 3 };
        assert_eq!(found, Some(expected));
        assert_eq!(keepalive("keepalive_interval -1"), None);
        assert_eq!(
            keepalive("keepalive_idle 0\nkeepalive_interval 0\nkeepalive_count 0"),
            Some(Keepalive::default())
        );
        let errors = file_errors(
            "{\nservers {\nkeepalive_idle 10h\nkeepalive_count 128\nkeepalive_interval\n}\n}\n:80 {\n}",
        );
        assert_eq!(errors.len(), 3, "{errors:?}");
    }
}
