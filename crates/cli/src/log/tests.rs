//! What lines look like, and which are written.

use super::*;

#[test]
fn loggers_are_named_by_their_part() {
    assert_eq!(logger("regent_server::reload"), "server");
    assert_eq!(logger("php"), "php");
}

#[test]
fn lines_that_say_the_same_are_sampled_and_all_have_what_is_appended() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("server.log");
    let file = regent_config::LogFile { path: path.clone(), mode: None, directory_mode: None, rolling: None };
    let interval = std::time::Duration::from_secs(3600);
    let config = regent_config::LogConfig {
        output: LogOutput::File(file),
        format: LogFormat::Json,
        level_format: LogLevelFormat::Color,
        append: vec![("place".into(), "here".into())],
        sampling: Some(regent_config::LogSampling { interval, first: 2, thereafter: 0 }),
        ..regent_config::LogConfig::default()
    };
    let log = ServerLog { name: "default".into(), config, selection: Default::default() };
    let sink = Sink(Arc::new(Mutex::new(Output::open(&log.config.output).unwrap())));
    let subscriber = tracing_subscriber::registry().with(layer(&log, sink));
    tracing::subscriber::with_default(subscriber, || {
        for _ in 0..4 {
            tracing::warn!("again");
        }
        tracing::info!("once");
    });
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let messages: Vec<_> = lines.iter().map(|line| line["msg"].as_str().unwrap()).collect();
    assert_eq!(messages, ["again", "again", "once"]);
    assert!(lines.iter().all(|line| line["place"] == "here"), "{text}");
    assert_eq!(lines[0]["level"], "\u{1b}[33mWARN\u{1b}[0m");
}

#[test]
fn control_characters_do_not_reach_a_terminal() {
    assert_eq!(printable("a\x1b[2Jb\nc"), "a\u{fffd}[2Jb\nc");
    assert_eq!(printable("a\u{9b}2Jb\u{202e}c\u{2028}ü"), "a\u{fffd}2Jb\\u{202e}c\\u{2028}ü");
}
