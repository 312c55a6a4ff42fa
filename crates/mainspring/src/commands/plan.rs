//! `mainspring plan`: draws the plan of a definition.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum, ValueHint};
use mainspring_kernel::{
    definition::{read, shapes},
    json,
    value::Value,
};

use super::validate::checked;
use crate::{
    context::Context,
    definitions::{folder_of, syntax_of},
    error::{CliError, Exit},
    evaluator::{InFolder, evaluator},
    output::{
        draw,
        terminal::{bold, dim, print_out},
        text::shown,
    },
    read_limited,
    tool_policy::{is_configured, judgments, of_machine},
};

/// Draw a plan.
#[derive(Debug, Args)]
pub(crate) struct Plan {
    /// The definition, YAML or JSON
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// The output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A drawing for a terminal
    Text,
    /// The compiled plan as data
    Json,
    /// A Mermaid flowchart
    Mermaid,
    /// A Graphviz graph
    Dot,
    /// An SVG picture
    Svg,
}

pub(crate) fn plan(plan: &Plan, context: &Context) -> Result<Exit, CliError> {
    let Some((compiled, _)) = checked(&plan.file, context)? else { return Ok(Exit::BadInput) };
    let calls = judgments(&compiled.plan, &of_machine(&[&compiled.plan])?);
    let format = if context.global.json { Format::Json } else { plan.format };
    let drawing = match format {
        Format::Text => draw::terminal(
            &compiled.plan,
            &draw::Style { color: context.terminal.color, width: context.terminal.width, ascii: false },
        ),
        Format::Json => {
            let value = with_calls(compiled.plan.to_value(), &calls);
            json::pretty(&with_shapes(value, &plan.file)?)
        }
        Format::Mermaid => draw::mermaid(&compiled.plan),
        Format::Dot => draw::dot(&compiled.plan),
        Format::Svg => draw::svg(&compiled.plan),
    };
    print_out!("{}", drawing.trim_end());
    let has_labels = calls.iter().any(|call| call.get("labels").is_some());
    if format == Format::Text && (has_labels || is_configured()?) {
        print_calls(&calls);
    }
    Ok(Exit::Fine)
}

/// Prints the class and the verdict of each call.
fn print_calls(calls: &[Value]) {
    print_out!("");
    for call in calls {
        let text = |key: &str| shown(call.get(key).and_then(Value::as_text).unwrap_or_default());
        let reason = dim(&format!("{}, {}", text("class"), text("source")));
        print_out!("{} {}  {reason}", text("verdict"), bold(&text("step")));
        for (label, source) in call.get("labels").and_then(Value::as_map).into_iter().flatten() {
            let source = shown(source.as_text().unwrap_or_default());
            print_out!("      {}", dim(&format!("{label}: {source}")));
        }
    }
}

fn with_calls(mut plan: Value, calls: &[Value]) -> Value {
    if let Value::Map(plan) = &mut plan {
        plan.insert("calls".into(), calls.to_vec().into());
    }
    plan
}

/// Adds the known shapes as JSON Schemas, by id: of the steps' outputs, of the items of loops, and of the execution's output.
fn with_shapes(mut value: Value, file: &Path) -> Result<Value, CliError> {
    let text = read_limited::file(file).map_err(|why| CliError::bad_input("unreadable", why))?;
    let document = read(&text, syntax_of(file)).map_err(|why| CliError::bad_input("unreadable", why.message))?;
    let known = shapes(&document, &InFolder::new(&*evaluator(), folder_of(file)));
    if let Value::Map(value) = &mut value {
        value.insert("shapes".into(), known.steps.into());
        value.insert("itemShapes".into(), known.items.into());
        value.insert("outputShape".into(), known.output);
    }
    Ok(value)
}
