//! `mainspring validate`: whether a definition compiles.

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use mainspring_kernel::{
    definition::{Compiled, Syntax, read},
    diagnostic::{Diagnostic, Severity},
    json::compact,
};

use crate::{
    bounded,
    cli::Global,
    evaluating::compile,
    exit::{Exit, Refusal},
    terminal::{Terminal, bold, dim, say, status, tell},
    text::shown,
};
use mainspring_engine::envelope;

/// Check a definition.
#[derive(Debug, Args)]
pub(crate) struct Validate {
    /// The definition, YAML or JSON
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
}

/// Checks a definition.
pub(crate) fn validate(validate: &Validate, global: &Global, _: &Terminal) -> Result<Exit, Refusal> {
    let Some(compiled) = compiled(&validate.file, global)? else { return Ok(Exit::BadInput) };
    let plan = &compiled.plan;
    if global.json {
        say!("{}", compact(&envelope::of_plan(plan, &compiled.warnings)));
    } else {
        let name = shown(plan.name.as_deref().unwrap_or("workflow"));
        // A step for each item is two of the plan, and one of its author.
        let written = (0..plan.steps.len() as u32).filter(|step| !plan.is_body_of_each(*step)).count();
        let steps = if written == 1 { "1 step".to_string() } else { format!("{written} steps") };
        say!("{} {} {}", bold(&name), status("ok"), dim(&format!("{steps}, {}", compiled.workflow_hash.prefixed())));
    }
    Ok(Exit::Fine)
}

/// A definition's file, compiled. What is wrong with it is shown here, and `None` given.
pub(crate) fn compiled(file: &Path, global: &Global) -> Result<Option<Compiled>, Refusal> {
    let text = bounded::file(file).map_err(|why| Refusal::bad_input("unreadable", why))?;
    let compiled =
        read(&text, syntax_of(file)).map_err(|diagnostic| vec![diagnostic]).and_then(|document| compile(&document));
    let source = String::from_utf8_lossy(&text);
    match compiled {
        Ok(compiled) => {
            show(&compiled.warnings, &source, file);
            Ok(Some(compiled))
        }
        Err(diagnostics) => {
            show(&diagnostics, &source, file);
            if global.json {
                say!("{}", compact(&envelope::of_diagnostics(&diagnostics)));
            }
            Ok(None)
        }
    }
}

/// How a definition's file is to be read: as its name says.
pub(crate) fn syntax_of(file: &Path) -> Syntax {
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("json") => Syntax::Json,
        Some("yaml" | "yml") => Syntax::Yaml,
        _ => Syntax::Guess,
    }
}

/// Shows what was found in a definition.
pub(crate) fn show(diagnostics: &[Diagnostic], source: &str, file: &Path) {
    for diagnostic in diagnostics {
        let rendered = diagnostic.render(source);
        let rendered = rendered.replacen("--> ", &format!("--> {}:", shown(&file.display().to_string())), 1);
        let (head, rest) = rendered.split_once('\n').unwrap_or((&rendered, ""));
        let head = if diagnostic.severity == Severity::Error {
            status("failed").replace("failed", head)
        } else {
            status("waiting").replace("waiting", head)
        };
        tell!("{head}\n{rest}");
    }
}
