//! What the tests share: modules compiled from `tests/modules`, requests in memory, and a log that is read.

use regent_module_loader::{
    Completion, Exchange, Fields, Gone, Head, Level, LoadError, LogSink, ModulePlan, Modules, Plan, Scratch,
};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

/// A directory for the libraries of one test.
pub struct Workshop {
    directory: TempDir,
}

impl Workshop {
    pub fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Compiles `tests/modules/SOURCE.c` with these `-D` definitions to a library of that name.
    pub fn compile(&self, source: &str, library: &str, definitions: &[&str]) -> PathBuf {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/modules/{source}.c"));
        let library = self.path(library);
        compile(&source, &library, definitions);
        library
    }

    /// A library of this text.
    pub fn compile_text(&self, text: &str, library: &str) -> PathBuf {
        let source = self.path(&format!("{library}.c"));
        std::fs::write(&source, text).unwrap();
        compile(&source, &self.path(library), &[]);
        self.path(library)
    }
}

fn compile(source: &Path, library: &Path, definitions: &[&str]) {
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/modules");
    let output = Command::new("cc")
        .args(["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-fvisibility=hidden"])
        .args(definitions.iter().map(|definition| format!("-D{definition}")))
        .arg("-I")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include"))
        .arg("-I")
        .arg(modules)
        .arg("-o")
        .args([library, source])
        .output()
        .expect("a C compiler named cc");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Lines that modules have logged.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub fn sink(&self) -> LogSink {
        let lines = Arc::clone(&self.0);
        Arc::new(move |level: Level, message: &str| {
            lines.lock().unwrap().push(format!("{level:?} {message}"));
        })
    }

    /// What has come since the last call.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// A module for the service of that name; `None`: for other modules.
pub fn module(file: &Path, service: Option<&str>) -> ModulePlan {
    ModulePlan { file: file.to_owned(), config: Vec::new(), service: service.map(str::to_owned) }
}

pub fn load(modules: Vec<ModulePlan>, log: &Log) -> Result<Modules, LoadError> {
    Modules::load(Plan { modules }, log.sink())
}

/// Why the modules cannot be loaded.
pub fn error(modules: Vec<ModulePlan>) -> LoadError {
    match load(modules, &Log::default()) {
        Ok(_) => panic!("the modules were loaded"),
        Err(error) => error,
    }
}

/// A request in memory.
pub struct Request {
    variables: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
    body_length: Option<u64>,
    /// What follows the body.
    end: BodyEnd,
    /// The client leaves after so many publications.
    patience: usize,
}

/// How a request body ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum BodyEnd {
    Whole,
    BrokenOff,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Answer {
    pub status: u16,
    pub fields: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub trailers: Vec<(String, String)>,
    pub completion: Option<Completion>,
    pub publications: usize,
    pub log: Vec<String>,
}

impl Request {
    pub fn new(method: &str, target: &str) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let variables = [
            ("REQUEST_METHOD", method),
            ("PATH_INFO", path),
            ("REQUEST_URI", target),
            ("QUERY_STRING", query),
            ("REMOTE_ADDR", "127.0.0.1"),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec()));
        Self {
            variables: variables.into(),
            body: Vec::new(),
            body_length: Some(0),
            end: BodyEnd::Whole,
            patience: usize::MAX,
        }
    }

    pub fn get(target: &str) -> Self {
        Self::new("GET", target)
    }

    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.as_bytes().to_vec()));
        self
    }

    pub fn body(mut self, body: &[u8]) -> Self {
        self.body = body.to_vec();
        self.body_length = Some(body.len() as u64);
        self
    }

    /// The client does not say how long its body is.
    pub fn chunked(mut self) -> Self {
        self.body_length = None;
        self
    }

    /// The client leaves before the end of its body.
    pub fn broken_off(mut self) -> Self {
        self.end = BodyEnd::BrokenOff;
        self
    }

    pub fn patience(mut self, publications: usize) -> Self {
        self.patience = publications;
        self
    }

    /// Asks the service `test`.
    pub fn ask(&self, modules: &Modules) -> Answer {
        self.ask_with(modules, &mut modules.scratch())
    }

    pub fn ask_with(&self, modules: &Modules, scratch: &mut Scratch) -> Answer {
        let service = modules.service("test").unwrap();
        let mut exchange =
            Memory { unread: &self.body, end: self.end, patience: self.patience, answer: Answer::default() };
        modules.answer(service, self, &mut exchange, scratch);
        exchange.answer
    }
}

impl Answer {
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }
}

impl Head for Request {
    fn variable(&self, name: &[u8]) -> Option<&[u8]> {
        let mut variables = self.variables.iter();
        variables.find(|(other, _)| other.as_bytes() == name).map(|(_, value)| value.as_slice())
    }

    fn next_variable(&self, cursor: &mut usize) -> Option<(&[u8], &[u8])> {
        let (name, value) = self.variables.get(*cursor)?;
        *cursor += 1;
        Some((name.as_bytes(), value))
    }

    fn body_length(&self) -> Option<u64> {
        self.body_length
    }
}

struct Memory<'a> {
    unread: &'a [u8],
    end: BodyEnd,
    patience: usize,
    answer: Answer,
}

impl Exchange for Memory<'_> {
    fn read_body(&mut self, buffer: &mut [u8]) -> Result<usize, Gone> {
        if self.unread.is_empty() && self.end == BodyEnd::BrokenOff {
            return Err(Gone);
        }
        let (now, later) = self.unread.split_at(self.unread.len().min(buffer.len()).min(4096));
        buffer[..now.len()].copy_from_slice(now);
        self.unread = later;
        Ok(now.len())
    }

    fn is_gone(&self) -> bool {
        self.answer.publications >= self.patience
    }

    fn head(&mut self, status: u16, fields: &Fields) -> Result<(), Gone> {
        assert_eq!(self.answer.status, 0, "two heads");
        self.answer.status = status;
        self.answer.fields = owned(fields);
        Ok(())
    }

    fn body(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        assert!(
            self.answer.status > 0 && self.answer.completion.is_none(),
            "a body before head or after end"
        );
        self.answer.body.extend_from_slice(bytes);
        Ok(())
    }

    fn publish(&mut self) {
        self.answer.publications += 1;
    }

    fn trailers(&mut self, fields: &Fields) -> Result<(), Gone> {
        assert!(
            self.answer.status > 0 && self.answer.completion.is_none(),
            "trailers before head or after end"
        );
        self.answer.trailers = owned(fields);
        Ok(())
    }

    fn end(&mut self, completion: Completion) -> Result<(), Gone> {
        assert!(self.answer.status > 0, "an end without a head");
        assert_eq!(self.answer.completion.replace(completion), None, "two ends");
        Ok(())
    }

    fn log(&mut self, level: Level, message: &str) {
        self.answer.log.push(format!("{level:?} {message}"));
    }
}

fn owned(fields: &Fields) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    fields.iter().map(|(name, value)| (text(name), text(value))).collect()
}
