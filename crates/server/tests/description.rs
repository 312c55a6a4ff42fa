//! Compares the OpenAPI description in the repository, from which clients are generated, with the one from the routes.

use std::{fs, path::Path};

#[test]
fn the_openapi_file_is_as_generated() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas/openapi.json");
    let generated = mainspring_server::description().to_pretty_json().unwrap() + "\n";
    if std::env::var_os("MAINSPRING_UPDATE_GOLDEN").is_some() {
        fs::write(&path, &generated).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == generated, "schemas/openapi.json is not what the routes say: run with MAINSPRING_UPDATE_GOLDEN=1");
}

#[test]
fn every_route_documents_its_permission() {
    let description = serde_json::to_value(mainspring_server::description()).unwrap();
    let mut routes = 0;
    for (path, item) in description["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap().iter().filter(|(_, operation)| operation.is_object()) {
            let permission = operation["x-permission"].as_str();
            let known = |name: &str| {
                ["public", "credential"].contains(&name)
                    || mainspring_server::auth::permission::Permission::parse(name).is_some()
            };
            assert!(permission.is_some_and(known), "{method} {path}: {permission:?}");
            let is_health = operation["tags"][0] == "health";
            let waits = &operation["responses"]["429"]["headers"]["Retry-After"];
            assert_eq!(waits.is_null(), is_health, "{method} {path} can answer 429, or must not");
            routes += 1;
        }
    }
    assert!(routes > 35, "{routes}");
}

#[test]
fn editable_resources_use_etags() {
    let description = serde_json::to_value(mainspring_server::description()).unwrap();
    let takes_if_match = |operation: &serde_json::Value| {
        let mut parameters = operation["parameters"].as_array().into_iter().flatten();
        parameters.any(|one| one["name"] == "If-Match" && one["in"] == "header" && one["required"] == false)
    };
    let gives_etag = |operation: &serde_json::Value| operation["responses"]["200"]["headers"]["ETag"].is_object();
    let (mut take_if_match, mut give_etag) = (Vec::new(), Vec::new());
    for (path, item) in description["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap().iter().filter(|(_, operation)| operation.is_object()) {
            assert_eq!(takes_if_match(operation), operation["responses"]["412"].is_object(), "{method} {path}");
            take_if_match.extend(takes_if_match(operation).then(|| format!("{method} {path}")));
            give_etag.extend(gives_etag(operation).then(|| format!("{method} {path}")));
        }
    }
    let edited = [
        "/api/event-subscriptions/{id}",
        "/api/members/{id}",
        "/api/organization",
        "/api/policy",
        "/api/triggers/{id}",
        "/api/workflows/sync",
        "/api/workflows/{id}",
        "/api/workflows/{id}/scenarios",
    ];
    let all = |methods: &[&str]| -> Vec<String> {
        let of = |path: &str| methods.iter().map(|method| format!("{method} {path}")).collect::<Vec<_>>();
        let is_there = |operation: &String| {
            let (method, path) = operation.split_once(' ').unwrap();
            description["paths"][path][method].is_object()
        };
        edited.iter().flat_map(|path| of(path)).filter(is_there).collect()
    };
    let sorted = |mut list: Vec<String>| {
        list.sort();
        list
    };
    assert_eq!(sorted(take_if_match), sorted(all(&["delete", "patch", "post", "put"])));
    assert_eq!(sorted(give_etag), sorted(all(&["get", "patch", "post", "put"])));
}

/// The types that a schema allows, or `any` if it names none.
fn kinds(schema: &serde_json::Value) -> String {
    let names = |kinds: &serde_json::Value| match kinds {
        serde_json::Value::Array(kinds) => {
            kinds.iter().map(|kind| kind.as_str().unwrap()).collect::<Vec<_>>().join(" or ")
        }
        kind => kind.as_str().unwrap_or("any").to_string(),
    };
    let is_open = ["$ref", "oneOf", "allOf", "anyOf", "enum"].iter().all(|key| schema[key].is_null());
    if is_open { names(&schema["type"]) } else { "another".into() }
}

#[test]
fn fields_have_the_documented_types() {
    let description = serde_json::to_value(mainspring_server::description()).unwrap();
    let schemas = &description["components"]["schemas"];
    for (shape, field, wanted) in [
        ("Approval", "gate", "object"),
        ("Attempt", "error", "object or null"),
        ("Attempt", "input", "any"),
        ("Attempt", "note", "string"),
        ("Attempt", "output", "any"),
        ("Definition", "definition", "object or string"),
        ("Draft", "data", "object or string or null"),
        ("EntryBody", "detail", "object or null"),
        ("ExecutionBody", "error", "object or null"),
        ("ExecutionBody", "input", "any"),
        ("ExecutionBody", "outputs", "any"),
        ("ExecutionBody", "requiresApproval", "object or null"),
        ("ExecutionBody", "triggerMetadata", "object or null"),
        ("ExecutionBody", "variables", "any"),
        ("ProblemBody", "details", "object or null"),
        ("Report", "outputs", "any"),
        ("Run", "input", "any"),
        ("Run", "metadata", "object or null"),
        ("Run", "variables", "object or null"),
        ("Signal", "payload", "any"),
        ("Started", "error", "object or null"),
        ("Started", "output", "any"),
        ("Started", "requiresApproval", "object or null"),
        ("Started", "variables", "object or null"),
        ("VersionBody", "workflowData", "object"),
        ("Whole", "data", "object or string"),
        ("WorkflowBody", "data", "object"),
    ] {
        let parts = schemas[shape]["allOf"].as_array().cloned().unwrap_or_else(|| vec![schemas[shape].clone()]);
        let found = parts.iter().map(|part| &part["properties"][field]).find(|schema| !schema.is_null());
        let found = found.unwrap_or_else(|| panic!("{shape} has no {field}"));
        assert_eq!(kinds(found), wanted, "{shape}.{field}: {found}");
        assert!(found["description"].as_str().is_some_and(|text| !text.is_empty()), "{shape}.{field} says nothing");
    }
    // Optional fields stay optional.
    for (shape, field) in [("Run", "input"), ("Signal", "payload"), ("Report", "outputs"), ("Attempt", "note")] {
        let needed = schemas[shape]["required"].as_array().into_iter().flatten();
        assert!(needed.clone().all(|one| one != field), "{shape}.{field} may be left out");
    }
}
