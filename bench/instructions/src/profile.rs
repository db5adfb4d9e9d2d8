//! What callgrind wrote about one process: <https://valgrind.org/docs/manual/cl-format.html>.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::scenario::Process;

/// Instructions by function.
#[derive(Debug)]
pub struct Profile {
    process: Process,
    total: u64,
    functions: HashMap<String, Function>,
}

/// A function's share of a profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Function {
    /// Of its own code, without what it calls.
    pub instructions: u64,
    pub calls: u64,
}

impl Profile {
    pub fn parse(text: &str) -> Result<Self> {
        let command =
            text.lines().find_map(|line| line.strip_prefix("cmd:")).context("there is no command")?;
        let mut parser = Parser::default();
        for line in text.lines() {
            parser.line(line).with_context(|| format!("not understood: {line:?}"))?;
        }
        let profile =
            Self { process: process_of(command)?, total: parser.total(), functions: parser.functions };
        match text.lines().find_map(|line| line.strip_prefix("totals:")) {
            // Whoever reads the file wrongly would compare nonsense for ever.
            Some(total) if total.trim().parse() == Ok(profile.total) => Ok(profile),
            total => bail!("its functions have {} instructions, in all it has {total:?}", profile.total),
        }
    }

    pub fn process(&self) -> Process {
        self.process
    }

    /// Instructions of all functions.
    pub fn total(&self) -> u64 {
        self.total
    }

    pub fn functions(&self) -> &HashMap<String, Function> {
        &self.functions
    }
}

fn process_of(command: &str) -> Result<Process> {
    let program = command.split_whitespace().next().unwrap_or_default();
    match Path::new(program).file_name().and_then(|name| name.to_str()) {
        Some("regent") => Ok(Process::Server),
        Some("regent-php") => Ok(Process::Engine),
        _ => bail!("{program:?} is none of the two programs"),
    }
}

#[derive(Default)]
struct Parser {
    /// Names are written once and then called by their number.
    names: HashMap<String, String>,
    objects: HashMap<String, String>,
    object: String,
    /// Said only where it is not the caller's.
    callee_object: Option<String>,
    function: String,
    callee: String,
    /// The next cost is that of a call, which its callee has too.
    in_call: bool,
    functions: HashMap<String, Function>,
}

impl Parser {
    fn total(&self) -> u64 {
        self.functions.values().map(|function| function.instructions).sum()
    }

    fn line(&mut self, line: &str) -> Result<()> {
        if let Some((key, value)) = line.split_once('=') {
            match key {
                "ob" => self.object = named(&mut self.objects, value)?,
                "cob" => self.callee_object = Some(named(&mut self.objects, value)?),
                "fn" => self.function = function_name(&named(&mut self.names, value)?, &self.object),
                "cfn" => self.callee(value)?,
                "calls" => self.calls(value)?,
                _ => {}
            }
        } else if line.starts_with(|c: char| c.is_ascii_digit() || "+-*".contains(c)) {
            self.cost(line)?;
        }
        Ok(())
    }

    fn callee(&mut self, value: &str) -> Result<()> {
        let name = named(&mut self.names, value)?;
        let object = self.callee_object.take();
        self.callee = function_name(&name, object.as_ref().unwrap_or(&self.object));
        Ok(())
    }

    fn calls(&mut self, value: &str) -> Result<()> {
        let calls: u64 = value.split(' ').next().unwrap_or_default().parse()?;
        self.functions.entry(self.callee.clone()).or_default().calls += calls;
        self.in_call = true;
        Ok(())
    }

    /// `line instructions`
    fn cost(&mut self, line: &str) -> Result<()> {
        if std::mem::take(&mut self.in_call) {
            return Ok(());
        }
        let instructions: u64 = line.split(' ').nth(1).context("a cost has two columns")?.parse()?;
        self.functions.entry(self.function.clone()).or_default().instructions += instructions;
        Ok(())
    }
}

/// `(7) name` gives the name the number 7, `(7)` is that name.
fn named(names: &mut HashMap<String, String>, value: &str) -> Result<String> {
    match value.split_once(' ') {
        Some((number, name)) => {
            names.insert(number.to_owned(), name.to_owned());
            Ok(name.to_owned())
        }
        None => names.get(value).cloned().with_context(|| format!("{value} was not named before")),
    }
}

/// What has no symbol is told apart by the file that it is in.
fn function_name(name: &str, object: &str) -> String {
    match without_recursion(name) {
        address if address.starts_with("0x") => format!("{} in {}", shorten(address), file_name(object)),
        name => name.to_owned(),
    }
}

/// Callgrind tells the levels of a recursion apart: `name'2`.
fn without_recursion(name: &str) -> &str {
    match name.rsplit_once('\'') {
        Some((function, level)) if level.parse::<u32>().is_ok() => function,
        _ => name,
    }
}

/// `0x00000000006accb0` → `0x6accb0`
fn shorten(address: &str) -> String {
    format!("0x{}", address.trim_start_matches("0x").trim_start_matches('0'))
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "version: 1
cmd:  /srv/bin/regent run --config Caddyfile
positions: line
events: Ir

ob=(1) /srv/bin/regent
fl=(1) main.rs
fn=(1) main
16 400
cfn=(2) a<b>::c
calls=3 12
+1 900
fi=(2) inlined.rs
-4 20

fn=(2)
* 300
+2 600
cob=(2) /usr/lib/libphp.so.8
cfn=(3) 0x00000000006accb0
calls=1 0
* 7

ob=(2)
fn=(3)
0 7
cfn=(4) walk
calls=1 0
0 5
fn=(4)
0 3
cfn=(5) walk'2
calls=4 0
0 2
fn=(5)
0 2

totals: 1332
";

    #[test]
    fn instructions_are_counted_once_and_calls_for_the_callee() {
        let profile = Profile::parse(FILE).expect("it is well-formed");
        let function = |name: &str| profile.functions()[name];
        assert_eq!(profile.process(), Process::Server);
        assert_eq!(profile.total(), 1332);
        assert_eq!(function("main"), Function { instructions: 420, calls: 0 });
        assert_eq!(function("a<b>::c"), Function { instructions: 900, calls: 3 });
        assert_eq!(function("walk"), Function { instructions: 5, calls: 5 });
    }

    #[test]
    fn what_has_no_symbol_is_named_by_its_file() {
        let profile = Profile::parse(FILE).expect("it is well-formed");
        let expected = Function { instructions: 7, calls: 1 };
        assert_eq!(profile.functions()["0x6accb0 in libphp.so.8"], expected);
    }

    #[test]
    fn a_file_that_is_not_understood_is_an_error() {
        for (what, text) in [
            ("a broken sum", FILE.replace("totals: 1332", "totals: 1333")),
            ("no sum", FILE.replace("totals: 1332", "")),
            ("a cost that is no number", FILE.replace("* 300", "* many")),
            ("a number without a name", FILE.replace("fn=(2)\n", "fn=(9)\n")),
            ("another program", FILE.replace("/srv/bin/regent run", "/bin/sh -c x")),
        ] {
            assert!(Profile::parse(&text).is_err(), "{what}");
        }
    }
}
