//! Kills the server repeatedly during starts, approvals and cancels: everything acknowledged is there, and nothing
//! happens twice.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::Path,
    sync::mpsc,
};

use mainspring_kernel::{
    json::compact,
    value::{Map, Value},
};

use super::{
    client::{Client, Reply},
    process::everywhere,
    start::save,
};

const ROUNDS: usize = 4;
const CLIENTS: usize = 4;

/// Acknowledged requests of a round before the server is killed, while others are in flight.
const ACTS: usize = 40;

/// The requests of one client and their results.
#[derive(Default)]
struct Asked {
    name: usize,
    dice: u64,
    /// Start requests; `Some` execution id if acknowledged.
    starts: Vec<Option<String>>,
    approved: BTreeSet<String>,
    cancelled: BTreeSet<String>,
    /// Executions with an unacknowledged decision, whose result is unknown.
    in_doubt: BTreeSet<String>,
}

impl Asked {
    fn below(&mut self, bound: usize) -> usize {
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.dice >> 33) as usize % bound
    }

    fn request(&self, number: usize) -> String {
        format!("c{}-{number}", self.name)
    }

    /// Sends requests until the server has exited.
    fn work(&mut self, client: &Client, acknowledged: &mpsc::Sender<()>) {
        while self.act(client).is_ok() {
            let _ = acknowledged.send(());
        }
    }

    fn act(&mut self, client: &Client) -> io::Result<()> {
        let open: Vec<String> = self.starts.iter().flatten().filter(|id| !self.is_touched(id)).cloned().collect();
        match self.below(4) {
            0 if !open.is_empty() => {
                let id = open[self.below(open.len())].clone();
                self.in_doubt.insert(id.clone());
                post(client, &format!("/api/executions/{id}/cancel"), &Value::Map(Map::new()), &[200])?;
                self.in_doubt.remove(&id);
                self.cancelled.insert(id);
            }
            1 | 2 if !open.is_empty() => {
                let id = open[self.below(open.len())].clone();
                self.in_doubt.insert(id.clone());
                approve(client, &id)?;
                self.in_doubt.remove(&id);
                self.approved.insert(id);
            }
            _ => {
                let number = self.starts.len();
                self.starts.push(None);
                self.start(client, number)?;
            }
        }
        Ok(())
    }

    fn is_touched(&self, id: &str) -> bool {
        [&self.approved, &self.cancelled, &self.in_doubt].iter().any(|touched| touched.contains(id))
    }

    fn start(&mut self, client: &Client, number: usize) -> io::Result<()> {
        let request = self.request(number);
        let variables = Value::map([("name", Value::from(request.as_str()))]);
        let body = [("workflowId", Value::from("ship")), ("clientRequestId", request.into()), ("variables", variables)];
        let started = post(client, "/api/triggers/manual/run", &Value::map(body), &[200, 202])?.text_at("executionId");
        let known = self.starts[number].get_or_insert_with(|| started.clone());
        assert_eq!(*known, started, "the second of a request is the first");
        Ok(())
    }
}

fn post(client: &Client, path: &str, body: &Value, statuses: &[u16]) -> io::Result<Reply> {
    let reply = client.try_send("POST", path, &[], Some(&compact(body)))?;
    // A server that is stopping or has lost its disk responds; a killed one does not.
    assert!(statuses.contains(&reply.status), "{path}: {reply:?}");
    Ok(reply)
}

fn approve(client: &Client, id: &str) -> io::Result<()> {
    let token = loop {
        let seen = client.try_send("GET", &format!("/api/executions/{id}/wait"), &[], None)?;
        match (seen.status, seen.text_at("status").as_str()) {
            (200, "waiting_approval") => break seen.text_at("resumeToken"),
            (200, "running") => {}
            other => panic!("{id} is {other:?}"),
        }
    };
    let body = Value::map([("approve", Value::Bool(true)), ("resumeToken", token.into())]);
    post(client, &format!("/api/executions/{id}/approve"), &body, &[200]).map(drop)
}

/// All pages of a list.
fn all(client: &Client, path: &str, key: &str) -> Vec<Value> {
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = client.get(&format!("{path}limit=200{cursor}")).expect(200).json();
        found.extend(page.get(key).and_then(Value::as_list).unwrap().iter().cloned());
        match page.get("nextCursor").and_then(Value::as_text) {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return found,
        }
    }
}

fn text_of(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_text).unwrap_or_default().to_string()
}

/// Waits for the end of an execution. Returns its status.
fn end(client: &Client, id: &str) -> String {
    client.get(&format!("/api/executions/{id}/wait")).expect(200).text_at("status")
}

fn steps(file: &Path) -> Value {
    let gate = [("id", Value::from("gate")), ("type", "approval".into()), ("prompt", "Go?".into())];
    let write = format!("echo \"$NAME\" >> '{}'", file.display());
    let work = [
        ("id", Value::from("write")),
        ("type", "bash".into()),
        ("command", write.into()),
        ("env", Value::map([("NAME", Value::from("@vars.name"))])),
        ("onInterrupted", "fail".into()),
    ];
    Value::List(vec![Value::map(gate), Value::map(work)])
}

#[test]
fn nothing_acknowledged_is_lost_and_nothing_happens_twice() {
    everywhere(|place| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("written");
        let mut server = place.start_uncontained();
        let token = server.token.clone().unwrap();
        let mut owner = server.owner();
        save(&owner, "ship", steps(&file));
        let limits = r#"{"limits":{"perUser":100000,"perOrganization":100000}}"#;
        owner.send("PATCH", "/api/organization", &[], Some(limits)).expect(200);
        let mut asked: Vec<Asked> =
            (0..CLIENTS).map(|name| Asked { name, dice: name as u64, ..Asked::default() }).collect();
        for _ in 0..ROUNDS {
            std::thread::scope(|scope| {
                let (sender, acknowledged) = mpsc::channel();
                for client in &mut asked {
                    let (owner, sender) = (owner.clone(), sender.clone());
                    scope.spawn(move || client.work(&owner, &sender));
                }
                acknowledged.iter().take(ACTS).for_each(drop);
                server.kill();
            });
            server = place.start_uncontained();
            owner = server.client(&token);
            // Unacknowledged requests are repeated.
            for client in &mut asked {
                (0..client.starts.len()).for_each(|number| client.start(&owner, number).unwrap());
            }
        }
        check(&owner, &mut asked, &file);
    });
}

fn check(owner: &Client, asked: &mut [Asked], file: &Path) {
    let mut statuses = BTreeMap::new();
    for client in asked.iter() {
        for id in client.starts.iter().flatten() {
            let still_asks = client.in_doubt.contains(id) && end(owner, id) == "waiting_approval";
            if still_asks || !client.is_touched(id) {
                approve(owner, id).unwrap();
            }
            let status = std::iter::repeat_with(|| end(owner, id)).find(|status| status != "waiting_approval").unwrap();
            match status.as_str() {
                "cancelled" => assert!(!client.approved.contains(id), "{id} was approved"),
                // Its script was running when the server was killed.
                "failed" => assert!(!client.cancelled.contains(id), "{id} was cancelled"),
                status => assert_eq!((status, client.cancelled.contains(id)), ("completed", false), "{id}"),
            }
            statuses.insert(id.clone(), status);
        }
    }
    let requests: usize = asked.iter().map(|client| client.starts.len()).sum();
    let listed = all(owner, "/api/executions?", "executions");
    let ids: BTreeSet<String> = listed.iter().map(|execution| text_of(execution, "id")).collect();
    assert_eq!((listed.len(), ids.len(), statuses.len()), (requests, requests, requests));
    check_effects(owner, &statuses, file);
    check_audit(owner, &ids);
}

/// Checks that steps with a receipt ran once, and interrupted ones at most once.
fn check_effects(owner: &Client, statuses: &BTreeMap<String, String>, file: &Path) {
    let written = std::fs::read_to_string(file).unwrap();
    let mut lines: Vec<&str> = written.lines().collect();
    let count = lines.len();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), count, "something happened twice");
    for (id, status) in statuses {
        let name = owner.get(&format!("/api/executions/{id}")).expect(200).json();
        let name = text_of(name.get("variables").unwrap(), "name");
        match status.as_str() {
            "completed" => assert!(lines.contains(&name.as_str()), "{name} is completed and has not happened"),
            "failed" => {}
            _ => assert!(!lines.contains(&name.as_str()), "{name} is {status} and has happened"),
        }
    }
}

/// Checks that every execution has one audit entry of its start, and at most one of its decision.
fn check_audit(owner: &Client, ids: &BTreeSet<String>) {
    let proof = owner.get("/api/audit/verify").expect(200).json();
    assert_eq!(proof.get("ok"), Some(&Value::Bool(true)), "{proof:?}");
    let log = all(owner, "/api/audit?", "entries");
    let acts = log.iter().map(|entry| (text_of(entry, "action"), text_of(entry, "target")));
    let acts: Vec<_> = acts.filter(|(_, target)| ids.contains(target)).collect();
    let once: BTreeSet<_> = acts.iter().collect();
    assert_eq!(once.len(), acts.len(), "an audit entry is written twice");
    // Starts that arrived before the server owned its partitions are audited as enqueued.
    let starts = acts.iter().filter(|(action, _)| action.starts_with("execution.start"));
    assert_eq!(starts.count(), ids.len());
    assert!(acts.iter().any(|(action, _)| action == "execution.cancel"));
}
