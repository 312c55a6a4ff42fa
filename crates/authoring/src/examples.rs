//! The examples of the repository, embedded with their scenarios.

use include_dir::{Dir, include_dir};

static FOLDER: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../../examples");

/// A workflow of `examples/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// The name of the file without its extension.
    pub name: &'static str,
    /// The first sentence of the comment at its top, otherwise its description.
    pub summary: String,
    /// The definition as YAML.
    pub definition: &'static str,
    /// Its scenario file as YAML.
    pub scenario: &'static str,
}

/// Returns all examples, by name.
pub fn examples() -> Vec<Example> {
    let mut found: Vec<Example> = FOLDER.files().filter_map(example).collect();
    found.sort_by_key(|example| example.name);
    found
}

fn example(file: &'static include_dir::File<'static>) -> Option<Example> {
    let name = file.path().file_name()?.to_str()?.strip_suffix(".yaml")?;
    if name.ends_with(".scenario") {
        return None;
    }
    let definition = file.contents_utf8()?;
    let scenario = FOLDER.get_file(format!("{name}.scenario.yaml"))?.contents_utf8()?;
    Some(Example { name, summary: summary(definition), definition, scenario })
}

fn summary(definition: &str) -> String {
    let comment: Vec<&str> = definition.lines().map_while(|line| line.strip_prefix('#')).map(str::trim).collect();
    let described = definition.lines().find_map(|line| line.strip_prefix("description: "));
    let text = if comment.is_empty() { described.unwrap_or_default().to_string() } else { comment.join(" ") };
    match text.split_once(". ") {
        Some((first, _)) => format!("{first}."),
        None => text.trim().to_string(),
    }
}
