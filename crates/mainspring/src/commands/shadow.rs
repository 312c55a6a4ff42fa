//! `mainspring shadow`: replays recorded executions with another definition, without performing any effect.

use std::{collections::BTreeSet, path::PathBuf, sync::Arc};

use clap::{Args, ValueHint};
use mainspring_engine::{EngineError, clock::now_ms};
use mainspring_kernel::json::compact;
use mainspring_review::{limits::SHADOW_EXECUTIONS_MAX, shadow::Grade};
use mainspring_server::services::shadow_run::{Bounds, ShadowRun, Source};
use mainspring_store::{ExecutionRow, Filter};

use crate::{
    backend::read_store::{ReadStore, find, open_read_only},
    context::Context,
    definitions::compiled,
    error::{CliError, Exit},
    evaluator::evaluator,
    output::{shadow::print, terminal::print_out},
    tool_policy::{is_permitted, of_machine},
};

/// Replay recorded executions with another definition. Effects get their recorded answers and are never performed.
#[derive(Debug, Args)]
pub(crate) struct Shadow {
    /// The new definition, YAML or JSON
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Executions: ids, beginnings of ids, or `last:N` for N ended executions of the workflow
    #[arg(long, value_name = "EXECUTION", num_args = 1.., default_value = "last:20")]
    against: Vec<String>,
    /// The name of the recorded workflow, if the new definition has another name
    #[arg(long, value_name = "NAME")]
    workflow: Option<String>,
    /// Exit with 1 unless every execution has the same path, inputs and outcome
    #[arg(long)]
    fail_on_difference: bool,
}

/// The executions to replay.
enum Against {
    /// This number of ended executions.
    Last(usize),
    /// This execution.
    Named(String),
}

pub(crate) fn shadow(shadow: &Shadow, context: &Context) -> Result<Exit, CliError> {
    let against = shadow.against.iter().map(|text| read(text)).collect::<Result<Vec<_>, _>>()?;
    let Some(compiled) = compiled(&shadow.file, context)? else { return Ok(Exit::BadInput) };
    let policy = of_machine(&[&compiled.plan])?;
    if !is_permitted(&compiled, &policy, &shadow.file, context)? {
        return Ok(Exit::BadInput);
    }
    let name = shadow.workflow.clone().or_else(|| compiled.plan.name.clone());
    let store = open_read_only(&context.global)?;
    let evaluator = evaluator();
    let mut run = ShadowRun::new(Source {
        store: &*store.store,
        loader: &store.loader,
        evaluator: &*evaluator,
        tenant: "",
        clock: now_ms,
        bounds: Bounds::COMMAND,
    });
    let rows = rows(&run, &store, &against, name.as_deref())?;
    let plan = policy.guarded(&Arc::new(compiled.plan), None);
    let report = run.run(&plan, &rows, true).map_err(EngineError::from)?;
    match context.global.json {
        true => print_out!("{}", compact(&report.to_value())),
        false => print(&report.to_value()),
    }
    let is_same = report.executions.iter().all(|execution| execution.grade == Grade::Same);
    Ok(if shadow.fail_on_difference && !is_same { Exit::NotSo } else { Exit::Fine })
}

fn read(text: &str) -> Result<Against, CliError> {
    let Some(count) = text.strip_prefix("last:") else { return Ok(Against::Named(text.into())) };
    match count.parse() {
        Ok(count) if (1..=SHADOW_EXECUTIONS_MAX).contains(&count) => Ok(Against::Last(count)),
        _ => {
            let message =
                format!("--against {text}: write last:1 to last:{SHADOW_EXECUTIONS_MAX}, or the id of an execution");
            Err(CliError::bad_input("bad_arguments", message))
        }
    }
}

fn rows(
    run: &ShadowRun<'_>,
    store: &ReadStore,
    against: &[Against],
    name: Option<&str>,
) -> Result<Vec<ExecutionRow>, CliError> {
    let mut rows: Vec<ExecutionRow> = Vec::new();
    for against in against {
        let found = match against {
            Against::Named(name) => vec![find(&*store.store, name)?],
            Against::Last(count) => {
                let filter = Filter { workflow: name.map(String::from), ..Filter::default() };
                run.choose(filter, *count).map_err(EngineError::from)?
            }
        };
        rows.extend(found);
    }
    let mut seen = BTreeSet::new();
    rows.retain(|row| seen.insert(row.key));
    if rows.len() > SHADOW_EXECUTIONS_MAX {
        let message = format!("{} executions are more than {SHADOW_EXECUTIONS_MAX}: name fewer", rows.len());
        return Err(CliError::bad_input("bad_arguments", message));
    }
    if rows.is_empty() {
        let of = name.map(|name| format!(" of the workflow `{name}`")).unwrap_or_default();
        let message = format!(
            "there is no ended execution{of}; `mainspring list` shows all, and --workflow selects another workflow"
        );
        return Err(CliError::bad_input("no_executions", message));
    }
    Ok(rows)
}
