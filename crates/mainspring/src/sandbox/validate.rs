//! `workflow validate`: whether a definition compiles, its hash, and the order of its steps.

use std::io::Write;

use mainspring_kernel::{
    definition::compile,
    diagnostic::{Diagnostic, Severity},
    plan::Plan,
    value::Value,
};

use super::{Answer, arguments::Validate, payload};
use crate::{
    bounded,
    exit::{Exit, Refusal},
};

/// Checks a definition.
pub(super) fn validate(validate: &Validate) -> Result<Answer, Refusal> {
    let text = match &validate.workflow_path {
        Some(path) => bounded::file(path),
        None => bounded::stdin(),
    };
    let text = text.map_err(|why| Refusal::bad_input("unreadable", why))?;
    let compiled =
        payload::definition(&text).map_err(|diagnostic| vec![diagnostic]).and_then(|document| compile(&document));
    Ok(match compiled {
        Ok(compiled) => (Exit::Fine, valid(&compiled.plan, &compiled.warnings)),
        Err(diagnostics) => {
            let source = String::from_utf8_lossy(&text);
            for diagnostic in &diagnostics {
                // A reader that has gone does not change what is answered.
                let _ = write!(std::io::stderr().lock(), "{}", diagnostic.render(&source));
            }
            (Exit::BadInput, invalid(&diagnostics))
        }
    })
}

fn valid(plan: &Plan, warnings: &[Diagnostic]) -> Value {
    let order: Vec<Value> = plan.steps.iter().map(|step| step.id.as_str().into()).collect();
    Value::map([
        ("ok", true.into()),
        ("status", "valid".into()),
        ("workflowHash", plan.workflow_hash.prefixed().into()),
        ("errors", Vec::new().into()),
        ("warnings", warnings.iter().map(Diagnostic::to_value).collect::<Vec<_>>().into()),
        ("stepOrder", order.into()),
    ])
}

/// The envelope of a definition that does not compile.
fn invalid(diagnostics: &[Diagnostic]) -> Value {
    let of = |severity| -> Vec<Value> {
        diagnostics.iter().filter(|found| found.severity == severity).map(Diagnostic::to_value).collect()
    };
    Value::map([
        ("ok", false.into()),
        ("status", "invalid".into()),
        ("workflowHash", Value::Null),
        ("errors", of(Severity::Error).into()),
        ("warnings", of(Severity::Warning).into()),
        ("stepOrder", Value::Null),
    ])
}
