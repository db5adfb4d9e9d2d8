//! `dns SERVICE …`: a service that has the zones, with the words of Caddy's module for it.

use super::services::{SERVICES, Service, ServiceOption, Value};
use crate::call::Call;
use crate::context::Context;
use crate::model::DnsProvider;
use crate::problems::{error, unknown_option};
use regent_caddyfile::{Error, Token};
use std::collections::BTreeMap;
use std::path::Path;

/// The service of this name.
pub(super) fn find(name: &str) -> Option<&'static Service> {
    SERVICES.iter().find(|service| service.name == name)
}

pub(super) fn names() -> impl Iterator<Item = &'static str> {
    SERVICES.iter().map(|service| service.name)
}

pub(super) fn parse(
    cx: &mut Context<'_>,
    call: &Call<'_>,
    service: &'static Service,
) -> Result<DnsProvider, Error> {
    let syntax = service.syntax();
    let mut given = Given { service, options: BTreeMap::new() };
    let on_line = service.options.iter().take(service.on_line);
    let arguments = &call.args[1..];
    if arguments.len() > service.on_line {
        return Err(call.wrong_arguments(1 + service.on_line, &syntax));
    }
    for (token, option) in arguments.iter().zip(on_line) {
        given.set(cx, token, option, token)?;
    }
    for option in call.options() {
        if service.ignored.contains(&option.name()) {
            cx.warn(option.name, "this has no effect in Regent");
            continue;
        }
        if let Some((word, only)) = service.fixed.iter().find(|(word, _)| *word == option.name()) {
            let token = option.one(&format!("{word} {only}"))?;
            match cx.fixed_text(token)?.trim_end_matches('/') == only.trim_end_matches('/') {
                true => continue,
                false => return Err(error(token, format!("`{word}` can only be `{only}` in Regent"))),
            }
        }
        if let Some((word, advice)) = service.refused.iter().find(|(word, _)| *word == option.name()) {
            return Err(error(
                option.name,
                format!("Regent has no `{word}` of `dns {}`: {advice}", service.name),
            ));
        }
        let Some(found) = service.options.iter().find(|known| known.is_called(option.name())) else {
            let known: Vec<_> = service.options.iter().map(ServiceOption::word).collect();
            return Err(unknown_option(option.name, &format!("dns {}", service.name), &known, &[]));
        };
        let value = option.one(&found.syntax())?;
        given.set(cx, option.name, found, value)?;
    }
    given.complete(cx, call, &syntax)?;
    Ok(DnsProvider::Hosted { service: service.name.to_owned(), options: given.options })
}

/// What a line and its block say.
struct Given {
    service: &'static Service,
    options: BTreeMap<String, String>,
}

impl Given {
    fn set(
        &mut self,
        cx: &Context<'_>,
        name: &Token,
        option: &ServiceOption,
        token: &Token,
    ) -> Result<(), Error> {
        let text = cx.fixed_text(token)?.trim().to_owned();
        if text.is_empty() {
            let message = format!("`{}` is empty; is the variable set that it is from?", option.word());
            return Err(error(token, message));
        }
        let text = option
            .value
            .check(cx, text)
            .map_err(|reason| error(token, format!("`{}` {reason}", option.word())))?;
        match self.options.insert(option.name.to_owned(), text) {
            None => Ok(()),
            Some(_) => Err(error(name, format!("`{}` is given twice", option.word()))),
        }
    }

    /// What is left out is taken from the environment, where Caddy's module does so.
    fn complete(&mut self, cx: &Context<'_>, call: &Call<'_>, syntax: &str) -> Result<(), Error> {
        for option in self.service.options {
            if self.options.contains_key(option.name) {
                continue;
            }
            let from_environment = option.variable.and_then(|name| cx.environment.variable(name));
            match from_environment.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty()) {
                Some(value) => {
                    let value = option.value.check(cx, value).map_err(|reason| {
                        let variable = option.variable.unwrap_or_default();
                        error(call.name, format!("`{}`, of the variable {variable}, {reason}", option.word()))
                    })?;
                    self.options.insert(option.name.to_owned(), value);
                }
                None if option.is_required => {
                    let or =
                        option.variable.map_or(String::new(), |name| format!(", or the variable {name}"));
                    let (service, word) = (self.service.name, option.word());
                    let message = format!(
                        "`dns {service}` needs `{word}`{or} (a variable that is not set says nothing); write: {syntax}"
                    );
                    return Err(error(call.name, message));
                }
                None => {}
            }
        }
        Ok(())
    }
}

impl Service {
    /// How it is written.
    fn syntax(&self) -> String {
        let in_block = self.options.iter().map(|option| match option.is_required {
            true => option.syntax(),
            false => format!("[{}]", option.syntax()),
        });
        let block = format!("dns {} {{ {} }}", self.name, in_block.collect::<Vec<_>>().join("; "));
        let on_line = self.options.iter().take(self.on_line).map(|option| option.word().to_ascii_uppercase());
        match self.on_line {
            0 => block,
            _ => format!("dns {} {} | {block}", self.name, on_line.collect::<Vec<_>>().join(" ")),
        }
    }
}

impl ServiceOption {
    /// That of a Caddyfile.
    pub(super) fn word(&self) -> &'static str {
        self.word.unwrap_or(self.name)
    }

    fn is_called(&self, name: &str) -> bool {
        self.word() == name || self.name == name
    }

    fn syntax(&self) -> String {
        format!("{} {}", self.word(), self.word().to_ascii_uppercase())
    }
}

impl Value {
    /// The value as it is kept: files by their whole paths.
    fn check(&self, cx: &Context<'_>, text: String) -> Result<String, String> {
        let file = |text: String| {
            let path = cx.environment.absolute(Path::new(&text));
            match path.is_file() {
                true => Ok(path.to_string_lossy().into_owned()),
                false => Err(format!("is the path of a file, and {} is none", path.display())),
            }
        };
        match self {
            Self::OneOf(known) if !known.contains(&text.as_str()) => {
                Err(format!("is one of {}", known.join(", ")))
            }
            Self::Pair if !text.split_once(':').is_some_and(|(a, b)| !a.is_empty() && !b.is_empty()) => {
                Err("is a key and a secret, as `KEY:SECRET`".to_owned())
            }
            Self::Url if !text.starts_with("https://") && !text.starts_with("http://") => {
                Err("is no URL; write one such as `https://dns.example.net`".to_owned())
            }
            Self::File => file(text),
            Self::KeyOrFile if !text.contains("-----BEGIN") => file(text),
            Self::Text | Self::OneOf(_) | Self::Pair | Self::Url | Self::KeyOrFile => Ok(text),
        }
    }
}
