//! The API documentation as an HTML page, generated from the OpenAPI description.

use std::collections::BTreeMap;

use serde_json::Value;
use utoipa::openapi::OpenApi;

use crate::http::html::Html;

/// Renders the page of a description; `base` is the external URL of the server.
pub(crate) fn page(description: &OpenApi, base: &str) -> Html {
    let whole = serde_json::to_value(description).unwrap_or_default();
    let mut tags: BTreeMap<String, Vec<Html>> = BTreeMap::new();
    for (path, item) in object(&whole["paths"]) {
        for (method, operation) in object(item).filter(|(_, operation)| operation["responses"].is_object()) {
            let tag = operation["tags"][0].as_str().unwrap_or("other").to_string();
            tags.entry(tag).or_default().push(self::operation(&whole, &method.to_uppercase(), path, operation, base));
        }
    }
    let info = &whole["info"];
    let mut page = Html::of("h1", &format!("The API of {}", text(&info["title"])))
        .add(Html::of("p", text(&info["description"])))
        .markup("<p>For programs: <a href=\"/openapi.json\">openapi.json</a> (OpenAPI 3.1).</p><nav>")
        .all(tags.keys().map(|tag| linked(tag)))
        .markup("<a href=\"#shapes\">shapes</a></nav>");
    for (tag, operations) in tags {
        page = page.markup("<h2 id=\"").text(&tag).markup("\">").text(&tag).markup("</h2>").all(operations);
    }
    let shapes = object(&whole["components"]["schemas"]).map(|(name, schema)| shape(name, schema));
    page.markup("<h2 id=\"shapes\">shapes</h2>").all(shapes)
}

fn object(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A link to an anchor on this page.
fn linked(place: &str) -> Html {
    Html::default().markup("<a href=\"#").text(place).markup("\">").text(place).markup("</a>")
}

fn operation(whole: &Value, method: &str, path: &str, operation: &Value, base: &str) -> Html {
    let title = Html::default().text(method).markup(" ").text(path);
    let said = [text(&operation["summary"]), text(&operation["description"])].join("\n");
    let (first, more) = said.trim().split_once('\n').unwrap_or((said.trim(), ""));
    let permission = match text(&operation["x-permission"]) {
        "public" => Html::of("p", "Anybody may call it."),
        name => Html::default().markup("<p>Asks for ").add(Html::of("code", name)).markup(".</p>"),
    };
    let parameters: Vec<Html> = operation["parameters"].as_array().into_iter().flatten().map(parameter).collect();
    let mut content = Html::default().markup("<summary>").add(Html::within("code", title)).markup(" ").text(first);
    content = content.markup("</summary>").all((!more.is_empty()).then(|| Html::of("p", more))).add(permission);
    if !parameters.is_empty() {
        content = content.markup("<table><tr><th>parameter<th>in<th>type<th></tr>").all(parameters).markup("</table>");
    }
    for (kind, body) in object(&operation["requestBody"]["content"]) {
        let shape = type_of(&body["schema"]);
        content = content.markup("<p>Body: ").add(shape).markup(" as ").add(Html::of("code", kind)).markup("</p>");
    }
    let answers = object(&operation["responses"]).map(|(status, answer)| self::answer(status, answer));
    content = content.markup("<table><tr><th>status<th>answer</tr>").all(answers).markup("</table>");
    let example = Html::of("pre", &curl(whole, method, path, operation, base));
    Html::within("details", content.add(example))
}

fn parameter(parameter: &Value) -> Html {
    let needed = if parameter["required"] == true { ", required" } else { "" };
    Html::default()
        .markup("<tr><td>")
        .add(Html::of("code", text(&parameter["name"])))
        .markup("<td>")
        .text(text(&parameter["in"]))
        .markup("<td>")
        .add(type_of(&parameter["schema"]))
        .text(needed)
        .markup("<td>")
        .text(text(&parameter["description"]))
        .markup("</tr>")
}

fn answer(status: &str, answer: &Value) -> Html {
    let kinds = object(&answer["content"])
        .map(|(kind, content)| type_of(&content["schema"]).markup(" as ").add(Html::of("code", kind)).markup(" "));
    let row = Html::default().markup("<tr><td>").text(status).markup("<td>").all(kinds);
    row.text(text(&answer["description"])).markup("</tr>")
}

/// A short name of a schema's type, linked if the schema is named.
fn type_of(schema: &Value) -> Html {
    if let Some(name) = named(schema) {
        return linked(name);
    }
    let parts = ["oneOf", "anyOf", "allOf"].iter().find_map(|key| schema[key].as_array());
    if let Some(parts) = parts {
        let or = |(index, part)| Html::default().text(if index == 0 { "" } else { " or " }).add(type_of(part));
        return Html::default().all(parts.iter().enumerate().map(or));
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().map(text).collect::<Vec<_>>().join(" or "),
        kind => text(kind).to_string(),
    };
    match kind.as_str() {
        "array" => Html::default().markup("list of ").add(type_of(&schema["items"])),
        "" => Html::default().markup("any value"),
        kind => Html::default().text(kind),
    }
}

fn named(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.strip_prefix("#/components/schemas/")
}

/// The fields of an object, or the values of an enum.
fn shape(name: &str, schema: &Value) -> Html {
    let title = Html::default().markup("<h3 id=\"").text(name).markup("\">").text(name).markup("</h3>");
    let parts = schema["allOf"].as_array().cloned().unwrap_or_else(|| vec![schema.clone()]);
    let mut page = title.add(Html::of("p", text(&schema["description"])));
    for part in &parts {
        if let Some(other) = named(part) {
            page = page.markup("<p>All of ").add(linked(other)).markup("</p>");
        }
        let values: Vec<&str> = part["enum"].as_array().into_iter().flatten().map(text).collect();
        if !values.is_empty() {
            page = page.markup("<p>One of ").add(Html::of("code", &values.join(", "))).markup("</p>");
        }
        let row = |(field, schema): (&String, &Value)| {
            let is_needed = part["required"].as_array().is_some_and(|needed| needed.iter().any(|one| one == field));
            let field = Html::default().markup("<tr><td>").add(Html::of("code", field)).markup("<td>");
            let field = field.add(type_of(schema)).text(if is_needed { ", always" } else { "" });
            field.markup("<td>").text(text(&schema["description"])).markup("</tr>")
        };
        let rows: Vec<Html> = object(&part["properties"]).map(row).collect();
        if !rows.is_empty() {
            page = page.markup("<table>").all(rows).markup("</table>");
        }
    }
    page
}

/// An example call with `curl`, whose body has the required fields.
fn curl(whole: &Value, method: &str, path: &str, operation: &Value, base: &str) -> String {
    let mut line = format!("curl -X {method} '{base}{path}'");
    if text(&operation["x-permission"]) != "public" {
        line += " \\\n  -H \"Authorization: Bearer $TOKEN\"";
    }
    for (kind, body) in object(&operation["requestBody"]["content"]).take(1) {
        let example = example(whole, &body["schema"], 0);
        if kind == "application/json" {
            let body = serde_json::to_string(&example).unwrap_or_default().replace('\'', "'\\''");
            line += &format!(" \\\n  -H 'Content-Type: {kind}' -d '{body}'");
        } else {
            object(&example).for_each(|(name, value)| line += &format!(" \\\n  -d '{name}={}'", text(value)));
        }
    }
    line
}

/// An example value of a schema; objects have their required fields.
fn example(whole: &Value, schema: &Value, depth: usize) -> Value {
    /// Bounds the nesting of recursive schemas.
    const DEPTH_MAX: usize = 4;
    if let Some(name) = named(schema) {
        let shape = &whole["components"]["schemas"][name];
        return if depth < DEPTH_MAX { example(whole, shape, depth + 1) } else { Value::Null };
    }
    if let Some(word) = schema["enum"].as_array().and_then(|words| words.first()) {
        return word.clone();
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.first().map(text).unwrap_or_default(),
        kind => text(kind),
    };
    match kind {
        "object" => {
            let needed = schema["required"].as_array().into_iter().flatten().map(text);
            needed.map(|name| (name.to_string(), example(whole, &schema["properties"][name], depth + 1))).collect()
        }
        "array" => Value::Array(vec![example(whole, &schema["items"], depth + 1)]),
        "boolean" => true.into(),
        "integer" | "number" => 1.into(),
        "string" => "…".into(),
        _ => Value::Null,
    }
}
