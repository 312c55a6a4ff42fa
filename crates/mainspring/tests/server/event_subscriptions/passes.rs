//! Passes of the sender: their end, the journals that they read, and the times at which executions are due.

use super::*;

#[test]
fn a_change_of_a_subscription_ends_its_pass() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    let endpoint = Endpoint::new(|event| if event.event_type() == "execution.started" { 1 } else { 200 });
    let nodes = nodes(1, Arc::new(MemoryStore::new()), (&NOW, || NOW.load(Ordering::SeqCst)), &endpoint);
    let (id, _) = all_events(&nodes.owner);
    let path = format!("/api/event-subscriptions/{id}");
    let during_a_pass = |change: &dyn Fn()| {
        finished(&nodes, "echo");
        let app = nodes.apps[0].clone();
        let pass = nodes.runtime.spawn(async move { sender::poll(&app).await.is_ok() });
        nodes.runtime.block_on(endpoint.hanging.notified());
        change();
        endpoint.released.notify_one();
        assert!(nodes.runtime.block_on(pass).unwrap());
        poll(&nodes);
        endpoint.types()
    };
    let narrow = r#"{"types": ["workflow.execution.*"]}"#;
    let sent = during_a_pass(&|| drop(nodes.owner.send("PATCH", &path, &[], Some(narrow)).expect(200)));
    assert_eq!(sent, ["execution.enqueued", "execution.started", "execution.finished"]);
    let sent = during_a_pass(&|| drop(nodes.owner.send("DELETE", &path, &[], None).expect(204)));
    assert_eq!(sent, ["execution.enqueued", "execution.started"]);
}

/// The task of a server: it reads the frames of a journal that follow those of its last pass.
#[test]
fn the_events_of_a_running_execution_continue_those_that_were_sent() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    let endpoint = Endpoint::new(|_| 200);
    let nodes = nodes(1, Arc::new(MemoryStore::new()), (&NOW, || NOW.load(Ordering::SeqCst)), &endpoint);
    all_events(&nodes.owner);
    let task = nodes.runtime.spawn(sender::run(nodes.apps[0].clone()));
    let id = finished(&nodes, "waits");
    let until = |last: &str| {
        let has = |received: &Vec<Received>| received.iter().any(|event| event.event_type() == last);
        while !has(&endpoint.received.lock().unwrap()) {
            std::thread::yield_now();
        }
    };
    until("approval.required");
    let open = nodes.owner.get(&format!("/api/executions/{id}")).expect(200).text_at("resumeToken");
    let decision = Value::map([("approve", true.into()), ("resumeToken", open.as_str().into())]);
    nodes.owner.post(&format!("/api/executions/{id}/approve"), &decision).expect(200);
    until("execution.finished");
    task.abort();
    let received = endpoint.take();
    let types: Vec<String> = received.iter().map(Received::event_type).collect();
    let expected = ["execution.enqueued", "execution.started", "step.started", "approval.required"];
    let end = ["approval.approved", "step.completed", "execution.finished"];
    assert_eq!(types, [&expected[..], &end[..]].concat());
    assert_eq!(received[5].data("attempt"), Value::from(1u64), "a fact of an earlier frame");
    assert!(received.is_sorted_by_key(|event| event.text("sequence")));
}

#[test]
fn journals_of_other_workflows_are_not_read() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    let (endpoint, store) = (Endpoint::new(|_| 200), Arc::new(CrowdedStore::default()));
    let nodes = nodes(1, store.clone(), (&NOW, || NOW.load(Ordering::SeqCst)), &endpoint);
    let created = subscribe(&nodes.owner, r#", "types": ["workflow.*"], "workflows": ["waits"]"#).expect(201);
    finished(&nodes, "echo");
    let before = store.frames_read.load(Ordering::SeqCst);
    poll(&nodes);
    assert!(endpoint.take().is_empty());
    assert_eq!(store.frames_read.load(Ordering::SeqCst), before);
    assert_eq!(nodes.store.event_queue().due_events(&created.text_at("id"), DueTimes::by(u64::MAX), 9), Ok(Vec::new()));
}

#[test]
fn a_clock_that_is_set_back_and_a_repair_do_not_wait_for_the_delay() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    let endpoint = Endpoint::new(|_| 500);
    let nodes = nodes(1, Arc::new(MemoryStore::new()), (&NOW, || NOW.load(Ordering::SeqCst)), &endpoint);
    let (id, _) = all_events(&nodes.owner);
    for repair in [true, false] {
        endpoint.answers(|_| 500);
        finished(&nodes, "echo");
        poll(&nodes);
        endpoint.answers(|_| 200);
        poll(&nodes);
        assert_eq!(endpoint.types(), ["execution.enqueued"], "the delay is not over");
        if repair {
            nodes.owner.post(&format!("/api/event-subscriptions/{id}/enable"), &nothing()).expect(200);
        } else {
            nodes.clock.fetch_sub(24 * 3_600_000, Ordering::SeqCst);
        }
        poll(&nodes);
        assert_eq!(endpoint.types(), OF_ECHO);
    }
}

#[test]
fn a_secret_that_cannot_be_read_is_a_failed_attempt() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    let endpoint = Endpoint::new(|_| 200);
    let nodes = nodes(1, Arc::new(MemoryStore::new()), (&NOW, || NOW.load(Ordering::SeqCst)), &endpoint);
    let (id, _) = all_events(&nodes.owner);
    let mut row = nodes.rows("event subscription", "default").remove(0);
    let body = String::from_utf8(row.body).unwrap();
    row.body = body.replace(r#""secret":""#, r#""secret":"other"#).into_bytes();
    nodes.overwrite(vec![row], Vec::new());
    finished(&nodes, "echo");
    poll(&nodes);
    let state = shown(&nodes, &id);
    let error = state.get("lastFailure").and_then(|failure| failure.get("error")).cloned();
    assert_eq!(error, Some(Value::from("subscription_secret_unreadable")));
    // A rotation is the repair, although the previous secret cannot be read either.
    nodes.owner.post(&format!("/api/event-subscriptions/{id}/rotate-secret"), &nothing()).expect(200);
    advance(&nodes, 10_000);
    poll(&nodes);
    assert_eq!(endpoint.types(), OF_ECHO);
}

#[test]
fn a_subscription_to_the_ends_of_its_own_executions_ends() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    let endpoint = Endpoint::new(|_| 200);
    let nodes = nodes(1, Arc::new(MemoryStore::new()), (&NOW, || NOW.load(Ordering::SeqCst)), &endpoint);
    let hook = r#"{"workflowId": "ends", "name": "n", "config": {"type": "webhook", "path": "again"}}"#;
    nodes.owner.send("POST", "/api/triggers", &[], Some(hook)).expect(201);
    subscribe(&nodes.owner, r#", "types": ["workflow.execution.finished"]"#).expect(201);
    finished(&nodes, "ends");
    for hops in 1..=9 {
        poll(&nodes);
        let event = endpoint.take().remove(0);
        assert_eq!(event.hops, hops.to_string());
        let headers = [("webhook-id", event.id.as_str()), ("mainspring-hops", event.hops.as_str())];
        let answer = nodes.owner.send("POST", "/webhooks/again", &headers, Some(&event.body));
        if hops == 9 {
            assert!(answer.expect(409).text.contains("8 webhooks"));
            return;
        }
        let id = answer.expect(202).text_at("executionId");
        nodes.owner.get(&format!("/api/executions/{id}/wait")).expect(200);
    }
}
