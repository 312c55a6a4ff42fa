//! `mainspring init`: writes a template with its scenario.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use clap::{Args, ValueHint};
use mainspring_authoring::templates::{Template, template, templates};
use mainspring_kernel::{definition::nearest, json::compact, value::Value};

use crate::{
    context::Context,
    error::{CliError, Exit},
    output::{
        terminal::{dim, print_out},
        text::shown,
    },
    server_settings::object_settings,
};

/// Write a template of a workflow with its test.
///
/// Without a template, lists them. Files that exist are kept unless --force is given.
#[derive(Debug, Args)]
pub(crate) struct Init {
    /// The template: script, approval, fan-out, dataflow, graph or agent
    template: Option<String>,
    /// The folder [default: the current one]
    #[arg(value_hint = ValueHint::DirPath)]
    folder: Option<PathBuf>,
    /// Replace files that exist
    #[arg(long)]
    force: bool,
}

pub(crate) fn init(init: &Init, context: &Context) -> Result<Exit, CliError> {
    let Some(name) = &init.template else {
        list(context);
        return Ok(Exit::Fine);
    };
    let Some(template) = template(name) else {
        let help = match nearest(name, templates().iter().map(|template| template.name)) {
            Some(near) => format!("try `mainspring init {near}`"),
            None => "`mainspring init` lists them".into(),
        };
        return Err(CliError::bad_input("unknown_template", format!("there is no template {name:?}; {help}")));
    };
    let folder = init.folder.clone().unwrap_or_else(|| PathBuf::from("."));
    let written = write(&template, &folder, init.force)?;
    if context.global.json {
        let files: Vec<Value> = written.iter().map(|path| path.display().to_string().into()).collect();
        let (template, files) = (template.name.into(), files.into());
        print_out!("{}", compact(&Value::map([("ok", true.into()), ("template", template), ("files", files)])));
        return Ok(Exit::Fine);
    }
    for path in &written {
        print_out!("wrote {}", shown(&path.display().to_string()));
    }
    let [definition, scenario] = written.map(|path| shown(&path.display().to_string()));
    print_out!("{}", dim(&next_steps(&template, &definition, &scenario)));
    Ok(Exit::Fine)
}

/// The commands to type next. An agent cannot run before the settings have a model.
fn next_steps(template: &Template, definition: &str, scenario: &str) -> String {
    let test = format!("next: mainspring test {scenario}");
    let settings = object_settings().ok();
    let has_model = settings.as_ref().is_some_and(|settings| settings.models != Value::Null);
    if has_model || !template.definition.contains("type: agent") {
        return format!("{test}; mainspring run {definition}");
    }
    let file = settings.map_or_else(|| "the settings".into(), |settings| shown(&settings.path.display().to_string()));
    format!(
        "{test} (it needs no model)\nthen: add a model to `models` in {file} (mainspring explain settings), check it with \
         mainspring models try NAME, and mainspring run {definition}"
    )
}

fn list(context: &Context) {
    let templates = templates();
    if context.global.json {
        let entry =
            |template: &Template| Value::map([("name", template.name.into()), ("summary", template.summary.into())]);
        let list: Vec<Value> = templates.iter().map(entry).collect();
        print_out!("{}", compact(&Value::map([("ok", true.into()), ("templates", list.into())])));
        return;
    }
    for template in &templates {
        print_out!("{:10} {}", template.name, template.summary);
    }
    print_out!("{}", dim("`mainspring init NAME [DIR]` writes one, with its test."));
}

/// Writes the files of a template. Nothing is written if one exists and is not to be replaced.
fn write(template: &Template, folder: &Path, force: bool) -> Result<[PathBuf; 2], CliError> {
    let files = template.files().map(|(name, text)| (folder.join(name), text));
    if let Some((existing, _)) = files.iter().find(|(path, _)| !force && path.symlink_metadata().is_ok()) {
        return Err(exists(existing));
    }
    fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
    for (path, text) in &files {
        write_file(path, text, force)?;
    }
    Ok(files.map(|(path, _)| path))
}

/// Writes a file. Without `force` the file must not exist, also if it appeared just now.
pub(crate) fn write_file(path: &Path, text: &str, force: bool) -> Result<(), CliError> {
    let mut options = OpenOptions::new();
    options.write(true).create(force).truncate(force).create_new(!force);
    let written = options.open(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => exists(path),
        _ => unwritable(path, &error),
    })
}

fn exists(path: &Path) -> CliError {
    // A shell that redirects the output creates the file before the command begins.
    let is_empty = std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() == 0);
    let hint = if is_empty {
        "; it is empty: the command writes the file itself, so do not redirect its output there"
    } else {
        ""
    };
    let message =
        format!("{} exists and was not changed; name another folder, or replace it with --force{hint}", path.display());
    CliError::bad_input("file_exists", message)
}

fn unwritable(path: &Path, error: &io::Error) -> CliError {
    CliError::bad_input("unwritable", format!("{}: {error}", path.display()))
}
