//! `mainspring convert`: converts a definition to another notation.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum, ValueHint};
use mainspring_kernel::{
    definition::{
        self, Notation,
        convert::{Converted, text},
        read,
    },
    diagnostic::Diagnostic,
    json::compact,
};

use crate::{
    context::Context,
    definitions::{compiled, show, syntax_of},
    error::{CliError, Exit},
    output::terminal::{dim, print_err, print_out},
    output::text::shown,
    read_limited,
};
use mainspring_engine::envelope;

/// Convert a definition to another notation.
///
/// The result compiles to an equivalent plan: defaults that differ between the notations (order, retries, output) are
/// written explicitly. Constructs that the other notation lacks are errors, and all of them are reported. Comments and
/// the order of keys are lost. Steps get an id where the other notation requires one.
#[derive(Debug, Args)]
pub(crate) struct Convert {
    /// The definition, YAML or JSON
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// The notation
    #[arg(long, value_enum)]
    to: To,
    /// The output format [default: by the extension of the output, or that of the definition]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// The output file, instead of standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum To {
    /// `steps` with types, in sequence
    Sequence,
    /// `steps` with actions, ordered by their references
    Dataflow,
    /// `nodes` and `edges`
    Graph,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Yaml,
    Json,
}

pub(crate) fn convert(convert: &Convert, context: &Context) -> Result<Exit, CliError> {
    // The conversion itself checks no functions and schemas, so the definition is compiled first.
    if compiled(&convert.file, context)?.is_none() {
        return Ok(Exit::BadInput);
    }
    let text = read_limited::file(&convert.file).map_err(|why| CliError::bad_input("unreadable", why))?;
    let to = match convert.to {
        To::Sequence => Notation::Sequence,
        To::Dataflow => Notation::Dataflow,
        To::Graph => Notation::Graph,
    };
    let document = read(&text, syntax_of(&convert.file)).map_err(|found| vec![found]);
    match document.and_then(|document| definition::convert::convert(&document, to)) {
        Ok(converted) => write(convert, context, &text, &converted),
        Err(found) => Ok(refused(&found, &text, &convert.file, context)),
    }
}

fn refused(found: &[Diagnostic], text: &[u8], file: &Path, context: &Context) -> Exit {
    show(found, &String::from_utf8_lossy(text), file);
    if context.global.json {
        print_out!("{}", compact(&envelope::of_diagnostics(found)));
    }
    Exit::BadInput
}

fn write(convert: &Convert, context: &Context, source: &[u8], converted: &Converted) -> Result<Exit, CliError> {
    let written = match format(convert, context, source) {
        Format::Yaml => text::yaml(&converted.definition),
        Format::Json => text::json(&converted.definition),
    };
    for (old, new) in &converted.renamed {
        print_err!("{}", dim(&format!("{} is called {} now", shown(old), shown(new))));
    }
    let Some(output) = &convert.output else {
        print_out!("{}", written.trim_end());
        return Ok(Exit::Fine);
    };
    if is_same_file(output, &convert.file) {
        let message = format!("{} is the definition itself, whose comments would be lost", output.display());
        return Err(CliError::bad_input("same_file", format!("{message}; write it to another file")));
    }
    fs::write(output, written)
        .map_err(|error| CliError::bad_input("unwritable", format!("{}: {error}", output.display())))?;
    Ok(Exit::Fine)
}

fn format(convert: &Convert, context: &Context, source: &[u8]) -> Format {
    let of_name = |path: &Path| match path.extension()?.to_str()? {
        "json" => Some(Format::Json),
        "yaml" | "yml" => Some(Format::Yaml),
        _ => None,
    };
    let is_json = source.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    let as_source = if is_json { Format::Json } else { Format::Yaml };
    let asked = convert.format.or(context.global.json.then_some(Format::Json));
    let named = || convert.output.as_deref().and_then(of_name).or_else(|| of_name(&convert.file));
    asked.or_else(named).unwrap_or(as_source)
}

fn is_same_file(a: &Path, b: &Path) -> bool {
    matches!((fs::canonicalize(a), fs::canonicalize(b)), (Ok(a), Ok(b)) if a == b)
}
