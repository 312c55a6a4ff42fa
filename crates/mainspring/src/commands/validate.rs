//! `mainspring validate`: checks that a definition compiles.

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use mainspring_kernel::{
    definition::{Compiled, Syntax, read},
    diagnostic::{Diagnostic, Severity},
    json::compact,
    value::Value,
};

use crate::{
    cli::Global,
    client::{Repeat, address::route, response::Response},
    error::{CliError, Exit},
    evaluator::compile,
    output::terminal::{Terminal, bold, dim, print_err, print_out, status},
    output::text::{paragraph, shown},
    read_limited,
    read_store::block_on,
};
use mainspring_engine::envelope;

/// Check a definition.
#[derive(Debug, Args)]
pub(crate) struct Validate {
    /// The definition, YAML or JSON
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
}

pub(crate) fn validate(validate: &Validate, global: &Global, _: &Terminal) -> Result<Exit, CliError> {
    let Some((compiled, there)) = checked(&validate.file, global)? else { return Ok(Exit::BadInput) };
    let plan = &compiled.plan;
    if global.json {
        let mut answer = envelope::of_plan(plan, &compiled.warnings);
        if let Value::Map(answer) = &mut answer {
            let own = compiled.warnings.iter().map(Diagnostic::to_value);
            answer.insert("warnings".into(), own.chain(there).collect::<Vec<_>>().into());
        }
        print_out!("{}", compact(&answer));
    } else {
        let name = shown(plan.name.as_deref().unwrap_or("workflow"));
        // A step with `forEach` is two steps of the plan, and counts as one.
        let written = (0..plan.steps.len() as u32).filter(|step| !plan.is_body_of_each(*step)).count();
        let steps = if written == 1 { "1 step".to_string() } else { format!("{written} steps") };
        print_out!(
            "{} {} {}",
            bold(&name),
            status("ok"),
            dim(&format!("{steps}, {}", compiled.workflow_hash.prefixed()))
        );
    }
    Ok(Exit::Fine)
}

/// Compiles the file of a definition, and validates it at the server that a flag names. Returns the plan with the
/// additional warnings of the server, or prints the diagnostics and returns `None`. A server of the environment is
/// not asked, because a file needs none.
pub(crate) fn checked(file: &Path, global: &Global) -> Result<Option<(Compiled, Vec<Value>)>, CliError> {
    let Some(compiled) = compiled(file, global)? else { return Ok(None) };
    let client = if global.server.is_some() { global.client()? } else { None };
    let Some(client) = client else { return Ok(Some((compiled, Vec::new()))) };
    let text = read_limited::file(file).map_err(|why| CliError::bad_input("unreadable", why))?;
    let body = Value::map([("definition", Value::from(String::from_utf8_lossy(&text).as_ref()))]);
    let route = route(&["api", "definitions", "validate"], &[]);
    let answer = block_on(async { Ok(client.post(&route, &body, Repeat::May).await?) })?;
    let there = Response::new(&client, "what it says of a definition", &answer);
    if there.word("status", &[("valid", true), ("invalid", false)])? {
        let (own, hash) = (compiled.workflow_hash.prefixed(), there.text("workflowHash")?);
        if own == hash {
            let known: Vec<Value> = compiled.warnings.iter().map(Diagnostic::to_value).collect();
            let besides: Vec<Value> =
                list(&answer, "warnings").into_iter().filter(|warning| !known.contains(warning)).collect();
            said(&besides, Some(file));
            return Ok(Some((compiled, besides)));
        }
        let message = format!(
            "{} reads the definition otherwise: its hash is {hash} there and {own} here; is one of the two programs older?",
            client.address()
        );
        return Err(CliError::contract("other_hash", message));
    }
    said(&list(&answer, "errors"), Some(file));
    if global.json {
        print_out!("{}", compact(&answer));
    }
    Ok(None)
}

/// A list of a response; empty if it is absent, as in a response of an older release without warnings.
pub(crate) fn list(answer: &Value, key: &str) -> Vec<Value> {
    answer.get(key).and_then(Value::as_list).unwrap_or_default().to_vec()
}

/// Prints diagnostics of a server. `file` is `None` for a definition without a local file.
pub(crate) fn said(found: &[Value], file: Option<&Path>) {
    for found in found {
        let text = |key: &str| found.get(key).and_then(Value::as_text).unwrap_or_default();
        let number = |key: &str| found.get(key).and_then(Value::as_u64).map(|number| format!("{number}:"));
        let place = [number("line"), number("column")].into_iter().flatten().collect::<String>();
        let head = format!("{}[{}]: {}", shown(text("severity")), shown(text("code")), paragraph(text("message")));
        let word = if text("severity") == Severity::Warning.name() { "waiting" } else { "failed" };
        print_err!("{}", status(word).replace(word, &head));
        let file = file.map(|file| format!("{}:{place} ", file.display())).unwrap_or_default();
        print_err!("--> {}{}", shown(&file), shown(text("path")));
        if !text("help").is_empty() {
            print_err!(" = {}", shown(text("help")));
        }
    }
}

/// Compiles the file of a definition. Prints the diagnostics, and returns `None` if there are errors.
pub(crate) fn compiled(file: &Path, global: &Global) -> Result<Option<Compiled>, CliError> {
    let text = read_limited::file(file).map_err(|why| CliError::bad_input("unreadable", why))?;
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
                print_out!("{}", compact(&envelope::of_diagnostics(&diagnostics)));
            }
            Ok(None)
        }
    }
}

/// The syntax of a definition, by its file extension.
pub(crate) fn syntax_of(file: &Path) -> Syntax {
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("json") => Syntax::Json,
        Some("yaml" | "yml") => Syntax::Yaml,
        _ => Syntax::Guess,
    }
}

/// Prints the diagnostics of a definition.
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
        print_err!("{head}\n{rest}");
    }
}
