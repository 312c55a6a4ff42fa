//! `mainspring save`: saves a definition as a workflow of a server.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use mainspring_kernel::{json::compact, value::Value};

use crate::{
    backend::server_save::saved,
    client::response::Response,
    context::{Context, block_on},
    error::{CliError, Exit},
    output::{
        terminal::{bold, dim, print_out},
        text::shown,
    },
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

pub(crate) fn save(save: &Save, context: &Context) -> Result<Exit, CliError> {
    let client = context.global.client_of("save")?;
    let body = block_on(saved(&save.file, save.slug.as_deref(), &client, context, None))?;
    let Some(body) = body else { return Ok(Exit::BadInput) };
    let answer = Response::new(&client, "a workflow", &body);
    let (slug, version, hash) = (answer.maybe_text("slug")?, answer.text("version")?, answer.text("workflowHash")?);
    let slug = slug.map_or_else(|| answer.text("id"), Ok)?;
    if context.global.json {
        let keys = ["id", "slug", "name", "version", "workflowHash", "enabled", "updatedAt", "warnings"];
        print_out!("{}", compact(&Value::map(keys.map(|key| (key, answer.any(key))))));
    } else {
        print_out!("{} {} {}", bold(&shown(&slug)), shown(&version), dim(&shown(&hash)));
        print_out!("{}", dim(&shown(&format!("mainspring run {slug}"))));
    }
    Ok(Exit::Fine)
}
