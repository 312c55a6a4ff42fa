//! Compiles definition files, and prints their diagnostics.

use std::{collections::BTreeMap, path::Path};

use mainspring_engine::envelope;
use mainspring_kernel::{
    definition::{Compiled, Syntax, read},
    diagnostic::{Diagnostic, Severity},
    json::compact,
    value::Value,
};

use crate::{
    context::Context,
    error::CliError,
    evaluator::compile_in,
    output::{
        terminal::{print_err, print_out, status},
        text::{paragraph, shown},
    },
    read_limited,
};

/// A list of a response; empty if it is absent, as in a response of an older release without warnings.
pub(crate) fn list(answer: &Value, key: &str) -> Vec<Value> {
    answer.get(key).and_then(Value::as_list).unwrap_or_default().to_vec()
}

/// Prints diagnostics of a server. `file` is `None` for a definition without a local file.
pub(crate) fn print_remote(found: &[Value], file: Option<&Path>) {
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
pub(crate) fn compiled(file: &Path, context: &Context) -> Result<Option<Compiled>, CliError> {
    let text = read_limited::file(file).map_err(|why| CliError::bad_input("unreadable", why))?;
    let compiled = read(&text, syntax_of(file))
        .map_err(|diagnostic| vec![diagnostic])
        .and_then(|document| compile_in(&document, folder_of(file)));
    let source = String::from_utf8_lossy(&text);
    match compiled {
        Ok(compiled) => {
            show(&compiled.warnings, &source, file);
            Ok(Some(compiled))
        }
        Err(diagnostics) => {
            show(&diagnostics, &source, file);
            if context.global.json {
                print_out!("{}", compact(&envelope::of_diagnostics(&diagnostics)));
            }
            Ok(None)
        }
    }
}

/// The folder of a definition, in which the workflows are that it may start.
pub(crate) fn folder_of(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new("."))
}

/// The syntax of a definition, by its file extension.
pub(crate) fn syntax_of(file: &Path) -> Syntax {
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("json") => Syntax::Json,
        Some("yaml" | "yml") => Syntax::Yaml,
        _ => Syntax::Guess,
    }
}

/// Maximum number of further places that are listed for a diagnostic.
const PLACES_MAX: usize = 5;

/// Prints the diagnostics of a definition. Equal ones are shown once, with the lines of the others.
pub(crate) fn show(diagnostics: &[Diagnostic], source: &str, file: &Path) {
    for (diagnostic, others) in grouped(diagnostics) {
        let rendered = diagnostic.render(source);
        let rendered = rendered.replacen("--> ", &format!("--> {}:", shown(&file.display().to_string())), 1);
        let (head, rest) = rendered.split_once('\n').unwrap_or((&rendered, ""));
        let head = if diagnostic.severity == Severity::Error {
            status("failed").replace("failed", head)
        } else {
            status("waiting").replace("waiting", head)
        };
        let also = match others.as_slice() {
            [] => String::new(),
            others => format!(" = the same {}\n", places(others)),
        };
        print_err!("{head}\n{rest}{also}");
    }
}

/// Groups diagnostics with the same code, message and help, in the order of the first of each group.
fn grouped(diagnostics: &[Diagnostic]) -> Vec<(&Diagnostic, Vec<&Diagnostic>)> {
    let mut groups: Vec<(&Diagnostic, Vec<&Diagnostic>)> = Vec::new();
    let mut seen: BTreeMap<(&str, &str, &str), usize> = BTreeMap::new();
    for found in diagnostics {
        let key = (found.code, found.message.as_str(), found.help.as_str());
        match seen.get(&key) {
            Some(group) => groups[*group].1.push(found),
            None => {
                seen.insert(key, groups.len());
                groups.push((found, Vec::new()));
            }
        }
    }
    groups
}

/// `at 3:5, 7:5 and 12 more places`.
fn places(others: &[&Diagnostic]) -> String {
    let place = |found: &&Diagnostic| found.place.map_or_else(|| found.path.to_string(), |place| place.to_string());
    let listed: Vec<String> = others.iter().take(PLACES_MAX).map(place).collect();
    let more = others.len().saturating_sub(PLACES_MAX);
    let more = if more > 0 { format!(" and {more} more places") } else { String::new() };
    format!("at {}{more}", listed.join(", "))
}
