//! `mainspring plan`: draws the plan of a definition.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use super::validate::checked;
use crate::{
    context::Context,
    error::{CliError, Exit},
    output::draw,
    output::terminal::print_out,
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
}

pub(crate) fn plan(plan: &Plan, context: &Context) -> Result<Exit, CliError> {
    let Some((compiled, _)) = checked(&plan.file, context)? else { return Ok(Exit::BadInput) };
    let format = if context.global.json { Format::Json } else { plan.format };
    let drawing = match format {
        Format::Text => draw::terminal(
            &compiled.plan,
            &draw::Style { color: context.terminal.color, width: context.terminal.width, ascii: false },
        ),
        Format::Json => mainspring_kernel::json::pretty(&compiled.plan.to_value()),
        Format::Mermaid => draw::mermaid(&compiled.plan),
        Format::Dot => draw::dot(&compiled.plan),
    };
    print_out!("{}", drawing.trim_end());
    Ok(Exit::Fine)
}
