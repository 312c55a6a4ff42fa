//! The API description in small parts: as text for language models, and as OpenAPI of one tag.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use utoipa::openapi::OpenApi;

/// The tag of the text that explains the language of definitions.
const LANGUAGE: &str = "language";

/// Returns the texts for language models by tag. The empty tag has the whole API, and `language` explains definitions.
pub(crate) fn texts(description: &OpenApi, base: &str) -> BTreeMap<String, String> {
    let whole = serde_json::to_value(description).unwrap_or_default();
    let mut texts: BTreeMap<String, String> = by_tag(description)
        .into_iter()
        .map(|(tag, part)| (tag, text(&serde_json::from_str(&part).unwrap_or_default(), base)))
        .collect();
    texts.insert(String::new(), text(&whole, base));
    texts.insert(LANGUAGE.into(), language(base));
    texts
}

/// The language of definitions as text.
fn language(base: &str) -> String {
    format!(
        "# The language of workflows\n\n> A definition is YAML or JSON. `POST {base}/api/definitions/validate` with \
         `{{\"definition\": TEXT}}` checks one and says what to correct, and `POST {base}/api/workflows/sync` saves one. \
         Its JSON Schema: {base}/definition.schema.json, or with `?notation=sequence` that of one notation. Scenarios, \
         which are tests, run with `mainspring test FILE`.\n\n{}\n",
        mainspring_authoring::explain::render_language()
    )
}

/// Renders a description as text: one line for each operation, and one for each type that a request sends. `base` is the
/// external URL of the server.
fn text(whole: &Value, base: &str) -> String {
    let (mut tags, mut sent): (BTreeMap<&str, Vec<String>>, BTreeSet<String>) = (BTreeMap::new(), BTreeSet::new());
    for (path, item) in fields(&whole["paths"]) {
        for (method, operation) in fields(item).filter(|(_, operation)| operation["responses"].is_object()) {
            let bodies = fields(&operation["requestBody"]["content"]);
            bodies.for_each(|(_, body)| add_types(whole, &body["schema"], &mut sent));
            tags.entry(tag(operation)).or_default().push(line(method, path, operation));
        }
    }
    let title = whole["info"]["title"].as_str().unwrap_or("Mainspring");
    let mut page = format!(
        "# The API of {title}\n\n> JSON over HTTP at {base}. Send `Authorization: Bearer TOKEN`. Errors are \
         `{{error, code, details}}` with a status of 400 or more. A start with the same `clientRequestId` takes effect once.\n\n"
    );
    page += "`GET /llms.txt?tag=language` explains the language of definitions, with each step type, its keys and an example. \
             `GET /definition.schema.json` is its JSON Schema.\n\n";
    page += "`GET /llms.txt?tag=TAG` has the operations of one tag, and `GET /openapi.json?tag=TAG` their full description.\n";
    for (tag, operations) in tags {
        page += &format!("\n## {tag}\n\n{}\n", operations.join("\n"));
    }
    page += "\n## Types of request bodies\n\n";
    for name in sent {
        page += &format!("- {name}: {}\n", shape(&whole["components"]["schemas"][&name]));
    }
    page
}

/// Returns the description of each tag as compact JSON: its operations, and the components that they use.
pub(crate) fn by_tag(description: &OpenApi) -> BTreeMap<String, String> {
    let whole = serde_json::to_value(description).unwrap_or_default();
    let mut tags: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for (path, item) in fields(&whole["paths"]) {
        for (method, operation) in fields(item).filter(|(_, operation)| operation["responses"].is_object()) {
            let paths = tags.entry(tag(operation).to_string()).or_default();
            let item = paths.entry(path.clone()).or_insert_with(|| json!({}));
            item[method.as_str()] = operation.clone();
        }
    }
    tags.into_iter().map(|(tag, paths)| (tag, part(&whole, paths).to_string())).collect()
}

fn part(whole: &Value, paths: Map<String, Value>) -> Value {
    let paths = Value::Object(paths);
    let mut used = BTreeSet::new();
    add_types(whole, &paths, &mut used);
    let schemas: Map<String, Value> =
        used.into_iter().map(|name| (name.clone(), whole["components"]["schemas"][&name].clone())).collect();
    json!({
        "openapi": whole["openapi"],
        "info": whole["info"],
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": whole["components"]["securitySchemes"]},
    })
}

/// Adds the names of all types that a value refers to, directly or through others.
pub(crate) fn add_types(whole: &Value, value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            let name =
                map.get("$ref").and_then(Value::as_str).and_then(|name| name.strip_prefix("#/components/schemas/"));
            if let Some(name) = name.filter(|name| !found.contains(*name)) {
                found.insert(name.to_string());
                add_types(whole, &whole["components"]["schemas"][name], found);
            }
            map.values().for_each(|inner| add_types(whole, inner, found));
        }
        Value::Array(items) => items.iter().for_each(|inner| add_types(whole, inner, found)),
        _ => {}
    }
}

pub(crate) fn fields(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn tag(operation: &Value) -> &str {
    operation["tags"][0].as_str().unwrap_or("other")
}

/// `- GET /api/executions?status&limit (executions:read): List the executions. Answer Executions`.
fn line(method: &str, path: &str, operation: &Value) -> String {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let query: Vec<&str> = parameters
        .filter(|parameter| parameter["in"] == "query")
        .filter_map(|parameter| parameter["name"].as_str())
        .collect();
    let query = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
    let permission = operation["x-permission"].as_str().map(|name| format!(" ({name})")).unwrap_or_default();
    let summary = operation["summary"].as_str().unwrap_or_default().replace('\n', " ");
    let body = fields(&operation["requestBody"]["content"]).next().map(|(_, body)| type_name(&body["schema"]));
    let body = body.map(|name| format!(" Body {name}.")).unwrap_or_default();
    let success = fields(&operation["responses"]).find(|(status, _)| status.starts_with('2'));
    let answer = success.and_then(|(_, answer)| fields(&answer["content"]).next());
    let answer = answer.map(|(_, content)| format!(" Answer {}.", type_name(&content["schema"]))).unwrap_or_default();
    format!("- {} {path}{query}{permission}: {summary}{body}{answer}", method.to_uppercase())
}

/// `{name: string (required), limit: integer}`, or the words of an enum.
fn shape(schema: &Value) -> String {
    let words: Vec<&str> = schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if !words.is_empty() {
        return words.join(" | ");
    }
    let required = |name: &str| schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
    let field = |(name, schema): (&String, &Value)| {
        format!("{name}: {}{}", type_name(schema), if required(name) { " (required)" } else { "" })
    };
    let all: Vec<String> = fields(&schema["properties"]).map(field).collect();
    if all.is_empty() { type_name(schema) } else { format!("{{{}}}", all.join(", ")) }
}

fn type_name(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|name| name.rsplit('/').next()) {
        return name.to_string();
    }
    if let Some(parts) = ["oneOf", "anyOf", "allOf"].iter().find_map(|key| schema[key].as_array()) {
        return parts.iter().map(type_name).collect::<Vec<_>>().join(" or ");
    }
    match &schema["type"] {
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        Value::String(kind) if kind == "array" => format!("list of {}", type_name(&schema["items"])),
        Value::String(kind) => kind.clone(),
        _ => "any value".into(),
    }
}
