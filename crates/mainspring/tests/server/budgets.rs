//! Budgets of organizations for a month: set by admins, raised by admins, and of no concern to other organizations.

use mainspring_kernel::value::{Map, Value};

use super::{
    agents::Model,
    client::Client,
    commands::Caller,
    process::{Organization, Server},
    start::{save, start},
    support::yaml,
};

const AGENT: &str = "[{id: ask, type: agent, goal: Say OK}]";

fn month(fields: &[(&str, Value)]) -> Value {
    Value::map([("period", "month".into())].into_iter().chain(fields.iter().cloned()))
}

fn settled(client: &Client, workflow: &str, request: &str) -> (String, String) {
    let id = start(client, workflow, request, Map::new()).expect(202).text_at("executionId");
    let status = client.get(&format!("/api/executions/{id}/wait")).expect(200).text_at("status");
    (id, status)
}

/// A new budget shows what was used before it, without any lease.
fn shows_earlier_use(client: &Client) {
    let day = Value::map([("period", Value::from("day")), ("modelCalls", 9u64.into())]);
    let shown = client.put("/api/budgets", &day).expect(201).json();
    assert_eq!(shown.get("used").and_then(|used| used.get("modelCalls")), Some(&2u64.into()), "{shown:?}");
}

fn refuses_cursors(client: &Client) {
    for cursor in ["%00%20b", "2026-11%20b%00", "2026-11", "x%20b"] {
        client.get(&format!("/api/usage?cursor={cursor}")).expect(400);
    }
    client.get("/api/usage?cursor=2026-11%20b").expect(200);
}

#[test]
fn organization_budgets_limit_executions_and_admins_raise_them() {
    let folder = tempfile::tempdir().unwrap();
    let model = Model::start(folder.path(), "answers: [{text: OK}]\n");
    let config = folder.path().join("config.yaml");
    std::fs::write(&config, format!("models:\n  shared: {}\n", model.setting(", default: true"))).unwrap();
    let server = Server::start_in(folder.path(), "data", &["--config", config.to_str().unwrap()]);
    let (acme, other) = (Organization::new(&server, "acme"), Organization::new(&server, "other"));
    let bob = acme.member("bob", "member");
    save(&bob, "asks", yaml(AGENT));
    save(&other.owner, "asks", yaml(AGENT));

    let limit = month(&[("modelCalls", 1u64.into()), ("onExceeded", "ask".into())]);
    bob.put("/api/budgets", &limit).expect(403);
    acme.owner.put("/api/budgets", &limit).expect(201);
    for (fields, field) in [
        (month(&[]), "tokens"),
        (month(&[("tokens", 0u64.into())]), "tokens"),
        (month(&[("cost", Value::from(0u64))]), "cost"),
        (month(&[("tokens", 1u64.into()), ("onExceeded", "stop".into())]), "onExceeded"),
        (month(&[("tokens", 1u64.into()), ("workflow", "none".into())]), "workflow"),
        (Value::map([("period", Value::from("year")), ("tokens", 1u64.into())]), "period"),
    ] {
        let refused = acme.owner.put("/api/budgets", &fields).expect(400).text;
        assert!(refused.contains(field), "{refused}");
    }
    acme.owner.put("/api/budgets", &month(&[("timeMs", 0u64.into())])).expect(400);
    acme.owner.put("/api/budgets", &month(&[("tokens", u64::MAX.into())])).expect(400);
    acme.owner.put("/api/budgets", &month(&[("unknown", 1u64.into())])).expect(400);

    assert_eq!(settled(&bob, "asks", "r1").1, "completed");
    let (id, status) = settled(&bob, "asks", "r2");
    assert_eq!((status.as_str(), model.count()), ("waiting_approval", 1));
    let path = format!("/api/executions/{id}");
    assert!(!bob.get(&path).text.contains("wrf_rt_"), "bob owns the execution, and not the budget");
    let token = acme.owner.get(&path).text_at("resumeToken");
    let approve = Value::map([("approve", Value::Bool(true)), ("resumeToken", token.as_str().into())]);
    let refused = bob.post(&format!("{path}/approve"), &approve).expect(403).text;
    assert!(refused.contains("only admins and owners of the organization"), "{refused}");
    acme.owner.post(&format!("{path}/approve"), &approve).expect(200);
    assert_eq!(acme.owner.get(&format!("{path}/wait")).expect(200).text_at("status"), "completed");
    assert_eq!(model.count(), 2, "no call is repeated");

    // The other organization is not limited, and sees nothing of it.
    assert_eq!(settled(&other.owner, "asks", "r1").1, "completed");
    assert_eq!(settled(&other.owner, "asks", "r2").1, "completed");
    assert_eq!(other.owner.get("/api/budgets").expect(200).json().get("budgets"), Some(&Value::List(vec![])));
    let used = |client: &Client| {
        let usage = client.get("/api/usage?by=workflow&period=month").expect(200).json();
        let rows = usage.get("usage").and_then(Value::as_list).unwrap().to_vec();
        assert_eq!(rows.len(), 1, "{usage:?}");
        rows[0].get("used").and_then(|used| used.get("modelCalls")).and_then(Value::as_u64)
    };
    assert_eq!((used(&bob), used(&other.owner)), (Some(2), Some(2)));
    bob.get("/api/usage?by=nothing").expect(400);
    refuses_cursors(&bob);

    let audit = acme.owner.get("/api/audit").expect(200).text;
    assert!(audit.contains("budget.set") && audit.contains("budget.raise"), "{audit}");
    let listed = acme.owner.get("/api/budgets").expect(200).json();
    let budget = &listed.get("budgets").and_then(Value::as_list).unwrap()[0];
    assert_eq!(budget.get("raised"), Some(&Value::map([("modelCalls", 1u64.into())])));
    assert_eq!(budget.get("left"), Some(&Value::map([("modelCalls", 0u64.into())])));
    // To set the budget again takes the raise back, and the use stays.
    let set = acme.owner.put("/api/budgets", &limit).expect(200).json();
    assert_eq!((set.get("raised"), set.get("used")), (Some(&Value::Map(Map::new())), budget.get("used")));
    acme.owner.send("DELETE", "/api/budgets/month", &[], None).expect(204);
    acme.owner.send("DELETE", "/api/budgets/month", &[], None).expect(404);
    shows_earlier_use(&other.owner);
}

#[test]
fn settings_budgets_are_listed_and_named_in_failures() {
    let folder = tempfile::tempdir().unwrap();
    let model = Model::start(folder.path(), "answers: [{text: OK}]\n");
    let config = folder.path().join("config.yaml");
    let settings = format!(
        "models:\n  shared: {}\nbudgets: [{{period: month, modelCalls: 1}}]\n",
        model.setting(", default: true")
    );
    std::fs::write(&config, settings).unwrap();
    let server = Server::start_in(folder.path(), "data", &["--config", config.to_str().unwrap()]);
    let acme = Organization::new(&server, "acme");
    save(&acme.owner, "asks", yaml(AGENT));
    let listed = || acme.owner.get("/api/budgets").expect(200).json();
    let first = |listed: &Value| listed.get("budgets").and_then(Value::as_list).unwrap()[0].clone();
    let found = first(&listed());
    assert_eq!(found.get("sources"), Some(&Value::map([("modelCalls", "settings".into())])));
    assert_eq!(found.get("setBy"), Some(&Value::Null));
    acme.owner.put("/api/budgets", &month(&[("modelCalls", 50u64.into()), ("tokens", 9_000u64.into())])).expect(201);
    let found = first(&listed());
    assert_eq!(found.get("limits"), Some(&Value::map([("modelCalls", 1u64.into()), ("tokens", 9_000u64.into())])));
    assert_eq!(
        found.get("sources"),
        Some(&Value::map([("modelCalls", "settings".into()), ("tokens", "stored".into())]))
    );
    assert_eq!(settled(&acme.owner, "asks", "r1").1, "completed");
    let (id, status) = settled(&acme.owner, "asks", "r2");
    assert_eq!(status, "failed");
    let shown = acme.owner.get(&format!("/api/executions/{id}")).expect(200).text;
    assert!(shown.contains("of the settings file") && !shown.contains("budgets set"), "{shown}");
}

#[test]
fn the_command_line_sets_lists_and_removes_budgets() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let caller = Caller::owner(&server);
    caller.fine(&["budgets", "set", "month", "--cost", "2.5", "--on-exceeded", "ask"]);
    let listed = caller.fine(&["budgets", "list"]);
    assert!(listed.contains("month") && listed.contains("cost 0 of 2.5") && listed.contains("ask"), "{listed}");
    assert!(caller.fine(&["usage", "--period", "day"]).contains("no agent has called"));
    caller.fine(&["budgets", "remove", "month"]);
    assert!(caller.fine(&["budgets", "list"]).contains("none"));
    assert_ne!(caller.call(&["budgets", "remove", "month"]).exit, Some(0), "it is gone");
}
