//! Evaluates functions and schemas for this process, in worker processes that run the same executable.

use std::{
    cell::{Cell, OnceCell, RefCell},
    collections::BTreeMap,
    ffi::OsString,
    path::Path,
    process::ExitCode,
    sync::{Arc, OnceLock},
};

use mainspring_engine::evaluator::{Evaluator, SandboxInspector, UNCONFINED_ARGUMENT, WORKER_ARGUMENT, workers};
use mainspring_kernel::{
    definition::{
        Compiled, Complaint, FunctionTypes, Inspector, Missing, Outside, compile_with, nearest, read, shapes,
    },
    diagnostic::Diagnostic,
    document::Document,
    value::Value,
};

use mainspring_server::services::known_names::KnownNames;

use crate::{
    definitions::syntax_of,
    error::Exit,
    known_names,
    paths::{beside, workflows_in},
    read_limited,
};

/// The value 1 allows code to run on a system that refuses the seccomp filter which confines it.
const UNCONFINED_VARIABLE: &str = "MAINSPRING_UNCONFINED_CODE";

/// Serves as a sandbox worker if the arguments select it. This runs before anything else, so that a worker reads no
/// settings of the user.
pub fn serve_if_worker(mut arguments: impl Iterator<Item = OsString>) -> Option<Exit> {
    if arguments.nth(1)? != WORKER_ARGUMENT {
        return None;
    }
    let unconfined = arguments.next().is_some_and(|argument| argument == UNCONFINED_ARGUMENT);
    let served = mainspring_sandbox::worker::serve(std::io::stdin(), std::io::stdout(), unconfined);
    Some(if served.is_ok() { Exit::Fine } else { Exit::Failed })
}

/// Becomes a contained script if the arguments select it. Returns only if that fails.
pub fn serve_if_helper(arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    mainspring_effects::shell::contain::serve_if_helper(arguments).map(ExitCode::from)
}

/// The sandbox workers of this process. The first one starts with the first evaluation.
pub fn evaluator() -> Arc<dyn Evaluator> {
    static WORKERS: OnceLock<Arc<dyn Evaluator>> = OnceLock::new();
    let unconfined = || std::env::var_os(UNCONFINED_VARIABLE).is_some_and(|value| value == "1");
    WORKERS.get_or_init(|| Arc::new(workers(unconfined()))).clone()
}

/// Compiles a definition, and checks its functions and schemas in the sandbox.
pub fn compile(document: &Document) -> Result<Compiled, Vec<Diagnostic>> {
    compile_with(document, &SandboxInspector(&*evaluator()))
}

/// Compiles like [`compile`], for a definition in a folder with the workflows that it may start.
pub fn compile_in(document: &Document, folder: &Path) -> Result<Compiled, Vec<Diagnostic>> {
    compile_with(document, &InFolder::new(&*evaluator(), folder))
}

/// The maximum number of other workflows that are read for one definition.
const READ_MAX: usize = 64;

/// The maximum number of names outside of one definition that are looked up in its folder or in the settings.
const SEARCHES_MAX: usize = 500;

/// Checks functions and schemas in the sandbox, and finds the workflows of a folder by the names of their files.
pub struct InFolder<'e> {
    sandbox: SandboxInspector<'e>,
    folder: &'e Path,
    /// The shapes of outputs by the name of the workflow. A workflow that is being read is unknown to those that it starts.
    outputs: RefCell<BTreeMap<String, Option<Value>>>,
    /// The schemas of inputs by the name of the workflow.
    inputs: RefCell<BTreeMap<String, Option<Value>>>,
    /// The names of the workflows in the folder.
    names: OnceCell<Vec<String>>,
    /// The names of this machine's settings file.
    settings: OnceCell<KnownNames>,
    /// The number of unknown names that were compared with the known ones.
    searches: Cell<usize>,
}

impl<'e> InFolder<'e> {
    /// Reads workflows from `folder` when a definition starts them.
    pub fn new(evaluator: &'e dyn Evaluator, folder: &'e Path) -> Self {
        Self {
            sandbox: SandboxInspector(evaluator),
            folder,
            outputs: RefCell::default(),
            inputs: RefCell::default(),
            names: OnceCell::new(),
            settings: OnceCell::new(),
            searches: Cell::new(0),
        }
    }

    fn document(&self, name: &str) -> Option<Document> {
        let file = beside(name, self.folder)?;
        let text = read_limited::file(&file).ok()?;
        read(&text, syntax_of(&file)).ok()
    }

    fn output(&self, name: &str) -> Option<Value> {
        let document = self.document(name)?;
        Some(shapes(&document, self).output).filter(|output| *output != Value::Bool(true))
    }
}

impl Inspector for InFolder<'_> {
    fn source(&self, source: &str) -> Result<FunctionTypes, Complaint> {
        self.sandbox.source(source)
    }

    fn schema(&self, schema: &Value) -> Result<(), Complaint> {
        self.sandbox.schema(schema)
    }

    fn workflow(&self, name: &str) -> Option<Value> {
        if let Some(known) = self.outputs.borrow().get(name) {
            return known.clone();
        }
        if self.outputs.borrow().len() >= READ_MAX {
            return None;
        }
        self.outputs.borrow_mut().insert(name.into(), None);
        let output = self.output(name);
        self.outputs.borrow_mut().insert(name.into(), output.clone());
        output
    }

    fn workflow_input(&self, name: &str) -> Option<Value> {
        if let Some(known) = self.inputs.borrow().get(name) {
            return known.clone();
        }
        if self.inputs.borrow().len() >= READ_MAX {
            return None;
        }
        let schema = self.document(name).and_then(|document| document.value.get("inputSchema").cloned());
        self.inputs.borrow_mut().insert(name.into(), schema.clone());
        schema
    }

    /// A server may have a workflow that is not in the folder, so only a name that is similar to one in it is unknown.
    fn missing(&self, what: Outside, name: &str) -> Option<Missing> {
        let is_first = self.searches.replace(self.searches.get().saturating_add(1)) < SEARCHES_MAX;
        if what != Outside::Workflow {
            let known = self.settings.get_or_init(known_names::of_machine);
            return is_first.then(|| known.missing(what, name, None, "in the settings"))?;
        }
        if !is_first || beside(name, self.folder).is_some() {
            return None;
        }
        let names = self.names.get_or_init(|| workflows_in(self.folder));
        let nearest = nearest(name, names.iter().map(String::as_str))?;
        let place = "in the folder of this file".to_string();
        Some(Missing { place, nearest: Some(nearest.into()), remedy: String::new() })
    }
}
