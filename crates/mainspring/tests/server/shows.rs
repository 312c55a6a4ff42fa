//! Executions in the API: names, owners, triggers, and optional parts.

use mainspring_kernel::value::{Map, Value};

use super::{
    client::{Client, Reply},
    process::{Organization, Server, everywhere},
    start::{echo, save, start},
};

fn of(reply: &Reply, key: &str) -> Value {
    reply.json().get(key).unwrap_or_else(|| panic!("no `{key}` in {reply:?}")).clone()
}

fn text(value: &Value, key: &str) -> Option<String> {
    value.get(key).and_then(Value::as_text).map(ToString::to_string)
}

/// Starts an execution, and waits until it has settled. Returns its id.
fn ran(client: &Client, workflow: &str, request: &str) -> String {
    let id = start(client, workflow, request, Map::new()).expect(202).text_at("executionId");
    client.get(&format!("/api/executions/{id}/wait")).expect(200);
    id
}

fn calls(id: &str, workflow: &str, waits: bool) -> Value {
    let step = [("id", Value::from(id)), ("type", "subworkflow".into()), ("workflow", workflow.into())];
    Value::map(step.into_iter().chain([("wait", Value::Bool(waits))]))
}

fn listed(client: &Client) -> Vec<Value> {
    client.get("/api/executions?limit=200").expect(200).json().get("executions").unwrap().as_list().unwrap().to_vec()
}

/// Polls until a value exists.
fn eventually<T>(look: impl FnMut() -> Option<T>) -> T {
    std::iter::repeat_with(look).take(20_000).flatten().next().expect("it comes in the end")
}

#[test]
fn an_execution_shows_only_the_requested_fields() {
    everywhere(|place| {
        let server = place.start();
        let ours = Organization::new(&server, "acme");
        let ada = &ours.owner;
        let steps = Value::List(vec![Value::map([("id", Value::from("ask")), ("type", "approval".into())])]);
        let data = Value::map([("steps", steps.clone())]);
        let body = [("id", Value::from("w")), ("name", "Ship it".into()), ("data", data.clone())];
        ada.post("/api/workflows/sync", &Value::map(body)).expect(200);
        let id = ran(ada, "w", "r1");
        let plain = ada.get(&format!("/api/executions/{id}")).expect(200);
        assert_eq!((plain.text_at("workflowName"), plain.text_at("userId")), ("Ship it".into(), "ada".into()));
        assert_eq!([of(&plain, "triggerName"), of(&plain, "parentExecutionId")], [const { Value::Null }; 2]);
        for key in ["steps", "workflowSnapshot", "runtimeState"] {
            assert!(plain.json().get(key).is_none(), "{key} was not asked for");
        }
        let query = format!("/api/executions/{id}?include=steps,workflowSnapshot,runtimeState");
        let whole = ada.get(&query).expect(200);
        assert_eq!(of(&whole, "workflowSnapshot"), data);
        assert_eq!(of(&whole, "steps"), of(&ada.get(&format!("/api/executions/{id}/steps")), "steps"));
        let runtime = of(&whole, "runtimeState");
        assert_eq!(runtime.get("waitingSteps"), Some(&Value::List(vec!["ask".into()])), "{runtime:?}");
        assert_eq!(runtime.get("executor").and_then(|executor| executor.get("dispatchCount")), Some(&1u64.into()));
        assert_eq!(runtime.get("policy").and_then(|policy| policy.get("maxSteps")), Some(&50u64.into()));
        // The definition is that of the start, even if the workflow has changed since.
        save(ada, "w", echo());
        assert_eq!(of(&ada.get(&query).expect(200), "workflowSnapshot"), data);
        ada.send("DELETE", "/api/workflows/w", &[], None).expect(204);
        assert_eq!(of(&ada.get(&query).expect(200), "workflowSnapshot"), data);
        let refused = ada.get(&format!("/api/executions/{id}?include=steps,all")).expect(400);
        assert!(refused.text.contains("`all` is none of steps, workflowSnapshot, runtimeState"), "{refused:?}");
        // The definition needs the right to read workflows.
        let scopes = Value::List(vec!["executions:read".into()]);
        let made =
            ada.post("/api/tokens", &Value::map([("name", Value::from("looks")), ("scopes", scopes)])).expect(201);
        let looks = server.client(&made.text_at("token"));
        looks.get(&query).expect(403);
        looks.get(&format!("/api/executions/{id}?include=steps,runtimeState")).expect(200);
    });
}

#[test]
fn a_list_shows_names_and_errors() {
    everywhere(|place| {
        let server = place.start();
        let owner = server.owner();
        let fails = "export default () => { throw new Error('no good'); }";
        let fails = Value::map([("id", Value::from("bad")), ("type", "code".into()), ("code", fails.into())]);
        save(&owner, "fails", Value::List(vec![fails]));
        save(&owner, "asks", Value::List(vec![Value::map([("id", Value::from("ask")), ("type", "approval".into())])]));
        let (failed, asks) = (ran(&owner, "fails", "r1"), ran(&owner, "asks", "r1"));
        let denied = ran(&owner, "asks", "r2");
        let deny = Value::map([("approve", Value::Bool(false))]);
        owner.post(&format!("/api/approvals/{denied}:ask:1/decide"), &deny).expect(200);
        owner.get(&format!("/api/executions/{denied}/wait")).expect(200);
        let rows = listed(&owner);
        let row = |id: &str| rows.iter().find(|row| text(row, "id").as_deref() == Some(id)).unwrap();
        assert_eq!(row(&asks).get("error"), Some(&Value::Null));
        for id in [failed, denied] {
            let (short, whole) =
                (row(&id).get("error").unwrap(), of(&owner.get(&format!("/api/executions/{id}")), "error"));
            for key in ["code", "class", "message"] {
                assert_eq!((short.get(key), short.get(key).is_some()), (whole.get(key), true), "{key} of {short:?}");
            }
        }
        assert!(rows.iter().all(|row| text(row, "workflowName") == text(row, "workflowId")), "{rows:?}");
        let of_workflow = owner.get("/api/workflows/fails/executions").expect(200);
        assert!(of_workflow.text.contains("no good"), "{of_workflow:?}");
    });
}

#[test]
fn a_child_has_its_workflow_its_version_and_its_parent() {
    everywhere(|place| {
        let server = place.start();
        let owner = server.owner();
        let nap = Value::map([("id", Value::from("nap")), ("type", "sleep".into()), ("durationMs", 1u64.into())]);
        save(&owner, "leaf", Value::List(vec![nap]));
        let steps = Value::List(vec![calls("down", "leaf", true)]);
        let data = Value::map([("steps", steps)]);
        let body = [("id", Value::from("mid")), ("name", "Middle".into()), ("version", "3.1.4".into()), ("data", data)];
        owner.post("/api/workflows/sync", &Value::map(body)).expect(200);
        save(&owner, "top", Value::List(vec![calls("sub", "mid", true), calls("loose", "mid", false)]));
        let top = ran(&owner, "top", "r1");
        let has_ended = |row: &Value| text(row, "status").unwrap() == "completed";
        let rows = eventually(|| Some(listed(&owner)).filter(|rows| rows.len() == 5 && rows.iter().all(has_ended)));
        let of_workflow = |name: &str| -> Vec<&Value> {
            rows.iter().filter(|row| text(row, "workflowId").as_deref() == Some(name)).collect()
        };
        let mids = of_workflow("mid");
        assert_eq!(mids.len(), 2, "{rows:?}");
        for mid in &mids {
            let words =
                ["workflowName", "workflowVersion", "parentExecutionId", "userId"].map(|key| text(mid, key).unwrap());
            assert_eq!(words, ["Middle", "3.1.4", &top, "owner"]);
        }
        let parents: Vec<_> = of_workflow("leaf").iter().map(|leaf| text(leaf, "parentExecutionId").unwrap()).collect();
        assert!(mids.iter().all(|mid| parents.contains(&text(mid, "id").unwrap())), "{rows:?}");
        // The child by its id with its own definition, and in the list of its workflow.
        let child = text(mids[0], "id").unwrap();
        let shown = owner.get(&format!("/api/executions/{child}?include=workflowSnapshot")).expect(200);
        assert_eq!(shown.text_at("parentExecutionId"), top);
        assert!(of(&shown, "workflowSnapshot").get("steps").is_some(), "{shown:?}");
        let found = owner.get("/api/workflows/mid/executions").expect(200).json();
        assert_eq!(found.get("executions").and_then(Value::as_list).map(<[_]>::len), Some(2));
        // The command line on the folder shows the same.
        let Some(mut show) = place.command(&["show", &child, "--json"]) else { return };
        let output = String::from_utf8(show.output().unwrap().stdout).unwrap();
        assert!(output.contains(&format!(r#""parentExecutionId":"{top}""#)), "{output}");
        let output = place.command(&["show", &child]).unwrap().output().unwrap();
        assert!(String::from_utf8(output.stdout).unwrap().contains(&format!("child of {top}")));
        let output = place.command(&["list"]).unwrap().output().unwrap();
        assert!(String::from_utf8(output.stdout).unwrap().contains(&format!("child of {top}")));
    });
}

/// A child that its parent waits for needs no slot and never waits, but counts toward the limit of its workflow.
#[test]
fn children_count_among_the_executions_of_their_workflow() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = server.owner();
    let limits = r#"{"limits": {"perWorkflow": 1}}"#;
    owner.send("PATCH", "/api/organization", &[], Some(limits)).expect(200);
    let waits = Value::map([("id", Value::from("go")), ("type", "signal".into()), ("signal", "go".into())]);
    save(&owner, "leaf", Value::List(vec![waits]));
    save(&owner, "top", Value::List(vec![calls("sub", "leaf", true)]));
    save(&owner, "loose", Value::List(vec![calls("sub", "leaf", false)]));
    let signal = |id: &str| {
        let signal = Value::map([("id", Value::from("s")), ("name", "go".into()), ("payload", Value::Null)]);
        owner.post(&format!("/api/executions/{id}/signal"), &signal).expect(200);
    };
    let top = start(&owner, "top", "r1", Map::new()).expect(202).text_at("executionId");
    let child = eventually(|| {
        let steps = owner.get(&format!("/api/executions/{top}/steps")).expect(200).json();
        let child = text(steps.get("steps").and_then(Value::as_list)?.first()?, "childExecutionId")?;
        // The child exists after its parent's inbox message was received and committed.
        (owner.get(&format!("/api/executions/{child}")).status == 200).then_some(child)
    });
    // The child is the one running execution of `leaf`, so another one must wait.
    let second = start(&owner, "leaf", "r1", Map::new()).expect(202).text_at("executionId");
    let seen = owner.get(&format!("/api/executions/{second}")).expect(200);
    assert_eq!((seen.text_at("status"), seen.text_at("waitingFor")), ("pending".into(), "workflow".into()));
    signal(&child);
    owner.get(&format!("/api/executions/{top}/wait")).expect(200);
    let ended = |id: &str| {
        signal(id);
        assert_eq!(owner.get(&format!("/api/executions/{id}/wait")).expect(200).text_at("status"), "completed");
    };
    ended(&second);
    // A detached child is queued like any other execution.
    let third = start(&owner, "leaf", "r2", Map::new()).expect(202).text_at("executionId");
    ran(&owner, "loose", "r1");
    let detached = eventually(|| {
        let rows = listed(&owner);
        let is_it = |row: &&Value| text(row, "triggerType").as_deref() == Some("subworkflow_detached");
        rows.iter().find(is_it).and_then(|row| text(row, "id"))
    });
    let seen = owner.get(&format!("/api/executions/{detached}")).expect(200);
    assert_eq!((seen.text_at("status"), seen.text_at("waitingFor")), ("pending".into(), "workflow".into()));
    ended(&third);
    ended(&detached);
}
