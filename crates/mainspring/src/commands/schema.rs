//! `mainspring schema`: the JSON Schema of definitions.

use clap::{Args, ValueEnum};
use mainspring_authoring::schemas;

use crate::{
    context::Context,
    error::{CliError, Exit},
    output::terminal::print_out,
};

/// Print the JSON Schema of definitions.
///
/// Editors check and complete with it. For the YAML language server, begin a definition with
/// `# yaml-language-server: $schema=workflow.schema.json`.
#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// `workflow` covers all three notations
    #[arg(value_enum, default_value_t = Of::Workflow)]
    notation: Of,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Of {
    /// Any of the three notations
    Workflow,
    /// `steps` with types, in sequence
    Sequence,
    /// `steps` with actions, ordered by their references
    Dataflow,
    /// `nodes` and `edges`
    Graph,
}

/// Prints the schema. With `--json` too, since it is JSON.
pub(crate) fn schema(command: &Schema, _: &Context) -> Result<Exit, CliError> {
    let name = match command.notation {
        Of::Workflow => "workflow",
        Of::Sequence => "sequence",
        Of::Dataflow => "dataflow",
        Of::Graph => "graph",
    };
    let text = schemas::schema(name).map_or("", |schema| schema.text);
    print_out!("{}", text.trim_end());
    Ok(Exit::Fine)
}
