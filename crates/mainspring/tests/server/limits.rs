//! Concurrency limits: executions above them are queued, shown as queued, and started in order.

use mainspring_kernel::{
    json::compact,
    value::{Map, Value},
};

use super::{
    client::{Client, Reply},
    process::{Organization, Place, everywhere},
    start::{save, start},
};

fn gate() -> Value {
    Value::List(vec![Value::map([("id", Value::from("gate")), ("type", "approval".into()), ("prompt", "Go?".into())])])
}

fn begin(client: &Client, request: &str) -> String {
    start(client, "ship", request, Map::new()).expect(202).text_at("executionId")
}

fn status_and_queue(client: &Client, id: &str) -> (String, String) {
    let seen = client.get(&format!("/api/executions/{id}")).expect(200);
    let waiting_for = seen.json().get("waitingFor").and_then(Value::as_text).unwrap_or("nothing").to_string();
    (seen.text_at("status"), waiting_for)
}

fn pending(behind: &str) -> (String, String) {
    ("pending".into(), behind.into())
}

/// Waits until an execution has started and its approval is open.
pub(crate) fn asks(client: &Client, id: &str) -> Reply {
    let seen = client.get(&format!("/api/executions/{id}/wait")).expect(200);
    assert_eq!(
        (seen.text_at("status"), seen.json().get("waitingFor")),
        ("waiting_approval".into(), Some(&Value::Null))
    );
    seen
}

pub(crate) fn approve(client: &Client, id: &str) {
    let token = asks(client, id).text_at("resumeToken");
    let body = Value::map([("approve", Value::Bool(true)), ("resumeToken", token.into())]);
    client.post(&format!("/api/executions/{id}/approve"), &body).expect(200);
    // A decision is acknowledged before the node that owns the execution has processed it.
    let ended = std::iter::repeat_with(|| client.get(&format!("/api/executions/{id}/wait")).expect(200))
        .find(|seen| seen.text_at("status") != "waiting_approval")
        .unwrap();
    assert_eq!(ended.text_at("status"), "completed");
}

fn patch(client: &Client, key: &str, value: Value) {
    let body = compact(&Value::map([(key, value)]));
    client.send("PATCH", "/api/organization", &[], Some(&body)).expect(200);
}

fn limit(client: &Client, user: u64, organization: u64, workflow: Option<u64>) {
    let limits = [("perUser", Some(user)), ("perOrganization", Some(organization)), ("perWorkflow", workflow)];
    let limits = limits.into_iter().filter_map(|(name, limit)| Some((name, Value::from(limit?))));
    patch(client, "limits", Value::map(limits));
}

#[test]
fn starts_beyond_a_limit_are_queued_in_order() {
    everywhere(|place| {
        let mut server = place.start();
        let ours = Organization::new(&server, "acme");
        let (ada, bob) = (ours.owner.clone(), ours.member("bob", "member"));
        limit(&ada, 2, 3, None);
        save(&ada, "ship", gate());
        let of_ada: Vec<String> = (0..5).map(|number| begin(&ada, &format!("r{number}"))).collect();
        of_ada[..2].iter().for_each(|id| drop(asks(&ada, id)));
        assert_eq!(status_and_queue(&ada, &of_ada[2]), pending("user"));
        let of_bob = [begin(&bob, "r0"), begin(&bob, "r1")];
        asks(&bob, &of_bob[0]);
        assert_eq!(status_and_queue(&bob, &of_bob[1]), pending("organization"));
        // A repeated request returns the first execution regardless of the limits.
        let again = start(&ada, "ship", "r4", Map::new()).expect(200);
        assert_eq!(again.text_at("executionId"), of_ada[4]);
        // A queued execution that is canceled never starts.
        ada.post(&format!("/api/executions/{}/cancel", of_ada[2]), &Value::Map(Map::new())).expect(200);
        let cancelled = ada.get(&format!("/api/executions/{}/wait", of_ada[2])).expect(200);
        assert_eq!(cancelled.text_at("status"), "cancelled");
        let steps = ada.get(&format!("/api/executions/{}/steps", of_ada[2])).expect(200).json();
        assert_eq!(steps.get("steps"), Some(&Value::List(Vec::new())));
        // Ada's freed slot goes to her own next execution, which was queued before Bob's.
        approve(&ada, &of_ada[0]);
        asks(&ada, &of_ada[3]);
        assert_eq!(status_and_queue(&bob, &of_bob[1]), pending("organization"));
        server.kill();
        if let Some(mut resume) = place.command(&["resume", &of_ada[4]]) {
            let refused = resume.output().unwrap();
            let said = String::from_utf8(refused.stderr).unwrap();
            assert!(refused.status.code() == Some(20) && said.contains("queued by a concurrency limit"), "{said}");
        }
        let server = place.start();
        let [ada, bob] = [ada, bob].map(|client| client.at(&server.address));
        assert_eq!(status_and_queue(&bob, &of_bob[1]), pending("organization"));
        approve(&bob, &of_bob[0]);
        asks(&bob, &of_bob[1]);
        assert_eq!(status_and_queue(&ada, &of_ada[4]), pending("user"));
        limit(&ada, 9, 9, None);
        approve(&ada, &of_ada[4]);
        let events = ada.get(&format!("/api/executions/{}/events", of_ada[4])).expect(200);
        for event in [r#""type":"execution.queued","waitingFor":"user""#, r#""type":"execution.admitted""#] {
            assert!(events.text.contains(event), "{events:?}");
        }
    });
}

#[test]
fn workflow_limits_apply_and_disabled_workflows_do_not_start() {
    everywhere(|place| {
        let server = place.start();
        let owner = Organization::new(&server, "acme").owner;
        limit(&owner, 9, 9, Some(1));
        save(&owner, "ship", gate());
        let [first, second] = ["r0", "r1"].map(|request| begin(&owner, request));
        asks(&owner, &first);
        assert_eq!(status_and_queue(&owner, &second), pending("workflow"));
        // A queued start shows the limit that it waits for.
        let body = Value::map([("workflowId", Value::from("ship")), ("clientRequestId", "r1".into())]);
        let waited = owner.post("/api/triggers/manual/run?wait=1", &body).expect(202);
        assert_eq!((waited.text_at("status"), waited.text_at("waitingFor")), ("running".into(), "workflow".into()));
        let off = |is_on: bool| Value::map([("workflow_runtime_v1", Value::Bool(is_on))]);
        patch(&owner, "features", off(false));
        approve(&owner, &first);
        assert_eq!(status_and_queue(&owner, &second), pending("workflow"));
        patch(&owner, "features", off(true));
        asks(&owner, &second);
        let limits = Value::map([("perUser", Value::from(1u64)), ("perOrganization", 0u64.into())]);
        let nothing = compact(&Value::map([("limits", limits)]));
        owner.send("PATCH", "/api/organization", &[], Some(&nothing)).expect(400);
    });
}

/// A loop of detached starts does not bypass the limits.
#[test]
fn detached_children_count_for_the_limits() {
    everywhere(|place| {
        let mut server = place.start();
        let owner = Organization::new(&server, "acme").owner;
        limit(&owner, 2, 9, None);
        save(&owner, "ship", gate());
        let aside = |id: &str| {
            let step = [("id", Value::from(id)), ("type", "subworkflow".into()), ("workflow", "ship".into())];
            Value::map(step.into_iter().chain([("wait", Value::Bool(false))]))
        };
        let gates = gate().as_list().unwrap_or_default().to_vec();
        save(&owner, "fleet", Value::List(["a", "b", "c"].map(aside).into_iter().chain(gates).collect()));
        let root = start(&owner, "fleet", "r", Map::new()).expect(202).text_at("executionId");
        asks(&owner, &root);
        let of_kind = |client: &Client, status: &str| -> Vec<String> {
            let listed = client.get("/api/executions?limit=50").expect(200).json();
            let rows = listed.get("executions").and_then(Value::as_list).unwrap_or_default().to_vec();
            let said = |row: &Value, key: &str| row.get(key).and_then(Value::as_text).unwrap_or_default().to_string();
            let found = rows.iter().filter(|row| said(row, "triggerType") == "subworkflow_detached");
            found.filter(|row| said(row, "status") == status).map(|row| said(row, "id")).collect()
        };
        let settled = |client: &Client, running: usize, pending: usize| {
            std::iter::repeat_with(|| [of_kind(client, "waiting_approval"), of_kind(client, "pending")])
                .find(|found| found.each_ref().map(Vec::len) == [running, pending])
                .unwrap()
        };
        let [first, waiting] = settled(&owner, 1, 2);
        assert_eq!(status_and_queue(&owner, &waiting[0]), pending("user"));
        server.kill();
        let server = place.start();
        let owner = owner.at(&server.address);
        approve(&owner, &first[0]);
        let [second, _] = settled(&owner, 1, 1);
        approve(&owner, &root);
        let [both, _] = settled(&owner, 2, 0);
        assert!(both.contains(&second[0]));
    });
}

/// Two servers share a store: one of them counts, and executions that the other accepts wait for it.
#[test]
fn limits_apply_across_nodes() {
    everywhere(|place| {
        let Some((one, other)) = two(place) else { return };
        let owner = Organization::new(&one, "acme").owner;
        let there = owner.at(&other.address);
        limit(&owner, 2, 9, None);
        save(&owner, "ship", gate());
        let ids: Vec<String> =
            (0..6).map(|number| begin([&owner, &there][number % 2], &format!("r{number}"))).collect();
        let mut left = ids.clone();
        for _ in 0..3 {
            let begun: Vec<String> = std::iter::repeat_with(|| {
                left.iter()
                    .filter(|id| status_and_queue(&owner, id).0 == "waiting_approval")
                    .cloned()
                    .collect::<Vec<_>>()
            })
            .find(|begun| begun.len() >= 2)
            .unwrap();
            assert_eq!(begun.len(), 2, "no more than may");
            left.retain(|id| !begun.contains(id));
            assert!(left.iter().all(|id| status_and_queue(&there, id).0 == "pending"));
            begun.iter().for_each(|id| approve(&there, id));
        }
        assert!(left.is_empty());
    });
}

fn two(place: &Place) -> Option<(super::process::Server, super::process::Server)> {
    let one = place.start();
    Some((one, place.another()?))
}
