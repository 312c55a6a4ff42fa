//! The folder that `mainspring dev` watches: definitions are saved and scenarios are run as they change.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    slice,
    time::Duration,
};

use mainspring_kernel::{
    definition::read,
    diagnostic::{Diagnostic, Severity},
    hash::Hash,
    json::compact,
    value::Value,
};
use mainspring_server::{App, services::dev_files::DevFile};
use mainspring_sim::{CaseReport, run_case, scenario};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::{
    sync::mpsc,
    task::{JoinError, JoinSet},
};

use crate::{
    backend::server_save::saved,
    client::{Client, response::Response},
    commands::test::{show_case, show_failed},
    context::Context,
    definitions,
    error::CliError,
    evaluator::compile_in,
    output::{
        terminal::{bold, dim, print_out, status},
        text::{counted, shown},
    },
    read_limited,
};

/// Pause after the first change, in which the further changes of the same save arrive: editors write a file in steps.
const DEBOUNCE: Duration = Duration::from_millis(100);

/// Most files of the folder that are read. A folder with more of them is not one of definitions.
const FILES_MAX: usize = 1_000;

/// Scenarios that run at a time; others wait. One that never ends takes a thread until the command is stopped.
const RUNS_MAX: usize = 4;

/// A folder of definitions.
#[derive(Debug)]
pub(in crate::commands) struct Folder {
    path: PathBuf,
}

/// The state of a watched file.
struct Watched {
    /// Hash of the content that was handled.
    content: Hash,
    /// The state of a definition; `None` for a scenario or another file.
    definition: Option<DevFile>,
}

/// The watched folder with a server.
struct Session<'a> {
    folder: &'a Folder,
    app: &'a App,
    client: &'a Client,
    context: &'a Context,
    files: BTreeMap<PathBuf, Watched>,
    runs: JoinSet<Run>,
    /// The last run of each scenario, by number. Results of earlier ones are dropped.
    latest: BTreeMap<PathBuf, usize>,
    waiting: Vec<PathBuf>,
}

/// The result of a scenario.
struct Run {
    scenario: PathBuf,
    number: usize,
    reports: Vec<CaseReport>,
}

impl Folder {
    /// Finds the folder.
    pub(super) fn open(path: &Path) -> Result<Self, CliError> {
        let refused = |why: &str| CliError::bad_input("bad_folder", format!("{}: {why}", path.display()));
        let path = fs::canonicalize(path).map_err(|error| refused(&error.to_string()))?;
        if !path.is_dir() {
            return Err(refused("this is a file; name the folder of the definitions"));
        }
        Ok(Self { path })
    }

    /// The canonical path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Watches the folder. Returns only if that fails.
    pub(in crate::commands) async fn watch(&self, app: &App, client: &Client, context: &Context) -> CliError {
        let failed =
            |why: String| CliError::internal("dev_watch", format!("{} cannot be watched: {why}", self.path.display()));
        let (changed, mut changes) = mpsc::channel(1);
        // The channel holds one message: a full one announces the change already.
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // Reads of the files are events as well, those of this process among them.
            if event.map_or(true, |event| !event.kind.is_access()) {
                let _ = changed.try_send(());
            }
        });
        let watched = watcher.and_then(|mut watcher: RecommendedWatcher| {
            watcher.watch(&self.path, RecursiveMode::NonRecursive)?;
            Ok(watcher)
        });
        let _watcher = match watched {
            Ok(watcher) => watcher,
            Err(error) => return failed(error.to_string()),
        };
        let mut session = Session {
            folder: self,
            app,
            client,
            context,
            files: BTreeMap::new(),
            runs: JoinSet::new(),
            latest: BTreeMap::new(),
            waiting: Vec::new(),
        };
        loop {
            if let Err(error) = session.read_all().await {
                print_out!("{}  {}", status("failed"), shown(&error.failure.message));
            }
            loop {
                tokio::select! {
                    Some(run) = session.runs.join_next() => session.finish(run),
                    change = changes.recv() => match change {
                        Some(()) => break,
                        None => return failed("the watch has ended".into()),
                    },
                }
            }
            tokio::time::sleep(DEBOUNCE).await;
            while changes.try_recv().is_ok() {}
        }
    }

    /// The files of the folder, sorted by name.
    fn files(&self) -> Result<Vec<PathBuf>, CliError> {
        let refused = |error: std::io::Error| {
            CliError::bad_input("bad_folder", format!("{} cannot be read: {error}", self.path.display()))
        };
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(refused)? {
            let path = entry.map_err(refused)?.path();
            if is_candidate(&path) && path.is_file() {
                files.push(path);
            }
        }
        if files.len() > FILES_MAX {
            let (path, found) = (self.path.display(), files.len());
            let message = format!("{path} has {found} YAML and JSON files; `dev` watches at most {FILES_MAX}");
            return Err(CliError::bad_input("bad_folder", message));
        }
        files.sort();
        Ok(files)
    }
}

impl Session<'_> {
    /// Handles the files whose content has changed.
    async fn read_all(&mut self) -> Result<(), CliError> {
        let files = self.folder.files()?;
        let gone: Vec<PathBuf> = self.files.keys().filter(|path| !files.contains(path)).cloned().collect();
        for path in gone {
            if self.files.remove(&path).is_some_and(|file| file.definition.is_some()) {
                self.note(&format!("{} was deleted; its workflow stays on the server", shown_name(&path)));
            }
        }
        let mut scenarios = Vec::new();
        for path in &files {
            let Some((text, content)) = self.changed(path) else { continue };
            if is_scenario(path) {
                self.files.insert(path.clone(), Watched { content, definition: None });
                scenarios.push(path.clone());
                continue;
            }
            let definition = self.save(path, &text).await;
            if let Some(definition) = definition.as_ref().filter(|_| self.context.global.json) {
                print_out!("{}", compact(&report(definition)));
            }
            if definition.is_some() {
                scenarios.extend(scenario_of(path, &files));
            }
            self.files.insert(path.clone(), Watched { content, definition });
        }
        scenarios.sort();
        scenarios.dedup();
        for scenario in scenarios {
            self.run_scenario(scenario);
        }
        self.list();
        Ok(())
    }

    /// Shows the state of the files in the console.
    fn list(&self) {
        let listed = self.files.values().filter_map(|file| file.definition.clone());
        self.app.set_dev_files(listed.collect());
    }

    /// Prints a remark on a file for people.
    fn note(&self, text: &str) {
        if !self.context.global.json {
            print_out!("{}", dim(text));
        }
    }

    /// Prints the result for a file for people.
    fn result(&self, path: &Path, word: &str, text: &str) {
        if !self.context.global.json {
            let style = if word.starts_with("not ") { "failed" } else { "ok" };
            print_out!("{}  {}{text}", status(style).replace(style, word), bold(&shown_name(path)));
        }
    }

    /// Prints the mistakes of a file that is not saved.
    fn refused(&self, path: &Path, source: &str, workflow_id: Option<String>, diagnostics: Vec<Diagnostic>) -> DevFile {
        definitions::show(&diagnostics, source, path);
        let errors = diagnostics.iter().filter(|found| found.severity == Severity::Error).count();
        let counted = counted(errors as u64, "mistake", "mistakes");
        let kept = if workflow_id.is_some() { "; the server keeps the previous version" } else { "" };
        self.result(path, "not saved", &format!(": {counted}{kept}"));
        DevFile { name: file_name(path), workflow_id, diagnostics, cases: (0, 0) }
    }

    /// Reads a file; `None` if its content was handled before.
    fn changed(&self, path: &Path) -> Option<(Vec<u8>, Hash)> {
        // A file that cannot be read is one that an editor replaces at this moment, which is another change.
        let text = read_limited::file(path).ok()?;
        let content = Hash::of(&text);
        let is_known = self.files.get(path).is_some_and(|file| file.content == content);
        (!is_known).then_some((text, content))
    }

    /// Saves a definition, or prints its mistakes. Returns `None` for a file that is no definition.
    async fn save(&self, path: &Path, text: &[u8]) -> Option<DevFile> {
        let known = self.files.get(path).and_then(|file| file.definition.clone());
        let (name, workflow_id) = (file_name(path), known.and_then(|known| known.workflow_id));
        let source = String::from_utf8_lossy(text);
        let document = match read(text, definitions::syntax_of(path)) {
            Ok(document) => document,
            Err(mistake) => return Some(self.refused(path, &source, workflow_id, vec![mistake])),
        };
        if document.value.get("steps").is_none() && document.value.get("nodes").is_none() {
            self.note(&format!("{} is not a definition: it has neither `steps` nor `nodes`", shown_name(path)));
            return None;
        }
        let warnings = match compile_in(&document, definitions::folder_of(path)) {
            Ok(compiled) => compiled.warnings,
            Err(mistakes) => return Some(self.refused(path, &source, workflow_id, mistakes)),
        };
        let same_name = |(other, file): &(&PathBuf, &Watched)| {
            *other != path && other.file_stem() == path.file_stem() && file.definition.is_some()
        };
        if let Some((other, _)) = self.files.iter().find(same_name) {
            let other = shown_name(other);
            self.result(
                path,
                "not saved",
                &format!(": {other} has the same name, so it is the same workflow; rename one"),
            );
            return Some(DevFile { name, workflow_id: None, diagnostics: warnings, cases: (0, 0) });
        }
        let folder = definitions::folder_of(path);
        let answer = match saved(path, None, self.client, self.context, Some(folder)).await {
            Ok(Some(answer)) => answer,
            Ok(None) => return Some(DevFile { name, workflow_id, diagnostics: warnings, cases: (0, 0) }),
            Err(error) => {
                self.result(path, "not saved", &format!(": {}", shown(&error.failure.message)));
                return Some(DevFile { name, workflow_id, diagnostics: warnings, cases: (0, 0) });
            }
        };
        definitions::show(&warnings, &source, path);
        let answer = Response::new(self.client, "a workflow", &answer);
        let text = |key: &str| answer.maybe_text(key).ok().flatten();
        let (workflow_id, version) = (text("id").or(workflow_id), text("version").unwrap_or_default());
        self.result(path, "saved", &format!(" {}", dim(&shown(&version))));
        Some(DevFile { name, workflow_id, diagnostics: warnings, cases: (0, 0) })
    }

    /// Runs the cases of a scenario file, on virtual time and without effects. Functions of a case can take long, so the
    /// cases run on a thread of their own.
    fn run_scenario(&mut self, scenario: PathBuf) {
        if self.runs.len() >= RUNS_MAX {
            self.waiting.retain(|waiting| *waiting != scenario);
            return self.waiting.push(scenario);
        }
        let cases = match scenario::read(&scenario) {
            Ok(cases) => cases,
            Err(unreadable) => {
                print_out!("{}  {}", status("failed"), shown(unreadable.to_string().trim_end()));
                return;
            }
        };
        let latest = self.latest.entry(scenario.clone()).or_default();
        *latest += 1;
        let number = *latest;
        self.runs.spawn_blocking(move || Run { scenario, number, reports: cases.iter().map(run_case).collect() });
    }

    /// Shows the result of a scenario, and starts the next one that waits.
    fn finish(&mut self, run: Result<Run, JoinError>) {
        match run {
            Ok(run) if self.latest.get(&run.scenario) == Some(&run.number) => self.show(&run),
            Ok(_) => {}
            Err(error) => print_out!("{}  {}", status("failed"), shown(&format!("a scenario broke off: {error}"))),
        }
        if let Some(next) = self.waiting.pop() {
            self.run_scenario(next);
        }
    }

    fn show(&mut self, Run { scenario: path, reports, .. }: &Run) {
        let failed = reports.iter().filter(|report| !report.holds()).count();
        match self.context.global.json {
            true => reports.iter().for_each(|report| {
                show_case(path, report, false, self.context);
            }),
            false => show_failed(path, reports),
        }
        let counted = counted(reports.len() as u64, "case", "cases");
        match failed {
            0 => self.result(path, "passed", &format!(" {}", dim(&counted))),
            _ => self.result(path, "not passed", &format!(": {failed} of {counted} failed")),
        }
        let owner = self.files.iter_mut().find(|(file, _)| scenario_of(file, slice::from_ref(path)).is_some());
        if let Some(definition) = owner.and_then(|(_, file)| file.definition.as_mut()) {
            definition.cases = (reports.len() - failed, failed);
        }
        self.list();
    }
}

/// The state of a file as JSON.
fn report(file: &DevFile) -> Value {
    let diagnostics: Vec<Value> = file.diagnostics.iter().map(Diagnostic::to_value).collect();
    Value::map([
        ("file", file.name.as_str().into()),
        ("workflowId", file.workflow_id.as_deref().into()),
        ("diagnostics", diagnostics.into()),
    ])
}

/// The scenario file beside a definition: `NAME.scenario.yaml` for `NAME.yaml`.
fn scenario_of(definition: &Path, files: &[PathBuf]) -> Option<PathBuf> {
    let stem = definition.file_stem()?.to_str()?;
    let names = ["yaml", "yml", "json"].map(|extension| format!("{stem}.scenario.{extension}"));
    files.iter().find(|file| names.contains(&file_name(file))).cloned()
}

fn is_scenario(path: &Path) -> bool {
    path.file_stem().and_then(|stem| stem.to_str()).is_some_and(|stem| stem.ends_with(".scenario"))
}

/// True for a visible YAML or JSON file. Editors keep copies in hidden ones.
fn is_candidate(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    ["yaml", "yml", "json"].contains(&extension) && !file_name(path).starts_with('.')
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The name of a file for the terminal.
fn shown_name(path: &Path) -> String {
    shown(&file_name(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_belongs_to_the_definition_of_its_name() {
        let files: Vec<PathBuf> = ["a.yaml", "a.scenario.json", "ab.scenario.yaml"].map(PathBuf::from).into();
        assert_eq!(scenario_of(Path::new("a.yaml"), &files), Some("a.scenario.json".into()));
        assert_eq!(scenario_of(Path::new("b.yaml"), &files), None);
        assert!(is_scenario(&files[1]) && !is_scenario(&files[0]));
    }

    #[test]
    fn hidden_files_and_other_formats_are_no_candidates() {
        assert!(is_candidate(Path::new("folder/flow.yml")));
        for name in [".flow.yaml", "flow.yaml~", "flow.toml", "flow"] {
            assert!(!is_candidate(Path::new(name)), "{name}");
        }
    }
}
