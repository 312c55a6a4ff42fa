//! Templates of workflows with their scenarios, for `mainspring init`.

use include_dir::{Dir, include_dir};

static FOLDER: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/templates");

/// A workflow with its test, both with comments for a first reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Template {
    /// The beginning of the names of both files.
    pub name: &'static str,
    /// The first line of its comment.
    pub summary: &'static str,
    /// The definition as YAML.
    pub definition: &'static str,
    /// The scenario file as YAML.
    pub scenario: &'static str,
}

impl Template {
    /// Returns its files: name and content.
    pub fn files(&self) -> [(String, &'static str); 2] {
        [(format!("{}.yaml", self.name), self.definition), (format!("{}.scenario.yaml", self.name), self.scenario)]
    }
}

/// Returns all templates, by name.
pub fn templates() -> Vec<Template> {
    let mut found: Vec<Template> = FOLDER.files().filter_map(template_of).collect();
    found.sort_by_key(|template| template.name);
    found
}

/// Returns a template by its name.
pub fn template(name: &str) -> Option<Template> {
    templates().into_iter().find(|template| template.name == name)
}

fn template_of(file: &'static include_dir::File<'static>) -> Option<Template> {
    let name = file.path().file_name()?.to_str()?.strip_suffix(".yaml")?;
    let definition = file.contents_utf8()?;
    let scenario = FOLDER.get_file(format!("{name}.scenario.yaml"))?.contents_utf8()?;
    let summary = definition.lines().next()?.strip_prefix("# ")?;
    Some(Template { name, summary, definition, scenario })
}
