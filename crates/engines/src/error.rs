use crate::kind::EngineKind;
use regent_wire::RegionError;
use std::io;
use std::path::PathBuf;

/// Why there is no engine.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("the configuration asks for {threads} threads for {kind}; {most} are the most")]
    TooManyThreads { kind: EngineKind, threads: usize, most: usize },
    #[error(
        "{threads} threads leave none for classic requests beside the {workers} of the workers; set `num_threads` and \
         `max_threads` to {} or more, or give the workers fewer with `num`", .workers + 1
    )]
    NoClassicThread { threads: u16, workers: u16 },
    #[error("{}: {cause}{}", .program.display(), where_it_belongs(*.kind, .cause))]
    Program { kind: EngineKind, program: PathBuf, cause: io::Error },
    #[error("slow_log {}: {cause}; make its directory, or name another file", .file.display())]
    SlowLog { file: PathBuf, cause: io::Error },
    #[error(transparent)]
    Memory(#[from] RegionError),
    #[error("{kind} could not be started: {reason}")]
    Start { kind: EngineKind, reason: String },
}

fn where_it_belongs(kind: EngineKind, cause: &io::Error) -> String {
    match cause.kind() {
        io::ErrorKind::NotFound => {
            format!("; it belongs beside the `regent` program, or name it in {}", kind.variable())
        }
        _ => String::new(),
    }
}
