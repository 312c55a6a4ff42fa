//! `mainspring validate`: checks that a definition compiles.

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use mainspring_engine::envelope;
use mainspring_kernel::{definition::Compiled, diagnostic::Diagnostic, json::compact, plan::Plan, value::Value};

use crate::{
    backend::subworkflows::{check_beside, hint_of_name},
    client::{Repeat, address::route, response::Response},
    context::{Context, block_on},
    definitions::{compiled, list, print_remote},
    error::{CliError, Exit},
    output::{
        terminal::{bold, dim, print_err, print_out, status},
        text::{counted, shown},
    },
    read_limited,
    tool_policy::{is_permitted, note_unclassified, of_machine, warn_of_flows},
};

/// Maximum number of workflows that are named because they have no file beside the definition.
const MISSING_SHOWN_MAX: usize = 10;

/// Check a definition, and the files beside it of the workflows that it starts.
#[derive(Debug, Args)]
pub(crate) struct Validate {
    /// The definition, YAML or JSON
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Treat warnings as errors: with a warning, the exit code is 10
    #[arg(long)]
    strict: bool,
}

pub(crate) fn validate(validate: &Validate, context: &Context) -> Result<Exit, CliError> {
    let Some((compiled, there)) = checked(&validate.file, context)? else { return Ok(Exit::BadInput) };
    let plan = &compiled.plan;
    let Some(of_children) = children(plan, &validate.file, context)? else { return Ok(Exit::BadInput) };
    let warnings = compiled.warnings.len() + there.len() + of_children;
    if validate.strict && warnings > 0 {
        if context.global.json {
            let own = compiled.warnings.iter().map(Diagnostic::to_value);
            print_out!("{}", compact(&envelope::of_strict(own.chain(there).collect())));
        }
        let are = if warnings == 1 { "1 warning is an error" } else { &format!("{warnings} warnings are errors") };
        print_err!("{are} with `--strict`: correct each, or list its code in `allow`");
        return Ok(Exit::BadInput);
    }
    if context.global.json {
        let mut answer = envelope::of_plan(plan, &compiled.warnings);
        if let Value::Map(answer) = &mut answer {
            let own = compiled.warnings.iter().map(Diagnostic::to_value);
            answer.insert("warnings".into(), own.chain(there).collect::<Vec<_>>().into());
        }
        print_out!("{}", compact(&answer));
    } else {
        let name = shown(plan.name.as_deref().unwrap_or("workflow"));
        // A step with `forEach` is two steps of the plan, and an agent with tools has three more inside of it.
        let is_written = |step: &u32| !plan.is_body_of_each(*step) && plan.agent_part(*step).is_none();
        let written = (0..plan.steps.len() as u32).filter(is_written).count();
        let steps = counted(written as u64, "step", "steps");
        print_out!(
            "{} {} {}",
            bold(&name),
            status("ok"),
            dim(&format!("{steps}, {}", compiled.workflow_hash.prefixed()))
        );
    }
    Ok(Exit::Fine)
}

/// Checks the files of the workflows that a definition may start. Returns the number of their warnings, or `None` if one of
/// them has errors.
fn children(plan: &Plan, file: &Path, context: &Context) -> Result<Option<usize>, CliError> {
    let children = check_beside(plan, file, context)?;
    for name in children.missing.iter().take(MISSING_SHOWN_MAX) {
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let (hint, name) = (shown(&hint_of_name(name, folder)), shown(name));
        let message = format!(
            "`{name}` is started and not checked: there is no {name}.yaml in {}; a server may have it{hint}",
            shown(&folder.display().to_string())
        );
        context.terminal.note(&message);
    }
    for invalid in &children.invalid {
        print_err!("{} is started by this workflow, and it is invalid", shown(&invalid.display().to_string()));
    }
    Ok(children.invalid.is_empty().then_some(children.warnings))
}

/// Compiles the file of a definition, and validates it at the server that a flag names. Returns the plan with the
/// additional warnings of the server, or prints the diagnostics and returns `None`. A server of the environment is
/// not asked, because a file needs none.
pub(crate) fn checked(file: &Path, context: &Context) -> Result<Option<(Compiled, Vec<Value>)>, CliError> {
    let Some(mut compiled) = compiled(file, context)? else { return Ok(None) };
    let policy = of_machine(&[&compiled.plan])?;
    if !is_permitted(&compiled, &policy, file, context)? {
        return Ok(None);
    }
    warn_of_flows(&mut compiled, &policy, file)?;
    note_unclassified(&compiled.plan, &policy);
    let client = if context.global.server.is_some() { context.global.client()? } else { None };
    let Some(client) = client else { return Ok(Some((compiled, Vec::new()))) };
    let text = read_limited::file(file).map_err(|why| CliError::bad_input("unreadable", why))?;
    let body = Value::map([("definition", Value::from(String::from_utf8_lossy(&text).as_ref()))]);
    let route = route(&["api", "definitions", "validate"], &[]);
    let answer = block_on(async { Ok(client.post(&route, &body, Repeat::May).await?) })?;
    let there = Response::new(&client, "the diagnostics of a definition", &answer);
    if there.word("status", &[("valid", true), ("invalid", false)])? {
        let (own, hash) = (compiled.workflow_hash.prefixed(), there.text("workflowHash")?);
        if own == hash {
            let known: Vec<Value> = compiled.warnings.iter().map(Diagnostic::to_value).collect();
            let besides: Vec<Value> =
                list(&answer, "warnings").into_iter().filter(|warning| !known.contains(warning)).collect();
            print_remote(&besides, Some(file));
            return Ok(Some((compiled, besides)));
        }
        let message = format!(
            "{} reads the definition otherwise: its hash is {hash} there and {own} here; is one of the two programs older?",
            client.address()
        );
        return Err(CliError::contract("other_hash", message));
    }
    print_remote(&list(&answer, "errors"), Some(file));
    if context.global.json {
        print_out!("{}", compact(&answer));
    }
    Ok(None)
}
