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
            let known = |name: &str| name == "public" || mainspring_server::identity::Permission::parse(name).is_some();
            assert!(permission.is_some_and(known), "{method} {path}: {permission:?}");
            let is_health = operation["tags"][0] == "health";
            let waits = &operation["responses"]["429"]["headers"]["Retry-After"];
            assert_eq!(waits.is_null(), is_health, "{method} {path} can answer 429, or must not");
            routes += 1;
        }
    }
    assert!(routes > 35, "{routes}");
}
