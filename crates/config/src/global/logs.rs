//! `log [NAME] { … }` in the global options: the logs of the server.
//!
//! The one without a name, or with the name `default`, is there in any case. Every other one is there beside it, and has the
//! lines of all loggers, unless it says which.

use crate::call::Call;
use crate::context::Context;
use crate::directives::log;
use crate::model::{Global, LogSelection, ServerLog};
use crate::problems::error;
use regent_caddyfile::{Error, Token};

/// What the parts of the server are called in its log, and its access logs.
const LOGGERS: &[&str] = &[
    "admin",
    "engines",
    "gateway",
    "handlers",
    "http",
    "http.log.access",
    "mercure",
    "net",
    "php",
    "proxy",
    "regent",
    "server",
    "spool",
    "task",
    "tls",
    "watch",
];
/// Access logs that have a name are `http.log.access.NAME`.
const ACCESS: &str = "http.log.access.";
/// What Caddy calls the parts that are here.
const IN_CADDY: &[(&str, &str)] = &[
    ("admin.", "admin"),
    ("caddy", "server"),
    ("frankenphp", "php"),
    ("http.auto_https", "tls"),
    ("http.handlers.reverse_proxy", "proxy"),
    ("http.handlers", "handlers"),
    ("http.log.error", "server"),
    ("http.log", "http.log.access"),
    ("http.reverse_proxy", "proxy"),
    ("tls.", "tls"),
];

pub(super) fn parse(cx: &mut Context<'_>, call: &Call<'_>, global: &mut Global) -> Result<(), Error> {
    let name = match call.args {
        [] => None,
        [name] => Some(name).filter(|name| name.text != "default"),
        _ => return Err(call.wrong_arguments(1, "log [NAME] { OPTION… }")),
    };
    let Some(name) = name else {
        global.log = log::server_log(cx, call, global.log.clone());
        selection(cx, call, &mut global.log_selection);
        return Ok(());
    };
    if global.logs.iter().any(|log| log.name == name.text) {
        return Err(error(name, format!("there is a log `{}` already", name.text)));
    }
    let mut log = ServerLog {
        name: name.text.clone(),
        config: log::server_log(cx, call, Default::default()),
        selection: LogSelection::default(),
    };
    selection(cx, call, &mut log.selection);
    global.logs.push(log);
    Ok(())
}

fn selection(cx: &mut Context<'_>, call: &Call<'_>, selection: &mut LogSelection) {
    for option in call.options() {
        let names = match option.name() {
            "include" => loggers(cx, &option, "include LOGGER…").map(|names| selection.include.extend(names)),
            "exclude" => loggers(cx, &option, "exclude LOGGER…").map(|names| selection.exclude.extend(names)),
            _ => continue,
        };
        cx.check(names);
    }
}

fn loggers(cx: &mut Context<'_>, option: &Call<'_>, syntax: &str) -> Result<Vec<String>, Error> {
    Ok(option.some(syntax)?.iter().map(|token| logger(cx, token)).collect())
}

/// A name of Caddy's stands for what is that part here. One that nothing has is kept, as it stands for no line; that is no
/// mistake in Caddy, whose modules make their own.
fn logger(cx: &mut Context<'_>, token: &Token) -> String {
    let name = token.text.as_str();
    if LOGGERS.contains(&name) || name.strip_prefix(ACCESS).is_some_and(|name| !name.is_empty()) {
        return name.to_owned();
    }
    if let Some((_, ours)) = IN_CADDY.iter().find(|(theirs, _)| name.starts_with(theirs)) {
        return (*ours).to_owned();
    }
    let known = LOGGERS.join(", ");
    let message = format!(
        "this has no effect: no logger is called `{name}`; there are {known}, and `http.log.access.NAME` for an access log \
         with a name"
    );
    cx.warn(token, message);
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use crate::directives::testing::{config, file_errors, load};
    use crate::model::{LogConfig, LogFormat, LogLevel, LogOutput};

    #[test]
    fn several_logs_stand_side_by_side() {
        let text = "{\nlog {\nlevel WARN\nexclude http.log.access.shop\n}\nlog scripts {\noutput stdout\nformat json\n\
                    include php task\n}\n}\n:80 {\nlog\n}";
        let global = config(text).global;
        assert_eq!(
            (global.log.level, &global.log_selection.exclude[..]),
            (LogLevel::Warn, &["http.log.access.shop".to_owned()][..])
        );
        let [scripts] = &global.logs[..] else { panic!("{:?}", global.logs) };
        let shape = LogConfig { output: LogOutput::Stdout, format: LogFormat::Json, ..LogConfig::default() };
        assert_eq!((scripts.name.as_str(), &scripts.config), ("scripts", &shape));
        assert_eq!(scripts.selection.include, ["php", "task"]);
        assert_eq!(
            global.server_logs().iter().map(|log| log.name.as_str()).collect::<Vec<_>>(),
            ["default", "scripts"]
        );
    }

    #[test]
    fn access_logs_go_where_they_are_included() {
        let text = "{\nlog {\noutput stdout\nformat console\nlevel ERROR\nexclude http.log.access.shop\n}\n\
                    log errors {\noutput discard\nlevel ERROR\ninclude http.log.access\n}\n}\n\
                    :80 {\nlog\nlog shop {\nhostnames a\n}\nlog own {\noutput stderr\n}\n}";
        let logs = config(text).servers.remove(0).sites.remove(0).access_logs;
        let found: Vec<_> =
            logs.iter().map(|log| (log.name.as_deref(), log.output.clone(), log.level)).collect();
        let (stdout, discard) = (LogOutput::Stdout, LogOutput::Discard);
        let expected = [
            (None, stdout, LogLevel::Error),
            (None, discard.clone(), LogLevel::Error),
            (Some("shop"), discard.clone(), LogLevel::Error),
            (Some("own"), LogOutput::Stderr, LogLevel::Info),
            (Some("own"), discard, LogLevel::Error),
        ];
        assert_eq!(found, expected);
        assert_eq!(logs[2].scope, crate::LogScope::Hosts(vec!["a".into()]));
    }

    #[test]
    fn mistakes() {
        let text =
            "{\nlog a\nlog a\nlog b c\nlog d {\ninclude\nhostnames x\n}\n}\n:80 {\nlog {\ninclude php\n}\n}";
        let found = file_errors(text);
        assert!(found[0].contains("there is a log `a` already"), "{found:?}");
        assert!(found.iter().any(|message| message.contains("in the global options")), "{found:?}");
        assert_eq!(found.len(), 5, "{found:?}");
    }

    #[test]
    fn loggers_of_caddy_are_those_here() {
        let text =
            "{\nlog a {\ninclude http.handlers.reverse_proxy admin.api\nexclude banana\n}\n}\n:80 {\n}";
        let loaded = load(text).unwrap();
        let selection = &loaded.config.global.logs[0].selection;
        assert_eq!(selection.include, ["proxy", "admin"]);
        assert_eq!(selection.exclude, ["banana"]);
        let warning = loaded.warnings[0].to_string();
        assert!(warning.contains("no logger is called `banana`; there are admin, "), "{warning}");
    }
}
