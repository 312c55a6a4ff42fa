//! `mainspring scenario new`: writes a scenario for a workflow, as a skeleton or from a recorded execution.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::{Args, Subcommand, ValueHint};
use mainspring_authoring::skeleton::{
    Case, Observed, Skeleton,
    recorded::{Recorded, case_of, recorded},
    skeleton, yaml,
};
use mainspring_engine::EngineError;
use mainspring_kernel::{
    definition::{Syntax, convert::text},
    effect_policy::EffectPolicy,
    frame::Frame,
    json::compact,
    plan::Plan,
    value::{Map, Value},
};
use mainspring_sim::{observe, scenario::read_text};

use crate::{
    backend::read_store::{find, open_read_only},
    commands::init::write_file,
    context::Context,
    definitions::compiled,
    error::{CliError, Exit},
    output::{
        terminal::{dim, print_err, print_out, waits},
        text::{one_line, shown},
    },
    tool_policy::is_permitted,
};

/// Write scenarios.
#[derive(Debug, Args)]
pub(crate) struct Scenario {
    #[command(subcommand)]
    command: ScenarioCommand,
}

#[derive(Debug, Subcommand)]
enum ScenarioCommand {
    /// Write a scenario with every effect, branch and gate of a workflow, which passes at once
    New(New),
}

/// Write a scenario for a workflow.
///
/// The results of effects are samples: replace those that matter. With --from, they are those of a recorded execution,
/// and the test fails if the input of a call changes.
#[derive(Debug, Args)]
struct New {
    /// The definition, YAML or JSON
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// An execution of a local store: its id, the beginning of it, or `last`
    #[arg(long, value_name = "EXECUTION")]
    from: Option<String>,
    /// The scenario file, or `-` for standard output [default: NAME.scenario.yaml beside the definition]
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
}

pub(crate) fn scenario(command: &Scenario, context: &Context) -> Result<Exit, CliError> {
    match &command.command {
        ScenarioCommand::New(new) => write_new(new, context),
    }
}

fn write_new(new: &New, context: &Context) -> Result<Exit, CliError> {
    let Some(compiled) = compiled(&new.file, context)? else { return Ok(Exit::BadInput) };
    // As in a test, the rules of the definition apply, and those of this machine do not.
    let policy = EffectPolicy::default();
    if !is_permitted(&compiled, &policy, &new.file, context)? {
        return Ok(Exit::BadInput);
    }
    let plan = policy.guarded(&Arc::new(compiled.plan), None);
    let target = new.output.clone().unwrap_or_else(|| default_target(&new.file));
    let folder = match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() && target.as_os_str() != "-" => folder.to_path_buf(),
        _ => PathBuf::from("."),
    };
    let definition = path_from(&folder, &new.file)?;
    let run = |fields: &Map| observed(fields, &definition, &folder);
    let (skeleton, title, difference) = match &new.from {
        None => (skeleton(&plan, &run), vec![format!("Tests of {definition}."), SAMPLES.into()], None),
        Some(name) => {
            let (plan, frames) = journal(name, context)?;
            let recorded = recorded(&plan, &frames);
            let (case, difference) = of_recording(&recorded, &run)?;
            let title = vec![format!("Recorded: {}.", case.name), RECORDED.into()];
            (Skeleton { cases: vec![case], uncovered: recorded.notes }, title, difference)
        }
    };
    if skeleton.cases.is_empty() {
        return Err(CliError::bad_input("no_scenario", skeleton.uncovered.join("; ")));
    }
    let text = yaml(&skeleton, &definition, &title);
    if target.as_os_str() == "-" {
        print_out!("{}", text.trim_end());
    } else {
        write_file(&target, &text, new.force)?;
    }
    report(&skeleton, &target, difference.as_deref(), context);
    Ok(if difference.is_some() { Exit::NotSo } else { Exit::Fine })
}

fn report(skeleton: &Skeleton, target: &Path, difference: Option<&str>, context: &Context) {
    for line in skeleton.uncovered.iter().map(String::as_str).chain(difference) {
        print_err!("{} {}", waits("not covered:"), one_line(line));
    }
    let target = target.display().to_string();
    if target == "-" {
        return;
    }
    if context.global.json {
        let names: Vec<Value> = skeleton.cases.iter().map(|case| case.name.as_str().into()).collect();
        let uncovered: Vec<Value> = skeleton.uncovered.iter().map(|line| line.as_str().into()).collect();
        let answer = [
            ("ok", difference.is_none().into()),
            ("file", target.into()),
            ("cases", names.into()),
            ("uncovered", uncovered.into()),
            ("difference", difference.into()),
        ];
        return print_out!("{}", compact(&Value::map(answer)));
    }
    let cases = if skeleton.cases.len() == 1 { "1 case".into() } else { format!("{} cases", skeleton.cases.len()) };
    print_out!("wrote {} with {cases}", shown(&target));
    print_out!("{}", dim(&format!("next: mainspring test {}", shown(&target))));
}

/// The second line of a skeleton.
const SAMPLES: &str = "Replace the sample results and the expectations by those that matter. `mainspring explain scenario` has the format.";

/// The second line of a recorded case.
const RECORDED: &str = "The test fails when a call gets other arguments. The values are those of the execution: read them before you commit.";

/// `flow.yaml` gives `flow.scenario.yaml`, in the same folder.
fn default_target(file: &Path) -> PathBuf {
    let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    file.with_file_name(format!("{stem}.scenario.yaml"))
}

/// Returns the path of a file from a folder: relative if it is inside of the folder, else absolute.
fn path_from(folder: &Path, file: &Path) -> Result<String, CliError> {
    let unreadable = |path: &Path, error| CliError::bad_input("unreadable", format!("{}: {error}", path.display()));
    let file = file.canonicalize().map_err(|error| unreadable(file, error))?;
    let folder = folder.canonicalize().map_err(|error| unreadable(folder, error))?;
    let path = file.strip_prefix(&folder).unwrap_or(&file);
    path.to_str()
        .map(str::to_string)
        .ok_or_else(|| CliError::bad_input("bad_path", format!("{} is not UTF-8", path.display())))
}

/// Runs a case on virtual time.
fn observed(fields: &Map, definition: &str, folder: &Path) -> Result<Observed, String> {
    let mut case = fields.clone();
    case.insert("name".into(), "case".into());
    case.insert("definition".into(), definition.into());
    case.insert("expect".into(), Value::map([("status", "completed".into())]));
    let text = text::json(&Value::Map(case));
    let cases = read_text(text.as_bytes(), Syntax::Json, folder)?;
    let case = cases.first().ok_or("the case cannot be read")?;
    let observation = observe(case)?;
    Ok(Observed {
        status: observation.status.name().into(),
        with_failures: observation.with_failures,
        output: observation.output,
        error_code: observation.error_code,
        steps: observation.steps.into_iter().map(|(id, status)| (id, status.name().into())).collect(),
        completed: observation.completed,
        failed: observation.failed,
        skipped: observation.skipped,
        branches: observation.branches,
        used: observation.used,
        missed: observation.missed,
        calls: observation.calls,
    })
}

/// Loads the journal of an execution of a local store.
fn journal(name: &str, context: &Context) -> Result<(Plan, Vec<Frame>), CliError> {
    if context.global.client()?.is_some() {
        let message = "`scenario new --from` reads the journal of a local store; leave out --server and MAINSPRING_SERVER, or name a folder with --dir";
        return Err(CliError::bad_input("not_at_a_server", message));
    }
    let store = open_read_only(&context.global)?;
    let row = find(&*store.store, name)?;
    let mut frames = Vec::new();
    let read = store.loader.frames(row.key, |_, frame| frames.push(frame.clone())).map_err(EngineError::from)?;
    let read = read.ok_or(EngineError::NoSuchExecution)?;
    Ok(((*read.journal.state.plan).clone(), frames))
}

fn of_recording(
    recorded: &Recorded,
    run: &dyn Fn(&Map) -> Result<Observed, String>,
) -> Result<(Case, Option<String>), CliError> {
    let id = recorded.fields.get("execution_id").and_then(Value::as_text).unwrap_or_default();
    let observed = run(&recorded.fields).map_err(|why| {
        let message =
            format!("the workflow does not run as execution {id} did: {why}; give the definition that it ran");
        CliError::bad_input("no_scenario", message)
    })?;
    Ok(case_of(&format!("execution {id}"), recorded, &observed))
}
