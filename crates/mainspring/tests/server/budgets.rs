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

#[test]
fn a_budget_of_an_organization_limits_its_executions_and_only_admins_raise_it() {
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
    bob.post(&format!("{path}/approve"), &approve).expect(403);
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

    let audit = acme.owner.get("/api/audit").expect(200).text;
    assert!(audit.contains("budget.set") && audit.contains("budget.raise"), "{audit}");
    let listed = acme.owner.get("/api/budgets").expect(200).json();
    let budget = &listed.get("budgets").and_then(Value::as_list).unwrap()[0];
    assert_eq!(budget.get("raised"), Some(&Value::map([("modelCalls", 1u64.into())])));
    assert_eq!(budget.get("left"), Some(&Value::map([("modelCalls", 0u64.into())])));
    acme.owner.send("DELETE", "/api/budgets/month", &[], None).expect(204);
    acme.owner.send("DELETE", "/api/budgets/month", &[], None).expect(404);
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
