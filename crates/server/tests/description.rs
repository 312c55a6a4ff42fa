//! The description of the routes as it lies in the repository, for those who generate clients from it.

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
fn every_route_says_who_may_call_it() {
    let description = serde_json::to_value(mainspring_server::description()).unwrap();
    let mut routes = 0;
    for (path, item) in description["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap().iter().filter(|(_, operation)| operation.is_object()) {
            let permission = operation["x-permission"].as_str();
            let known = |name: &str| {
                ["public", "credential"].contains(&name)
                    || mainspring_server::identity::Permission::parse(name).is_some()
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
fn what_can_be_edited_is_shown_with_its_version_and_edited_by_it() {
    let description = serde_json::to_value(mainspring_server::description()).unwrap();
    let is_taken = |operation: &serde_json::Value| {
        let mut parameters = operation["parameters"].as_array().into_iter().flatten();
        parameters.any(|one| one["name"] == "If-Match" && one["in"] == "header" && one["required"] == false)
    };
    let is_given = |operation: &serde_json::Value| operation["responses"]["200"]["headers"]["ETag"].is_object();
    let (mut taken, mut given) = (Vec::new(), Vec::new());
    for (path, item) in description["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap().iter().filter(|(_, operation)| operation.is_object()) {
            assert_eq!(is_taken(operation), operation["responses"]["412"].is_object(), "{method} {path}");
            taken.extend(is_taken(operation).then(|| format!("{method} {path}")));
            given.extend(is_given(operation).then(|| format!("{method} {path}")));
        }
    }
    let things = ["/api/members/{id}", "/api/organization", "/api/workflows/sync", "/api/workflows/{id}"];
    let all = |methods: &[&str]| -> Vec<String> {
        let of = |path: &str| methods.iter().map(|method| format!("{method} {path}")).collect::<Vec<_>>();
        let is_there = |operation: &String| {
            let (method, path) = operation.split_once(' ').unwrap();
            description["paths"][path][method].is_object()
        };
        things.iter().flat_map(|path| of(path)).filter(is_there).collect()
    };
    let sorted = |mut list: Vec<String>| {
        list.sort();
        list
    };
    assert_eq!(sorted(taken), sorted(all(&["delete", "patch", "post", "put"])));
    assert_eq!(sorted(given), sorted(all(&["get", "patch", "post", "put"])));
}
