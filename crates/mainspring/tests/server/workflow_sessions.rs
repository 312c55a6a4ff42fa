//! The sessions of executions: their ids and their variables.

use mainspring_kernel::value::{Map, Value};

use super::{
    client::{Client, Reply},
    escapes::{run, said},
    process::everywhere,
    start::{echo, save, start},
};

/// Starts a workflow, waits until it has ended or only gates are open, and returns its execution.
fn settled(client: &Client, workflow: &str, request: &str) -> Reply {
    let id = start(client, workflow, request, Map::new()).expect(202).text_at("executionId");
    client.get(&format!("/api/executions/{id}/wait")).expect(200)
}

/// The values of a key in a list of a response.
fn column(reply: &Reply, list: &str, key: &str) -> Vec<Value> {
    let body = reply.json();
    let rows = body.get(list).and_then(Value::as_list).unwrap_or_else(|| panic!("no list in {reply:?}"));
    rows.iter().map(|row| row.get(key).cloned().unwrap_or_else(|| panic!("no {key} in {row:?}"))).collect()
}

#[test]
fn every_view_of_an_execution_has_its_session() {
    everywhere(|place| {
        let server = place.start();
        let owner = server.owner();
        save(&owner, "hello", echo());
        let ended = settled(&owner, "hello", "r1");
        let id = ended.text_at("id");
        let session = Value::from(format!("sess_{id}"));
        assert_eq!(ended.json().get("sessionId"), Some(&session));
        let one = owner.get(&format!("/api/executions/{id}?include=runtimeState")).expect(200).json();
        let executor = one.get("runtimeState").and_then(|state| state.get("executor")).unwrap();
        assert_eq!(executor.get("sessionId"), Some(&session));
        for list in ["/api/executions", "/api/workflows/hello/executions"] {
            assert_eq!(column(&owner.get(list).expect(200), "executions", "sessionId"), [session.clone()], "{list}");
        }
    });
}

#[test]
fn a_script_of_a_server_knows_its_session() {
    everywhere(|place| {
        let server = place.start_uncontained();
        let show = "printf '%s|' $IS_WORKFLOW_SESSION $WORKFLOW_ID $WORKFLOW_EXECUTION_ID";
        let (ended, steps) = run(&server.owner(), "shows", &[("show", show)]);
        let id = ended.get("id").and_then(Value::as_text).unwrap();
        assert!(said(&steps, "show").contains(&format!("true|shows|{id}|")), "{}", said(&steps, "show"));
    });
}
