//! Migrations: running executions continue with the definition of a proposal that is applied with `migrate`.

use mainspring_kernel::value::{Map, Value};

use super::{
    client::{Client, Reply},
    events::Watcher,
    process::{Server, everywhere},
    start::start,
    support::{MAINSPRING, call, yaml},
};

/// A definition with these steps, which returns a number.
fn definition(steps: &str, number: u32) -> Value {
    yaml(&format!("constraints: {{allowSelfModification: true}}\nsteps: [{steps}]\noutput: {{result: {number}}}\n"))
}

const GO: &str = "{id: go, type: signal, signal: go}";
const MORE: &str = "{id: more, type: signal, signal: more}";

fn sync(client: &Client, data: Value) {
    let body = Value::map([("id", Value::from("w")), ("data", data)]);
    client.post("/api/workflows/sync", &body).expect(200);
}

/// Proposes a definition, and approves it. Returns the path of the proposal.
fn approved(client: &Client, data: Value) -> String {
    let base = client.get("/api/workflows/w").expect(200).json().get("workflowHash").cloned().unwrap();
    let change = Value::map([("proposedWorkflow", data)]);
    let body = Value::map([("baseWorkflowHash", base), ("proposal", change)]);
    let created = client.post("/api/workflows/w/proposals", &body).expect(201);
    let path = format!("/api/workflows/w/proposals/{}", created.text_at("id"));
    client.post(&format!("{path}/review"), &Value::map([("approve", Value::Bool(true))])).expect(200);
    path
}

fn apply(client: &Client, path: &str) -> Reply {
    client.post(&format!("{path}/apply"), &Value::map([("whileRunning", "migrate".into())]))
}

fn start_execution(client: &Client, request: &str) -> String {
    start(client, "w", request, Map::new()).expect(202).text_at("executionId")
}

fn shown(client: &Client, id: &str) -> Value {
    client.get(&format!("/api/executions/{id}")).expect(200).json()
}

fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_text).unwrap_or_default().to_string()
}

/// Polls until an execution has a status.
fn reaches(client: &Client, id: &str, status: &str) -> Value {
    for _ in 0..600 {
        let execution = shown(client, id);
        if text(&execution, "status") == status {
            return execution;
        }
        // The server answers when the execution has settled, or after the time.
        client.get(&format!("/api/executions/{id}/wait?timeoutMs=100")).expect(200);
    }
    panic!("{id} does not become {status}: {:?}", shown(client, id));
}

fn signal(client: &Client, id: &str, name: &str) {
    let body = Value::map([("id", Value::from(name)), ("name", name.into())]);
    client.post(&format!("/api/executions/{id}/signal"), &body).expect(200);
}

/// Polls until an execution waits at a step.
fn waits_at(client: &Client, id: &str, step: &str) {
    for _ in 0..300 {
        let execution = client.get(&format!("/api/executions/{id}?include=runtimeState")).expect(200).json();
        let waiting = execution.get("runtimeState").and_then(|state| state.get("waitingSteps")).cloned();
        if waiting == Some(Value::from(vec![Value::from(step)])) {
            return;
        }
        client.get(&format!("/api/executions/{id}/wait?timeoutMs=100")).expect(200);
    }
    panic!("{id} does not wait at {step}: {:?}", shown(client, id));
}

/// Polls until a migration has ended. The wait for an execution that does not end takes the time between.
fn ended(client: &Client, path: &str, waiting: &str) -> Value {
    for _ in 0..300 {
        let migration = client.get(&format!("{path}/migration")).expect(200).json();
        if text(&migration, "status") == "ended" {
            return migration;
        }
        client.get(&format!("/api/executions/{waiting}/wait?timeoutMs=100")).expect(200);
    }
    panic!("the migration does not end");
}

fn executions(migration: &Value) -> Vec<(String, bool, Vec<String>)> {
    let list = |value: &Value, key: &str| value.get(key).and_then(Value::as_list).unwrap_or_default().to_vec();
    let codes = |execution: &Value| {
        let reasons = list(execution, "reasons");
        reasons.iter().map(|reason| format!("{} {}", text(reason, "code"), text(reason, "stepId"))).collect()
    };
    let of = |execution: &Value| {
        let migrates = execution.get("migrates").and_then(Value::as_bool).unwrap_or_default();
        (text(execution, "executionId"), migrates, codes(execution))
    };
    list(migration, "executions").iter().map(of).collect()
}

fn count(migration: &Value, key: &str) -> u64 {
    migration.get(key).and_then(Value::as_u64).unwrap_or_default()
}

#[test]
fn a_migration_updates_executions_and_names_the_others() {
    everywhere(|place| {
        let (server, mut nodes) = (place.start(), Vec::new());
        nodes.extend(place.another());
        let owner = server.owner();
        sync(&owner, definition(&format!("{GO}, {MORE}"), 1));
        let early: Vec<String> = (0..3).map(|number| start_execution(&owner, &format!("e{number}"))).collect();
        let late = start_execution(&owner, "late");
        early.iter().chain([&late]).for_each(|id| drop(reaches(&owner, id, "running")));
        signal(&owner, &late, "go");
        waits_at(&owner, &late, "more");
        // The execution that waits for `more` has begun a step that the new definition lacks.
        let other = definition(&format!("{GO}, {{id: stop, type: signal, signal: stop}}"), 2);
        let path = approved(&owner, other);
        let preview = owner.get(&format!("{path}/migration")).expect(200).json();
        assert_eq!(text(&preview, "status"), "preview");
        let mut expected: Vec<_> = vec![(late.clone(), false, vec!["step_missing more".to_string()])];
        expected.extend(early.iter().rev().map(|id| (id.clone(), true, Vec::new())));
        assert_eq!(executions(&preview), expected);
        let page = owner.get(&format!("{path}/migration?limit=1")).expect(200).json();
        assert_eq!(executions(&page), expected[..1]);
        let next = text(&page, "nextCursor");
        let page = owner.get(&format!("{path}/migration?limit=2&cursor={next}")).expect(200).json();
        assert_eq!(executions(&page), expected[1..3]);
        let applied = apply(&owner, &path).expect(200).json();
        let treatment = applied.get("proposal").unwrap().get("applied").map(|applied| text(applied, "whileRunning"));
        assert_eq!(treatment.as_deref(), Some("migrate"));
        // A start of the new definition is none of the migration.
        let new = start_execution(&owner, "new");
        let migration = ended(&owner, &path, &late);
        assert_eq!((count(&migration, "migrated"), count(&migration, "stayed")), (3, 1), "{migration:?}");
        assert_eq!(executions(&migration), expected[..1]);
        let hash = owner.get("/api/workflows/w").expect(200).json();
        let (hash, version) = (text(&hash, "workflowHash"), text(&hash, "version"));
        for id in &early {
            let execution = shown(&owner, id);
            assert_eq!(
                (text(&execution, "workflowHash"), text(&execution, "workflowVersion")),
                (hash.clone(), version.clone())
            );
            let snapshot = owner.get(&format!("/api/executions/{id}?include=workflowSnapshot")).expect(200).json();
            assert!(format!("{snapshot:?}").contains("stop"), "{snapshot:?}");
        }
        assert_ne!(text(&shown(&owner, &late), "workflowHash"), hash);
        for (id, name) in early.iter().chain([&new]).map(|id| (id, "stop")).chain([(&late, "more")]) {
            signal(&owner, id, "go");
            signal(&owner, id, name);
            reaches(&owner, id, "completed");
        }
        let result = |id: &String| shown(&owner, id).get("outputs").cloned();
        let output = |number: u32| Some(Value::map([("result", Value::from(number))]));
        assert_eq!(result(&early[0]), output(2));
        assert_eq!(result(&late), output(1));
        let log = owner.get("/api/audit?limit=200").expect(200).json();
        let log = format!("{log:?}");
        for action in ["execution.migrate", "workflow.migration_end"] {
            assert!(log.contains(action), "{action}: {log}");
        }
    });
}

#[test]
fn migrations_exclude_rollouts_and_other_treatments() {
    everywhere(|place| {
        let server = place.start();
        let owner = server.owner();
        sync(&owner, definition(GO, 1));
        let path = approved(&owner, definition(GO, 2));
        let body = yaml("whileRunning: migrate\nrollout: {percent: 10}");
        let refused = owner.post(&format!("{path}/apply"), &body).expect(400);
        assert!(refused.text.contains("a rollout has executions of both definitions"), "{refused:?}");
        owner.get(&format!("{path}/migration?limit=0")).expect(400);
        owner.get(&format!("{path}/migration?cursor=x")).expect(400);
        owner.post(&format!("{path}/apply"), &yaml("whileRunning: pin")).expect(200);
        owner.get(&format!("{path}/migration")).expect(409);
        owner.get("/api/workflows/w/proposals/none/migration").expect(404);
    });
}

#[test]
fn the_command_line_shows_and_applies_a_migration() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path());
    let owner = server.owner();
    sync(&owner, definition(GO, 1));
    let id = start_execution(&owner, "1");
    reaches(&owner, &id, "running");
    let path = approved(&owner, definition(&format!("{GO}, {MORE}"), 2));
    let proposal = path.rsplit('/').next().unwrap_or_default().to_string();
    let run = |arguments: &[&str]| {
        let mut command = std::process::Command::new(MAINSPRING);
        command.args(arguments).env("MAINSPRING_SERVER", format!("http://{}", server.address));
        command.env("MAINSPRING_TOKEN", owner.token()).env("HOME", folder.path());
        let answer = call(command, b"");
        assert_eq!(answer.exit, Some(0), "{answer:?}");
        answer.stdout
    };
    let preview = run(&["proposals", "migration", "w", &proposal]);
    assert!(preview.contains(&id) && preview.contains("continues"), "{preview}");
    let applied = run(&["proposals", "apply", "w", &proposal, "--while-running", "migrate"]);
    assert!(applied.contains("proposals migration"), "{applied}");
    ended(&owner, &path, &id);
    let done = run(&["proposals", "migration", "w", &proposal]);
    assert!(done.contains("1 continued, 0 stayed"), "{done}");
    for name in ["go", "more"] {
        signal(&owner, &id, name);
    }
    reaches(&owner, &id, "completed");
    let events = Watcher::new(&owner, &id, None).all();
    let migrated = events.iter().find(|event| event.kind == "execution.migrated").unwrap();
    assert_eq!(text(&migrated.data, "version"), text(&shown(&owner, &id), "workflowVersion"), "{migrated:?}");
    assert!(events.iter().any(|event| event.kind == "step.completed" && text(&event.data, "stepId") == "more"));
    server.stop();
    // A migration is verified like any other turn, and the archive of the execution has the definition that it ended with.
    let local = |arguments: &[&str]| {
        let mut command = std::process::Command::new(MAINSPRING);
        command.args(arguments).current_dir(folder.path());
        let answer = call(command_at(command, folder.path()), b"");
        assert_eq!(answer.exit, Some(0), "{arguments:?}: {answer:?}");
        answer.stdout
    };
    local(&["verify", "--all", "--dir", "data"]);
    local(&["evidence", "export", &id, "-o", "one.tar", "--dir", "data"]);
    let key = local(&["evidence", "key", "--dir", "data"]);
    std::fs::write(folder.path().join("key.pem"), &key).unwrap();
    local(&["evidence", "verify", "one.tar", "--public-key", "key.pem"]);
    let mut python = std::process::Command::new("python3");
    python.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/verify_evidence.py"));
    python.args(["one.tar", "key.pem"]).current_dir(folder.path());
    let checked = call(python, b"");
    assert_eq!(checked.exit, Some(0), "{checked:?}");
}

fn command_at(mut command: std::process::Command, home: &std::path::Path) -> std::process::Command {
    command.env_clear().env("HOME", home).envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    command
}
