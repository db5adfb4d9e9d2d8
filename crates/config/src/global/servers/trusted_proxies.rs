//! The options of `servers` that say who is believed about a client.

use crate::call::Call;
use crate::context::Context;
use crate::ip_ranges;
use crate::model::{ClientIpReading, IpRange, TrustedProxies};
use crate::problems::error;
use regent_caddyfile::{Error, Token};

/// As in Caddy.
const DEFAULT_HEADER: &str = "x-forwarded-for";

/// The options as they come, in any order.
#[derive(Default)]
pub(super) struct Proxies<'a> {
    ranges: Vec<IpRange>,
    unix: bool,
    strict: bool,
    headers: Vec<String>,
    /// Some option that does nothing without proxies.
    first: Option<&'a Token>,
}

impl<'a> Proxies<'a> {
    pub fn takes(&self, option: &Call<'_>) -> bool {
        ["client_ip_headers", "trusted_proxies", "trusted_proxies_strict", "trusted_proxies_unix"]
            .contains(&option.name())
    }

    pub fn apply(&mut self, cx: &Context<'_>, option: &Call<'a>) -> Result<(), Error> {
        match option.name() {
            "trusted_proxies" => self.ranges.extend(ranges(cx, option)?),
            "trusted_proxies_unix" => {
                self.unix = option.exactly::<0>("trusted_proxies_unix").map(|_| true)?
            }
            name => {
                self.first.get_or_insert(option.name);
                match name {
                    "trusted_proxies_strict" => {
                        self.strict = option.exactly::<0>("trusted_proxies_strict").map(|_| true)?;
                    }
                    _ => self.headers.extend(headers(option)?),
                }
            }
        }
        Ok(())
    }

    /// `None`: no proxy is trusted.
    pub fn finish(self, cx: &mut Context<'_>) -> Option<TrustedProxies> {
        if self.ranges.is_empty() && !self.unix {
            if let Some(token) = self.first {
                cx.warn(token, format!("`{}` has no effect without `trusted_proxies`", token.text));
            }
            return None;
        }
        let headers = if self.headers.is_empty() { vec![DEFAULT_HEADER.into()] } else { self.headers };
        let reading =
            if self.strict { ClientIpReading::RightMostUntrusted } else { ClientIpReading::LeftMost };
        Some(TrustedProxies { ranges: self.ranges, unix: self.unix, reading, headers })
    }
}

fn ranges(cx: &Context<'_>, option: &Call<'_>) -> Result<Vec<IpRange>, Error> {
    let syntax = "trusted_proxies static RANGE…";
    match option.some(syntax)? {
        [source, ranges @ ..] if source.text == "static" => {
            if ranges.is_empty() {
                return Err(option.wrong_arguments(2, syntax));
            }
            ip_ranges::parse(cx, ranges)
        }
        [source, ..] => Err(error(
            source,
            format!("`{}` is a source that Regent does not have; write: {syntax}", source.text),
        )),
        [] => Err(option.wrong_arguments(1, syntax)),
    }
}

fn headers(option: &Call<'_>) -> Result<Vec<String>, Error> {
    let is_token = |text: &str| {
        !text.is_empty()
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
    };
    let name = |token: &Token| match is_token(&token.text) {
        true => Ok(token.text.to_ascii_lowercase()),
        false => Err(error(token, format!("`{}` is no name of a header field", token.text))),
    };
    option.some("client_ip_headers FIELD…")?.iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{file_errors, load};
    use crate::model::{ClientIpReading, TrustedProxies};

    fn servers(options: &str) -> (Option<TrustedProxies>, Vec<String>) {
        let loaded = load(&format!("{{\nservers {{\n{options}\n}}\n}}\n:80 {{\n}}")).unwrap();
        let warnings = loaded.warnings.iter().map(ToString::to_string).collect();
        (loaded.config.servers[0].options.trusted_proxies.clone(), warnings)
    }

    #[test]
    fn proxies_and_how_they_name_the_client() {
        let (found, _) = servers(
            "trusted_proxies static private_ranges 192.0.2.1\ntrusted_proxies static 2001:db8::/32\n\
             client_ip_headers CF-Connecting-IP X-Forwarded-For\ntrusted_proxies_strict\ntrusted_proxies_unix",
        );
        let found = found.unwrap();
        assert_eq!(found.ranges.len(), 8);
        assert!(found.unix);
        assert_eq!(found.reading, ClientIpReading::RightMostUntrusted);
        assert_eq!(found.headers, ["cf-connecting-ip", "x-forwarded-for"]);
        assert_eq!(servers("trusted_proxies static 10.0.0.1").0.unwrap().headers, ["x-forwarded-for"]);
    }

    #[test]
    fn without_proxies_the_rest_does_nothing() {
        let (found, warnings) = servers("client_ip_headers X-Real-IP");
        assert_eq!(found, None);
        assert_eq!(warnings, ["Caddyfile:3:1: `client_ip_headers` has no effect without `trusted_proxies`"]);
        let warnings = load(":80 {\nphp_server {\ntrust_client_address\n}\n}").unwrap().warnings;
        assert!(
            warnings[0].to_string().contains("3:1: `trust_client_address` has no effect"),
            "{warnings:?}"
        );
    }

    #[test]
    fn mistakes() {
        let found = file_errors(
            "{\nservers {\ntrusted_proxies\ntrusted_proxies static\ntrusted_proxies cloudflare\ntrusted_proxies static x\n\
             client_ip_headers\nclient_ip_headers \"a b\"\ntrusted_proxies_strict on\n}\n}",
        );
        assert!(found[2].contains("`cloudflare` is a source that Regent does not have"), "{found:?}");
        assert_eq!(found.len(), 7, "{found:?}");
    }
}
