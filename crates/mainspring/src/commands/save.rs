//! `mainspring save`: saves a definition as a workflow of a server.

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use mainspring_kernel::{
    definition::read,
    json::compact,
    value::{Map, Value},
};

use super::validate::{compiled, list, said, syntax_of};
use crate::{
    cli::Global,
    client::{Client, Repeat, address::route, response::Response},
    error::{CliError, Exit},
    output::terminal::{Terminal, bold, dim, print_out},
    output::text::shown,
    read_limited,
    read_store::block_on,
};

/// Save a workflow on a server.
#[derive(Debug, Args)]
pub(crate) struct Save {
    /// The definition, YAML or JSON
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// The slug; an own workflow with it gets a new version [default: the file name]
    #[arg(long, value_name = "SLUG")]
    slug: Option<String>,
}

pub(crate) fn save(save: &Save, global: &Global, _: &Terminal) -> Result<Exit, CliError> {
    let client = global.client_of("save")?;
    let body = block_on(saved(&save.file, save.slug.as_deref(), &client, global))?;
    let Some(body) = body else { return Ok(Exit::BadInput) };
    let answer = Response::new(&client, "a workflow", &body);
    let (slug, version, hash) = (answer.maybe_text("slug")?, answer.text("version")?, answer.text("workflowHash")?);
    let slug = slug.map_or_else(|| answer.text("id"), Ok)?;
    if global.json {
        let keys = ["id", "slug", "name", "version", "workflowHash", "enabled", "updatedAt", "warnings"];
        print_out!("{}", compact(&Value::map(keys.map(|key| (key, answer.any(key))))));
    } else {
        print_out!("{} {} {}", bold(&shown(&slug)), shown(&version), dim(&shown(&hash)));
        print_out!("{}", dim(&shown(&format!("mainspring run {slug}"))));
    }
    Ok(Exit::Fine)
}

/// Saves the definition of a file under a slug. Returns the saved workflow, or `None` if the definition is invalid.
/// Diagnostics and the server's warnings are printed here.
pub(crate) async fn saved(
    file: &Path,
    slug: Option<&str>,
    client: &Client,
    global: &Global,
) -> Result<Option<Value>, CliError> {
    let text = read_limited::file(file).map_err(|why| CliError::bad_input("unreadable", why))?;
    let Ok(document) = read(&text, syntax_of(file)) else {
        // The compiler reports the syntax error with its position.
        return compiled(file, global).map(|_| None);
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
            said(&list(&saved, "warnings"), Some(file));
            Ok(Some(saved))
        }
        Err(error) if error.is("INVALID_DEFINITION") => {
            // Local diagnostics have lines and columns. A server of another version may report other ones.
            if compiled(file, global)?.is_some() {
                said(&list(&error.cli_error.failure.details, "diagnostics"), Some(file));
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
    let refused =
        || CliError::bad_input("no_slug", format!("{} has no name to run it by: say one with --slug", file.display()));
    stem.map(ToString::to_string).ok_or_else(refused)
}
