//! The generated JSON Schemas of the notations, embedded as text.

/// The schema of one notation, or of all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schema {
    /// Its name: that of a notation, or `workflow` for all of them.
    pub name: &'static str,
    /// The schema as JSON, with a final newline.
    pub text: &'static str,
}

/// All schemas; the one of all notations is first.
pub const SCHEMAS: [Schema; 4] = [
    Schema { name: "workflow", text: include_str!("../../../schemas/workflow.schema.json") },
    Schema { name: "sequence", text: include_str!("../../../schemas/sequence.schema.json") },
    Schema { name: "dataflow", text: include_str!("../../../schemas/dataflow.schema.json") },
    Schema { name: "graph", text: include_str!("../../../schemas/graph.schema.json") },
];

/// Returns a schema by its name.
pub fn schema(name: &str) -> Option<Schema> {
    SCHEMAS.into_iter().find(|schema| schema.name == name)
}
