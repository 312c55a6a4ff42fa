//! Saves definition files as workflows of a server.

use std::path::Path;

use mainspring_kernel::{
    definition::read,
    diagnostic::UNKNOWN_WORKFLOW,
    value::{Map, Value},
};

use crate::{
    client::{Client, Repeat, address::route},
    context::Context,
    definitions::{compiled, list, print_remote, syntax_of},
    error::CliError,
    paths::workflows_in,
    read_limited,
};

/// True for the warning about a workflow that the server does not have yet, and that has a file in a folder.
fn is_about_file_of(warning: &Value, folder: &Path) -> bool {
    let text = |key: &str| warning.get(key).and_then(Value::as_text).unwrap_or_default();
    let names = |name: &String| text("message").contains(&format!("\"{name}\""));
    text("code") == UNKNOWN_WORKFLOW && workflows_in(folder).iter().any(names)
}

/// Saves the definition of a file under a slug. With `of_folder`, all files of this folder are saved one after another. Returns the saved workflow, or `None` if the definition is invalid.
/// Diagnostics and the server's warnings are printed here.
pub(crate) async fn saved(
    file: &Path,
    slug: Option<&str>,
    client: &Client,
    context: &Context,
    of_folder: Option<&Path>,
) -> Result<Option<Value>, CliError> {
    let text = read_limited::file(file).map_err(|why| CliError::bad_input("unreadable", why))?;
    let Ok(document) = read(&text, syntax_of(file)) else {
        // The compiler reports the syntax error with its position.
        return compiled(file, context).map(|_| None);
    };
    let slug = match slug {
        Some(slug) => slug.to_string(),
        None => stem(file)?,
    };
    let mut body = Map::from([("slug".to_string(), Value::from(slug.as_str()))]);
    // The name and the description of the definition, if it has them. A save replaces the whole workflow, so it
    // clears absent fields.
    let own = |key: &str| document.value.get(key).filter(|text| text.as_text().is_some()).cloned();
    body.extend(["name", "description"].into_iter().filter_map(|key| Some((key.to_string(), own(key)?))));
    body.insert("data".into(), document.value);
    let route = route(&["api", "workflows", "sync"], &[]);
    // A repeated save of the same definition changes nothing.
    match client.post(&route, &Value::Map(body), Repeat::May).await {
        Ok(saved) => {
            let mut warnings = list(&saved, "warnings");
            warnings.retain(|warning| !of_folder.is_some_and(|folder| is_about_file_of(warning, folder)));
            print_remote(&warnings, Some(file));
            Ok(Some(saved))
        }
        Err(error) if error.is("INVALID_DEFINITION") => {
            // Local diagnostics have lines and columns. A server of another version may report other ones.
            if compiled(file, context)?.is_some() {
                print_remote(&list(&error.cli_error.failure.details, "diagnostics"), Some(file));
                return Err(error.into());
            }
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// The file name without extension, which is the default slug.
fn stem(file: &Path) -> Result<String, CliError> {
    let stem = file.file_stem().and_then(|stem| stem.to_str());
    let refused = || CliError::bad_input("no_slug", format!("{} has no name: set one with --slug", file.display()));
    stem.map(ToString::to_string).ok_or_else(refused)
}
