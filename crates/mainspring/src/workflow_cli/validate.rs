//! `workflow validate`: compiles a definition, and prints its hash and the order of its steps.

use std::io::Write;

use super::{Answer, arguments::Validate, payload};
use crate::{
    error::{CliError, Exit},
    evaluator::compile,
    read_limited,
};
use mainspring_engine::envelope;
use mainspring_kernel::diagnostic::Diagnostic;

pub(super) fn validate(validate: &Validate) -> Result<Answer, CliError> {
    let text = match &validate.workflow_path {
        Some(path) => read_limited::file(path),
        None => read_limited::stdin(),
    };
    let text = text.map_err(|why| CliError::bad_input("unreadable", why))?;
    let compiled =
        payload::definition(&text).map_err(|diagnostic| vec![diagnostic]).and_then(|document| compile(&document));
    Ok(match compiled {
        Ok(compiled) if validate.strict && !compiled.warnings.is_empty() => {
            let source = String::from_utf8_lossy(&text);
            for warning in &compiled.warnings {
                let _ = write!(std::io::stderr().lock(), "{}", warning.render(&source));
            }
            (Exit::BadInput, envelope::of_strict(compiled.warnings.iter().map(Diagnostic::to_value).collect()))
        }
        Ok(compiled) => (Exit::Fine, envelope::of_plan(&compiled.plan, &compiled.warnings)),
        Err(diagnostics) => {
            let source = String::from_utf8_lossy(&text);
            for diagnostic in &diagnostics {
                // A closed pipe does not change the result.
                let _ = write!(std::io::stderr().lock(), "{}", diagnostic.render(&source));
            }
            (Exit::BadInput, envelope::of_diagnostics(&diagnostics))
        }
    })
}
