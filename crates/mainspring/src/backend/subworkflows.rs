//! Finds the subworkflows of a definition: files in the same folder, or files named by flags.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use mainspring_engine::start_request::{endless_circle, plan_tree, starts};
use mainspring_kernel::{
    definition::{nearest, read as read_text},
    limits::LINEAGE_WORKFLOWS_MAX,
    plan::Plan,
    value::Value,
};

use crate::{
    context::Context,
    definitions::{compiled, syntax_of},
    error::CliError,
    paths::{beside, workflows_in},
    read_limited,
};

/// Finds every workflow that a definition may start, directly or through others. Each is one of the named files,
/// the definition itself, or `NAME.yaml` (or another extension) in the folder of its file.
pub(crate) fn find(
    plan: &Arc<Plan>,
    file: &Path,
    named: &[PathBuf],
    context: &Context,
) -> Result<BTreeMap<String, Arc<Plan>>, CliError> {
    let mut given: BTreeMap<String, Arc<Plan>> = BTreeMap::new();
    for path in named {
        let plan = read(path, context)?;
        let name = plan.name.clone().unwrap_or_else(|| stem(path));
        if given.insert(name.clone(), plan).is_some() {
            let message = format!("--workflow: two of the files are the workflow `{name}`");
            return Err(CliError::bad_input("duplicate_workflow", message));
        }
    }
    let own = plan.name.clone().unwrap_or_else(|| stem(file));
    given.entry(own).or_insert_with(|| plan.clone());
    let folder = file.parent().unwrap_or(Path::new("."));
    let workflows = plan_tree(plan, |name| match given.get(name) {
        Some(plan) => Ok(plan.clone()),
        None => beside(name, folder).map_or_else(|| Err(unknown(name, folder)), |path| read(&path, context)),
    })?;
    match endless_circle(plan, &workflows) {
        Some(why) => Err(CliError::bad_input("endless_workflows", why)),
        None => Ok(workflows),
    }
}

/// The files of the workflows that a definition may start.
#[derive(Debug, Default)]
pub(crate) struct Children {
    /// The files with errors, which were printed.
    pub invalid: Vec<PathBuf>,
    /// The names of the workflows without a file beside the definition.
    pub missing: Vec<String>,
    /// The number of warnings, which were printed.
    pub warnings: usize,
}

/// Compiles the files beside a definition that it may start, directly or through others, and prints their diagnostics. With
/// `--json` it stops at the first invalid file, whose envelope is printed.
pub(crate) fn check_beside(plan: &Plan, file: &Path, context: &Context) -> Result<Children, CliError> {
    let folder = file.parent().unwrap_or(Path::new("."));
    let own = plan.name.clone().unwrap_or_else(|| stem(file));
    let (mut children, mut seen) = (Children::default(), BTreeSet::from([own, stem(file)]));
    let mut names: Vec<String> = starts(plan).into_iter().map(String::from).collect();
    while let Some(name) = names.pop() {
        if !seen.insert(name.clone()) {
            continue;
        }
        if seen.len() > LINEAGE_WORKFLOWS_MAX {
            let message = format!("more than {LINEAGE_WORKFLOWS_MAX} workflows would start each other");
            return Err(CliError::from(message));
        }
        let Some(path) = beside(&name, folder) else {
            children.missing.push(name);
            continue;
        };
        match compiled(&path, context)? {
            Some(compiled) => {
                children.warnings += compiled.warnings.len();
                names.extend(starts(&compiled.plan).into_iter().map(String::from));
            }
            None => children.invalid.push(path),
        }
        if context.global.json && !children.invalid.is_empty() {
            break;
        }
    }
    Ok(children)
}

/// The maximum number of files that are read for a workflow of another file name.
const NAMED_READ_MAX: usize = 100;

/// Says so if a definition in a folder has the name in its text, and another name as a file.
pub(crate) fn hint_of_name(name: &str, folder: &Path) -> String {
    let mut files = workflows_in(folder).into_iter().take(NAMED_READ_MAX).filter_map(|stem| beside(&stem, folder));
    let is_it = |file: &PathBuf| {
        let document = read_limited::file(file).ok().and_then(|text| read_text(&text, syntax_of(file)).ok());
        document.is_some_and(|document| document.value.get("name").and_then(Value::as_text) == Some(name))
    };
    match files.find(is_it) {
        Some(file) => format!("; {} has this name: rename the file, since workflows are found by it", file.display()),
        None => String::new(),
    }
}

fn stem(file: &Path) -> String {
    file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

fn read(file: &Path, context: &Context) -> Result<Arc<Plan>, CliError> {
    let invalid = || {
        let message = format!("{} is started by this workflow, and it is invalid", file.display());
        CliError::bad_input("invalid_workflow", message)
    };
    Ok(Arc::new(compiled(file, context)?.ok_or_else(invalid)?.plan))
}

fn unknown(name: &str, folder: &Path) -> CliError {
    let names = workflows_in(folder);
    let near = nearest(name, names.iter().map(String::as_str));
    let near = near.map_or_else(|| hint_of_name(name, folder), |near| format!("; did you mean `{near}`?"));
    let message = format!(
        "the workflow `{name}` is to be started and there is no {name}.yaml in {}{near}; name its file with --workflow",
        folder.display()
    );
    CliError::bad_input("unknown_workflow", message)
}
