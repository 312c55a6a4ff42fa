//! The tools of a server, as it lists them.

use std::collections::BTreeSet;

use mainspring_kernel::{
    hash::Hash,
    json,
    plan::EffectClass,
    value::{Map, Value},
};

use crate::{
    error::quoted,
    json::from_json,
    limits::{TOOL_NAME_BYTES_MAX, TOOLS_BYTES_MAX, TOOLS_MAX},
};

/// One tool. All texts are the server's and therefore untrusted.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// The name at the server.
    pub name: String,
    /// A title for people, if the server gives one.
    pub title: Option<String>,
    /// The purpose of the tool, written for models.
    pub description: Option<String>,
    /// JSON Schema of the arguments.
    pub input_schema: Value,
    /// JSON Schema of the structured result.
    pub output_schema: Option<Value>,
    /// The server's own claims about effects.
    pub hints: Hints,
    /// Hash of all of the above, which differs once the server changes the tool.
    pub digest: Hash,
}

/// The claims of a server about the effects of a tool. They are no basis for a decision unless the server is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hints {
    /// The tool changes nothing.
    pub read_only: Option<bool>,
    /// The tool may delete or overwrite.
    pub destructive: Option<bool>,
    /// A repeated call with the same arguments has no further effect.
    pub idempotent: Option<bool>,
    /// The tool reaches systems outside of the server.
    pub open_world: Option<bool>,
}

impl Hints {
    fn entries(self) -> [(&'static str, Option<bool>); 4] {
        [
            ("readOnlyHint", self.read_only),
            ("destructiveHint", self.destructive),
            ("idempotentHint", self.idempotent),
            ("openWorldHint", self.open_world),
        ]
    }
}

impl Tool {
    /// Reads a tool of a list. The error is a sentence about the tool.
    pub(crate) fn read(tool: rmcp::model::Tool) -> Result<Self, String> {
        if tool.name.is_empty() || tool.name.len() > TOOL_NAME_BYTES_MAX || tool.name.contains(char::is_control) {
            return Err(format!("it lists a tool with the name `{}`", quoted(&tool.name)));
        }
        let schema = |schema: &serde_json::Map<String, serde_json::Value>| {
            from_json(&serde_json::Value::Object(schema.clone()))
                .map_err(|error| format!("the schema of its tool `{}`: {error}", tool.name))
        };
        let hints = tool.annotations.as_ref().map(|hints| Hints {
            read_only: hints.read_only_hint,
            destructive: hints.destructive_hint,
            idempotent: hints.idempotent_hint,
            open_world: hints.open_world_hint,
        });
        let mut read = Self {
            name: tool.name.to_string(),
            title: tool.title.clone(),
            description: tool.description.as_ref().map(ToString::to_string),
            input_schema: schema(&tool.input_schema)?,
            output_schema: tool.output_schema.as_deref().map(schema).transpose()?,
            hints: hints.unwrap_or_default(),
            digest: Hash::of(b""),
        };
        read.digest = Hash::of(json::canonical(&read.to_value()).as_bytes());
        Ok(read)
    }

    /// Returns the side-effect class that the annotations give the tool. Absent hints have the defaults of the protocol:
    /// a tool changes data, and may delete it.
    pub fn class(&self) -> EffectClass {
        match (self.hints.read_only, self.hints.destructive) {
            (Some(true), _) => EffectClass::Read,
            (_, Some(false)) => EffectClass::Write,
            _ => EffectClass::Destructive,
        }
    }

    /// Returns `{name, title, description, inputSchema, outputSchema, annotations}`, without what the server leaves out.
    pub fn to_value(&self) -> Value {
        let mut map = Map::from([
            ("name".to_owned(), Value::text(&self.name)),
            ("inputSchema".to_owned(), self.input_schema.clone()),
        ]);
        let texts = [("title", &self.title), ("description", &self.description)];
        map.extend(texts.iter().filter_map(|(key, text)| Some(((*key).to_owned(), Value::text(text.as_ref()?)))));
        map.extend(self.output_schema.iter().map(|schema| ("outputSchema".to_owned(), schema.clone())));
        let hints: Map = self
            .hints
            .entries()
            .into_iter()
            .filter_map(|(key, hint)| Some((key.to_owned(), Value::Bool(hint?))))
            .collect();
        if !hints.is_empty() {
            map.insert("annotations".to_owned(), Value::Map(hints));
        }
        Value::Map(map)
    }
}

/// The tools of one server, sorted by name.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolList(Vec<Tool>);

/// Reads the pages of a list, and ends with the page that exceeds a bound.
#[derive(Default)]
pub(crate) struct ToolReader {
    tools: Vec<Tool>,
    names: BTreeSet<String>,
    bytes: usize,
}

impl ToolReader {
    /// Reads a page. The error is a sentence about the server.
    pub(crate) fn add(&mut self, page: Vec<rmcp::model::Tool>) -> Result<(), String> {
        for tool in page {
            let tool = Tool::read(tool)?;
            self.bytes += json::canonical(&tool.to_value()).len();
            if self.bytes > TOOLS_BYTES_MAX {
                return Err(format!("its tools are described in more than {} MiB", TOOLS_BYTES_MAX / 1024 / 1024));
            }
            if !self.names.insert(tool.name.clone()) {
                return Err(format!("it lists the tool `{}` twice", quoted(&tool.name)));
            }
            self.tools.push(tool);
            if self.tools.len() > TOOLS_MAX {
                return Err(format!("it lists more than {TOOLS_MAX} tools"));
            }
        }
        Ok(())
    }

    /// The bytes of the tools so far, as canonical JSON.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn len(&self) -> usize {
        self.tools.len()
    }

    pub(crate) fn finish(mut self) -> ToolList {
        self.tools.sort_by(|one, other| one.name.cmp(&other.name));
        ToolList(self.tools)
    }
}

impl ToolList {
    /// Returns the tools, sorted by name.
    pub fn tools(&self) -> &[Tool] {
        &self.0
    }

    /// Returns a tool by name.
    pub fn get(&self, name: &str) -> Option<&Tool> {
        let found = self.0.binary_search_by(|tool| tool.name.as_str().cmp(name)).ok()?;
        self.0.get(found)
    }

    /// Returns the hash of the list.
    pub fn digest(&self) -> Hash {
        let digests: Vec<_> = self.0.iter().map(|tool| tool.digest.hex()).collect();
        Hash::of(digests.join("\n").as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(tools: Vec<rmcp::model::Tool>) -> Result<ToolList, String> {
        let mut reader = ToolReader::default();
        // A page for each tool.
        tools.into_iter().try_for_each(|tool| reader.add(vec![tool]))?;
        Ok(reader.finish())
    }

    fn tool(name: &str, description: &str) -> rmcp::model::Tool {
        let text = serde_json::json!({"name": name, "description": description, "inputSchema": {"type": "object"}});
        serde_json::from_value(text).unwrap()
    }

    #[test]
    fn the_digest_covers_each_part_of_a_tool() {
        let list = |tools: &[(&str, &str)]| {
            read(tools.iter().map(|(name, description)| tool(name, description)).collect()).unwrap().digest()
        };
        let one = list(&[("a", "x"), ("b", "y")]);
        assert_eq!(one, list(&[("b", "y"), ("a", "x")]), "the order of a list has no meaning");
        assert_ne!(one, list(&[("a", "x"), ("b", "z")]));
        assert_ne!(one, list(&[("a", "x")]));
    }

    #[test]
    fn a_list_beyond_its_bounds_is_an_error() {
        let check = |tools: Vec<rmcp::model::Tool>, expected: &str| {
            let error = read(tools).unwrap_err();
            assert!(error.contains(expected), "{error}");
        };
        check((0..=TOOLS_MAX).map(|number| tool(&number.to_string(), "")).collect(), "more than 2000");
        check(vec![tool("a", "x"), tool("a", "y")], "twice");
        check(vec![tool("", "x")], "with the name ``");
        check(vec![tool("a\u{1b}b", "x")], "\\u{1b}");
        check((0..9).map(|number| tool(&number.to_string(), &"x".repeat(1024 * 1024))).collect(), "more than 8 MiB");
    }
}
