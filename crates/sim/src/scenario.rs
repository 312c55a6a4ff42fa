//! Scenario files: a workflow, scripted responses, inputs with their times, and the expected result.
//!
//! A file is named `*.scenario.json` or `*.scenario.yaml` and contains one case or `{"cases": […]}`. Every key is
//! checked. An unknown key is an error with its position and help, since an ignored key would be a check that is never
//! made.

mod definitions;
mod effects;
mod expect;
mod inbox;
mod judged;
mod reader;
mod settings;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, fs, io,
    path::{Path as FilePath, PathBuf},
    sync::Arc,
};

use mainspring_kernel::{
    definition::{self, Syntax},
    diagnostic::{self, Diagnostic},
    effect_policy::EffectPolicy,
    plan::Constraints,
    value::{Map, Value},
};

use crate::allowance::Allowance;

use reader::{Part, Reader};

pub use definitions::{Definition, Definitions, Folder};
pub use effects::{Answer, Effects, Script, Scripts};
pub use expect::{CallExpect, End, Expect, StepExpect};
pub use inbox::{At, Entry, EntryAction, Reached};

pub(crate) use effects::{arguments, called, names};
pub(crate) use reader::duration_text;

/// A workflow with its inputs, its scripted responses and the expected result.
#[derive(Debug, Clone)]
pub struct Case {
    /// Its name, unique in its file.
    pub name: String,
    /// The error that it guards against; empty if not given.
    pub why: String,
    /// The workflow, or the reason why its text cannot be parsed.
    pub definition: Definition,
    /// The source of the workflows that it may start; `None` if the case has `workflows`.
    pub children: Option<Children>,
    /// The workflows that it may start, by name.
    pub workflows: BTreeMap<String, Definition>,
    /// `@input`.
    pub input: Value,
    /// `@vars`.
    pub variables: Map,
    /// Limits that override those of the definition.
    pub policy: Constraints,
    /// The classes of tools and the prices of models, which are those of an installation otherwise.
    pub settings: EffectPolicy,
    /// The external name of the execution, if the case gives it one.
    pub execution_id: Option<String>,
    /// The scripted responses: its own, and those of the file for other names.
    pub effects: Effects,
    /// The inputs from outside.
    pub inbox: Vec<Entry>,
    /// The modes in which it runs.
    pub modes: Vec<Mode>,
    /// The expected result.
    pub expect: Expect,
}

/// The source of the workflows that a case may start.
#[derive(Clone)]
pub struct Children {
    definitions: Arc<dyn Definitions>,
    /// The path of the case's definition; empty if the case contains it.
    beside: String,
}

impl fmt::Debug for Children {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Children").field("beside", &self.beside).finish_non_exhaustive()
    }
}

/// A mode of running a case. All of them must give the expected result and the same journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// No faults.
    Straight,
    /// The node crashes before every input.
    CrashBeforeInputs,
    /// Every input is delivered twice.
    InputsTwice,
    /// At the end, every input is delivered once more.
    InboxAgain,
}

impl Mode {
    /// All modes with their names in scenarios.
    pub const ALL: [(&'static str, Self); 4] = [
        ("straight", Self::Straight),
        ("crash_before_inputs", Self::CrashBeforeInputs),
        ("inputs_twice", Self::InputsTwice),
        ("inbox_again", Self::InboxAgain),
    ];

    /// Returns the name in scenarios.
    pub fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(_, mode)| *mode == self).map_or("", |(name, _)| name)
    }
}

/// A scenario file that cannot be read, with every error and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// The file that was found in a folder or named by the caller.
    pub file: PathBuf,
    /// Several lines of plain text, ending with a newline.
    pub message: String,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.file.display(), self.message)
    }
}

impl std::error::Error for Unreadable {}

const FILE_ENDINGS: [(&str, Syntax); 3] =
    [(".scenario.json", Syntax::Json), (".scenario.yaml", Syntax::Yaml), (".scenario.yml", Syntax::Yaml)];

const CASE_KEYS: [&str; 14] = [
    "name",
    "why",
    "definition",
    "workflows",
    "input",
    "variables",
    "policy",
    "classes",
    "prices",
    "execution_id",
    "effects",
    "inbox",
    "modes",
    "expect",
];

/// Finds the scenario files among some paths and in their folders, sorted, without duplicates. A file that is given
/// explicitly may have any name; in folders only the names of scenarios match.
pub fn find(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Unreadable> {
    let mut files = Vec::new();
    for path in paths {
        find_in(path, true, &mut files)?;
    }
    files.sort();
    files.dedup();
    Ok(files)
}

fn find_in(path: &FilePath, is_named: bool, files: &mut Vec<PathBuf>) -> Result<(), Unreadable> {
    let unreadable = |error: io::Error| Unreadable { file: path.into(), message: format!("{error}\n") };
    let found = fs::metadata(path).map_err(unreadable)?;
    if !found.is_dir() {
        // A read of a named pipe waits, so only a caller may name one.
        if is_named || found.is_file() && syntax(path).is_some() {
            files.push(path.into());
        }
        return Ok(());
    }
    for entry in fs::read_dir(path).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        // Links are not followed, since a folder may contain a link to itself.
        let is_link = entry.file_type().map_err(unreadable)?.is_symlink();
        if !is_link {
            find_in(&entry.path(), false, files)?;
        }
    }
    Ok(())
}

fn syntax(path: &FilePath) -> Option<Syntax> {
    let name = path.file_name()?.to_str()?;
    FILE_ENDINGS.into_iter().find(|(ending, _)| name.ends_with(ending)).map(|(_, syntax)| syntax)
}

/// Reads and parses a file, at most as large as a definition.
pub fn read(file: &FilePath) -> Result<Vec<Case>, Unreadable> {
    let unreadable = |message: String| Unreadable { file: file.into(), message };
    let text = definitions::bounded(file).map_err(|error| unreadable(format!("{error}\n")))?;
    read_text(&text, syntax(file).unwrap_or(Syntax::Guess), file.parent().unwrap_or(FilePath::new(".")))
        .map_err(unreadable)
}

/// Parses the cases of a text; `folder` contains the definitions that it refers to. The error lists every mistake with
/// its line.
pub fn read_text(text: &[u8], syntax: Syntax, folder: &FilePath) -> Result<Vec<Case>, String> {
    read_within(text, syntax, Arc::new(Folder(folder.into())), &Allowance::default())
}

/// As [`read_text`], with another source of the definitions that the text refers to, and with bounds.
///
/// # Errors
/// Fails as [`read_text`] does, before any case is read if there are too many, and after a case once the time limit has
/// passed.
pub fn read_within(
    text: &[u8],
    syntax: Syntax,
    definitions: Arc<dyn Definitions>,
    allowance: &Allowance,
) -> Result<Vec<Case>, String> {
    let source = String::from_utf8_lossy(text);
    let render = |problems: &[Diagnostic], more: usize| {
        let rendered = diagnostic::render_all(problems, &source);
        let more = if more > 0 { format!("and {more} more\n") } else { String::new() };
        format!("the scenario cannot be read\n{rendered}{more}")
    };
    let document = definition::read(text, syntax).map_err(|problem| render(&[problem], 0))?;
    let mut reader = Reader::new(&document, allowance.bounds.problems_max);
    let cases = cases(&mut reader, &definitions, allowance)?;
    if reader.problems.is_empty() && reader.more_problems == 0 {
        return Ok(cases);
    }
    reader.problems.sort_by_key(|problem| problem.place);
    Err(render(&reader.problems, reader.more_problems))
}

fn cases(
    reader: &mut Reader<'_>,
    definitions: &Arc<dyn Definitions>,
    allowance: &Allowance,
) -> Result<Vec<Case>, String> {
    let document = reader.whole_document();
    let Some(list) = document.field("cases") else {
        allowance.check_cases(1)?;
        return Ok(case(&document, reader, definitions, &Arc::default()).into_iter().collect());
    };
    allowance.check_cases(list.value.as_list().map_or(0, <[_]>::len))?;
    reader.object(&document, &["cases", "effects"]);
    let shared = document.field("effects").map(|field| effects::read(&field, reader)).unwrap_or_default();
    let shared = Arc::new(shared);
    let items = reader.items(&list);
    if items.is_empty() {
        reader.problem(diagnostic::EMPTY, &list.path, "the file has no cases", "give it at least one");
    }
    let mut cases = Vec::new();
    for item in &items {
        if allowance.is_over() {
            return Err(allowance.time_is_over());
        }
        cases.extend(case(item, reader, definitions, &shared));
    }
    let mut names = BTreeSet::new();
    for (at, case) in cases.iter().enumerate() {
        if !names.insert(case.name.as_str()) {
            let message = format!("two cases are called {:?}", case.name);
            reader.problem(diagnostic::DUPLICATE_ID, &list.path.index(at), message, "give each a name of its own");
        }
    }
    Ok(cases)
}

fn case<'a>(
    part: &Part<'a>,
    reader: &mut Reader<'a>,
    definitions: &Arc<dyn Definitions>,
    shared: &Arc<Scripts>,
) -> Option<Case> {
    reader.object(part, &CASE_KEYS)?;
    for (key, help) in [
        ("name", "give the case a name"),
        ("definition", "give it a workflow, in place or as the path of its file"),
        ("expect", "give the expected result: expect: {status: completed}"),
    ] {
        if !part.has(key) {
            reader.missing(part, key, help);
        }
    }
    let text = |key, reader: &mut Reader<'a>| part.field(key).and_then(|field| reader.text(&field));
    let name = text("name", reader);
    let why = text("why", reader).unwrap_or_default();
    let workflows =
        part.field("workflows").map(|field| workflows_of(&field, reader, &**definitions)).unwrap_or_default();
    let definition = part.field("definition").and_then(|field| definition_of(&field, reader, &**definitions));
    let beside = || part.value.get("definition").and_then(Value::as_text).unwrap_or_default().to_string();
    let children = (!part.has("workflows")).then(|| Children { definitions: definitions.clone(), beside: beside() });
    let variables = part.field("variables").map(|field| object_of(&field, reader)).unwrap_or_default();
    let policy = part.field("policy").map(|field| policy(&field, reader)).unwrap_or_default();
    let settings = settings::read(part, reader);
    let execution_id = text("execution_id", reader);
    let own = part.field("effects").map(|field| effects::read(&field, reader)).unwrap_or_default();
    let effects = Effects::new(own, shared.clone());
    let inbox = part.field("inbox").map(|field| inbox::read(&field, reader)).unwrap_or_default();
    let modes = modes(part, reader);
    let expect = part.field("expect").and_then(|field| expect::read(&field, reader));
    let input = part.field("input").map(|field| field.value.clone()).unwrap_or_default();
    Some(Case {
        name: name?,
        why,
        definition: definition?,
        children,
        workflows,
        input,
        variables,
        policy,
        settings,
        execution_id,
        effects,
        inbox,
        modes,
        expect: expect?,
    })
}

/// Returns the inline workflow, or that of a path. A definition that is not JSON or YAML counts as a rejected one.
fn definition_of<'a>(part: &Part<'a>, reader: &mut Reader<'a>, definitions: &dyn Definitions) -> Option<Definition> {
    let Value::Text(path) = part.value else { return Some(Arc::new(Ok(reader.cut_out(part)))) };
    match definitions.definition(path) {
        Ok(found) => Some(found),
        Err(why) => {
            let message = format!("the definition {path:?} cannot be read: {why}");
            reader.problem(diagnostic::WRONG_VALUE, &part.path, message, definitions.help());
            None
        }
    }
}

impl Case {
    /// Returns a workflow that it may start: one of `workflows`, or without that key one from the source of its
    /// definitions.
    pub(crate) fn child(&self, name: &str) -> Option<Definition> {
        if let Some(given) = self.workflows.get(name) {
            return Some(given.clone());
        }
        let Children { definitions, beside } = self.children.as_ref()?;
        definitions.workflow(beside, name)
    }
}

fn workflows_of<'a>(
    part: &Part<'a>,
    reader: &mut Reader<'a>,
    definitions: &dyn Definitions,
) -> BTreeMap<String, Definition> {
    let names = object_of(part, reader);
    let given = names.keys().filter_map(|name| {
        let field = part.field(name)?;
        Some((name.clone(), definition_of(&field, reader, definitions)?))
    });
    given.collect()
}

fn object_of<'a>(part: &Part<'a>, reader: &mut Reader<'a>) -> Map {
    match part.value {
        Value::Map(map) => map.clone(),
        _ => {
            reader.wrong_kind(part, "an object");
            Map::new()
        }
    }
}

fn policy<'a>(part: &Part<'a>, reader: &mut Reader<'a>) -> Constraints {
    reader.object(part, &["maxSteps", "maxParallel", "timeoutMs", "maxOutputBytes"]);
    Constraints {
        max_steps: part.field("maxSteps").and_then(|field| reader.count(&field)),
        max_parallel: part.field("maxParallel").and_then(|field| reader.count(&field)),
        timeout_ms: part.field("timeoutMs").and_then(|field| reader.whole(&field)),
        max_output_bytes: part.field("maxOutputBytes").and_then(|field| reader.count(&field)),
        ..Constraints::default()
    }
}

fn modes<'a>(part: &Part<'a>, reader: &mut Reader<'a>) -> Vec<Mode> {
    let Some(field) = part.field("modes") else { return Mode::ALL.map(|(_, mode)| mode).into() };
    let items = reader.items(&field);
    let modes: Vec<Mode> = items.iter().filter_map(|item| reader.word(item, &Mode::ALL)).collect();
    if items.is_empty() {
        reader.problem(diagnostic::EMPTY, &field.path, "`modes` is empty", "leave it out to run all of them");
    }
    modes
}
