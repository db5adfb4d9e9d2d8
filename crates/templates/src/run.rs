//! The rendering of one page, with what its functions share.

use crate::arguments::{Call, Map, string};
use crate::budget::Budget;
use crate::listing::Listing;
use crate::page::{Failed, FieldChange, Needs, Page, Supplied};
use crate::{functions, methods, receivers};
use gotmpl::parse::Parser;
use gotmpl::{FuncMap, Result, Template, TemplateError, Value};
use std::fmt::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Pages in pages in pages. Each can go down as far as the library allows.
const MOST_DEPTH: usize = 8;
/// Files that `import` brings into one page.
const MOST_IMPORTS: usize = 64;

pub(crate) struct Run {
    pub(crate) page: Arc<Page>,
    pub(crate) supplied: Arc<Supplied>,
    pub(crate) budget: Budget,
    /// What `.` has of the directory that the page lists.
    listing: Map,
    state: Mutex<State>,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) needs: Needs,
    pub(crate) changes: Vec<FieldChange>,
    /// Why it cannot go on.
    pub(crate) failed: Option<Failed>,
    /// The pages that are being rendered, each within the one before.
    units: Vec<Unit>,
}

#[derive(Default)]
struct Unit {
    imports: Vec<String>,
    /// An import that turned up on the way: the unit has to start over with it.
    missing: Option<String>,
}

impl Run {
    pub(crate) fn new(page: Arc<Page>, supplied: Arc<Supplied>) -> Arc<Self> {
        let listing = page.listing.as_ref().map(Listing::fields).unwrap_or_default();
        Arc::new(Self { page, supplied, budget: Budget::new(), listing, state: Mutex::default() })
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // A function that panics has left nothing half done in it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Renders a text as a template; `args` are its `.Args`.
    pub(crate) fn execute(self: &Arc<Self>, name: &str, source: &str, args: &[Value]) -> Result<String> {
        if self.state().units.len() == MOST_DEPTH {
            return Err(TemplateError::Exec(format!(
                "{name}: pages include each other more than {MOST_DEPTH} deep"
            )));
        }
        self.state().units.push(Unit::default());
        let data = receivers::root(&self.page, &self.listing, args);
        let result = self.execute_unit(name, source, &data);
        self.state().units.pop();
        result
    }

    fn execute_unit(self: &Arc<Self>, name: &str, source: &str, data: &Value) -> Result<String> {
        loop {
            let changes = self.state().changes.len();
            let template = self.template(name, source)?;
            let mut out = Output { run: self, text: String::new(), error: None };
            let result = template.execute_template_fmt(&mut out, name, data);
            let Output { text, error, .. } = out;
            let mut state = self.state();
            let missing = state.units.last_mut().and_then(|unit| unit.missing.take());
            let Some(file) = missing else {
                return error.map_or(result, Err).map(|()| text);
            };
            // What it did before is done once more.
            state.changes.truncate(changes);
            let imports = state.units.last_mut().map(|unit| &mut unit.imports);
            match imports {
                Some(imports) if imports.len() < MOST_IMPORTS => imports.push(file),
                _ => return Err(TemplateError::Exec(format!("{name}: more than {MOST_IMPORTS} imports"))),
            }
        }
    }

    fn template(self: &Arc<Self>, name: &str, source: &str) -> Result<Template> {
        let (left, right) = &self.page.delimiters;
        let mut template = Template::new(name).funcs(self.functions());
        let (mut tree, defines) = Parser::with_name(Some(name), source, left, right)?.parse()?;
        methods::rewrite_body(&mut tree);
        template = template.add_parse_tree(name, tree);
        let imports = self.state().units.last().map(|unit| unit.imports.clone()).unwrap_or_default();
        let mut all = vec![defines];
        for file in &imports {
            let text = self.read(file)?;
            all.push(Parser::with_name(Some(file), &text, left, right)?.parse()?.1);
        }
        for mut define in all.into_iter().flatten() {
            methods::rewrite_body(&mut define.body);
            template = template.add_parse_tree(&define.name, define.body);
        }
        Ok(template)
    }

    /// Takes the templates of a file into the page that is being rendered.
    pub(crate) fn import(&self, file: &str) -> Result<()> {
        let mut state = self.state();
        let Some(unit) = state.units.last_mut() else { return Ok(()) };
        if unit.imports.iter().any(|known| known == file) {
            return Ok(());
        }
        unit.missing = Some(file.to_owned());
        Err(TemplateError::Exec("the page starts over".into()))
    }

    /// The text of a file of the site.
    pub(crate) fn read(&self, file: &str) -> Result<String> {
        let text = crate::files::read(&self.page.root, file).map_err(TemplateError::Exec)?;
        self.budget.bytes(text.len())?;
        Ok(text)
    }

    fn functions(self: &Arc<Self>) -> FuncMap {
        let mut map = FuncMap::new();
        for (name, function) in functions::all() {
            let run = Arc::clone(self);
            let call = move |args: &[Value]| {
                run.budget.step()?;
                let texts = args.iter().filter_map(Value::as_str).map(str::len).sum();
                run.budget.bytes(texts)?;
                let value = function(&Call { run: &run, name, args })?;
                run.budget.bytes(value.as_str().map_or(0, str::len))?;
                Ok(value)
            };
            map.insert(name.to_owned(), Arc::new(call));
        }
        let include = functions::page::Includer(Arc::clone(self));
        map.insert("include".into(), Arc::new(move |args: &[Value]| include.file(args)));
        let include = functions::page::Includer(Arc::clone(self));
        map.insert("httpInclude".into(), Arc::new(move |args: &[Value]| include.page(args)));
        map
    }
}

/// What a template has printed, as far as the budget goes.
struct Output<'a> {
    run: &'a Run,
    text: String,
    error: Option<TemplateError>,
}

impl Write for Output<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if let Err(error) = self.run.budget.bytes(text.len()) {
            self.error = Some(error);
            return Err(fmt::Error);
        }
        self.text.push_str(text);
        Ok(())
    }
}

/// The fields of a header as Go has them: names with their values.
pub(crate) fn header_map(fields: &[(String, String)]) -> Value {
    let mut map = Map::new();
    for (name, _) in fields {
        let name = functions::page::canonical(name);
        let of_name = |(other, value): &(String, String)| {
            other.eq_ignore_ascii_case(&name).then(|| string(value.as_str()))
        };
        let values: Vec<Value> = fields.iter().filter_map(of_name).collect();
        map.insert(name.as_str().into(), Value::List(values.into()));
    }
    Value::Map(Arc::new(map))
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::page::{Failed, Outcome, Page, Request, Supplied};
    use crate::render;
    use std::path::Path;
    use std::sync::Arc;

    pub(crate) fn page(source: &str, root: &Path) -> Page {
        Page {
            name: "/page".into(),
            source: source.into(),
            delimiters: ("{{".into(), "}}".into()),
            root: root.into(),
            request: Request {
                method: "GET".into(),
                uri: "/a%20b?x=1&x=2".into(),
                path: "/a b".into(),
                original_method: "POST".into(),
                original_uri: "/first".into(),
                original_path: "/first".into(),
                host: "example.com:8080".into(),
                protocol: "HTTP/1.1".into(),
                remote: "192.0.2.1:4711".into(),
                remote_ip: "192.0.2.1".into(),
                client_ip: "192.0.2.9".into(),
                headers: vec![("accept".into(), "text/html".into()), ("cookie".into(), "a=1; b=two".into())],
            },
            fields: vec![("content-type".into(), "text/html".into())],
            now: "2026-05-04T15:02:01Z".parse().unwrap(),
            listing: None,
        }
    }

    pub(crate) fn outcome(source: &str, root: &Path) -> Outcome {
        render(&Arc::new(page(source, root)), &Arc::new(Supplied::default()))
    }

    #[track_caller]
    pub(crate) fn print(source: &str) -> String {
        match outcome(source, Path::new("/nowhere")) {
            Outcome::Done { body, .. } => body,
            other => panic!("{source}: {other:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn fails(source: &str) -> String {
        match outcome(source, Path::new("/nowhere")) {
            Outcome::Failed(Failed::Template(reason)) => reason,
            other => panic!("{source}: {other:?}"),
        }
    }
}
